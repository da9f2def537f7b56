//! What one user has running, asks for and leaves behind outside its sessions: ports, questions of MCP servers, the daemon's
//! files. Another one tries to get at it.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::mcp::Fake;
use crate::support::eventually;

/// Answers each line with itself in capitals; listens where it is told.
const SERVER: &str = "use IO::Socket::INET; my $s = IO::Socket::INET->new(Listen => 9, ReuseAddr => 1, LocalAddr => '127.0.0.1:0') or die $@; while (my $c = $s->accept) { next if fork; print $c uc $_ while <$c>; exit }";

/// Has the model make a call and returns what came of it.
async fn attempt(client: &mut Client, tool: &str, input: &Value) -> Value {
    let before = client.all("chat:tool-result").len();
    let result = run(client, tool, input).await;
    let after = client.all("chat:tool-result").len();
    assert_eq!(after, before + 1, "{tool} {input} was not tried");
    result
}

/// Says a line to a port of loopback and prints what comes back.
fn shout(port: u64) -> String {
    format!(
        "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(\"127.0.0.1:{port}\") or die \"no way: $!\"; \
         print $s \"is anybody there\\n\"; shutdown $s, 1; print <$s>'"
    )
}

async fn shouted(at: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"hello\n").await.unwrap();
    let mut answer = [0; 6];
    stream.read_exact(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_server_of_another_user_and_its_exposed_port_are_out_of_reach() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, json!({"tools": {"bash": {"expose": "ask"}}})).await;
    let mut anna = users.connect("anna").await;
    if anna.seen[0]["payload"]["sandbox"]["mode"] != "full" {
        eprintln!("*** SKIPPED: ports of users: the sandbox is not full here ***");
        return;
    }
    std::fs::write(users.work.join("anna/server.pl"), SERVER).unwrap();
    let input = json!({"command": "exec perl server.pl", "background": true});
    let begun = run(&mut anna, "bash", &input).await;
    assert_eq!(begun["metadata"]["background"], "b1", "{begun}");
    let told = match anna.all("tool:port-open").pop() {
        Some(told) => told,
        None => anna.until("tool:port-open").await["payload"].clone(),
    };
    let inner = told["port"].as_u64().unwrap();
    let exposed = anna
        .ask(json!({"type": "tool:expose", "port": inner}))
        .await;
    let url = exposed["payload"]["url"].as_str().unwrap();
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    assert_eq!(shouted(at).await, "HELLO\n");
    let outer: u64 = at.rsplit_once(':').unwrap().1.parse().unwrap();
    // Her own commands reach it: the attempts below fail for who makes them.
    let own = run(&mut anna, "bash", &json!({"command": shout(inner)})).await;
    assert!(own.to_string().contains("IS ANYBODY THERE"), "{own}");

    let mut ben = users.connect("ben").await;
    for port in [inner, outer] {
        let tried = attempt(&mut ben, "bash", &json!({"command": shout(port)})).await;
        let text = tried.to_string();
        assert!(
            text.contains("no way") && !text.contains("IS ANYBODY"),
            "{port}: {text}"
        );
    }
    for (tool, input) in [
        ("bash_output", json!({"id": "b1"})),
        ("bash_kill", json!({"id": "b1"})),
    ] {
        let tried = attempt(&mut ben, tool, &input).await;
        assert_ne!(tried["status"], "success", "{tool}: {tried}");
    }
    // His conversation is there by now, and has no such port.
    for close in [false, true] {
        let ask = json!({"type": "tool:expose", "port": inner, "close": close});
        let tried = ben.ask(ask).await;
        assert_eq!(tried["payload"]["code"], "invalid_payload", "{tried}");
    }
    assert!(ben.all("tool:port-open").is_empty());
    let state = ben.ask(json!({"type": "session:state"})).await;
    assert!(!state.to_string().contains(at), "{state}");
    assert_eq!(shouted(at).await, "HELLO\n");
}

