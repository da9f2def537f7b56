//! `outrigger chat`: a client of the protocol in the terminal, with a daemon of its own unless `--url` names another.
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

use std::io::IsTerminal as _;
use std::process::ExitCode;

use jiff::Timestamp;
use secrecy::SecretString;

use crate::arguments::ChatArguments;
use crate::protocol::command::Configure;
use crate::ready::{complain, exit};
use address::Address;
use daemon::{Daemon, Failure};
use talk::{End, Options, Wanted};
use terminal::Screens;

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
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(run(arguments));
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

async fn run(arguments: &ChatArguments) -> Result<u8, Failure> {
    if let Some(url) = &arguments.url {
        if arguments.go_on {
            // Of a daemon that runs it may be the one that somebody has on the screen.
            return Err(Failure {
                text: "--continue is for a daemon of the chat's own; with --url say which session: --resume ID, \
                       which /sessions in the chat lists".to_owned(),
                exit: exit::CONFIGURATION,
            });
        }
        let address = address(arguments, url).map_err(|text| Failure {
            text,
            exit: exit::CONFIGURATION,
        })?;
        return Ok(chat(arguments, address).await?);
    }
    let show_log = std::env::var_os("RUST_LOG").is_some();
    let daemon = Daemon::start(&arguments.config, show_log).await?;
    let outcome = chat(arguments, daemon.address.clone()).await;
    let outcome = outcome.map_err(|problem| daemon::with_log(problem, &daemon.log));
    if daemon.end().await.is_none() {
        complain("the daemon did not end by itself and was killed");
    }
    Ok(outcome?)
}

async fn chat(arguments: &ChatArguments, address: Address) -> Result<u8, String> {
    let link = socket::connect(address).await?;
    let prompt = arguments.prompt.join(" ");
    let is_one_question = !arguments.prompt.is_empty();
    let options = Options {
        prompt: is_one_question.then_some(prompt),
        configure: configure(arguments),
        wanted: wanted(arguments),
        first_request: u64::try_from(Timestamp::now().as_microsecond()).unwrap_or_default(),
        hold: is_one_question && !std::io::stdout().is_terminal(),
        servers: is_one_question,
        attended: std::io::stdin().is_terminal(),
    };
    let screens = Screens::of_process(is_one_question);
    Ok(match terminal::chat(options, link, screens).await? {
        End::Well => exit::OK,
        End::Badly => exit::FAILED,
        End::Refused => exit::REFUSED,
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
fn configure(arguments: &ChatArguments) -> Option<Configure> {
    let configure = Configure {
        trust_level: arguments.trust_level,
        provider: arguments.provider.clone(),
        model: arguments.model.clone(),
        workflow: arguments.workflow.clone(),
        ..Configure::default()
    };
    (configure != Configure::default()).then_some(configure)
}

/// Where the daemon is that `--url` names. A token in a file that was named counts more than the address's own, and that
/// more than the environment's.
fn address(arguments: &ChatArguments, url: &str) -> Result<Address, String> {
    let mut address = Address::parse(url)?;
    let secret = |text: String| {
        let text = text.trim();
        (!text.is_empty()).then(|| SecretString::from(text))
    };
    address.token = match &arguments.token_file {
        Some(path) => secret(
            std::fs::read_to_string(path)
                .map_err(|error| format!("--token-file {}: {error}", path.display()))?,
        ),
        None => address
            .token
            .or_else(|| std::env::var(TOKEN_VARIABLE).ok().and_then(secret)),
    };
    // One answer is not to be had from another session.
    address.outlives_daemon = arguments.prompt.is_empty();
    Ok(address)
}
