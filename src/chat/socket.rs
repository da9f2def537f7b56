//! The socket to the daemon: frames in, frames out, and connecting again where it drops.
//!
//! A task of its own, so that pings are answered while the user is in an editor.

use std::io;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderValue};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::address::Address;
use crate::message::SessionId;
use crate::plain_text::frame::Frame;
use crate::protocol::Event;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

const CONNECT_TIME: Duration = Duration::from_secs(10);

/// First pause before connecting again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The largest frame taken from the daemon: a whole history may come in one.
const FRAME_BYTES: usize = 256 * 1024 * 1024;

/// Frames between the socket and the screen. While the user is in an editor they wait here, and the
/// daemon's log keeps what comes after them.
const WAITING: usize = 256;

/// RFC 6455: the daemon goes away.
const AWAY: u16 = 1001;

/// Another socket has taken the session over.
const TAKEN_OVER: u16 = 4001;

/// What comes from the socket.
#[derive(Debug)]
pub(super) enum Arrival {
    Frame(Box<Frame>),
    /// The text of a frame, before the frame itself.
    Text(String),
    /// The socket dropped, for this reason; it is connected again.
    Lost(String),
    /// It is over, for this reason.
    Over(String),
}

/// What goes to the socket's task.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// A frame as text.
    Frame(String),
    /// To go on in this session, on a new socket.
    Open(SessionId),
}

/// The two ends of the socket's task.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) arrivals: mpsc::Receiver<Arrival>,
    /// Dropping it closes the socket.
    pub(super) outgoing: mpsc::Sender<Outgoing>,
}

/// How the daemon has ended, where that is known: then nobody connects to it again.
pub(super) type EndOfDaemon = watch::Receiver<Option<String>>;

/// Connects, and starts the task that keeps the connection. It passes on the text of each frame, too, where `with_text`.
pub(super) async fn connect(
    address: Address,
    end: EndOfDaemon,
    with_text: bool,
) -> Result<Link, String> {
    let socket = open(&address, "").await.map_err(|refused| refused.text)?;
    let (arrived, arrivals) = mpsc::channel(WAITING);
    let (outgoing, to_send) = mpsc::channel(WAITING);
    let line = Line {
        address,
        end,
        session: None,
        after: 0,
        grace: Duration::ZERO,
        with_text,
        arrived,
        outgoing: to_send,
    };
    // It ends with the channels, whose other ends the caller holds.
    drop(tokio::spawn(line.keep(socket)));
    Ok(Link { arrivals, outgoing })
}

struct Refused {
    text: String,
    /// Whether trying again may help.
    may_pass: bool,
}

async fn open(address: &Address, query: &str) -> Result<Socket, Refused> {
    let refused = |text: String, may_pass: bool| Refused { text, may_pass };
    let request = request(address, query).map_err(|text| refused(text, false))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(FRAME_BYTES))
        .max_frame_size(Some(FRAME_BYTES));
    if address.url.starts_with("wss:") {
        // For a daemon behind a proxy with TLS: the system's certificates, and SSL_CERT_FILE. Fails
        // where a provider is installed already, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let connecting = tokio_tungstenite::connect_async_with_config(request, Some(config), true);
    let (text, may_pass) = match tokio::time::timeout(CONNECT_TIME, connecting).await {
        Ok(Ok((socket, _))) => return Ok(socket),
        Ok(Err(error)) => explained(&error, address.token.is_some()),
        Err(_) => (
            format!("no answer within {} s", CONNECT_TIME.as_secs()),
            true,
        ),
    };
    Err(refused(format!("{}: {text}", address.url), may_pass))
}

fn request(address: &Address, query: &str) -> Result<Request, String> {
    let mut request = format!("{}{query}", address.url)
        .into_client_request()
        .map_err(|error| format!("{}: {error}", address.url))?;
    if let Some(token) = &address.token {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
            .map_err(|_| "the token holds characters that no header can".to_owned())?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, bearer);
    }
    Ok(request)
}

/// Returns what an error means, and whether trying again may help.
fn explained(error: &Error, has_token: bool) -> (String, bool) {
    let text = match error {
        Error::Http(response) if response.status() == StatusCode::UNAUTHORIZED => match has_token {
            true => "the daemon has another token than the one given; OUTRIGGER_TOKEN or --token-file has to \
                     hold the one that it was given, or said when it started".to_owned(),
            false => "the daemon wants its token: set OUTRIGGER_TOKEN to it, or name a file that holds it with \
                      --token-file FILE".to_owned(),
        },
        Error::Http(response) => {
            let body = response.body().as_deref().unwrap_or_default();
            let said = serde_json::from_slice::<Value>(body).ok();
            let said = said.as_ref().and_then(|said| said.get("message")?.as_str());
            let text = said.unwrap_or(response.status().as_str()).to_owned();
            return (text, response.status().is_server_error());
        }
        Error::Url(_) => format!("{error}; expected ws://HOST:PORT/ws or wss://HOST/ws"),
        Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let text = "nothing listens there; start the daemon with `outrigger`, or leave --url out for one of the chat's own";
            return (text.to_owned(), true);
        }
        error => return (error.to_string(), true),
    };
    (text, false)
}

