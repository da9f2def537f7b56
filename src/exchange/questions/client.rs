//! Calls that the client runs: handed out, answered once, and taken back.
//!
//! Such a call has a clock of its own, which stands still while no client is connected (`registry`): a page that is being
//! loaded anew loses none of the time of its calls.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::registry::Presence;
use super::{Open, Question, QuestionId, Questions, Unanswered};
use crate::exchange::context::{Context, SessionContext};
use crate::message::ToolCategory;
use crate::protocol::client_tools::{
    ClientOutput, HandedBack, HandedBackReason, HandedOut, OutputTaken,
};
use crate::protocol::event::{By, Event, SessionError};
use crate::protocol::{Content, SessionCode};
use crate::tool::client::Answer;
use crate::tool::user::Returned;

/// Lines of progress that wait for the call that they are of: it takes them at once, so this is slack.
pub(crate) const MAX_PROGRESS: usize = 64;

/// The longest line of progress, in bytes.
const MAX_LINE: usize = 16 * 1024;

/// The most lines of progress in a second; the rest is not passed on.
const LINES_PER_SECOND: u32 = 20;

/// How much more time than its limit a call may get by signs of progress, as a factor, unless people take long anyway.
const MOST_EXTENSION: u32 = 4;

/// From which limit on a call may go on for as long as there are signs of progress.
const LONG: Duration = Duration::from_secs(3_600);

pub(crate) struct ClientQuestion {
    /// What the client is told; its deadline is set when it is announced.
    pub call: HandedOut,
    /// How long an output is waited for, from the last sign of progress on.
    pub timeout: Duration,
    pub returned: oneshot::Sender<Returned>,
    pub progress: mpsc::Sender<String>,
    clock: Clock,
    rate: Rate,
    /// Bytes of progress that were not passed on.
    omitted: u64,
}

/// How much of the time with a client a call has.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    opened: Duration,
    until: Duration,
}

/// Lines in the second that runs.
#[derive(Debug)]
struct Rate {
    since: Instant,
    lines: u32,
}

impl ClientQuestion {
    pub(crate) fn new(
        call: HandedOut,
        timeout: Duration,
        returned: oneshot::Sender<Returned>,
        progress: mpsc::Sender<String>,
    ) -> Self {
        Self {
            call,
            timeout,
            returned,
            progress,
            clock: Clock::default(),
            rate: Rate {
                since: Instant::now(),
                lines: 0,
            },
            omitted: 0,
        }
    }

    /// Begins its clock.
    pub(super) fn begin(&mut self, presence: Presence) {
        let now = presence.total();
        self.clock = Clock {
            opened: now,
            until: now.saturating_add(self.timeout),
        };
    }

    /// Returns when it expires unless the client goes; `None` while there is none.
    pub(super) fn expires(&self, presence: Presence) -> Option<Instant> {
        presence.at(self.clock.until)
    }

    /// Returns how it is announced now.
    pub(super) fn announced(&self, presence: Presence) -> HandedOut {
        let left = self.clock.until.saturating_sub(presence.total());
        let at = jiff::Timestamp::now().checked_add(left).ok();
        let at = at.filter(|_| presence.is_there());
        HandedOut {
            expires_at: at.map(|at| format!("{at:.3}")),
            ..self.call.clone()
        }
    }

    /// Passes a line of progress on, which gives the call more time.
    fn progress(&mut self, line: String, presence: Presence) {
        let now = presence.total();
        let mut until = now.saturating_add(self.timeout);
        if self.timeout <= LONG {
            let most = self.timeout.saturating_mul(MOST_EXTENSION);
            until = until.min(self.clock.opened.saturating_add(most));
        }
        self.clock.until = self.clock.until.max(until);
        if self.rate.since.elapsed() >= Duration::from_secs(1) {
            self.rate = Rate {
                since: Instant::now(),
                lines: 0,
            };
        }
        self.rate.lines = self.rate.lines.saturating_add(1);
        let bytes = line.len() as u64;
        let passes = self.rate.lines <= LINES_PER_SECOND;
        if !passes || self.progress.try_send(line).is_err() {
            self.omitted = self.omitted.saturating_add(bytes);
        }
    }

