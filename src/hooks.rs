//! Hooks: programs and endpoints of the operator that are asked at certain points, and may refuse, change the input of a
//! call, or add a note. `docs/hooks.md` has what they are sent and what they may answer.
//!
//! A project has none: they are in the operator's configuration alone. A hook that fails does what its `on_failure` says.
//! [`Hooks::ask`] is the one way to ask: what comes of it has no secrets in it, and of failures the client was told.

mod program;

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, HookConfig, HookPoint, HookTarget, OnFailure, SandboxPolicy};
use crate::http::{Clients, causes};
use crate::message::{ConversationId, MessageId, Notice, SessionId, Severity};
use crate::protocol::envelope::tree;
use crate::protocol::word;
use crate::sandbox::{Network, Sandbox};
use crate::telemetry::Redactor;
use crate::tool::exec::Exec;

use program::Program;

/// Hooks of the whole daemon that run at once; further ones wait.
const AT_ONCE: usize = 8;

/// The longest answer, in bytes: an input that was changed may be a whole file.
const MAX_ANSWER: usize = 1 << 20;

/// The longest reason, and the longest note, in bytes; what is beyond is left out.
const MAX_TEXT: usize = 8 * 1024;

/// How a note begins, and how what keeps a model from its end does: by this they are told from the user's words.
const NOTE: &str = "[note of the hook ";
const HELD: &str = "[not done yet: the hook ";

/// What asks hooks; clones share it.
#[derive(Clone)]
pub(crate) struct Hooks {
    /// For programs that are not to be confined.
    unconfined: Option<Sandbox>,
    clients: Clients,
    places: Arc<Semaphore>,
    redactor: Redactor,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            unconfined: None,
            clients: Clients::guarded(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            redactor: Redactor::default(),
        }
    }
}

/// What the hooks of one point said together.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Why it is not to be, and whose word that is; nothing further was asked then.
    pub(crate) refused: Option<Refused>,
    /// The input of a call, where it was changed, and the hook that changed it last.
    pub(crate) changed: Option<(Map<String, Value>, String)>,
    /// What is to be told besides, each with its hook's name.
    pub(crate) notes: Vec<String>,
}

/// A hook's no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    hook: String,
    reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the hook `{}` refused: {}", self.hook, self.reason)
    }
}

impl Refused {
    /// Returns what the model reads that is not to end yet.
    pub(crate) fn held(&self) -> String {
        let Self { hook, reason } = self;
        format!("{HELD}`{hook}` refused: {reason}]")
    }
}

/// Returns whether these are a hook's words, in a message of the user's side.
pub(crate) fn is_of_hook(text: &str) -> bool {
    text.starts_with(NOTE) || text.starts_with(HELD)
}

/// Returns what a client is told of hooks.
pub(crate) fn notice(severity: Severity, code: &str, message: String) -> Notice {
    Notice {
        severity,
        code: code.to_owned(),
        message,
    }
}

/// What hooks are asked about.
pub(crate) struct Matter<'a> {
    pub(crate) on: HookPoint,
    /// The tool, where it is about a call.
    pub(crate) tool: Option<&'a str>,
    pub(crate) session: &'a SessionId,
    pub(crate) conversation: &'a ConversationId,
    /// The exchange, where one runs.
    pub(crate) exchange: Option<&'a MessageId>,
    /// How programs are run in the project's folder, or why there is none.
    pub(crate) exec: Result<&'a Exec, &'a str>,
    /// The places of the user.
    pub(crate) places: &'a Semaphore,
    /// Tells the session's client something.
    pub(crate) tell: &'a (dyn Fn(Notice) + Send + Sync),
}

/// What one hook answers. Nothing at all is a yes.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Answer {
    decision: Decision,
    reason: String,
    input: Option<Map<String, Value>>,
    note: String,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    #[default]
    Allow,
    Refuse,
}

/// Why a hook has no answer.
#[derive(Debug)]
struct Failure {
    /// In words for everybody.
    told: String,
    /// What it wrote to its standard error: it may name files and servers of the operator, so it is for the log alone.
    wrote: String,
}

impl From<String> for Failure {
    fn from(told: String) -> Self {
        Self {
            told,
            wrote: String::new(),
        }
    }
}

impl Hooks {
    /// Returns what asks them; programs that are not to be confined run in `unconfined`.
    pub(crate) fn new(unconfined: Sandbox, redactor: Redactor) -> Self {
        Self {
            unconfined: Some(unconfined),
            redactor,
            ..Self::default()
        }
    }

