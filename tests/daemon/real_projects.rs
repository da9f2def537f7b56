//! Projects of the usual kinds, whose own tests run in the sandbox: packages come from their registries, by the list of
//! hosts, and the tests open sockets. With `OUTRIGGER_FULL_TESTS=1`, for they take minutes and need the registries.

use serde_json::json;

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// A command line, and what its output holds.
type Step = (&'static str, &'static str);

/// Runs the steps as calls of one conversation, in a project of these files.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
async fn run(hosts: &[&str], files: &[(&str, &str)], steps: &[Step]) {
    if std::env::var_os("OUTRIGGER_FULL_TESTS").is_none() {
        println!("*** SKIPPED: a project's own tests: OUTRIGGER_FULL_TESTS is not set ***");
        return;
    }
    let provider = Provider::start().await;
    for (line, _) in steps {
        provider.then(Turn::call(
            "bash",
            &json!({"command": line, "timeout": 600}),
        ));
    }
    provider.then(Turn::text("done"));
    let settings = json!({
        "chat": {"trust_level": "autonomous"},
        // What is asked for is refused: the list has to name all hosts.
        "approval": {"unattended": "deny"},
        "tools": {"bash": {"hosts": hosts}},
    });
    let daemon = Daemon::with(&provider, settings).await;
    for (name, content) in files {
        daemon.file(name, content);
    }
    let mut client = daemon.connect().await;
    assert_eq!(client.seen[0]["payload"]["sandbox"]["mode"], "full");
    client.say("go").await;
    client.until("chat:stream-end").await;
    check(&client, steps);
}

fn check(client: &Client, steps: &[Step]) {
    let results = client.all("chat:tool-result");
    for (at, (line, expected)) in steps.iter().enumerate() {
        let result = &results[at];
        let text = result["result"].as_str().unwrap();
        assert!(
            result["status"] == "success" && text.contains(expected),
            "{line}: {expected:?} is not in: {text}\n{}",
            result["metadata"]
        );
    }
}

#[tokio::test]
async fn node() {
    let files = [
        (
            "package.json",
            r#"{"name": "shop", "version": "1.0.0", "type": "module", "dependencies": {"is-number": "7.0.0"}, "scripts": {"test": "node --test"}}"#,
        ),
        (
            "shop.test.js",
            "import {test} from 'node:test'; import assert from 'node:assert'; import http from 'node:http'; import isNumber from 'is-number';\n\
             test('serves', async () => {\n\
             const server = http.createServer((request, response) => response.end(String(isNumber(7))));\n\
             await new Promise(done => server.listen(0, 'localhost', done));\n\
             const answer = await fetch(`http://localhost:${server.address().port}/`);\n\
             assert.equal(await answer.text(), 'true'); server.close(); });\n",
        ),
    ];
    let steps = [
        (
            "npm install --package-lock-only --no-audit --no-fund",
            "up to date",
        ),
        ("npm ci --no-audit --no-fund", "added 1 package"),
        ("npm test", "# pass 1"),
    ];
    run(&["npm"], &files, &steps).await;
}

#[tokio::test]
async fn python() {
    let files = [(
        "test_shop.py",
        "import socket, threading, pytest\n\
         @pytest.fixture\n\
         def server():\n\
         \x20   listener = socket.create_server(('127.0.0.1', 0))\n\
         \x20   def serve():\n\
         \x20       connection, _ = listener.accept()\n\
         \x20       connection.sendall(connection.recv(9).upper())\n\
         \x20   threading.Thread(target=serve, daemon=True).start()\n\
         \x20   yield listener.getsockname()\n\
         \x20   listener.close()\n\
         def test_shouts(server):\n\
         \x20   with socket.create_connection(server) as connection:\n\
         \x20       connection.sendall(b'hello')\n\
         \x20       assert connection.recv(9) == b'HELLO'\n",
    )];
    let steps = [
        (
            "python3 -m venv ~/venv && ~/venv/bin/pip install --quiet pytest && echo installed",
            "installed",
        ),
        // The home lasts.
        ("~/venv/bin/pytest -q", "1 passed"),
    ];
    run(&["pip", "files.pythonhosted.org"], &files, &steps).await;
}

#[tokio::test]
async fn rust() {
    let files = [
        (
            "Cargo.toml",
            "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\ntokio = { version = \"1\", features = [\"net\", \"rt\", \"io-util\", \"macros\"] }\n",
        ),
        (
            "src/lib.rs",
            "#[tokio::test]\nasync fn shouts() {\n\
             use tokio::io::{AsyncReadExt, AsyncWriteExt};\n\
             let listener = tokio::net::TcpListener::bind(\"127.0.0.1:0\").await.unwrap();\n\
             let to = listener.local_addr().unwrap();\n\
             tokio::spawn(async move { let (mut it, _) = listener.accept().await.unwrap(); it.write_all(b\"HELLO\").await.unwrap(); });\n\
             let mut it = tokio::net::TcpStream::connect(to).await.unwrap();\n\
             let mut text = String::new(); it.read_to_string(&mut text).await.unwrap();\n\
             assert_eq!(text, \"HELLO\"); }\n",
        ),
    ];
    let steps = [("CARGO_HOME=~/registry cargo test --quiet 2>&1", "1 passed")];
    run(&["cargo"], &files, &steps).await;
}
