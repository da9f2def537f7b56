//! A tool of a server as the rest of the daemon knows tools.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, InputRequest, InputRequiredResult,
    InputResponses, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

use super::client::PROGRESS_QUEUE;
use super::connection::of_sdk;
use super::definition::Definition;
use super::elicitation::{Samples, ask_user};
use super::handle::{Handle, Life, Link};
use super::progress::Progress;
use super::{content, hint};
use crate::config::SamplingPolicy;
use crate::message::{Part, ToolSpec};
use crate::permission::rule::Key;
use crate::telemetry::Redactor;
use crate::tool::user::AskUser;
use crate::tool::{Facts, Metadata, Output, OutputStream, Prepared, Refusal, Run, Tool, Violation};

/// How long a call waits for a server that is being started; then the model gets an error.
const CALL_WAIT: Duration = Duration::from_secs(15);

/// How often a server may end one call with a demand for input: as many as other clients grant.
const MAX_ROUNDS: usize = 10;

/// The most requests of one such demand: as many as may be open in a session.
const MAX_REQUESTS: usize = 16;

/// The pause before a call is sent again for a server that wants nothing but that.
const AGAIN: Duration = Duration::from_millis(250);

/// The tool; its cap is in bytes of text.
#[derive(Clone)]
pub(super) struct McpTool {
    pub(super) definition: Definition,
    pub(super) server: Handle,
    pub(super) output_cap: usize,
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.definition.spec
    }

    fn looks_at_files(&self) -> bool {
        false
    }

    /// Takes any object: the schema is the server's, and so is the check against it.
    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        Ok(Box::new(Call {
            tool: self.clone(),
            input: input.clone(),
            samples: Samples::default(),
        }))
    }
}

struct Call {
    tool: McpTool,
    input: Map<String, Value>,
    samples: Samples,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        let Definition { spec, digest, .. } = &self.tool.definition;
        // A tool that was approved and has changed since is another tool.
        let remember = Key::Tool {
            tool: spec.name.clone(),
            version: Some(digest.clone()),
        };
        Facts {
            timeout: Some(self.tool.server.config.timeout),
            ..Facts::new(spec.danger_level, Some(remember))
        }
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>> {
        Box::pin(async move {
            let patience = CALL_WAIT.min(run.timeout);
            let waiting = tokio::time::timeout(patience, self.tool.server.life());
            let life = match run.cancel.run_until_cancelled(waiting).await {
                Some(Ok(Ok(life))) => life,
                Some(Ok(Err(why))) => return Ok(self.failed(&format!("is not there: {why}"))),
                Some(Err(_)) => return Ok(self.failed("is being started; try again later")),
                None => return Ok(cancelled()),
            };
            Ok(match self.ask(&life.peer, &run).await {
                Ok(output) => output,
                Err(error) => self.broken(&error, &life, run.redactor),
            })
        })
    }
}

impl Call {
    /// Makes the call; again with what the user gives, where the server ends it with a demand for input, as those of
    /// the 2026-07-28 protocol do (SEP-2322, as `model/mrtr.rs` of rmcp 3.9.0 has it, 2026-11-22).
    async fn ask(&self, peer: &Peer<RoleClient>, run: &Run<'_>) -> Result<Output, ServiceError> {
        let mut params = CallToolRequestParams::new(self.tool.definition.remote.clone())
            .with_arguments(self.input.clone());
        let limit = tokio::time::sleep(run.timeout);
        tokio::pin!(limit);
        for _ in 0..MAX_ROUNDS {
            let result = match self.send(peer, run, params.clone(), limit.as_mut()).await? {
                ControlFlow::Continue(result) => result,
                ControlFlow::Break(output) => return Ok(output),
            };
            let ServerResult::InputRequiredResult(demand) = result else {
                return Ok(self.output(result, run.redactor));
            };
            params.request_state.clone_from(&demand.request_state);
            params.input_responses = match self.collect_inputs(demand, run, limit.as_mut()).await? {
                ControlFlow::Continue(responses) => responses,
                ControlFlow::Break(output) => return Ok(output),
            };
        }
        Ok(self.failed(&format!(
            "asked for input {MAX_ROUNDS} times in this call, and had no end"
        )))
    }