    /// Asks the hooks of a point one after the other, until one refuses; `more` is what they are sent besides, for a call its
    /// `tool`. Each is sent the input as the one before left it.
    ///
    /// `None` where it was cancelled meanwhile.
    pub(crate) async fn ask(
        &self,
        config: &Config,
        matter: Matter<'_>,
        more: impl FnOnce() -> Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Option<Said> {
        let mut said = Said::default();
        let hooks = config.hooks.iter();
        let asked: Vec<&HookConfig> = hooks
            .filter(|hook| hook.is_asked(matter.on, matter.tool))
            .collect();
        if asked.is_empty() {
            return Some(said);
        }
        let mut body = body(&matter, more());
        for hook in asked {
            let answer = self.ask_one(config, hook, &matter, &body);
            let answer = cancel.run_until_cancelled(answer).await?;
            let answer = answer.and_then(|answer| match (&answer.input, matter.on) {
                (Some(_), on) if on != HookPoint::BeforeTool => {
                    let told = "it changed an input, which goes with before_tool alone";
                    Err(told.to_owned().into())
                }
                _ => Ok(answer),
            });
            let name = &hook.name;
            match answer {
                Ok(answer) if answer.decision == Decision::Refuse => {
                    said.refused = Some(self.refused(name, &answer.reason));
                    return Some(said);
                }
                Ok(answer) => {
                    if let Some(input) = answer.input {
                        if let Some(tool) = body.get_mut("tool") {
                            tool["input"] = Value::Object(input.clone());
                        }
                        said.changed = Some((input, name.clone()));
                    }
                    let note = self.clean(&answer.note);
                    if !note.is_empty() {
                        said.notes.push(format!("{NOTE}`{name}`: {note}]"));
                    }
                }
                Err(problem) => {
                    said.refused = self.failed(hook, &problem, matter.tell);
                    if said.refused.is_some() {
                        return Some(said);
                    }
                }
            }
        }
        Some(said)
    }

    /// Tells of a hook that has no answer; returns its no, where that is what it comes to.
    fn failed(
        &self,
        hook: &HookConfig,
        problem: &Failure,
        tell: &(dyn Fn(Notice) + Send + Sync),
    ) -> Option<Refused> {
        let wrote = self.clean(&problem.wrote);
        let problem = self.clean(&problem.told);
        let (name, on) = (&hook.name, word(&hook.on));
        tracing::warn!(hook = name, on, problem, wrote, "a hook failed");
        let (what, refused) = match hook.on_failure {
            OnFailure::Refuse => {
                let refused = self.refused(name, &format!("it failed: {problem}"));
                ("it counts as refused", Some(refused))
            }
            OnFailure::Continue => ("things go on without it", None),
        };
        let message =
            format!("the hook `{name}` ({on}) failed: {problem}; {what} (hooks.{name}.on_failure)");
        tell(notice(Severity::Warning, "hook_failed", message));
        refused
    }

    fn refused(&self, hook: &str, reason: &str) -> Refused {
        let reason = self.clean(reason);
        Refused {
            hook: hook.to_owned(),
            reason: match reason.as_str() {
                "" => "it gives no reason".to_owned(),
                _ => reason,
            },
        }
    }

    /// Returns what a hook has to say without secrets, and no longer than it may be: none is cut in two.
    fn clean(&self, text: &str) -> String {
        shortened(&self.redactor.redact(text.trim()))
    }

    /// Asks one hook; an error says why it has no answer.
    async fn ask_one(
        &self,
        config: &Config,
        hook: &HookConfig,
        matter: &Matter<'_>,
        body: &Value,
    ) -> Result<Answer, Failure> {
        let exec = matter.exec;
        let place = async {
            // One user waits for its own before it takes one of all.
            let own = matter.places.acquire().await;
            (own, self.places.acquire().await)
        };
        let place = tokio::time::timeout(hook.timeout, place).await;
        let _place = place.map_err(|_| {
            let limit = hook.timeout;
            Failure::from(format!(
                "other hooks ran, so that it was not asked within {limit:?}"
            ))
        })?;
        let answer = async {
            match &hook.target {
                HookTarget::Endpoint(url) => Ok(self.post(url, body).await?),
                HookTarget::Program {
                    command,
                    args,
                    sandbox,
                    network,
                } => {
                    let why = |why| format!("there is no folder that it could run in: {why}");
                    let is_off = *sandbox == SandboxPolicy::Off;
                    let program = Program {
                        exec: exec.map_err(why)?,
                        unconfined: self.unconfined.as_ref().filter(|_| is_off),
                        command,
                        args,
                        network: match network {
                            true => Network::Outgoing(config.tools.bash.ports.of_commands()),
                            false => Network::Off,
                        },
                    };
                    program.run(body).await
                }
            }
        };
        // What is late is dropped, and a program with it, whatever it does.
        let answer = tokio::time::timeout(hook.timeout, answer).await;
        answer.unwrap_or_else(|_| Err(format!("it took longer than {:?}", hook.timeout).into()))
    }

    async fn post(&self, url: &str, body: &Value) -> Result<Answer, String> {
        let client = self.clients.get(url, None).await;
        let client = client.map_err(|error| error.to_string())?;
        let sent = client.post(url).json(body).send().await;
        // Without the address: it may hold a secret.
        let response = sent.map_err(|error| causes(&error.without_url()))?;
        if !response.status().is_success() {
            return Err(format!(
                "its endpoint answered {}",
                response.status().as_u16()
            ));
        }
        let body = crate::http::body(response, MAX_ANSWER).await;
        match body.map_err(|error| causes(&error.without_url()))? {
            body if body.is_whole => read(&body.bytes),
            _ => Err(too_long()),
        }
    }
}

/// Returns what hooks are sent.
fn body(matter: &Matter<'_>, mut more: Map<String, Value>) -> Value {
    let mut body = Map::new();
    body.insert("hook".to_owned(), word(&matter.on).into());
    body.insert("sessionId".to_owned(), json!(matter.session));
    body.insert("conversationId".to_owned(), json!(matter.conversation));
    if let Some(exchange) = matter.exchange {
        body.insert("messageId".to_owned(), json!(exchange));
    }
    body.append(&mut more);
    Value::Object(body)
}

fn read(text: &[u8]) -> Result<Answer, String> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Ok(Answer::default());
    }
    let wrong = |why: &dyn fmt::Display| format!("its answer is not what docs/hooks.md has: {why}");
    let text = std::str::from_utf8(text).map_err(|error| wrong(&error))?;
    let (value, twice) = tree::read(text).map_err(|error| wrong(&error))?;
    if let Some(key) = twice {
        return Err(wrong(&format!("{key:?} is given twice")));
    }
    // A list would be taken for the fields in their order.
    if !value.is_object() {
        return Err(wrong(&"it is no JSON object"));
    }
    let answer = Answer::deserialize(value).map_err(|error| wrong(&error))?;
    // Whoever wrote it may have meant a no.
    if answer.decision != Decision::Refuse && !answer.reason.is_empty() {
        return Err(wrong(&"a `reason` goes with \"decision\": \"refuse\""));
    }
    Ok(answer)
}

