//! Several daemons on one database: each session is at one of them, and whoever asks another one for it gets to it.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use super::database::servers;
use super::{history, resume, said};
use crate::admin::{printed, split};
use crate::lifecycle::signal;
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};
use crate::telemetry::get;

const SECRET: &str = "a secret of the cluster, of 32 characters";

/// A database, and the daemons on it.
struct Cluster {
    server: &'static servers::Server,
    database: String,
    provider: Provider,
    project: tempfile::TempDir,
}

impl Cluster {
    /// Begins one without a daemon; `None` where there is no PostgreSQL.
    async fn new() -> Option<Self> {
        let server = servers::shared()?;
        let provider = Provider::start().await;
        Some(Self {
            server,
            database: server.database(),
            provider,
            project: tempfile::tempdir().unwrap(),
        })
    }

    /// Starts a daemon of this name, which all others reach.
    async fn daemon(&self, name: &str) -> Daemon {
        self.daemon_of(json!({"name": name, "url": "http://127.0.0.1:0", "secret": SECRET}))
            .await
    }

    async fn daemon_of(&self, cluster: Value) -> Daemon {
        let more = json!({
            "store": {"url": self.server.url("careful:right", &self.database)},
            // They have one folder, as on a shared volume.
            "project": {"root": self.project.path()},
            "cluster": cluster,
        });
        Daemon::with(&self.provider, more).await
    }

    fn sql(&self, sql: &str) -> String {
        self.server.sql(&self.database, sql)
    }

    /// Returns the name of the daemon that has a session.
    fn place(&self, session: &str) -> String {
        self.sql(&format!(
            "SELECT name FROM any_session JOIN node ON node.id = any_session.node WHERE any_session.id = '{session}'"
        ))
    }
}

/// Says something in a session and returns what the model said.
async fn talk(client: &mut Client, provider: &Provider, text: &str) -> u64 {
    provider.then(Turn::text(&format!("re: {text}")));
    client.say(text).await;
    let end = client.until("chat:stream-end").await;
    end["seq"].as_u64().unwrap()
}

#[tokio::test]
async fn a_socket_that_comes_to_another_daemon_gets_to_its_session() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let (mut one, two) = (cluster.daemon("one").await, cluster.daemon("two").await);
    let mut first = one.connect().await;
    let session = first.session();
    let last = talk(&mut first, &cluster.provider, "hello").await;
    assert_eq!(cluster.place(&session), "one");

    // The token is the other daemon's own, which the one that has the session does not know.
    let mut passed_on = resume(&two, &session, last).await;
    assert_eq!(passed_on.session(), session);
    assert_eq!(passed_on.seen[0]["payload"]["resumed"], true);
    // It was not begun anew: it is the same one.
    assert_eq!(passed_on.seen[0]["payload"]["epoch"], 1);
    assert_eq!(first.closed().await, 4001);
    // What asks for no socket throws nobody out there.
    let asked = format!(
        "/ws?session={session}&takeOver=1 HTTP/1.1\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nX-Rest:"
    );
    let answer = get(&two, &asked, &two.token).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    talk(&mut passed_on, &cluster.provider, "again").await;
    let expected = said(&[
        ("user", "hello"),
        ("assistant", "re: hello"),
        ("user", "again"),
        ("assistant", "re: again"),
    ]);
    assert_eq!(history(&mut passed_on).await, expected);
    assert_eq!(cluster.place(&session), "one");
    // What is listed is the same at both.
    let mut other = two.connect().await;
    let listed = other.ask(json!({"type": "session:list"})).await;
    assert_eq!(
        listed["payload"]["sessions"][0]["sessionId"],
        json!(session)
    );
    // A request on a socket that is on another session is not passed on, and says where to go.
    let refused = other
        .ask(json!({"type": "session:open", "payload": {"sessionId": session}}))
        .await;
    assert_eq!(refused["payload"]["code"], "session_elsewhere", "{refused}");
    let refused = other
        .ask(json!({"type": "session:delete", "payload": {"sessionId": session}}))
        .await;
    assert_eq!(refused["payload"]["code"], "session_elsewhere", "{refused}");
    // The daemon that has it ends in order, in the middle of an answer: it is the other one's at once, with all that was said.
    let (turn, _pause) = Turn::paused(&[json!({"content": "half of it"})], &[], "stop");
    cluster.provider.then(turn);
    passed_on.say("the last").await;
    passed_on.until("chat:text-delta").await;
    signal(&one, "TERM");
    assert_eq!(passed_on.closed().await, 1001);
    assert_eq!(one.child.wait().await.unwrap().code(), Some(0));
    let mut moved = resume(&two, &session, 0).await;
    assert_eq!(moved.seen[0]["payload"]["epoch"], 2);
    let kept = history(&mut moved).await;
    assert_eq!(kept[..4], expected);
    assert_eq!(kept[4..5], said(&[("user", "the last")]));
    assert_eq!(cluster.place(&session), "two");
}