    pub(super) fn settle_unanswered(self, how: Unanswered, context: &Context) {
        let is_there = context.session.questions.presence().is_there();
        let (reason, returned) = match how {
            Unanswered::Expired => (HandedBackReason::Timeout, Returned::Expired),
            Unanswered::Withdrawn(By::Shutdown) if is_there => {
                (HandedBackReason::Shutdown, Returned::Cancelled)
            }
            Unanswered::Withdrawn(By::Shutdown) => (HandedBackReason::Shutdown, Returned::Gone),
            Unanswered::Gone => (HandedBackReason::Gone, Returned::Gone),
            Unanswered::Withdrawn(_) => (HandedBackReason::Cancel, Returned::Cancelled),
        };
        tracing::info!(tool_id = %self.call.tool_id, ?reason, "a call was taken back from the client");
        context.events().emit(Event::ChatToolCancelled(HandedBack {
            conversation_id: self.call.conversation_id,
            message_id: self.call.message_id,
            tool_id: self.call.tool_id,
            reason,
        }));
        // Who waited may be gone.
        drop(self.returned.send(returned));
    }
}

impl Questions {
    /// Takes progress of a call, or its output. Where that does not fit, the call stays open.
    pub(super) fn output(
        &self,
        output: ClientOutput,
        context: &Context,
    ) -> Result<Event, SessionError> {
        let id = QuestionId::Client(output.tool_id.clone());
        let mut found = self.find(&id);
        let Some(Open {
            question: Question::Client(open),
            ..
        }) = found.as_deref_mut()
        else {
            drop(found);
            return late(&output, &context.session);
        };
        let tool_id = output.tool_id.clone();
        let accepted = |accepted| {
            Event::ChatToolOutputResult(OutputTaken {
                tool_id,
                accepted,
                duplicate: false,
            })
        };
        let digest = digest(&output);
        let ends = output.content.is_some() || output.structured.is_some();
        let wrong = |problem: String| {
            let message = format!("{problem}; the call stays open");
            SessionError::new(SessionCode::InvalidPayload, message)
        };
        match &output.chunk {
            Some(chunk) if chunk.len() > MAX_LINE => {
                let bytes = chunk.len();
                return Err(wrong(format!(
                    "field `chunk`: {bytes} bytes are more than {MAX_LINE}"
                )));
            }
            None if !ends => {
                return Err(wrong(
                    "one of the fields `content`, `structured` and `chunk` is needed".to_owned(),
                ));
            }
            _ => {}
        }
        let presence = context.session.questions.presence();
        if !ends {
            if let Some(mut line) = output.chunk {
                line.push('\n');
                open.progress(line, presence);
            }
            return Ok(accepted(true));
        }
        let content = output.content.map(Content::into_parts).unwrap_or_default();
        let answer = Answer::new(content, output.structured, output.is_error, open.omitted);
        let answer = answer.map_err(wrong)?;
        if let Some(mut line) = output.chunk {
            line.push('\n');
            open.progress(line, presence);
        }
        drop(found);
        let Some(Question::Client(open)) = self.close(&id, context) else {
            return Ok(accepted(false));
        };
        // Before anybody is told of it: the same output may come again at once.
        context.session.questions.answered(output.tool_id, digest);
        let returned = Returned::Answer(Box::new(answer));
        Ok(accepted(open.returned.send(returned).is_ok()))
    }
}

/// Answers an output for a call that does not wait for one.
pub(crate) fn late(output: &ClientOutput, session: &SessionContext) -> Result<Event, SessionError> {
    let tool_id = &output.tool_id;
    if session.questions.was_answered(tool_id, &digest(output)) {
        return Ok(Event::ChatToolOutputResult(OutputTaken {
            tool_id: tool_id.clone(),
            accepted: true,
            duplicate: true,
        }));
    }
    let (code, problem) = match session.executions.get(tool_id) {
        None => (
            SessionCode::ToolNotFound,
            format!("no tool call `{tool_id}` is known in this session"),
        ),
        Some(record) if record.category != ToolCategory::Client => (
            SessionCode::Forbidden,
            format!("the call `{tool_id}` is the daemon's to run, not the client's"),
        ),
        Some(_) => (
            SessionCode::ToolNotFound,
            format!(
                "the call `{tool_id}` does not wait for an output: it was not handed out yet, or was answered, cancelled or given up"
            ),
        ),
    };
    Err(SessionError::new(code, problem))
}

/// Returns by what an output is known when it comes again.
fn digest(output: &ClientOutput) -> [u8; 32] {
    let json = serde_json::to_vec(output).unwrap_or_default();
    Sha256::digest(json).into()
}
