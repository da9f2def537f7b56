//! One connection to a server: made, watched, and ended so that nothing of it is left.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, QuitReason, RoleClient,
    RunningService, RunningServiceCancellationToken,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use secrecy::ExposeSecret;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

use super::Context;
use super::client::Client;
use super::intake::Intake;
use super::sign_in::{Authorized, SignIn};
use super::sse;
use super::transport::{Counted, Paced};
use super::wire;
use crate::config::{HttpServer, McpTransport, StdioServer};
use crate::runtime::Tail;
use crate::sandbox::{Exit, Process, SpawnError};
use crate::terminal_text;

/// How long a server may take until it has answered the handshake: `npx` and `uvx` download it first.
const START_LIMIT: Duration = Duration::from_secs(120);

/// After this long without an answer sessions are notified, though the wait goes on.
pub(super) const SLOW_START: Duration = Duration::from_secs(30);

/// How long a server may take to end once its input has ended, and again once it was asked to.
const END_GRACE: Duration = Duration::from_millis(900);

/// How long the last words of a program that has ended are waited for; somebody who outlived it may hold the pipe.
const WORDS_GRACE: Duration = Duration::from_millis(500);

/// Bytes kept of what a program wrote last: enough for a stack trace's end.
const MAX_TAIL: usize = 4 * 1024;

/// The longest piece of a server's own words in an error, in characters.
const MAX_WORDS: usize = 500;

/// A version of the protocol from before those that the SDK names, which its first servers speak.
const FIRST_VERSION: &str = "2024-10-07";

type Service = RunningService<RoleClient, Client>;

pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    cancel: RunningServiceCancellationToken,
    service: JoinHandle<Result<QuitReason, JoinError>>,
    /// The program; `None` over HTTP.
    process: Option<Process>,
    tail: Tail,
    intake: Arc<Intake>,
}

/// Why there is no connection, and whether trying again cannot help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) message: String,
    pub(super) is_final: bool,
}

impl Problem {
    pub(super) fn passing(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_final: false,
        }
    }

    fn lasting(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_final: true,
        }
    }
}

enum Refusal {
    /// For what the server said, sent, or did not say in time.
    Answered(Problem),
    /// The way to it broke.
    Broken(Box<ClientInitializeError>),
}

/// Connects to a server.
///
/// The newer era of the protocol is tried first and the older where the server does not know it;
/// with `older`, the older at once, for servers that end at a message they do not know.
pub(super) async fn connect(
    name: &str,
    transport: &McpTransport,
    context: &Context,
    client: &Client,
    sign_in: Option<&Arc<SignIn>>,
    older: bool,
) -> Result<Connection, Problem> {
    match transport {
        McpTransport::Stdio(server) => stdio(name, server, context, client, older).await,
        McpTransport::Http(server) => {
            let to = (server, sign_in);
            let connected = match http(name, to, context, client, older).await {
                // A server of the older era may refuse the newer's first request in any way.
                Err(problem) if !older && !problem.is_final => {
                    http(name, to, context, client, true).await
                }
                other => other,
            };
            match connected {
                Err(problem) if !problem.is_final => {
                    let older = event_stream(name, server, context, client).await;
                    older.map_err(|why| {
                        Problem::passing(format!(
                            "{}; over the older HTTP+SSE transport: {why}",
                            problem.message
                        ))
                    })
                }
                other => other,
            }
        }
    }
}

async fn stdio(
    name: &str,
    server: &StdioServer,
    context: &Context,
    client: &Client,
    older: bool,
) -> Result<Connection, Problem> {
    let launcher = context.launcher.as_ref().map_err(|why| {
        Problem::lasting(format!(
            "it would run in the project, and there is none: {why}"
        ))
    })?;
    client.roots.set_named(launcher.named(server));
    let started = launcher.start(name, server).await;
    let mut process = started.map_err(|error| match error {
        SpawnError::Program { .. } => Problem::lasting(format!(
            "failed to start {:?}: {error}; install it, name it by its absolute path, or set env.PATH of the server: programs are taken from directories that only you or root can write to; a program that is there needs its interpreter as well: where that lies in your home, name its directory in `read_only` of the server",
            server.command
        )),
        other => Problem::passing(format!("failed to start {:?}: {other}", server.command)),
    })?;
    let tail = Tail::follow(process.stderr.take(), MAX_TAIL);
    let (Some(stdout), Some(stdin)) = (process.stdout.take(), process.stdin.take()) else {
        return Err(Problem::lasting("the program was started without pipes"));
    };
    let intake = Intake::of(name);
    let output = wire::follow(stdout, Arc::clone(&intake));
    let transport = AsyncRwTransport::new_client(output, stdin);
    let greeting = greet(client, transport, older, Arc::clone(&intake));
    tokio::pin!(greeting);
    let refusal = tokio::select! {
        greeted = &mut greeting => match greeted {
            Ok(service) => return Ok(Connection::new(service, Some(process), tail, intake)),
            Err(refusal) => refusal,
        },
        // What it had written by then is read all the same.
        exit = process.wait() => match timeout(WORDS_GRACE, &mut greeting).await {
            Ok(Err(refusal @ Refusal::Answered(_))) => refusal,
            _ => return Err(unanswered(server, exit, &tail).await),
        },
    };
    match (end(process).await, refusal) {
        (_, Refusal::Answered(problem)) => Err(Problem {
            message: with_tail(problem.message, &tail).await,
            ..problem
        }),
        (Some(exit), Refusal::Broken(_)) => Err(unanswered(server, exit, &tail).await),
        (None, Refusal::Broken(error)) => {
            Err(Problem::passing(with_tail(words(&error), &tail).await))
        }
    }
}