#[tokio::test]
async fn the_sessions_of_a_daemon_that_was_killed_go_on_at_another_one() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let (mut one, two) = (cluster.daemon("one").await, cluster.daemon("two").await);
    let mut first = one.connect().await;
    let session = first.session();
    let last = talk(&mut first, &cluster.provider, "hello").await;
    one.kill().await;
    // It is waited for, until the dead one's lease is over.
    let mut second = resume(&two, &session, last).await;
    assert_eq!(second.session(), session);
    assert_eq!(second.seen[0]["payload"]["epoch"], 2);
    let expected = said(&[("user", "hello"), ("assistant", "re: hello")]);
    assert_eq!(history(&mut second).await, expected);
    assert_eq!(cluster.place(&session), "two");
}

#[tokio::test]
async fn a_daemon_that_was_taken_for_dead_ends_and_writes_nothing_more() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let (one, two) = (cluster.daemon("one").await, cluster.daemon("two").await);
    let mut first = one.connect().await;
    let session = first.session();
    let last = talk(&mut first, &cluster.provider, "hello").await;
    // As after a pause of its machine.
    cluster.sql("UPDATE node SET expires = '-infinity' WHERE name = 'one'");
    cluster.sql("DELETE FROM node WHERE name = 'one'");
    let mut second = resume(&two, &session, last).await;
    talk(&mut second, &cluster.provider, "over there").await;
    // What is said to it is not kept, and it says so by its end.
    first.say("stale").await;
    let code = first.closed().await;
    assert!([1001, 1012].contains(&code), "{code}");
    let folder = one.left().await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.contains("was taken for dead"), "{log}");
    let expected = said(&[
        ("user", "hello"),
        ("assistant", "re: hello"),
        ("user", "over there"),
        ("assistant", "re: over there"),
    ]);
    assert_eq!(history(&mut second).await, expected);
}

#[tokio::test]
async fn a_daemon_without_an_address_has_its_sessions_asked_for_later() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let one = cluster.daemon_of(json!({"name": "one"})).await;
    let two = cluster.daemon_of(json!({"name": "two"})).await;
    let mut first = one.connect().await;
    let session = first.session();
    talk(&mut first, &cluster.provider, "hello").await;
    let reached = Client::reach(&two, &format!("?session={session}")).await;
    assert_eq!(
        reached.err(),
        Some(1013),
        "it lives, so that nobody waits for its end"
    );
}

#[tokio::test]
async fn a_pass_is_not_made_up_and_no_other_cluster_s() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let one = cluster.daemon("one").await;
    let other =
        json!({"name": "two", "url": "http://127.0.0.1:0", "secret": SECRET.to_uppercase()});
    let two = cluster.daemon_of(other).await;
    let mut first = one.connect().await;
    let session = first.session();
    talk(&mut first, &cluster.provider, "hello").await;
    // Its pass is refused there, and the session is one's still.
    let reached = Client::reach(&two, &format!("?session={session}")).await;
    assert_eq!(reached.err(), Some(1013));
    for pass in ["", "x", "eyJhbGciOiJub25lIn0.e30."] {
        let url = format!("ws://127.0.0.1:{}/ws?session={session}", one.port);
        let mut request = url.into_client_request().unwrap();
        let headers = request.headers_mut();
        let bearer = format!("Bearer {}", one.token);
        headers.insert("authorization", bearer.parse().unwrap());
        headers.insert("x-outrigger-pass", pass.parse().unwrap());
        match tokio_tungstenite::connect_async(request).await {
            Err(Error::Http(answer)) => assert_eq!(answer.status(), 401, "{pass}"),
            other => panic!("{pass}: {other:?}"),
        }
    }
    assert_eq!(cluster.place(&session), "one");
}

/// Comes back to a session once the daemon has it.
async fn come_back(daemon: &Daemon, session: &str) -> Client {
    let mut client = None;
    eventually("the session is there", async || {
        let reached = Client::reach(daemon, &format!("?session={session}")).await;
        client = reached.ok();
        client.is_some()
    })
    .await;
    client.unwrap()
}

