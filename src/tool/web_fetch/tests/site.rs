//! Sites that answer by hand, a user who answers, and calls of the tool.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::super::*;
use crate::config::HostPort;
use crate::message::Part;
use crate::tool::testing::Surroundings;
use crate::tool::user::{
    AskUser, Given, HandOut, HostVerdict, KnownHosts, Returned, Sample, Sampled, Standstill,
    Unsampled, Wanted,
};

/// What a path gets.
#[derive(Clone)]
pub(super) enum Answer {
    Bytes(Vec<u8>),
    /// This, and then nothing, with the connection open.
    Stall(Vec<u8>),
    /// A head, and then the same for ever.
    Endless(Vec<u8>),
}

/// A site that answers by path; it ends with the test's runtime.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) port: u16,
    pub(super) answers: Arc<Mutex<BTreeMap<String, Answer>>>,
    /// Heads of requests.
    pub(super) asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Self {
            port: listener.local_addr().unwrap().port(),
            answers: Arc::default(),
            asked: Arc::default(),
        };
        let serving = site.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let site = serving.clone();
                // A client that goes away is no fault of the site.
                tokio::spawn(async move { site.serve(socket).await.ok() });
            }
        });
        site
    }

    async fn serve(self, mut socket: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await?);
            if head.starts_with(b"\x16") {
                // TLS, which it does not speak.
                return socket.write_all(&head_of(400, &[], b"")).await;
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        self.asked.lock().unwrap().push(head);
        let answer = self.answers.lock().unwrap().get(&path).cloned();
        let missing = || Answer::Bytes(head_of(404, &[], b"no such page"));
        match answer.unwrap_or_else(missing) {
            Answer::Bytes(bytes) => socket.write_all(&bytes).await?,
            Answer::Stall(bytes) => {
                socket.write_all(&bytes).await?;
                std::future::pending::<()>().await;
            }
            Answer::Endless(bytes) => {
                socket.write_all(&bytes).await?;
                loop {
                    socket.write_all(&[b'a'; 4096]).await?;
                }
            }
        }
        socket.shutdown().await
    }

    pub(super) fn has(&self, path: &str, answer: Answer) -> &Self {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
        self
    }

    pub(super) fn page(&self, path: &str, content_type: &str, body: impl AsRef<[u8]>) -> &Self {
        let head = head_of(200, &[("content-type", content_type)], body.as_ref());
        self.has(path, Answer::Bytes(head))
    }

    pub(super) fn redirect(&self, path: &str, to: &str) -> &Self {
        let headers = [("location", to), ("set-cookie", "a=b")];
        self.has(path, Answer::Bytes(head_of(302, &headers, b"")))
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the paths that were asked for.
    pub(super) fn paths(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let path = |head: &String| head.split(' ').nth(1).unwrap().to_owned();
        asked.iter().map(path).collect()
    }

    /// Returns settings with which it may be read, and is not asked for.
    pub(super) fn config(&self) -> WebFetchConfig {
        WebFetchConfig {
            hosts: vec![HostEntry::parse("127.0.0.1").unwrap()],
            allow_private: vec![HostPort::parse(&format!("127.0.0.1:{}", self.port)).unwrap()],
            robots: false,
            ..crate::config::for_tests().tools.web_fetch
        }
    }

    /// Returns what a call for one of its pages comes to.
    pub(super) async fn fetch(&self, path: &str) -> Output {
        fetch(&web_fetch(self.config(), &[]), &self.url(path)).await
    }
}

pub(super) fn head_of(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!(
        "HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut head = format!("{head}\r\n").into_bytes();
    head.extend(body);
    head
}

/// A user who says no to one host and yes to the others, and remembers what was asked.
#[derive(Default)]
pub(super) struct Someone {
    pub(super) denied: &'static str,
    pub(super) asked: Mutex<Vec<String>>,
}

impl AskUser for Someone {
    fn sample(&self, _: Sample) -> BoxFuture<'_, Result<Sampled, Unsampled>> {
        unreachable!("no model is asked for a page")
    }

    fn unable(&self) -> Option<String> {
        None
    }

    fn stand_still(&self) -> Option<Standstill<'_>> {
        None
    }

    fn ask(&self, _: Wanted) -> BoxFuture<'_, Given> {
        unreachable!("nothing is asked but hosts")
    }

    fn known_hosts(&self) -> KnownHosts {
        Arc::new(|_| None)
    }

    fn ask_host<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, HostVerdict> {
        self.asked.lock().unwrap().push(format!("{host} {port}"));
        let verdict = match host == self.denied {
            true => HostVerdict::Refused("the user denied it".to_owned()),
            false => HostVerdict::Allowed,
        };
        Box::pin(std::future::ready(verdict))
    }

    fn hand_out<'a>(
        &'a self,
        _: HandOut,
        _: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Returned> {
        unreachable!("nothing is handed out")
    }
}

pub(super) async fn call(tool: &impl Tool, input: Value, user: Option<&dyn AskUser>) -> Output {
    let input: Map<String, Value> = serde_json::from_value(input).unwrap();
    let prepared = match tool.prepare(&input) {
        Ok(prepared) => prepared,
        Err(Refusal::Invalid(why)) => return Output::error(why),
        Err(other) => panic!("{other:?}"),
    };
    let surroundings = Surroundings::default();
    surroundings.redactor.add("hunter2-hunter2");
    let run = Run {
        user,
        ..surroundings.run()
    };
    let work = prepared.run(run);
    let work = tokio::time::timeout(Duration::from_secs(120), work);
    work.await.expect("the call ends").unwrap()
}

pub(super) async fn fetch(tool: &impl Tool, url: &str) -> Output {
    call(tool, json!({ "url": url }), None).await
}

pub(super) fn text(output: &Output) -> &str {
    match output.content.as_slice() {
        [Part::Text { text }] => text,
        other => panic!("{other:?}"),
    }
}
