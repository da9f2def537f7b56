//! `outrigger chat` and `outrigger run`: a client of the protocol, with a daemon of its own unless `--url` names another.
//!
//! It is the living example of a client: it knows nothing of the daemon but what comes through the
//! WebSocket. What to do about each frame and each key is decided in `talk`, without I/O; how
//! things look is in `plain_text`; what is typed on, in `line_editor`; the loop around them is in `terminal`.

mod address;
mod daemon;
mod editor;
mod ends;
mod keyboard;
mod line_editor;
mod socket;
mod talk;
mod terminal;

use std::io::{IsTerminal as _, Read as _};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::arguments::{ChatArguments, ClientArguments, RunArguments};
use crate::json_schema::ObjectSchema;
use crate::plain_text::exposed_line;
use crate::protocol::command::{Configure, OutputForm};
use crate::ready::{complain, exit};
use address::Address;
use daemon::{Failure, Starting};
use ends::Ends;
use line_editor::LineEditor;
use socket::EndOfDaemon;
use talk::{End, Options, Wanted};
use terminal::Screens;

/// Environment variable with the token of the daemon that `--url` names.
const TOKEN_VARIABLE: &str = "OUTRIGGER_TOKEN";

/// The longest prompt of `outrigger run`, in bytes.
const MAX_PROMPT: u64 = 4 * 1024 * 1024;

/// Chats, or asks one thing and ends.
///
/// Exit code 0 where that went well, 1 where there is no answer, 4 where a call or a host was refused since nobody could be asked, 5 where
/// a cap on money ended it, 6 where what was said last could not be kept, 128 and its number where a signal ended it, and the
/// daemon's own where it did not start.
pub fn main(arguments: &ChatArguments) -> ExitCode {
    if arguments.client.url.is_some() && arguments.go_on {
        // Of a daemon that runs it may be the one that somebody has on the screen.
        complain(
            "--continue is for a daemon of the chat's own; with --url say which session: --resume ID, \
             which /sessions in the chat lists",
        );
        return ExitCode::from(exit::CONFIGURATION);
    }
    let is_one_question = !arguments.prompt.is_empty();
    let options = Options {
        prompt: is_one_question.then(|| arguments.prompt.join(" ")),
        wanted: wanted(arguments),
        hold: is_one_question && !std::io::stdout().is_terminal(),
        servers: is_one_question,
        attended: std::io::stdin().is_terminal(),
        composes: !is_one_question && LineEditor::fits(),
        trusts: !is_one_question,
        ..options(&arguments.client)
    };
    let screens = Screens::of_process(is_one_question);
    start(&arguments.client, options, screens)
}

/// Asks one thing without anybody there: the answer, or each event, goes to stdout. Exit codes as for [`main`].
pub fn run(arguments: &RunArguments) -> ExitCode {
    let prompt = match prompt(&arguments.prompt) {
        Ok(prompt) => prompt,
        Err(problem) => {
            complain(&problem);
            return ExitCode::from(exit::CONFIGURATION);
        }
    };
    let output = match arguments.output_schema.as_deref().map(schema).transpose() {
        Ok(output) => output,
        Err(problem) => {
            complain(&problem);
            return ExitCode::from(exit::CONFIGURATION);
        }
    };
    let options = Options {
        prompt: Some(prompt),
        output,
        hold: true,
        servers: true,
        no_stdin: true,
        ..options(&arguments.client)
    };
    let screens = match arguments.json {
        true => Screens::frames(),
        false => Screens::of_process(true),
    };
    start(&arguments.client, options, screens)
}

/// Returns the prompt of the arguments, or all of stdin.
fn prompt(words: &[String]) -> Result<String, String> {
    let usage = "give the prompt as an argument, or by stdin: `git diff | outrigger run -`";
    let is_stdin = words.is_empty() || words == ["-"];
    if is_stdin && std::io::stdin().is_terminal() {
        return Err(format!("there is no prompt; {usage}"));
    }
    let prompt = match is_stdin {
        false => words.join(" "),
        true => {
            let mut text = String::new();
            let mut stdin = std::io::stdin().lock().take(MAX_PROMPT + 1);
            stdin
                .read_to_string(&mut text)
                .map_err(|error| format!("the prompt could not be read from stdin: {error}"))?;
            text
        }
    };
    if u64::try_from(prompt.len()).unwrap_or(u64::MAX) > MAX_PROMPT {
        return Err(format!("the prompt is longer than {MAX_PROMPT} bytes"));
    }
    match prompt.trim() {
        "" => Err(format!("the prompt is empty; {usage}")),
        prompt => Ok(prompt.to_owned()),
    }
}

/// Returns what an answer has to be by the schema in a file.
fn schema(path: &Path) -> Result<OutputForm, String> {
    let wrong =
        |problem: &dyn std::fmt::Display| format!("--output-schema {}: {problem}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let schema: Map<String, Value> = serde_json::from_str(&text)
        .map_err(|error| wrong(&format!("no JSON schema of an object: {error}")))?;
    ObjectSchema::new(schema.clone()).map_err(|problem| wrong(&problem))?;
    Ok(OutputForm { schema })
}

fn options(client: &ClientArguments) -> Options {
    Options {
        configure: configure(client),
        first_request: u64::try_from(Timestamp::now().as_microsecond()).unwrap_or_default(),
        ..Options::default()
    }
}

/// Talks to the daemon until it is over.
fn start(client: &ClientArguments, options: Options, screens: Screens) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(with_daemon(client, options, screens));
            // The keyboard's thread may still wait for a line.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(Failure::from(format!("no runtime: {error}"))),
    };
    ExitCode::from(ended.unwrap_or_else(|Failure { text, exit }| {
        complain(&text);
        exit
    }))
}

