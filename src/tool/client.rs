//! Tools that the client runs: the daemon decides about a call, hands it out and waits for its output.
//!
//! What a client says of a tool is checked in `definition`, what it answers in `output`. How a call is handed out and how
//! it ends is a question of the conversation's table ([`AskUser::hand_out`](super::user::AskUser::hand_out)).

mod definition;
mod output;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::user::{HandOut, Returned};
use super::{Facts, Metadata, Output, OutputStream, Prepared, Refusal, Run, Slot, Tool, Violation};
use crate::json_schema::ObjectSchema;
use crate::message::{Danger, DangerLevel, ToolSpec};
use crate::permission::rule::Key;

pub use definition::{Approval, Declared, MAX_DECLARED, Undefined};
pub use output::{Answer, MAX_STRUCTURED};

/// What stands before the name of a client's tool: none of another origin has such a name.
pub const PREFIX: &str = "client__";

/// Where a client's tool comes from.
pub const ORIGIN: &str = "client";

/// A tool of the client.
pub struct ClientTool {
    spec: ToolSpec,
    /// Its name as it was registered.
    name: String,
    /// Of all that was registered of it: another one is another tool.
    digest: String,
    /// What its input has to fit.
    input: ObjectSchema,
    approval: Approval,
    timeout: Duration,
    interactive: bool,
    /// Most bytes of text that the model is given of an answer.
    output_cap: usize,
    /// Whether it was removed, or replaced by another one of its name.
    is_gone: AtomicBool,
}

impl ClientTool {
    /// Returns its name for the model.
    pub fn full_name(&self) -> &str {
        &self.spec.name
    }

    /// Returns how long a call may wait for its output.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns whether two are the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    /// Has calls of it that were not handed out yet fail.
    pub fn withdraw(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }
}

/// A tool that the session holds too, to withdraw it.
pub struct Shared(pub std::sync::Arc<ClientTool>);

impl Tool for Shared {
    fn spec(&self) -> &ToolSpec {
        &self.0.spec
    }

    fn looks_at_files(&self) -> bool {
        false
    }

    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        let tool = &self.0;
        tool.input
            .check(&Value::Object(input.clone()))
            .map_err(|problem| {
                Refusal::Invalid(format!(
                    "the input of `{}` does not fit: {problem}",
                    tool.spec.name
                ))
            })?;
        Ok(Box::new(Call {
            tool: std::sync::Arc::clone(tool),
            input: input.clone(),
        }))
    }
}

struct Call {
    tool: std::sync::Arc<ClientTool>,
    input: Map<String, Value>,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        let ClientTool {
            spec,
            digest,
            approval,
            ..
        } = &*self.tool;
        // A tool that was approved and has changed since is another tool.
        let key = Key::Tool {
            tool: spec.name.clone(),
            version: Some(digest.clone()),
        };
        let (danger, remember) = match approval {
            Approval::Trust => (Danger::plain(spec.danger_level), Some(key)),
            Approval::Always => {
                let reason = "the client wants each call of this tool to be asked for";
                (Danger::new(spec.danger_level, reason), None)
            }
            // The tool's own level is higher: it is not offered where only reading is.
            Approval::Never => (Danger::plain(DangerLevel::Safe), Some(key)),
        };
        Facts {
            danger,
            timeout: Some(self.tool.timeout),
            ..Facts::new(spec.danger_level, remember)
        }
    }

    fn slot(&self) -> Slot {
        Slot::Elsewhere
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>> {
        Box::pin(async move {
            let tool = &self.tool;
            let name = &tool.spec.name;
            let Some(user) = run.user else {
                return Ok(Output::error(format!(
                    "no client can be reached for `{name}`"
                )));
            };
            if tool.is_gone.load(Ordering::Relaxed) {
                return Ok(Output::error(format!(
                    "`{name}` is no longer offered as it was when it was called, so the call was not handed to the client"
                )));
            }
            let call = HandOut {
                tool_name: name.clone(),
                name: tool.name.clone(),
                input: self.input,
                timeout: run.timeout,
                interactive: tool.interactive,
            };
            let progress = |line: &str| (run.emit)(OutputStream::Progress, line);
            Ok(match user.hand_out(call, &progress).await {
                Returned::Answer(answer) => {
                    output::output(&tool.name, *answer, tool.output_cap, run.redactor)
                }
                Returned::Expired => unanswered(
                    format!(
                        "the client did not answer within {} s; whether the action happened is unknown",
                        run.timeout.as_secs_f64()
                    ),
                    |metadata| metadata.timed_out = true,
                ),
                Returned::Cancelled => unanswered(
                    "cancelled after the client was given the call; whether the action happened is unknown".to_owned(),
                    |metadata| metadata.cancelled = true,
                ),
                Returned::Gone => unanswered(
                    format!("the client that `{name}` is of went away; whether the action happened is unknown"),
                    |_| {},
                ),
            })
        })
    }
}

fn unanswered(text: String, say: impl FnOnce(&mut Metadata)) -> Output {
    let mut metadata = Metadata {
        provider: Some(ORIGIN.to_owned()),
        ..Metadata::default()
    };
    say(&mut metadata);
    Output::error(text).with(metadata)
}
