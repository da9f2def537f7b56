//! Three daemons on one database whose processes are killed and stopped, and whose database goes away, while sessions go on:
//! what was acknowledged is kept once and in order, nothing is written by whom a session was taken from, and nobody hears of
//! another one's session.
//!
//! A short one in `.ci/run`; ten minutes with 200 sessions behind HAProxy where `OUTRIGGER_FULL_TESTS` is set.

#![expect(
    clippy::print_stdout,
    reason = "it says what came of it, and aloud what is skipped"
)]

use std::collections::{BTreeSet, HashMap};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::database::servers;
use super::witness;
use crate::support::provider::Turn;
use crate::support::{Daemon, Dice, Provider, within};

const NODES: usize = 3;
const TOKEN: &str = "one-token-for-all-daemons-of-the-cluster";
const SECRET: &str = "a secret of the cluster, of 32 characters";

/// How long a client that was turned away, or whose socket broke, waits before it comes again.
const AGAIN: Duration = Duration::from_millis(200);

/// What happens, and how much.
struct Plan {
    sessions: usize,
    /// After which time the next process is killed.
    every: Duration,
    lasts: Duration,
    /// How long a process is stopped, once.
    pause: Duration,
    /// How long the database does not answer, once; and it is started anew twice.
    away: Duration,
    /// The longest that a client may be without a socket.
    longest: Duration,
}

/// Whether the whole of it is wanted.
fn is_full() -> bool {
    std::env::var_os("OUTRIGGER_FULL_TESTS").is_some()
}

impl Plan {
    fn get() -> Self {
        if is_full() {
            return Self {
                sessions: 200,
                every: Duration::from_secs(20),
                lasts: Duration::from_secs(600),
                pause: Duration::from_secs(20),
                away: Duration::from_secs(10),
                longest: Duration::from_secs(20),
            };
        }
        Self {
            sessions: 12,
            every: Duration::from_secs(3),
            lasts: Duration::from_secs(12),
            pause: Duration::from_secs(1),
            away: Duration::from_secs(1),
            longest: crate::support::PATIENCE,
        }
    }
}

/// A daemon that is started again however it ends, at a port that stays.
struct Node {
    daemon: Option<Daemon>,
    /// What is left of one that is not started again yet.
    left: Option<tempfile::TempDir>,
    /// Where it listens now; 0 where it does not.
    now: Arc<AtomicU16>,
    port: u16,
}