#[tokio::test]
async fn a_database_that_is_away_for_long_ends_the_sessions_of_a_cluster() {
    let Some(mut server) = servers::shared().and_then(|_| servers::Server::start()) else {
        return;
    };
    let url = server.url("tester", &server.database());
    let provider = Provider::start().await;
    let more = json!({"store": {"url": url}, "cluster": {"name": "one"}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let session = client.session();
    talk(&mut client, &provider, "hello").await;
    let (turn, _pause) = Turn::paused(&[json!({"content": "never"})], &[], "stop");
    provider.then(turn);
    client.say("again").await;
    client.until("chat:text-delta").await;
    server.stop();
    assert_eq!(client.closed().await, 1012, "another one may have it");
    // As long as it cannot say whose the session is, nobody is given another one in its place.
    let reached = Client::reach(&daemon, &format!("?session={session}")).await;
    assert_eq!(reached.err(), Some(1013));
    server.go_on();
    eventually("the database is back", async || {
        get(&daemon, "/metrics", &daemon.token)
            .await
            .contains("outrigger_store_up 1")
    })
    .await;
    let mut client = come_back(&daemon, &session).await;
    assert_eq!(client.session(), session);
    let kept = history(&mut client).await;
    assert_eq!(
        kept[..2],
        said(&[("user", "hello"), ("assistant", "re: hello")])
    );
}

#[tokio::test]
async fn no_call_begins_that_the_database_does_not_know_of() {
    let Some(server) = servers::shared().and_then(|_| servers::Server::start()) else {
        return;
    };
    let url = server.url("tester", &server.database());
    let provider = Provider::start().await;
    let cluster = json!({"name": "one", "url": "http://127.0.0.1:0", "secret": SECRET});
    let more =
        json!({"store": {"url": url}, "cluster": cluster, "chat": {"trust_level": "autonomous"}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let session = client.session();
    let call = |index: usize, name: &str, input: &Value| {
        json!({"tool_calls": [{"index": index, "id": name, "type": "function",
            "function": {"name": name, "arguments": input.to_string()}}]})
    };
    let calls = [
        call(0, "bash", &json!({"command": "touch by-bash"})),
        call(
            1,
            "file_write",
            &json!({"path": "by-file-write", "content": "x"}),
        ),
    ];
    let (turn, pause) = Turn::paused(&[json!({"content": "wait"})], &calls, "tool_calls");
    provider.then(turn);
    client.say("go").await;
    client.until("chat:text-delta").await;
    server.hang();
    pause.go_on();
    assert_eq!(client.closed().await, 1012, "another one may have it");
    // Who comes back meanwhile does not hang as the database does.
    let reached = Client::reach(&daemon, &format!("?session={session}")).await;
    assert_eq!(reached.err(), Some(1013));
    server.answer();
    let kept = history(&mut come_back(&daemon, &session).await).await;
    assert_eq!(kept[..1], said(&[("user", "go")]));
    for file in ["by-bash", "by-file-write"] {
        assert!(!daemon.project().join(file).exists(), "{file}");
    }
}

#[tokio::test]
async fn an_operator_sees_all_daemons_and_their_sessions() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let (mut one, two) = (cluster.daemon("one").await, cluster.daemon("two").await);
    // One that nobody can ask: it says where it is to nobody.
    let three = cluster.daemon_of(json!({"name": "three"})).await;
    let mut sessions = Vec::new();
    for daemon in [&one, &two] {
        let mut client = daemon.connect().await;
        talk(&mut client, &cluster.provider, "words of a user").await;
        sessions.push((client.session(), client));
    }
    let asked = async |path: &str| {
        let (status, body) = split(&get(&two, path, &two.token).await);
        assert_eq!(status, 200, "{body}");
        body
    };
    let nodes = asked("/admin/nodes").await;
    let nodes = nodes["nodes"].as_array().unwrap();
    let shown: Vec<_> = nodes
        .iter()
        .map(|it| {
            let text = |name: &str| it[name].as_str().unwrap_or("-").to_owned();
            (
                text("node"),
                text("state"),
                it["here"] == true,
                it["sessions"].as_u64().unwrap(),
            )
        })
        .collect();
    let row = |name: &str, state: &str, here, sessions| {
        (name.to_owned(), state.to_owned(), here, sessions)
    };
    assert_eq!(
        shown,
        [
            row("one", "ready", false, 1),
            row("three", "unknown", false, 0),
            row("two", "ready", true, 1)
        ]
    );
    for node in nodes {
        assert!(node["renewedMs"].as_u64().unwrap() < 15_000, "{node}");
        let is_known = node["node"] != "three";
        assert_eq!(
            node["since"].is_string() && node["running"] == 0,
            is_known,
            "{node}"
        );
    }
    assert_eq!(nodes[0]["url"], format!("http://127.0.0.1:{}", one.port));
    let table = printed(&two, &["nodes"]).await;
    assert!(
        table.contains("two *") && table.contains("* answers"),
        "{table}"
    );
    let listed = asked("/admin/sessions").await;
    let at = |id: &str| {
        let rows = listed["sessions"].as_array().unwrap();
        let row = rows.iter().find(|it| it["sessionId"] == id);
        row.unwrap()["node"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (at(&sessions[0].0), at(&sessions[1].0)),
        ("one".to_owned(), "two".to_owned())
    );
    assert_eq!(listed["silent"], json!(["three"]));
    assert!(!listed.to_string().contains("words of a user"), "{listed}");
    assert_eq!(asked("/admin/users").await["users"][0]["sessions"], 2);
    // Who asks for one daemon is not answered by others, and a pass is not made up.
    assert_eq!(
        asked("/admin/nodes?here=1").await["nodes"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let forged = "/admin/nodes HTTP/1.1\r\nX-Outrigger-Pass: x\r\nX-Rest:";
    let answer = get(&two, forged, &two.token).await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    // One that died has its row until somebody takes its sessions.
    one.kill().await;
    cluster.sql("UPDATE node SET expires = '-infinity' WHERE name = 'one'");
    let nodes = asked("/admin/nodes").await;
    assert_eq!(nodes["nodes"][0]["state"], "gone", "{nodes}");
    assert!(nodes["nodes"][0]["renewedMs"].is_null(), "{nodes}");
    let listed = asked("/admin/sessions").await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    drop(three);
}