#[tokio::test]
async fn a_question_that_a_server_asks_one_user_is_not_for_another() {
    let provider = Provider::start().await;
    let fake = Fake::new();
    let servers = json!({"mcp": {"servers": {"fake": fake.config(&[])}}});
    let users = Users::start(&provider, servers).await;
    // In the daemon's own project, which alone has servers that are programs.
    let connect = async |name: &str| {
        let token = users.token(name, "1h", &[]).await;
        Client::reach_by(&users.daemon, "", &token).await.unwrap()
    };
    let (mut anna, mut ben) = (connect("anna").await, connect("ben").await);
    for client in [&mut anna, &mut ben] {
        client
            .ask(json!({"type": "session:configure", "inputRequests": true}))
            .await;
        // That it is ready is told operators alone.
        eventually("the server is ready", async || {
            let listed = client.ask(json!({"type": "mcp:list"})).await;
            listed["payload"]["servers"][0]["state"] == "ready"
        })
        .await;
    }
    anna.say(r#"call: {"tool": "mcp__fake__form", "input": {}}"#)
        .await;
    let asked = anna.until("chat:tool-confirm").await;
    let approve = json!({"type": "chat:tool-approve", "toolId": asked["payload"]["toolId"], "approved": true});
    let refused = ben.ask(approve.clone()).await;
    assert_eq!(
        refused["payload"]["code"], "approval_not_found",
        "{refused}"
    );
    anna.send(approve).await;
    let request = anna.until("chat:tool-input-request").await["payload"].clone();
    let answer = |name: &str| {
        json!({"type": "chat:tool-input", "requestId": request["requestId"], "action": "accept",
            "content": {"name": name}})
    };
    let refused = ben.ask(answer("ben was here")).await;
    assert_eq!(refused["payload"]["code"], "input_not_found", "{refused}");
    let answered = anna.ask(answer("Anna of the engine")).await;
    assert_eq!(answered["payload"]["accepted"], true, "{answered}");
    anna.until("chat:stream-end").await;
    let given = fake.note("answer").unwrap();
    assert!(
        given.contains("of the engine") && !given.contains("ben was here"),
        "{given}"
    );
    ben.ask(json!({"type": "session:ping"})).await;
    assert!(ben.all("chat:tool-input-request").is_empty());
    let seen = json!(ben.seen).to_string();
    assert!(
        !seen.contains("your name?") && !seen.contains(&anna.session()),
        "{seen}"
    );
}

#[tokio::test]
async fn the_daemons_files_are_nobodys() {
    let provider = Provider::start().await;
    let folder = tempfile::tempdir().unwrap();
    let [audit, store] = ["audit.jsonl", "sessions.db"].map(|name| folder.path().join(name));
    let more = json!({"audit": {"path": audit}, "store": {"path": store}});
    let users = Users::start(&provider, more).await;
    let mut anna = users.connect("anna").await;
    run(&mut anna, "bash", &json!({"command": "echo only for anna"})).await;
    let mut ben = users.connect("ben").await;
    let is_full = ben.seen[0]["payload"]["sandbox"]["mode"] == "full";
    if !is_full {
        eprintln!("*** SKIPPED: commands at the daemon's files: the sandbox is not full here ***");
    }
    let own = users.key.parent().unwrap();
    let log = users.daemon.log_file();
    for file in [&audit, &store, &log, &own.join("keys.json"), &users.key] {
        assert!(file.exists(), "{}", file.display());
        for (tool, input) in [
            ("file_read", json!({"path": file})),
            (
                "file_search",
                json!({"pattern": "a", "path": file.parent()}),
            ),
            ("file_list", json!({"path": file.parent()})),
            (
                "bash",
                json!({"command": format!("cat '{0}' || cp '{0}' taken", file.display())}),
            ),
            (
                "bash",
                json!({"command": format!("echo taken >'{}'; false", file.display())}),
            ),
        ] {
            if tool == "bash" && !is_full {
                continue;
            }
            let tried = attempt(&mut ben, tool, &input).await;
            let text = tried.to_string();
            let is_there = tried["status"] == "success" && tried["metadata"]["exitCode"] != 1;
            assert!(!is_there, "{tool} {input}: {text}");
            assert!(
                !text.contains("only for anna") && !text.contains(&anna.session()),
                "{text}"
            );
        }
        assert!(!users.work.join("ben/taken").exists());
        // What a command wrote by this name is its own.
        let now = std::fs::read(file).unwrap();
        assert!(!now.starts_with(b"taken"), "{} was written", file.display());
    }
    let kept = std::fs::read_to_string(&audit).unwrap();
    assert!(kept.contains(&anna.session()), "it is there to be taken");
}
