//! A server of bytes: it speaks HTTP by hand, so that it can break it anywhere.
//!
//! The first segment of a request's path names the case; each case has its answers, of which the last
//! is given for ever. Every connection has one request, although each answer announces that the connection is
//! kept, as local servers do.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::wire::Wire;

/// The server; it ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct Server {
    port: u16,
    cases: Arc<Mutex<BTreeMap<String, Case>>>,
}

struct Case {
    wire: Wire,
    answers: Vec<Answer>,
    requests: Vec<Value>,
    /// What is answered to questions beside turns, by the end of their path.
    pages: Vec<(String, Answer)>,
    /// Methods and paths of these questions.
    asked: Vec<String>,
    seen: Arc<Notify>,
}

/// What one request gets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer(Vec<Step>);

#[derive(Clone, Debug)]
enum Step {
    Bytes(Vec<u8>),
    /// Waits until the client was shown something; see [`Server::shown`].
    Shown,
    /// Breaks the connection.
    Reset,
    /// Says nothing more and keeps the connection.
    Stall,
}

impl Answer {
    /// Any status, headers and body.
    pub(crate) fn plain(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let length = body.as_ref().len().to_string();
        Self::head(status, headers)
            .header("content-length", &length)
            .bytes("\r\n")
            .bytes(body)
    }

    /// A JSON body.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::plain(
            status,
            &[("content-type", "application/json")],
            body.to_string(),
        )
    }

    /// The head of a streamed answer that ends with its connection.
    pub(crate) fn stream(wire: Wire) -> Self {
        Self::head(200, &[("content-type", wire.content_type())]).bytes("\r\n")
    }

    /// The head of a streamed answer in chunks, so that a lost end shows.
    pub(crate) fn chunked(wire: Wire) -> Self {
        Self::head(
            200,
            &[
                ("content-type", wire.content_type()),
                ("transfer-encoding", "chunked"),
            ],
        )
        .bytes("\r\n")
    }

    fn head(status: u16, headers: &[(&str, &str)]) -> Self {
        let head = Self::default().bytes(format!(
            "HTTP/1.1 {status} Said\r\nkeep-alive: timeout=5, max=100\r\n"
        ));
        headers
            .iter()
            .fold(head, |head, (name, value)| head.header(name, value))
    }

    fn header(self, name: &str, value: &str) -> Self {
        self.bytes(format!("{name}: {value}\r\n"))
    }

    /// More bytes.
    pub(crate) fn bytes(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.0.push(Step::Bytes(bytes.as_ref().to_vec()));
        self
    }

    /// More frames.
    pub(crate) fn frames(self, frames: &[String]) -> Self {
        self.bytes(frames.concat())
    }

    /// More bytes as one chunk of a chunked answer.
    pub(crate) fn chunk(self, text: &str) -> Self {
        self.bytes(format!("{:x}\r\n{text}\r\n", text.len()))
    }

    /// Waits until the client was shown something of it.
    pub(crate) fn shown(mut self) -> Self {
        self.0.push(Step::Shown);
        self
    }

    /// Ends with a reset instead of an end.
    pub(crate) fn reset(mut self) -> Self {
        self.0.push(Step::Reset);
        self
    }

    /// Never ends.
    pub(crate) fn stall(mut self) -> Self {
        self.0.push(Step::Stall);
        self
    }
}