impl Node {
    async fn new(folder: tempfile::TempDir) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (now, port) = (
            Arc::<AtomicU16>::default(),
            listener.local_addr().unwrap().port(),
        );
        let to = Arc::clone(&now);
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let to = to.load(Ordering::Relaxed);
                tokio::spawn(async move {
                    if let Ok(mut daemon) = TcpStream::connect(("127.0.0.1", to)).await {
                        tokio::io::copy_bidirectional(&mut client, &mut daemon)
                            .await
                            .ok();
                    }
                });
            }
        });
        let mut node = Self {
            daemon: None,
            left: None,
            now,
            port,
        };
        node.begin(folder).await;
        node
    }

    async fn begin(&mut self, mut folder: tempfile::TempDir) {
        let begun = async {
            loop {
                // Where the database is away it does not start; whoever looks after it tries again.
                match Daemon::begin(folder, &[("OUTRIGGER_TOKEN", TOKEN)]).await {
                    Ok(daemon) => return daemon,
                    Err(it) => folder = it,
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        let daemon = within("a daemon", begun, String::new).await;
        self.now.store(daemon.port, Ordering::Relaxed);
        self.daemon = Some(daemon);
    }

    /// Starts it anew where it was killed, or has ended by itself.
    async fn look_after(&mut self) {
        if self.daemon.as_mut().is_some_and(Daemon::has_ended) {
            self.kill().await;
        }
        if let Some(folder) = self.left.take() {
            self.begin(folder).await;
        }
    }

    /// Kills it; all that it left is for the next one.
    async fn kill(&mut self) {
        let Some(mut daemon) = self.daemon.take() else {
            return;
        };
        self.now.store(0, Ordering::Relaxed);
        daemon.kill().await;
        self.left = Some(daemon.left().await);
    }

    fn signal(&self, signal: &str) {
        let Some(daemon) = &self.daemon else {
            return;
        };
        let pid = daemon.pid.to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
    }
}

/// Where clients go.
struct Front {
    ports: Vec<u16>,
    dice: Dice,
    /// HAProxy, where it is there: it sends a session to one daemon, as long as that one lives.
    proxy: Option<(std::process::Child, tempfile::TempDir)>,
}

impl Drop for Front {
    fn drop(&mut self) {
        if let Some((proxy, _)) = &mut self.proxy {
            proxy.kill().ok();
            proxy.wait().ok();
        }
    }
}

impl Front {
    /// Any daemon for any session: most of them are passed on.
    fn any(ports: Vec<u16>) -> Self {
        Self {
            ports,
            dice: Dice::new(),
            proxy: None,
        }
    }

    /// HAProxy with the example's way to find a daemon; any daemon where it is not installed, which is said aloud.
    async fn proxy(ports: Vec<u16>) -> Self {
        if Command::new("haproxy")
            .arg("-v")
            .stdout(Stdio::null())
            .status()
            .is_err()
        {
            assert!(
                !is_full(),
                "the whole storm needs HAProxy: apt-get install haproxy"
            );
            println!("*** SKIPPED: HAProxy is not installed here (apt-get install haproxy) ***");
            return Self::any(ports);
        }
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let servers = ports.iter().enumerate();
        let servers = servers.map(|(at, port)| {
            format!("  server n{at} 127.0.0.1:{port} check inter 1s fall 1 rise 1\n")
        });
        let config = format!(
            "defaults\n  mode http\n  timeout connect 2s\n  timeout client 30s\n  timeout server 30s\n  timeout tunnel 1h\n\
             frontend all\n  bind 127.0.0.1:{port}\n  default_backend nodes\n\
             backend nodes\n  balance url_param session\n  hash-type consistent\n  option httpchk\n  \
             http-check send meth GET uri /readyz hdr Host localhost\n{}",
            servers.collect::<String>()
        );
        let file = folder.path().join("haproxy.cfg");
        std::fs::write(&file, config).unwrap();
        let mut proxy = Command::new("haproxy");
        proxy.arg("-db").arg("-f").arg(&file);
        let proxy = proxy.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let proxy = proxy.unwrap();
        Self {
            ports: vec![port],
            dice: Dice::new(),
            proxy: Some((proxy, folder)),
        }
    }

    fn port(&self) -> u16 {
        let at = self.dice.roll(self.ports.len() as u64);
        self.ports[usize::try_from(at).unwrap()]
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Somebody who says one thing after the other in a session, whatever becomes of the sockets.
struct Talker {
    number: usize,
    front: Arc<Front>,
    session: Option<String>,
    last: u64,
    epoch: u64,
    /// How many of what was said were acknowledged.
    acknowledged: usize,
    /// What the daemon answered to each.
    answers: Vec<Value>,
    broken: Arc<AtomicUsize>,
    /// The longest time without a socket, and what was tried meanwhile.
    longest: (Duration, Vec<String>),
    /// Why the last socket broke, or was not to be had.
    why: String,
}

/// How many tries of a time without a socket are kept, to be told.
const TRIES: usize = 100;

impl Talker {
    async fn connect(&mut self) -> Option<Socket> {
        let query = match &self.session {
            Some(session) => format!("&session={session}&after={}", self.last),
            None => String::new(),
        };
        let url = format!(
            "ws://127.0.0.1:{}/ws?token={TOKEN}{query}",
            self.front.port()
        );
        let connected = tokio_tungstenite::connect_async(url).await;
        let connected = connected.inspect_err(|error| self.why = error.to_string());
        let (mut socket, _) = connected.ok()?;
        let ready = self.next(&mut socket).await?;
        assert_eq!(ready["type"], "session:ready", "{ready}");
        let id = ready["payload"]["sessionId"].as_str().unwrap().to_owned();
        // One of which nothing was acknowledged may be gone with its daemon.
        if let Some(session) = self.session.as_ref().filter(|_| self.acknowledged > 0) {
            assert_eq!(id, *session, "another session in its place");
        }
        let epoch = ready["payload"]["epoch"].as_u64().unwrap();
        assert!(
            self.acknowledged == 0 || epoch >= self.epoch,
            "an older one: {ready}"
        );
        (self.session, self.epoch) = (Some(id), epoch);
        Some(socket)
    }

    /// Returns the next frame; `None` where the socket broke.
    async fn next(&mut self, socket: &mut Socket) -> Option<Value> {
        loop {
            match socket.next().await? {
                Ok(Message::Text(text)) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    if let Some(seq) = frame["seq"].as_u64() {
                        self.last = seq;
                    }
                    if frame["type"] == "chat:text-delta" {
                        let said = frame["payload"]["content"].as_str().unwrap();
                        assert!(
                            said.starts_with(&format!("{}/", self.number)),
                            "another one's: {frame}"
                        );
                    }
                    return Some(frame);
                }
                Ok(Message::Close(close)) => {
                    self.why = format!("{close:?}");
                    return None;
                }
                Err(error) => {
                    self.why = error.to_string();
                    return None;
                }
                Ok(_) => {}
            }
        }
    }

    /// Says the next thing until it is acknowledged and answered, or the socket breaks.
    async fn say(&mut self, socket: &mut Socket) -> Option<()> {
        let id = self.acknowledged;
        let content = format!("{}/{id}", self.number);
        let send = json!({"type": "chat:send", "id": id, "content": content});
        socket.send(Message::text(send.to_string())).await.ok()?;
        loop {
            let frame = self.next(socket).await?;
            match frame["type"].as_str().unwrap() {
                // One that was sent again may be answered twice: by what was missed, and anew.
                "chat:send-result" if frame["replyTo"] == json!(id) && self.acknowledged == id => {
                    self.acknowledged += 1;
                    self.answers.push(frame["payload"].clone());
                }
                "chat:stream-end" | "chat:error" if self.acknowledged > id => return Some(()),
                // It could not be kept just now, and is said again.
                "session:error" if frame["replyTo"] == json!(id) => return None,
                _ => {}
            }
        }
    }

    async fn live(mut self, done: Arc<AtomicBool>) -> Self {
        while !done.load(Ordering::Relaxed) {
            let lost = Instant::now();
            let mut tries = vec![std::mem::take(&mut self.why)];
            let mut socket = loop {
                let connected = within("a socket", self.connect(), String::new).await;
                if tries.len() < TRIES {
                    tries.push(format!("{:.1?} {}", lost.elapsed(), self.why));
                }
                match connected {
                    Some(socket) => break socket,
                    None => tokio::time::sleep(AGAIN).await,
                }
                assert!(
                    lost.elapsed() < crate::support::PATIENCE,
                    "nobody has session {}: {}",
                    self.number,
                    self.why
                );
            };
            if lost.elapsed() > self.longest.0 {
                self.longest = (lost.elapsed(), tries);
            }
            while !done.load(Ordering::Relaxed) {
                let said = self.say(&mut socket);
                // An exchange that is broken off by the end of its daemon is not answered by the next one.
                match tokio::time::timeout(Duration::from_secs(5), said).await {
                    Ok(Some(())) => {}
                    Ok(None) => {
                        self.broken.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
        self
    }

    /// Asks something until it is answered, by as many sockets as that takes.
    async fn ask(&mut self, kind: &str) -> Value {
        let answered = async {
            loop {
                if let Some(mut socket) = self.connect().await {
                    let ask = json!({"type": kind, "id": "q"});
                    socket.send(Message::text(ask.to_string())).await.ok();
                    while let Some(frame) = self.next(&mut socket).await {
                        if frame["replyTo"] == "q" {
                            return frame["payload"].clone();
                        }
                    }
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        within(kind, answered, String::new).await
    }

    /// Waits until nothing runs in the session any more: then nothing is written there.
    async fn rest(&mut self) {
        let rests = |state: &Value| {
            let conversations = state["conversations"].as_array().unwrap();
            conversations.iter().all(|it| it["state"] == "idle")
        };
        let rest = async {
            while !rests(&self.ask("session:state").await) {
                tokio::time::sleep(AGAIN).await;
            }
        };
        within("a session at rest", rest, String::new).await;
    }

    /// Looks whether all that was acknowledged is kept, once and in order, and whether that is what the database has; returns
    /// what is wrong.
    async fn check(mut self, said: &HashMap<String, Vec<(String, Value)>>) -> Option<String> {
        let history = self.ask("chat:history").await;
        let messages = history["messages"].as_array().unwrap();
        let of_database = self.session.as_ref().and_then(|it| said.get(it));
        let of_database = of_database.map_or(&[][..], Vec::as_slice);
        let shown = messages
            .iter()
            .map(|it| (it["role"].as_str().unwrap(), &it["content"]));
        let kept = of_database.iter().map(|it| (it.0.as_str(), &it.1));
        if !shown.clone().eq(kept) {
            let shown: Vec<_> = shown.collect();
            return Some(format!(
                "session {}: {shown:?} is shown, and kept is {of_database:?}",
                self.number
            ));
        }
        let users = messages.iter().filter(|it| it["role"] == "user");
        let kept: Vec<usize> = users
            .map(|it| {
                let text = text(&it["content"]);
                let (number, id) = text.split_once('/').unwrap();
                assert_eq!(number, self.number.to_string(), "another one's: {text}");
                id.parse().unwrap()
            })
            .collect();
        let missing: Vec<_> = (0..self.acknowledged)
            .filter(|id| !kept.contains(id))
            .collect();
        let is_in_order = kept.windows(2).all(|two| two[0] < two[1]);
        // The last one may be kept though its acknowledgement was lost.
        let has_more = kept.iter().any(|id| *id > self.acknowledged);
        if missing.is_empty() && is_in_order && !has_more {
            return None;
        }
        let answers: Vec<_> = missing.iter().map(|id| &self.answers[*id]).collect();
        let Self {
            number,
            acknowledged,
            session,
            ..
        } = &self;
        let order = if is_in_order {
            String::new()
        } else {
            format!("; {kept:?}")
        };
        Some(format!(
            "session {number} ({session:?}), {acknowledged} acknowledged: missing {missing:?}, which were answered {answers:?}; more {has_more}, in order {is_in_order}{order}"
        ))
    }
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap().to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_is_kept_once_while_daemons_die() {
    let Some(mut server) = servers::shared().and_then(|_| servers::Server::start()) else {
        assert!(
            !is_full(),
            "the whole storm needs PostgreSQL: apt-get install postgresql"
        );
        return;
    };
    let plan = Plan::get();
    let provider = Provider::start().await;
    provider.by_rule(|last| Turn::text(&text(&last["content"])));
    // A role that row-level security counts for.
    let database = server.database();
    let url = server.url("plain", &database);
    let project = tempfile::tempdir().unwrap();
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let more = json!({
            // What waited when a daemon died comes before what is said after it.
            "store": {"url": url, "resume_queue": true},
            "project": {"root": project.path()},
            "cluster": {"name": format!("node-{number}"), "url": "http://127.0.0.1:0", "secret": SECRET},
            "shutdown": {"grace": "1s"},
            // One that is left has all of them, and one that passes a socket on counts it as well.
            "server": {"max_connections": 4 * plan.sessions},
        });
        nodes.push(Node::new(Daemon::folder(&provider, more)).await);
    }
    witness::watch(&server, &database);
    let ports: Vec<u16> = nodes.iter().map(|node| node.port).collect();
    let front = Arc::new(match plan.sessions > 100 {
        true => Front::proxy(ports).await,
        false => Front::any(ports),
    });
    let (done, broken) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let talking: Vec<_> = (0..plan.sessions)
        .map(|number| {
            let talker = Talker {
                number,
                front: Arc::clone(&front),
                session: None,
                last: 0,
                epoch: 0,
                acknowledged: 0,
                answers: Vec::new(),
                broken: Arc::clone(&broken),
                longest: (Duration::ZERO, Vec::new()),
                why: String::new(),
            };
            tokio::spawn(talker.live(Arc::clone(&done)))
        })
        .collect();
    let (began, dice) = (Instant::now(), Dice::new());
    let (mut round, mut kills) = (0, 0);
    while began.elapsed() < plan.lasts {
        tokio::time::sleep(plan.every).await;
        let at = usize::try_from(dice.roll(NODES as u64)).unwrap();
        match round {
            1 => {
                nodes[at].signal("-STOP");
                tokio::time::sleep(plan.pause).await;
                nodes[at].signal("-CONT");
            }
            2 => {
                server.hang();
                tokio::time::sleep(plan.away).await;
                server.answer();
            }
            3 | 5 => {
                server.stop();
                server.go_on();
            }
            _ => {
                nodes[at].kill().await;
                kills += 1;
            }
        }
        round += 1;
        // Of two that were killed one comes back at once, and the other one's sessions are taken by the rest.
        for (number, node) in nodes.iter_mut().enumerate() {
            if number != at || round % 2 == 1 {
                node.look_after().await;
            }
        }
    }
    done.store(true, Ordering::Relaxed);
    let mut talkers = Vec::new();
    for talker in talking {
        talkers.push(
            within("the end of a talk", talker, String::new)
                .await
                .unwrap(),
        );
    }
    let acknowledged: usize = talkers.iter().map(|it| it.acknowledged).sum();
    let longest = talkers.iter().map(|it| &it.longest).max().unwrap();
    let ids: BTreeSet<_> = talkers.iter().map(|it| it.session.clone()).collect();
    assert_eq!(ids.len(), plan.sessions, "a session of each");
    println!(
        "{} sessions, {acknowledged} messages acknowledged, {kills} daemons killed, {} sockets broken; the longest time without a socket {:.1?}: {:#?}",
        plan.sessions,
        broken.load(Ordering::Relaxed),
        longest.0,
        longest.1
    );
    let longest = longest.0;
    for talker in &mut talkers {
        talker.rest().await;
    }
    let said = witness::said(&server, &database);
    let mut wrong = Vec::new();
    for talker in talkers {
        wrong.extend(talker.check(&said).await);
    }
    assert_eq!(
        witness::stale(&server, &database),
        "",
        "of a row, who wrote it and whose it was"
    );
    assert!(
        longest <= plan.longest,
        "a client was without a socket for {longest:.1?}"
    );
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
    assert!(
        kills > 0 && broken.load(Ordering::Relaxed) > 0,
        "nothing happened"
    );
}