async fn with_daemon(
    client: &ClientArguments,
    options: Options,
    screens: Screens,
) -> Result<u8, Failure> {
    let mut ends = Ends::new(options.composes).map_err(|error| format!("no signals: {error}"))?;
    if let Some(url) = &client.url {
        // One answer is not to be had from another session.
        let outlives_daemon = options.prompt.is_none();
        let address = address(client, url, outlives_daemon).map_err(|text| Failure {
            text,
            exit: exit::CONFIGURATION,
        })?;
        return tokio::select! {
            outcome = talk((address, watch::channel(None).1), options, screens) => Ok(outcome?),
            code = ends.asked() => Ok(code),
        };
    }
    if let Some(root) = client.config.project_root.as_deref()
        && !root.is_dir()
    {
        return Err(Failure {
            text: format!(
                "--project-root {}: there is no such directory",
                root.display()
            ),
            exit: exit::CONFIGURATION,
        });
    }
    let show_log = std::env::var_os("RUST_LOG").is_some();
    let mut starting = Starting::new(&client.config, show_log)?;
    let ready = tokio::select! {
        ready = starting.ready() => ready?,
        code = ends.asked() => {
            tokio::select! {
                () = starting.end() => {}
                // Whoever asks again does not wait: dropped, it is killed.
                _ = ends.asked() => {}
            }
            return Ok(code);
        }
    };
    let mut daemon = starting.into_daemon(ready);
    if !show_log {
        // Of a project that is not there the session says the same.
        let warnings = daemon.warnings.iter();
        for warning in warnings.filter(|it| !it.starts_with("project.root: ")) {
            complain(&format!("warning: {}", exposed_line(warning)));
        }
    }
    let (tell, end) = watch::channel(None);
    let talking = talk((daemon.address.clone(), end), options, screens);
    // The chat ends by it, once it has read what the daemon said last.
    let watching = async {
        tell.send_replace(Some(daemon.ended().await));
        std::future::pending().await
    };
    let outcome = tokio::select! {
        outcome = talking => outcome,
        code = ends.asked() => Ok(code),
        outcome = watching => outcome,
    };
    let outcome = outcome.map_err(|problem| daemon::with_log(problem, &daemon.log));
    let ended = tokio::select! {
        ended = daemon.end() => ended,
        // Whoever asks again does not wait: dropped, it is killed.
        code = ends.asked() => return Ok(code),
    };
    match ended.map(|status| status.code()) {
        None => complain("the daemon did not end by itself and was killed"),
        Some(Some(code)) if code == i32::from(exit::NOT_KEPT) => {
            let text = "what was said last could not be kept".to_owned();
            complain(&daemon::with_log(text, &daemon.log));
            // What else went wrong was said, and is worth less than this.
            return outcome.map(|_| exit::NOT_KEPT).map_err(Failure::from);
        }
        Some(_) => {}
    }
    Ok(outcome?)
}

async fn talk(
    (address, end): (Address, EndOfDaemon),
    options: Options,
    screens: Screens,
) -> Result<u8, String> {
    let link = socket::connect(address, end, screens.wants_frames()).await?;
    Ok(match terminal::chat(options, link, screens).await? {
        End::Well => exit::OK,
        End::Badly => exit::FAILED,
        End::Refused => exit::REFUSED,
        End::Budget => exit::BUDGET,
    })
}

/// The session that flags ask for.
fn wanted(arguments: &ChatArguments) -> Option<Wanted> {
    let named = arguments.resume.as_deref().map(str::trim);
    named
        .map(|id| Wanted::Id(id.to_owned()))
        .or_else(|| arguments.go_on.then_some(Wanted::Last))
}

/// The session's defaults that flags ask for.
fn configure(arguments: &ClientArguments) -> Option<Configure> {
    let configure = Configure {
        trust_level: arguments.trust_level,
        provider: arguments.provider.clone(),
        model: arguments.model.clone(),
        workflow: arguments.workflow.clone(),
        project: arguments.url.as_ref().and_then(|_| project(arguments)),
        ..Configure::default()
    };
    (configure != Configure::default()).then_some(configure)
}

/// The project's folder as a daemon elsewhere is told it.
fn project(arguments: &ClientArguments) -> Option<String> {
    let root = arguments.config.project_root.as_deref()?;
    // Neither the working directory nor `..` is part of what is said. No link is followed: the daemon may be on another machine.
    let mut plain = PathBuf::new();
    for part in std::path::absolute(root).ok()?.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    Some(plain.to_string_lossy().into_owned())
}

/// Where the daemon is that `--url` names. A token in a file that was named counts more than the address's own, and that
/// more than the environment's.
fn address(
    arguments: &ClientArguments,
    url: &str,
    outlives_daemon: bool,
) -> Result<Address, String> {
    let named = crate::address::Address::parse(url)?;
    let url = named.socket().to_owned();
    let secret = |text: String| {
        let text = text.trim();
        (!text.is_empty()).then(|| SecretString::from(text))
    };
    let token = match &arguments.token_file {
        Some(path) => secret(
            std::fs::read_to_string(path)
                .map_err(|error| format!("--token-file {}: {error}", path.display()))?,
        ),
        None => named
            .token
            .or_else(|| std::env::var(TOKEN_VARIABLE).ok().and_then(secret)),
    };
    Ok(Address {
        url,
        token,
        outlives_daemon,
    })
}