fn too_long() -> String {
    format!("its answer is longer than {MAX_ANSWER} bytes")
}

fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_TEXT);
    let kept = text.get(..end).unwrap_or_default();
    match end < text.len() {
        true => format!("{kept}…"),
        false => kept.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_or_refused_as_a_whole() {
        let allow = || Ok(Answer::default());
        assert_eq!(read(b""), allow());
        assert_eq!(read(b" \n"), allow());
        assert_eq!(read(b"{}"), allow());
        assert_eq!(read(br#"{"decision":"allow"}"#), allow());
        let refused = read(br#"{"decision":"refuse","reason":"no"}"#).unwrap();
        assert_eq!(
            (refused.decision, &*refused.reason),
            (Decision::Refuse, "no")
        );
        let changed = read(br#"{"input":{"a":1},"note":"n"}"#).unwrap();
        assert_eq!(Value::Object(changed.input.unwrap()), json!({"a": 1}));
        for wrong in [
            "no",
            "[]",
            "{} {}",
            r#"{"decision":"maybe"}"#,
            r#"{"decison":"refuse"}"#,
            r#"{"input":"x"}"#,
            r#"{"decision":"refuse","decision":"allow"}"#,
            r#"{"input":null,"input":{"command":"ls"}}"#,
            r#"{"input":{"command":"ls","command":"rm"}}"#,
            r#"{"input":{"a":[{"b":1,"b":2}]}}"#,
            r#"{"reason":"never run this"}"#,
        ] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let text = "ä".repeat(MAX_TEXT);
        let cut = shortened(&text);
        assert!(cut.len() <= MAX_TEXT + '…'.len_utf8() && cut.ends_with("ä…"));
    }

    #[test]
    fn what_a_hook_says_has_no_secrets_and_is_told_from_the_users_words() {
        let hooks = Hooks::default();
        hooks.redactor.add("hunter2-hunter2");
        // One that the end would cut in two.
        let long = format!("{}hunter2-hunter2", "x".repeat(MAX_TEXT - 8));
        let refused = hooks.refused("h", &long);
        assert!(!refused.reason.contains("hunter"), "{refused}");
        assert!(is_of_hook(&refused.held()));
        assert!(is_of_hook(&format!("{NOTE}`h`: mind the style]")));
        assert!(!is_of_hook("a note of the hook `h`"));
        assert_eq!(hooks.refused("h", " \n").reason, "it gives no reason");
    }
}
