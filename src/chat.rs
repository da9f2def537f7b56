//! `outrigger chat`: a client of the protocol in the terminal, with a daemon of its own unless told of another.
//!
//! It is the living example of a client: it knows nothing of the daemon but what comes through the
//! WebSocket. What to do about each frame and each key is decided in `talk`, without I/O; how
//! things look is in `plain_text`; the loop around them is in `terminal`.

mod address;
mod daemon;
mod editor;
mod keyboard;
mod socket;
mod talk;
mod terminal;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use secrecy::SecretString;

use crate::arguments::ChatArguments;
use crate::message::TrustLevel;
use crate::protocol::command::Configure;
use crate::ready::exit;
use address::Address;
use daemon::{Daemon, Failure};
use talk::{End, Wishes};
use terminal::{Ending, Screens};

/// Environment variable with the token of the daemon that `--url` names.
const TOKEN_VARIABLE: &str = "OUTRIGGER_TOKEN";

/// Chats, or asks one thing and ends.
///
/// Exit code 0 where that went well, 1 where there is no answer, 4 where a call was refused since nobody could be asked,
/// and the daemon's own where it did not start.
pub fn main(arguments: &ChatArguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let code = match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(run(arguments));
            // The keyboard's thread may still wait for a line.
            runtime.shutdown_background();
            code
        }
        Err(error) => complain(&format!("no runtime: {error}"), exit::FAILED),
    };
    ExitCode::from(code)
}

async fn run(arguments: &ChatArguments) -> u8 {
    let show_log = std::env::var_os("RUST_LOG").is_some();
    match &arguments.url {
        Some(url) => match address(arguments, url) {
            Ok(address) => match chat(arguments, address).await {
                Ok(code) => code,
                Err(problem) => complain(&problem, exit::FAILED),
            },
            Err(problem) => complain(&problem, exit::CONFIGURATION),
        },
        None => match Daemon::start(&arguments.config, show_log).await {
            Ok(daemon) => with_own(arguments, daemon).await,
            Err(Failure { text, exit }) => complain(&text, exit),
        },
    }
}

async fn with_own(arguments: &ChatArguments, daemon: Daemon) -> u8 {
    let outcome = chat(arguments, daemon.address.clone()).await;
    let code = match outcome {
        Ok(code) => code,
        Err(problem) => complain(&daemon.explain(problem), exit::FAILED),
    };
    if daemon.end().await.is_none() {
        return complain("the daemon did not end by itself and was killed", code);
    }
    code
}

async fn chat(arguments: &ChatArguments, address: Address) -> Result<u8, String> {
    let link = socket::connect(address).await?;
    let is_one_question = arguments.prompt.is_some();
    let wishes = Wishes {
        prompt: arguments.prompt.clone(),
        configure: configure(arguments),
        hold: is_one_question && !std::io::stdout().is_terminal(),
        servers: is_one_question,
        attended: std::io::stdin().is_terminal(),
    };
    let screens = Screens::of_process(is_one_question);
    match terminal::chat(wishes, link, screens).await {
        Ok(Ending::Over(End::Well)) => Ok(exit::OK),
        Ok(Ending::Over(End::Badly)) => Ok(exit::FAILED),
        Ok(Ending::Over(End::Refused)) => Ok(exit::REFUSED),
        Ok(Ending::Cut(why)) => Err(why),
        Err(error) => Err(format!("the terminal failed: {error}")),
    }
}

/// The session's defaults that flags ask for.
fn configure(arguments: &ChatArguments) -> Option<Configure> {
    let configure = Configure {
        trust_level: arguments.trust_level.map(TrustLevel::from),
        provider: arguments.provider.clone(),
        model: arguments.model.clone(),
        layers: None,
        workflow: arguments.workflow.clone(),
        input_requests: None,
    };
    (configure != Configure::default()).then_some(configure)
}

/// Where the daemon is that `--url` names. A token in a file that was named counts more than the address's own, and that
/// more than the environment's.
fn address(arguments: &ChatArguments, url: &str) -> Result<Address, String> {
    let mut address = Address::parse(url)?;
    if arguments.token_file.is_some() || address.token.is_none() {
        address.token = token(arguments)?;
    }
    // One answer is not to be had from another session.
    address.outlives_daemon = arguments.prompt.is_none();
    Ok(address)
}

/// The token of the daemon that `--url` names.
fn token(arguments: &ChatArguments) -> Result<Option<SecretString>, String> {
    let text = match &arguments.token_file {
        Some(path) => Some(
            std::fs::read_to_string(path)
                .map_err(|error| format!("--token-file {}: {error}", path.display()))?,
        ),
        None => std::env::var(TOKEN_VARIABLE).ok(),
    };
    Ok(text
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .map(SecretString::from))
}

/// Says on stderr why there is no chat, and passes the exit code on.
fn complain(text: &str, code: u8) -> u8 {
    // Where nobody reads stderr there is nobody to tell.
    drop(writeln!(std::io::stderr().lock(), "outrigger: {text}"));
    code
}
