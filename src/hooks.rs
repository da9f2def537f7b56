//! Hooks: programs and endpoints of the operator that are asked at certain points, and may refuse, change the input of a
//! call, or add a note. `docs/hooks.md` has what they are sent and what they may answer.
//!
//! A project has none: they are in the operator's configuration alone. A hook that fails does what its `on_failure` says.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, HookConfig, HookPoint, HookTarget, OnFailure, SandboxPolicy};
use crate::http::Clients;
use crate::protocol::word;
use crate::sandbox::output::{self, Ended, Stream};
use crate::sandbox::{Network, Sandbox, Stdin};
use crate::tool::exec::Exec;

/// Hooks of the whole daemon that run at once; further ones wait.
const AT_ONCE: usize = 8;

/// The longest answer, in bytes: an input that was changed may be a whole file.
const MAX_ANSWER: usize = 1 << 20;

/// The most that is read of what a program writes, answer and errors together.
const MAX_OUTPUT: u64 = 2 * MAX_ANSWER as u64;

/// The longest reason, and the longest note, in bytes; what is beyond is left out.
const MAX_TEXT: usize = 8 * 1024;

/// By this exit code a program refuses, with what it wrote to its standard error as the reason.
const REFUSES: i32 = 2;

/// What asks hooks; clones share it.
#[derive(Clone)]
pub(crate) struct Hooks {
    /// For programs that are not to be confined.
    unconfined: Option<Sandbox>,
    clients: Clients,
    places: Arc<Semaphore>,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            unconfined: None,
            clients: Clients::guarded(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

/// What the hooks of one point said together.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Why it is not to be, and whose word that is; nothing further was asked then.
    pub(crate) refused: Option<Refused>,
    /// The input of a call, where it was changed.
    pub(crate) input: Option<Map<String, Value>>,
    /// What is to be told besides, each with its hook's name.
    pub(crate) notes: Vec<String>,
    /// What went wrong, for the client.
    pub(crate) failures: Vec<String>,
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

/// What hooks are asked about.
pub(crate) struct Matter<'a> {
    pub(crate) on: HookPoint,
    /// The tool, where it is about a call.
    pub(crate) tool: Option<&'a str>,
    /// What they are sent: an object. The input of a call is its `tool.input`.
    pub(crate) body: Value,
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

impl Hooks {
    /// Returns what asks them; programs that are not to be confined run in `unconfined`.
    pub(crate) fn new(unconfined: Sandbox) -> Self {
        Self {
            unconfined: Some(unconfined),
            ..Self::default()
        }
    }

    /// Asks the hooks of a point one after the other, until one refuses. Each is sent the input as the one before left it.
    ///
    /// `None` where it was cancelled meanwhile.
    pub(crate) async fn ask(
        &self,
        config: &Config,
        exec: Result<&Exec, &str>,
        mut matter: Matter<'_>,
        cancel: &CancellationToken,
    ) -> Option<Said> {
        let mut said = Said::default();
        let asked = config.hooks.iter();
        for hook in asked.filter(|hook| hook.is_asked(matter.on, matter.tool)) {
            let answer = self.ask_one(config, hook, exec, &matter.body);
            let answer = cancel.run_until_cancelled(answer).await?;
            let answer = answer.and_then(|answer| match (&answer.input, matter.on) {
                (Some(_), on) if on != HookPoint::BeforeTool => {
                    Err("it changed an input, which goes with before_tool alone".to_owned())
                }
                _ => Ok(answer),
            });
            let (name, on) = (&hook.name, word(&hook.on));
            match answer {
                Ok(answer) if answer.decision == Decision::Refuse => {
                    let reason = match answer.reason.trim() {
                        "" => "it gives no reason",
                        reason => reason,
                    };
                    said.refused = Some(refused(name, reason));
                    return Some(said);
                }
                Ok(answer) => {
                    if let Some(input) = answer.input {
                        if let Some(tool) = matter.body.get_mut("tool") {
                            tool["input"] = Value::Object(input.clone());
                        }
                        said.input = Some(input);
                    }
                    let note = shortened(answer.note.trim());
                    if !note.is_empty() {
                        said.notes
                            .push(format!("[note of the hook `{name}`: {note}]"));
                    }
                }
                Err(problem) => {
                    tracing::warn!(hook = name, on, problem, "a hook failed");
                    let (what, refuses) = match hook.on_failure {
                        OnFailure::Refuse => ("it counts as refused", true),
                        OnFailure::Continue => ("things go on without it", false),
                    };
                    said.failures.push(format!(
                        "the hook `{name}` ({on}) failed: {problem}; {what} (hooks.{name}.on_failure)"
                    ));
                    if refuses {
                        said.refused = Some(refused(name, &format!("it failed: {problem}")));
                        return Some(said);
                    }
                }
            }
        }
        Some(said)
    }

    /// Asks one hook; an error says why it has no answer.
    async fn ask_one(
        &self,
        config: &Config,
        hook: &HookConfig,
        exec: Result<&Exec, &str>,
        body: &Value,
    ) -> Result<Answer, String> {
        let _place = self.places.acquire().await;
        let late = || format!("it took longer than {:?}", hook.timeout);
        match &hook.target {
            HookTarget::Endpoint(url) => {
                let answer = tokio::time::timeout(hook.timeout, self.post(url, body));
                answer.await.map_err(|_| late())?
            }
            HookTarget::Program {
                command,
                args,
                sandbox,
                network,
            } => {
                let exec =
                    exec.map_err(|why| format!("there is no folder that it could run in: {why}"))?;
                let network = match network {
                    true => Network::Outgoing(config.tools.bash.ports.of_commands()),
                    false => Network::Off,
                };
                let sandbox = match (sandbox, &self.unconfined) {
                    (SandboxPolicy::Off, Some(unconfined)) => unconfined,
                    _ => exec.sandbox(),
                };
                let program = Program {
                    exec,
                    sandbox,
                    command,
                    args,
                    network,
                };
                let late_at = tokio::time::sleep(hook.timeout);
                program
                    .run(body, late_at)
                    .await
                    .unwrap_or_else(|| Err(late()))
            }
        }
    }

    async fn post(&self, url: &str, body: &Value) -> Result<Answer, String> {
        let client = self.clients.get(url, None).await;
        let client = client.map_err(|error| error.to_string())?;
        let sent = client.post(url).json(body).send().await;
        // Without the address: it may hold a secret.
        let response = sent.map_err(|error| error.without_url().to_string())?;
        if !response.status().is_success() {
            return Err(format!(
                "its endpoint answered {}",
                response.status().as_u16()
            ));
        }
        let body = crate::http::body(response, MAX_ANSWER).await;
        match body.map_err(|error| error.without_url().to_string())? {
            body if body.is_whole => read(&body.bytes),
            _ => Err(too_long()),
        }
    }
}

/// A program that is about to be asked.
struct Program<'a> {
    exec: &'a Exec,
    sandbox: &'a Sandbox,
    command: &'a str,
    args: &'a [String],
    network: Network,
}

impl Program<'_> {
    /// Runs it and reads its answer; `None` where it was too late. It is gone then.
    async fn run(
        self,
        body: &Value,
        late: impl Future<Output = ()>,
    ) -> Option<Result<Answer, String>> {
        let mut command = self
            .exec
            .command(self.command, self.args.to_vec(), self.network);
        (command.stdin, command.private_tmp) = (Stdin::Piped, true);
        // What the operator names may be read: it is mostly a script of theirs.
        let named = std::iter::once(self.command).chain(self.args.iter().map(String::as_str));
        let named = named.filter(|word| word.starts_with('/'));
        command.read_only.extend(named.map(Into::into));
        let mode = self.sandbox.report().await.mode;
        if let Err(problem) = self.exec.cover(&mut command, mode).await {
            return Some(Err(problem));
        }
        let mut process = match self.sandbox.spawn(&command).await {
            Ok(process) => process,
            Err(error) => return Some(Err(format!("it cannot be started: {error}"))),
        };
        let stdin = process.stdin.take();
        let body = body.to_string();
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // One that does not read it has answered all the same.
                drop(stdin.write_all(body.as_bytes()).await);
                drop(stdin.shutdown().await);
            }
        };
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let collecting = output::collect(
            &mut process,
            MAX_OUTPUT,
            late,
            |stream, text| match stream {
                Stream::Stdout => stdout.push_str(text),
                Stream::Stderr => stderr.push_str(text),
            },
        );
        let (ended, ()) = tokio::join!(collecting, feed);
        let code = ended.exit.code;
        Some(match ended.ended {
            Ended::Stopped(()) => return None,
            Ended::Flooded => Err(too_long()),
            Ended::Exited if code == Some(REFUSES) => Ok(Answer {
                decision: Decision::Refuse,
                reason: stderr,
                ..Answer::default()
            }),
            Ended::Exited if code == Some(0) && stdout.len() <= MAX_ANSWER => {
                read(stdout.as_bytes())
            }
            Ended::Exited if code == Some(0) => Err(too_long()),
            Ended::Exited => {
                let how = code.map_or("by a signal".to_owned(), |code| format!("with {code}"));
                Err(format!("it ended {how}: {}", shortened(stderr.trim())))
            }
        })
    }
}

fn read(text: &[u8]) -> Result<Answer, String> {
    if text.trim_ascii().is_empty() {
        return Ok(Answer::default());
    }
    let wrong = |error| format!("its answer is not what docs/hooks.md has: {error}");
    // An object: a list would be taken for the fields in their order.
    let object: Map<String, Value> = serde_json::from_slice(text).map_err(wrong)?;
    Answer::deserialize(Value::Object(object)).map_err(wrong)
}

fn too_long() -> String {
    format!("its answer is longer than {MAX_ANSWER} bytes")
}

fn refused(hook: &str, reason: &str) -> Refused {
    Refused {
        hook: hook.to_owned(),
        reason: shortened(reason),
    }
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
    use serde_json::json;

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
}