    /// Asks the user for all that a server demands; nothing where it only wants the call again.
    async fn collect_inputs(
        &self,
        demand: InputRequiredResult,
        run: &Run<'_>,
        mut limit: Pin<&mut Sleep>,
    ) -> Result<ControlFlow<Output, Option<InputResponses>>, ServiceError> {
        let requests = demand.input_requests.unwrap_or_default();
        if requests.is_empty() {
            // The time limit goes on.
            let pause = tokio::time::sleep(AGAIN);
            return Ok(match run.cancel.run_until_cancelled(pause).await {
                Some(()) => ControlFlow::Continue(None),
                None => ControlFlow::Break(cancelled()),
            });
        }
        if requests.len() > MAX_REQUESTS {
            return Ok(ControlFlow::Break(self.failed(&format!(
                "asks for {} inputs at once, more than {MAX_REQUESTS}",
                requests.len()
            ))));
        }
        let (mut questions, mut known) = (Vec::new(), InputResponses::new());
        for (key, request) in requests {
            let roots = match &request {
                InputRequest::ListRoots(_) => self.tool.server.roots.list(),
                _ => None,
            };
            if let Some(Ok(roots)) = roots.map(serde_json::to_value) {
                known.insert(key, roots);
                continue;
            }
            let elicitations = &self.tool.server.elicitations;
            let question = match request {
                InputRequest::Elicitation(request) => async move {
                    let ask = async |it| ask_user(it, run.user).await;
                    let answer = elicitations.answer(request.params, ask).await;
                    (
                        key,
                        serde_json::to_value(answer).map_err(|it| it.to_string()),
                    )
                }
                .boxed(),
                InputRequest::CreateMessage(request) if self.samples() => async move {
                    let ask = async |it| self.samples.ask(it, run.user).await;
                    let sampled = elicitations.sampled(request.params, ask).await;
                    let sampled = sampled.map_err(|it| it.message.into_owned());
                    let value = sampled
                        .and_then(|it| serde_json::to_value(it).map_err(|it| it.to_string()));
                    (key, value)
                }
                .boxed(),
                // Nothing else was offered to it.
                _ => {
                    return Ok(ControlFlow::Break(self.failed(
                        "asks in the middle of this call for something that is not to be had here",
                    )));
                }
            };
            questions.push(question);
        }
        let since = Instant::now();
        let mut link = self.tool.server.link.clone();
        let gone = async { drop(link.wait_for(|link| !matches!(link, Link::Up(_))).await) };
        let answers = tokio::select! {
            biased;
            () = run.cancel.cancelled() => return Ok(ControlFlow::Break(cancelled())),
            () = gone => return Err(ServiceError::TransportClosed),
            answers = join_all(questions) => answers,
        };
        // Waiting for the user counts towards no limit.
        let later = limit.deadline() + since.elapsed();
        limit.as_mut().reset(later);
        for (key, answer) in answers {
            match answer {
                Ok(answer) => drop(known.insert(key, answer)),
                // There is no answer in this era that says no.
                Err(why) => {
                    let why = format!("asked for an answer of the model, and got none: {why}");
                    return Ok(ControlFlow::Break(self.failed(&why)));
                }
            }
        }
        Ok(ControlFlow::Continue(Some(known)))
    }

    fn samples(&self) -> bool {
        self.tool.server.config.sampling == SamplingPolicy::Ask
    }

