//! A tool of a server as the rest of the daemon knows tools.

use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::client::PROGRESS_QUEUE;
use super::connection::of_sdk;
use super::content;
use super::definition::Definition;
use super::server::{Handle, Life};
use crate::message::{Danger, ToolSpec};
use crate::tool::{
    Facts, Metadata, Output, OutputStream, Prepared, Refusal, RememberKey, Run, Tool, Violation,
};

/// How long a call waits for a server that is being started; then the model is told.
const START_PATIENCE: Duration = Duration::from_secs(15);

/// The tool.
pub(super) struct McpTool {
    definition: Definition,
    server: Handle,
    output_cap: usize,
}

impl McpTool {
    /// Makes the tool; `output_cap` is in bytes of text.
    pub(super) fn new(definition: Definition, server: Handle, output_cap: usize) -> Self {
        Self {
            definition,
            server,
            output_cap,
        }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.definition.spec
    }

    /// Takes any object: the schema is the server's, and so is the check against it.
    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        Ok(Box::new(Call {
            definition: self.definition.clone(),
            server: self.server.clone(),
            output_cap: self.output_cap,
            input: input.clone(),
        }))
    }
}

struct Call {
    definition: Definition,
    server: Handle,
    output_cap: usize,
    input: Map<String, Value>,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        let Definition { spec, digest, .. } = &self.definition;
        Facts {
            danger: Danger {
                level: spec.danger_level,
                reasons: Vec::new(),
            },
            paths: Vec::new(),
            walks: false,
            commands: Vec::new(),
            findings: Vec::new(),
            plain: true,
            network: false,
            // A tool that was approved and has changed since is another tool.
            remember: Some(RememberKey::Tool(format!("{} {digest}", spec.name))),
            timeout: Some(self.server.config.timeout),
        }
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let patience = START_PATIENCE.min(run.timeout);
            let waiting = tokio::time::timeout(patience, self.server.life());
            let life = match run.cancel.run_until_cancelled(waiting).await {
                Some(Ok(Ok(life))) => life,
                Some(Ok(Err(why))) => return Ok(self.failed(&format!("is not there: {why}"))),
                Some(Err(_)) => return Ok(self.failed("is being started; try again later")),
                None => return Ok(cancelled()),
            };
            Ok(match self.ask(&life.peer, &run).await {
                Ok(output) => output,
                Err(error) => self.broken(&error, &life),
            })
        })
    }
}

impl Call {
    /// Sends the call and waits for its answer, its time limit or a cancel.
    async fn ask(&self, peer: &Peer<RoleClient>, run: &Run<'_>) -> Result<Output, ServiceError> {
        let params = CallToolRequestParams::new(self.definition.remote.clone())
            .with_arguments(self.input.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut asking = self.server.askers.enter();
        let mut questions = FuturesUnordered::new();
        let mut asked = Instant::now();
        let (follower, mut progress) = mpsc::channel(PROGRESS_QUEUE);
        let mut handle = {
            let mut followers = self.server.followers.lock().await;
            let handle = peer
                .send_request_with_option(request, PeerRequestOptions::no_options())
                .await?;
            followers.insert(handle.progress_token.clone(), follower);
            handle
        };
        let token = handle.progress_token.clone();
        let limit = tokio::time::sleep(run.timeout);
        tokio::pin!(limit);
        let outcome = loop {
            tokio::select! {
                biased;
                () = run.cancel.cancelled() => {
                    withdraw(handle, "cancelled by the user").await;
                    break Ok(cancelled());
                }
                Some(line) = progress.recv() => (run.emit)(OutputStream::Progress, &line),
                Some(question) = asking.next() => {
                    if questions.is_empty() {
                        asked = Instant::now();
                    }
                    questions.push(question.put(run.user));
                }
                Some(()) = questions.next(), if !questions.is_empty() => {
                    if questions.is_empty() {
                        // Waiting for the user counts towards no limit.
                        let later = limit.deadline() + asked.elapsed();
                        limit.as_mut().reset(later);
                    }
                }
                answer = &mut handle.rx => break match answer {
                    Ok(Ok(result)) => Ok(self.output(result)),
                    Ok(Err(error)) => Err(error),
                    Err(_) => Err(ServiceError::TransportClosed),
                },
                () = &mut limit, if questions.is_empty() => {
                    withdraw(handle, "timed out").await;
                    break Ok(self.overdue(run.timeout));
                }
            }
        };
        // The SDK hands progress to tasks of their own: what came before the answer may be on its way.
        tokio::task::yield_now().await;
        self.server.followers.lock().await.remove(&token);
        while let Ok(line) = progress.try_recv() {
            (run.emit)(OutputStream::Progress, &line);
        }
        outcome
    }

    fn output(&self, result: ServerResult) -> Output {
        match result {
            ServerResult::CallToolResult(result) => {
                content::output(&self.server.name, result, self.output_cap)
            }
            ServerResult::InputRequiredResult(_) => self.failed(
                "asks the user for input in the middle of this call, which is not possible here; call it with everything that it needs",
            ),
            ServerResult::CreateTaskResult(_) => {
                self.failed("made a task of this call to be asked about later, which was not asked for")
            }
            _ => self.failed("gave an answer that does not belong to a call"),
        }
    }

    fn broken(&self, error: &ServiceError, life: &Life) -> Output {
        match error {
            ServiceError::McpError(error) => content::told(
                &self.server.name,
                &format!("{} (code {})", error.message, error.code.0),
                true,
                self.output_cap,
            ),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                life.broken.cancel();
                self.failed("ended during the call; what it had done by then is not known, and it is started again")
            }
            other => self.failed(&format!("failed: {}", of_sdk(other))),
        }
    }

    fn overdue(&self, limit: Duration) -> Output {
        let mut output = self.failed(&format!(
            "did not answer within {} s (mcp.servers.{}.timeout)",
            limit.as_secs_f64(),
            self.server.name
        ));
        output.metadata.timed_out = true;
        output
    }

    fn failed(&self, what: &str) -> Output {
        Output::error(format!("the MCP server `{}` {what}", self.server.name)).with(Metadata {
            provider: Some(self.server.name.to_string()),
            ..Metadata::default()
        })
    }
}

/// Tells the server that nobody waits any more.
async fn withdraw(handle: RequestHandle<RoleClient>, reason: &str) {
    /// A server that does not read is not waited for.
    const PATIENCE: Duration = Duration::from_secs(1);
    let told = handle.cancel(Some(reason.to_owned()));
    if !matches!(tokio::time::timeout(PATIENCE, told).await, Ok(Ok(()))) {
        tracing::debug!("an MCP server could not be told of a cancel");
    }
}

fn cancelled() -> Output {
    Output::error("cancelled").with(Metadata {
        cancelled: true,
        ..Metadata::default()
    })
}