/// A connection that is kept.
struct Line {
    address: Address,
    end: EndOfDaemon,
    session: Option<SessionId>,
    /// The highest number of a frame that was passed on.
    after: u64,
    /// How long the session outlives its socket.
    grace: Duration,
    with_text: bool,
    arrived: mpsc::Sender<Arrival>,
    outgoing: mpsc::Receiver<Outgoing>,
}

enum End {
    Ours,
    /// Another session is wanted.
    Moved(SessionId),
    Dropped(String),
    /// The daemon ended it on purpose.
    Theirs(String),
}

impl Line {
    async fn keep(mut self, mut socket: Socket) {
        loop {
            let why = match self.pass(&mut socket).await {
                End::Ours => {
                    // Said or not, the socket is closed.
                    drop(socket.close(None).await);
                    return;
                }
                End::Theirs(why) => return self.tell(Arrival::Over(why)).await,
                End::Moved(session) => {
                    drop(socket.close(None).await);
                    self.session = Some(session);
                    self.after = 0;
                    match open(&self.address, &self.query()).await {
                        Ok(opened) => {
                            socket = opened;
                            continue;
                        }
                        Err(refused) => refused.text,
                    }
                }
                End::Dropped(why) => why,
            };
            self.tell(Arrival::Lost(why)).await;
            let mut end = self.end.clone();
            let ended = async {
                // Of a daemon of somebody else's nobody knows.
                if end.wait_for(Option::is_some).await.is_err() {
                    std::future::pending::<()>().await;
                }
                end.borrow().clone().unwrap_or_default()
            };
            let again = tokio::select! {
                again = self.again() => again,
                how = ended => Err(how),
            };
            socket = match again {
                Ok(socket) => socket,
                Err(why) => return self.tell(Arrival::Over(why)).await,
            };
        }
    }

    /// Passes frames on, both ways, until the socket ends.
    async fn pass(&mut self, socket: &mut Socket) -> End {
        loop {
            tokio::select! {
                message = socket.next() => match message {
                    Some(Ok(Message::Text(text))) => self.take(&text).await,
                    Some(Ok(Message::Close(frame))) => {
                        return closed(frame.as_ref(), self.address.outlives_daemon);
                    }
                    // Pings are answered by the library.
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return End::Dropped(error.to_string()),
                    None => return End::Dropped("closed".to_owned()),
                },
                outgoing = self.outgoing.recv() => match outgoing {
                    None => return End::Ours,
                    Some(Outgoing::Open(session)) => return End::Moved(session),
                    Some(Outgoing::Frame(frame)) => if let Err(error) = socket.send(Message::text(frame)).await {
                        return End::Dropped(error.to_string());
                    },
                },
            }
        }
    }

    async fn take(&mut self, text: &str) {
        if self.with_text {
            self.tell(Arrival::Text(text.to_owned())).await;
        }
        let Some(frame) = Frame::read(text) else {
            return;
        };
        if let Event::SessionReady(ready) = &frame.event {
            if !ready.resumed {
                self.after = 0;
            }
            self.session = Some(ready.session_id.clone());
            self.grace = Duration::from_millis(ready.resume_grace_ms);
        }
        self.after = frame.seq.unwrap_or(self.after);
        self.tell(Arrival::Frame(Box::new(frame))).await;
    }

    fn query(&self) -> String {
        match &self.session {
            Some(session) => format!("?session={session}&after={}", self.after),
            None => String::new(),
        }
    }

    /// Connects again, for as long as the session may live.
    async fn again(&self) -> Result<Socket, String> {
        let query = self.query();
        let began = tokio::time::Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            match open(&self.address, &query).await {
                Ok(socket) => return Ok(socket),
                Err(refused) if refused.may_pass && began.elapsed() < self.grace => {}
                Err(refused) => return Err(refused.text),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn tell(&self, arrival: Arrival) {
        // Nobody listens any more once the chat is over.
        drop(self.arrived.send(arrival).await);
    }
}

fn closed(frame: Option<&CloseFrame>, outlives_daemon: bool) -> End {
    let Some(frame) = frame else {
        return End::Dropped("closed without a word".to_owned());
    };
    match u16::from(frame.code) {
        AWAY if outlives_daemon => End::Dropped("the daemon is shutting down".to_owned()),
        AWAY => End::Theirs("the daemon is shutting down".to_owned()),
        TAKEN_OVER => End::Theirs("another client has taken the session over".to_owned()),
        code => {
            let text = format!("{code} {}", frame.reason);
            End::Theirs(format!("the daemon closed the connection ({text})"))
        }
    }
}