    /// Sends the call once and waits for its answer, its time limit or a cancel.
    async fn send(
        &self,
        peer: &Peer<RoleClient>,
        run: &Run<'_>,
        params: CallToolRequestParams,
        mut limit: Pin<&mut Sleep>,
    ) -> Result<ControlFlow<Output, ServerResult>, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut requests = self.tool.server.elicitations.register();
        let mut questions = FuturesUnordered::new();
        let mut since = Instant::now();
        let (follower, mut lines) = mpsc::channel(PROGRESS_QUEUE);
        let mut progress = Progress::default();
        let emit = |line: Option<String>| {
            if let Some(line) = line {
                (run.emit)(OutputStream::Progress, &run.redactor.redact(&line));
            }
        };
        let mut handle = {
            let mut followers = self.tool.server.followers.lock().await;
            let handle = peer
                .send_request_with_option(request, PeerRequestOptions::no_options())
                .await?;
            followers.insert(handle.progress_token.clone(), follower);
            handle
        };
        let token = handle.progress_token.clone();
        let request = handle.id.clone();
        let mut is_paused = false;
        let outcome = loop {
            tokio::select! {
                biased;
                () = run.cancel.cancelled() => {
                    withdraw(handle, "cancelled by the user").await;
                    break Ok(ControlFlow::Break(cancelled()));
                }
                Some(line) = lines.recv() => emit(progress.push(line)),
                () = progress.due() => emit(progress.take()),
                Some(request) = requests.recv() => {
                    if questions.is_empty() {
                        since = Instant::now();
                    }
                    questions.push(request.show(run.user, &self.samples).boxed());
                }
                still = self.stands_still(&request, run.user), if !is_paused => {
                    if questions.is_empty() {
                        since = Instant::now();
                    }
                    is_paused = true;
                    questions.push(still);
                }
                Some(()) = questions.next(), if !questions.is_empty() => {
                    if questions.is_empty() {
                        is_paused = false;
                        // Waiting for the user counts towards no limit.
                        let later = limit.deadline() + since.elapsed();
                        limit.as_mut().reset(later);
                    }
                }
                answer = &mut handle.rx => break match answer {
                    Ok(Ok(result)) => Ok(ControlFlow::Continue(result)),
                    Ok(Err(error)) => Err(error),
                    Err(_) => Err(ServiceError::TransportClosed),
                },
                () = &mut limit, if questions.is_empty() => {
                    let overdue = self.overdue(run.timeout, &request);
                    withdraw(handle, "timed out").await;
                    break Ok(ControlFlow::Break(overdue));
                }
            }
        };
        // The SDK hands progress to tasks of their own: what came before the answer may be on its way.
        tokio::task::yield_now().await;
        self.tool.server.followers.lock().await.remove(&token);
        while let Ok(line) = lines.try_recv() {
            emit(progress.push(line));
        }
        emit(progress.take());
        outcome
    }

    /// Waits until the call waits for somebody who signs in; returns what lasts as long as that, with time limits that stand
    /// still.
    async fn stands_still<'a>(
        &'a self,
        request: &RequestId,
        user: Option<&'a dyn AskUser>,
    ) -> BoxFuture<'a, ()> {
        let Some(sign_in) = &self.tool.server.sign_in else {
            return std::future::pending().await;
        };
        sign_in.until(true, request).await;
        let Some(pause) = user.and_then(AskUser::stand_still) else {
            // Nobody is there who would sign in.
            return std::future::pending().await;
        };
        let request = request.clone();
        async move {
            sign_in.until(false, &request).await;
            drop(pause);
        }
        .boxed()
    }

    fn output(&self, result: ServerResult, redactor: &Redactor) -> Output {
        match result {
            ServerResult::CallToolResult(result) => self.hinted(content::output(
                &self.tool.server.name,
                result,
                self.tool.output_cap,
                redactor,
            )),
            ServerResult::CreateTaskResult(_) => self.failed(
                "made a task of this call to be asked about later, which was not asked for",
            ),
            _ => self.failed("gave an answer that does not belong to a call"),
        }
    }

    fn broken(&self, error: &ServiceError, life: &Life, redactor: &Redactor) -> Output {
        match error {
            ServiceError::McpError(error) => self.hinted(content::text_output(
                &self.tool.server.name,
                &format!("{} (code {})", error.message, error.code.0),
                true,
                self.tool.output_cap,
                redactor,
            )),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                life.broken.cancel();
                self.failed("ended during the call; what it had done by then is not known, and it is started again")
            }
            other => self.failed(&format!("failed: {}", of_sdk(other))),
        }
    }

    /// Adds what to do where the server could not reach a file.
    fn hinted(&self, mut output: Output) -> Output {
        let texts = output.content.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Image { .. } | Part::Document(_) => None,
        });
        let transport = &self.tool.server.config.transport;
        let mut hints =
            texts.filter_map(|text| hint::hint(&self.tool.server.name, transport, text));
        if let Some(hint) = hints.next().filter(|_| output.is_error) {
            output.content.push(Part::text(format!("\n{hint}")));
        }
        output
    }

    fn overdue(&self, limit: Duration, request: &RequestId) -> Output {
        let sign_in = self.tool.server.sign_in.as_ref();
        let awaited = sign_in.and_then(|sign_in| sign_in.is_awaited(request));
        let awaited = awaited.map(|open| format!("; {open}"));
        let mut output = self.failed(&format!(
            "did not answer within {} s (mcp.servers.{}.timeout){}",
            limit.as_secs_f64(),
            self.tool.server.name,
            awaited.unwrap_or_default()
        ));
        output.metadata.timed_out = true;
        output
    }

    fn failed(&self, what: &str) -> Output {
        Output::error(format!("the MCP server `{}` {what}", self.tool.server.name)).with(Metadata {
            provider: Some(self.tool.server.name.to_string()),
            ..Metadata::default()
        })
    }
}

/// Tells the server that nobody waits any more.
async fn withdraw(handle: RequestHandle<RoleClient>, reason: &str) {
    /// A server that does not read is not waited for.
    const PATIENCE: Duration = Duration::from_secs(1);
    let cancelled = handle.cancel(Some(reason.to_owned()));
    if !matches!(tokio::time::timeout(PATIENCE, cancelled).await, Ok(Ok(()))) {
        tracing::debug!("an MCP server could not be notified of a cancel");
    }
}

fn cancelled() -> Output {
    Output::error("cancelled").with(Metadata {
        cancelled: true,
        ..Metadata::default()
    })
}
