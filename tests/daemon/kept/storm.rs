//! Three daemons on one database whose processes are killed and stopped, and whose database goes away, while sessions go on:
//! what was acknowledged is kept once and in order, nothing is written by whom a session was taken from, and nobody hears of
//! another one's session.
//!
//! A short one in `.ci/run`; ten minutes with 200 sessions behind HAProxy where `OUTRIGGER_FULL_TESTS` is set.

#![expect(
    clippy::print_stdout,
    reason = "it says what came of it, and aloud what is skipped"
)]

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use super::database::servers;
use super::talker::{AGAIN, Talker, text};
use super::witness;
use crate::support::provider::Turn;
use crate::support::{Daemon, Dice, Provider, within};

const NODES: usize = 3;
pub(super) const TOKEN: &str = "one-token-for-all-daemons-of-the-cluster";
const SECRET: &str = "a secret of the cluster, of 32 characters";

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
pub(super) struct Front {
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

    pub(super) fn port(&self) -> u16 {
        let at = self.dice.roll(self.ports.len() as u64);
        self.ports[usize::try_from(at).unwrap()]
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
            let talker = Talker::new(number, Arc::clone(&front), Arc::clone(&broken));
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