async fn unanswered(server: &StdioServer, exit: Exit, tail: &Tail) -> Problem {
    let message = format!(
        "{:?} {} before it had answered",
        server.command,
        ended(exit)
    );
    Problem::passing(with_tail(message, tail).await)
}

/// How a program ended; reads after its name.
fn ended(exit: Exit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

async fn http(
    name: &str,
    (server, sign_in): (&HttpServer, Option<&Arc<SignIn>>),
    context: &Context,
    client: &Client,
    older: bool,
) -> Result<Connection, Problem> {
    let http = context
        .clients
        .get(&server.url, None)
        .await
        .map_err(|error| Problem::lasting(error.to_string()))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    config.custom_headers.extend(headers(server));
    let intake = Intake::of(name);
    let paced = Paced {
        client: http,
        intake: Arc::clone(&intake),
    };
    let authorized = Authorized {
        inner: paced,
        sign_in: sign_in.cloned(),
    };
    let transport = StreamableHttpClientTransport::with_client(authorized, config);
    match greet(client, transport, older, Arc::clone(&intake)).await {
        Ok(service) => Ok(Connection::new(service, None, Tail::default(), intake)),
        Err(Refusal::Answered(problem)) => Err(problem),
        Err(Refusal::Broken(error)) if error.is_authorization_required() => Err(Problem::lasting(
            // With a sign-in of its own, the user is asked instead.
            "the server does not take the Authorization of its `headers`; without one there, it is signed in to",
        )),
        Err(Refusal::Broken(error)) => Err(Problem::passing(words(&error))),
    }
}

/// Connects over the transport that was there before streamable HTTP.
async fn event_stream(
    name: &str,
    server: &HttpServer,
    context: &Context,
    client: &Client,
) -> Result<Connection, String> {
    let http = context.clients.get(&server.url, None).await;
    let http = http.map_err(|error| error.to_string())?;
    let headers = headers(server).collect();
    let lines = sse::open(http, &server.url, headers).await?;
    let intake = Intake::of(name);
    let output = wire::follow(lines.from_server, Arc::clone(&intake));
    let transport = AsyncRwTransport::new_client(output, lines.to_server);
    match greet(client, transport, true, Arc::clone(&intake)).await {
        Ok(service) => Ok(Connection::new(service, None, Tail::default(), intake)),
        Err(Refusal::Answered(problem)) => Err(problem.message),
        Err(Refusal::Broken(error)) => Err(words(&error)),
    }
}

/// Returns the headers that are configured for a server.
fn headers(server: &HttpServer) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    // The configuration has checked both.
    server.headers.iter().filter_map(|(name, value)| {
        let name = name.parse::<HeaderName>().ok()?;
        let mut value = HeaderValue::from_str(value.expose_secret()).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    })
}

async fn greet(
    client: &Client,
    inner: impl Transport<RoleClient> + 'static,
    older: bool,
    intake: Arc<Intake>,
) -> Result<Service, Refusal> {
    let answered = |message| Err(Refusal::Answered(Problem::passing(message)));
    let transport = Counted::new(inner, Arc::clone(&intake));
    let serving = client
        .clone()
        .serve_with_lifecycle(transport, lifecycle(older));
    let outcome = tokio::select! {
        biased;
        why = intake.failed() => return answered(why),
        outcome = timeout(START_LIMIT, serving) => outcome,
    };
    match outcome {
        Ok(Ok(service)) => match unknown_version(&service) {
            Some(problem) => Err(Refusal::Answered(problem)),
            None => Ok(service),
        },
        Ok(Err(error)) => match answer(&error) {
            Some(answer) => answered(answer),
            None => Err(Refusal::Broken(Box::new(error))),
        },
        Err(_) => answered(format!(
            "it did not answer `initialize` within {} s",
            START_LIMIT.as_secs()
        )),
    }
}