impl Server {
    /// Starts a server without cases.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            cases: Arc::default(),
        };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let server = serving.clone();
                // A client that goes away in the middle is no fault of the server.
                tokio::spawn(async move { server.serve(socket).await.ok() });
            }
        });
        server
    }

    /// Adds a case and returns its base URL.
    pub(crate) fn case(&self, name: &str, wire: Wire, answers: Vec<Answer>) -> String {
        let case = Case {
            wire,
            answers,
            requests: Vec::new(),
            pages: Vec::new(),
            asked: Vec::new(),
            seen: Arc::default(),
        };
        self.cases.lock().unwrap().insert(name.to_owned(), case);
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    /// Gives a case other answers.
    pub(crate) fn answers(&self, name: &str, answers: Vec<Answer>) {
        self.cases.lock().unwrap().get_mut(name).unwrap().answers = answers;
    }

    /// Has a case answer what is asked at paths that end so with JSON of this status.
    pub(crate) fn page(&self, name: &str, path: &str, status: u16, body: &Value) {
        let page = (path.to_owned(), Answer::json(status, body));
        self.cases
            .lock()
            .unwrap()
            .get_mut(name)
            .unwrap()
            .pages
            .push(page);
    }

    /// What a case was asked beside turns so far: methods and paths.
    pub(crate) fn asked(&self, name: &str) -> Vec<String> {
        self.cases.lock().unwrap()[name].asked.clone()
    }

    /// The bodies of the requests of a case so far.
    pub(crate) fn requests(&self, name: &str) -> Vec<Value> {
        self.cases.lock().unwrap()[name].requests.clone()
    }

    /// Says that the client was shown something of a case's answer.
    pub(crate) fn shown(&self, name: &str) {
        if let Some(case) = self.cases.lock().unwrap().get(name) {
            case.seen.notify_one();
        }
    }

    async fn serve(&self, mut socket: TcpStream) -> io::Result<()> {
        let (method, path, body) = read_request(&mut socket).await?;
        let name = path.split('/').nth(1).unwrap_or_default().to_owned();
        let (answer, seen) = self.answer(&name, &method, &path, &body);
        for step in answer.0 {
            match step {
                Step::Bytes(bytes) => socket.write_all(&bytes).await?,
                Step::Shown => seen.notified().await,
                Step::Reset => {
                    socket.set_zero_linger()?;
                    return Ok(());
                }
                Step::Stall => {
                    // Until the client gives up.
                    socket.read_u8().await?;
                }
            }
        }
        socket.shutdown().await?;
        // An end is no reset only once the other side has closed too.
        while socket.read(&mut [0; 64]).await? > 0 {}
        Ok(())
    }

    fn answer(&self, name: &str, method: &str, path: &str, body: &[u8]) -> (Answer, Arc<Notify>) {
        let mut cases = self.cases.lock().unwrap();
        let Some(case) = cases.get_mut(name) else {
            return (
                Answer::json(404, &json!({"error": "no such case"})),
                Arc::default(),
            );
        };
        let seen = Arc::clone(&case.seen);
        let plain = path.split('?').next().unwrap_or_default();
        let page = case.pages.iter().find(|(end, _)| plain.ends_with(end));
        if let Some((_, page)) = page {
            let rest = path.trim_start_matches('/').trim_start_matches(name);
            case.asked.push(format!("{method} {rest}"));
            return (page.clone(), seen);
        }
        if path.ends_with("/api/show") {
            let show = json!({"capabilities": ["completion", "tools", "thinking"],
                "model_info": {"general.architecture": "x", "x.context_length": 32_768}});
            return (Answer::json(200, &show), seen);
        }
        if method == "GET" {
            // A list of models that the case does not have.
            case.asked.push(format!("{method} {plain}"));
            return (Answer::json(404, &json!({"error": "no such page"})), seen);
        }
        let request: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let problem = case.wire.unpaired(&request);
        case.requests.push(request);
        if let Some(problem) = problem {
            let body = json!({"error": {"message": format!("TEST: {problem}")}});
            return (Answer::json(400, &body), seen);
        }
        let last = case.answers.len().saturating_sub(1);
        let at = (case.requests.len() - 1).min(last);
        (case.answers.get(at).cloned().unwrap_or_default(), seen)
    }
}

async fn read_request(socket: &mut TcpStream) -> io::Result<(String, String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.split(' ').map(str::to_owned);
    let method = words.next().unwrap_or_default();
    let path = words.next().unwrap_or_default();
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.trim().parse().unwrap());
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    Ok((method, path, body))
}