/// What is wrong with the protocol's version that a server has chosen: the protocol wants such a connection ended.
fn unknown_version(service: &Service) -> Option<Problem> {
    let info = service.peer().peer_info()?;
    let version = info.protocol_version.as_str();
    let known = ProtocolVersion::KNOWN_VERSIONS.iter();
    let mut known = known.map(ProtocolVersion::as_str).chain([FIRST_VERSION]);
    (!known.any(|known| known == version)).then(|| {
        Problem::lasting(format!(
            "it speaks version {:?} of the protocol, which is not known here; update it, or this program",
            bounded(version)
        ))
    })
}

/// The answer of a server that did not come to terms; `None` where there was none.
fn answer(error: &ClientInitializeError) -> Option<String> {
    match error {
        ClientInitializeError::JsonRpcError(error) => Some(format!(
            "it refused `initialize`: {} (code {})",
            bounded(&error.message),
            error.code.0
        )),
        ClientInitializeError::ExpectedInitResult(Some(result)) => {
            let result = serde_json::to_string(result).unwrap_or_default();
            let result = bounded(&result);
            Some(format!(
                "its answer to `initialize` is not understood: {result}"
            ))
        }
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(None)
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. }
        | ClientInitializeError::NoCompatibleProtocolVersion { .. } => Some(words(error)),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => answer(fallback),
        _ => None,
    }
}

pub(super) fn lifecycle(older: bool) -> ClientLifecycleMode {
    if older {
        return ClientLifecycleMode::Initialize;
    }
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// An error of the SDK in bounded words: it may hold whatever the server sent.
fn words(error: &ClientInitializeError) -> String {
    let last = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
        other => other,
    };
    format!("the handshake failed: {}", of_sdk(last))
}

/// An error of the SDK in bounded words, without the Rust type that it names its transport by.
pub(super) fn of_sdk(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let plain = text.split_once("Transport [").and_then(|(before, after)| {
        let (_, why) = after.split_once("] error: ")?;
        Some(format!("{before}{why}"))
    });
    bounded(&plain.unwrap_or(text))
}

/// Other people's words, short and on one line.
pub(super) fn bounded(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(MAX_WORDS)
        .collect()
}

/// Adds what a program that has ended wrote last, without controls. Cancel-safe.
async fn with_tail(message: String, tail: &Tail) -> String {
    drop(timeout(WORDS_GRACE, tail.ended()).await);
    match terminal_text::shown(&tail.text()).trim() {
        "" => message,
        said => format!("{message}; its last words:\n{said}"),
    }
}

impl Connection {
    fn new(service: Service, process: Option<Process>, tail: Tail, intake: Arc<Intake>) -> Self {
        Self {
            peer: service.peer().clone(),
            cancel: service.cancellation_token(),
            service: tokio::spawn(service.waiting()),
            process,
            tail,
            intake,
        }
    }

    /// Waits until the server is gone and says how. Cancel-safe.
    pub(super) async fn lost(&mut self) -> String {
        let Self {
            process,
            service,
            intake,
            ..
        } = self;
        let Some(process) = process else {
            return tokio::select! {
                biased;
                why = intake.failed() => why,
                () = closed(service) => "the connection was closed".to_owned(),
            };
        };
        let exit = tokio::select! {
            biased;
            why = intake.failed() => return with_tail(why, &self.tail).await,
            exit = process.wait() => Some(exit),
            // Its output ends a moment before it is known how it ended.
            () = closed(service) => timeout(END_GRACE, process.wait()).await.ok(),
        };
        let how = exit.map_or_else(|| "closed its output".to_owned(), ended);
        with_tail(format!("it {how}"), &self.tail).await
    }

    /// Ends the connection and the program: end of input, then SIGTERM, then SIGKILL.
    pub(super) async fn close(mut self) {
        self.cancel.cancel();
        if timeout(END_GRACE, closed(&mut self.service)).await.is_err() {
            // It holds the pipe; with it gone the input ends as well.
            self.service.abort();
        }
        if let Some(process) = self.process {
            end(process).await;
        }
    }
}

/// Waits for the end of the connection's task; may be waited for again.
async fn closed(service: &mut JoinHandle<Result<QuitReason, JoinError>>) {
    if !service.is_finished() {
        drop(service.await);
    }
}

/// Ends a program whose input has ended; says how it ended where it did so by itself.
async fn end(mut process: Process) -> Option<Exit> {
    if let Ok(exit) = timeout(END_GRACE, process.wait()).await {
        return Some(exit);
    }
    process.terminate();
    if timeout(END_GRACE, process.wait()).await.is_err() {
        process.kill();
        process.wait().await;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_sdk_names_no_type_of_rust() {
        for (text, expected) in [
            (
                "Send message error Transport [rmcp::transport::worker::Worker<reqwest::Client>] error: refused, when x",
                "Send message error refused, when x",
            ),
            ("Transport closed", "Transport closed"),
            ("Transport [odd", "Transport [odd"),
        ] {
            assert_eq!(of_sdk(&text), expected);
        }
    }
}
