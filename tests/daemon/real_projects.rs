//! Projects of the usual kinds, whose own tests run in the sandbox: packages come from their registries, by the list of
//! hosts, and the tests open sockets. With `OUTRIGGER_FULL_TESTS=1`, for they take minutes and need the registries.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// A command line, and what its output holds.
type Step = (&'static str, &'static str);

/// Whether these tests are to be run; where not, that is said.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn is_wanted() -> bool {
    let is_wanted = std::env::var_os("OUTRIGGER_FULL_TESTS").is_some();
    if !is_wanted {
        println!("*** SKIPPED: a project's own tests: OUTRIGGER_FULL_TESTS is not set ***");
    }
    is_wanted
}

/// Runs the steps as calls of one conversation, in a project of these files.
async fn run(hosts: &[&str], files: &[(&str, &str)], steps: &[Step]) {
    if !is_wanted() {
        return;
    }
    let provider = Provider::start().await;
    let (_daemon, mut client) = open(&provider, json!({"hosts": hosts}), files).await;
    steps_of(&mut client, &provider, steps).await;
}

/// Opens a project of these files, with these settings of `bash`.
async fn open(provider: &Provider, bash: Value, files: &[(&str, &str)]) -> (Daemon, Client) {
    let settings = json!({
        "chat": {"trust_level": "autonomous"},
        // What is asked for is refused: the list has to name all hosts.
        "approval": {"unattended": "deny"},
        "tools": {"bash": bash},
    });
    let daemon = Daemon::with(provider, settings).await;
    for (name, content) in files {
        daemon.file(name, content);
    }
    let client = daemon.connect().await;
    assert_eq!(client.seen[0]["payload"]["sandbox"]["mode"], "full");
    (daemon, client)
}

/// Runs steps, one after the other.
async fn steps_of(client: &mut Client, provider: &Provider, steps: &[Step]) {
    for (line, expected) in steps {
        let result = call(client, provider, &json!({"command": line, "timeout": 600})).await;
        let text = result["result"].as_str().unwrap();
        assert!(
            result["status"] == "success" && text.contains(expected),
            "{line}: {expected:?} is not in: {text}\n{}",
            result["metadata"]
        );
    }
}

/// Makes one call of bash, and returns its result.
async fn call(client: &mut Client, provider: &Provider, input: &Value) -> Value {
    provider
        .then(Turn::call("bash", input))
        .then(Turn::text("done"));
    client.say("go").await;
    let result = client.until("chat:tool-result").await["payload"].clone();
    client.until("chat:stream-end").await;
    result
}

/// Runs a test once more as an ordinary user, where this one is root.
fn as_ordinary_user(test: &str) {
    const ROLE: &str = "OUTRIGGER_ORDINARY_USER";
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_wanted() || !is_root || std::env::var_os(ROLE).is_some() {
        return;
    }
    let home = tempfile::Builder::new()
        .prefix("outrigger-user-")
        .tempdir_in("/var/tmp")
        .unwrap();
    std::os::unix::fs::chown(home.path(), Some(1000), Some(1000)).unwrap();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid", "1000", "--regid", "1000", "--clear-groups", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ROLE, "1")
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(
        output.status.success() && said[0].contains("1 passed"),
        "{test} as uid 1000: {}",
        said.concat()
    );
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
    as_ordinary_user("real_projects::node");
    run(&["npm"], &files, &steps).await;
}

/// A dev server in the background, looked at by a second command and from the machine.
#[tokio::test]
async fn vite() {
    if !is_wanted() {
        return;
    }
    as_ordinary_user("real_projects::vite");
    let files = [
        (
            "package.json",
            r#"{"name": "page", "version": "1.0.0", "type": "module", "devDependencies": {"vite": "6.4.1"}}"#,
        ),
        (
            "index.html",
            "<title>It is served</title><script type=module src=/main.js></script>",
        ),
        (
            "main.js",
            "document.body.append(['written', 'by', 'main'].join(' '))\n",
        ),
    ];
    let provider = Provider::start().await;
    let (_daemon, mut client) = open(&provider, json!({"hosts": ["npm"]}), &files).await;
    let install = ("npm install --no-audit --no-fund", "added");
    steps_of(&mut client, &provider, &[install]).await;
    let serve = json!({"command": "exec npx vite --host 127.0.0.1", "background": true});
    call(&mut client, &provider, &serve).await;
    let opened = match client.all("tool:port-open").pop() {
        Some(opened) => opened,
        None => client.until("tool:port-open").await["payload"].clone(),
    };
    let port = &opened["port"];
    let fetch = format!("curl -s http://127.0.0.1:{port}/");
    let result = call(&mut client, &provider, &json!({ "command": fetch })).await;
    let text = result["result"].as_str().unwrap();
    assert!(text.contains("It is served"), "{result}");
    let exposed = client
        .ask(json!({"type": "tool:expose", "port": port}))
        .await;
    let url = exposed["payload"]["url"].as_str().unwrap();
    let fetched = std::process::Command::new("curl")
        .args(["-s", url])
        .output();
    let page = String::from_utf8_lossy(&fetched.unwrap().stdout).into_owned();
    assert!(
        page.contains("It is served") && page.contains("/@vite/client"),
        "{page}"
    );
    // The page as a person sees it: its module is fetched by way of the port, too.
    let profile = tempfile::tempdir().unwrap();
    let looked_at = std::process::Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--timeout=30000", "--virtual-time-budget=20000", url])
        .env("HOME", profile.path())
        .output()
        .unwrap();
    let page = String::from_utf8_lossy(&looked_at.stdout).into_owned();
    let errors = String::from_utf8_lossy(&looked_at.stderr);
    assert!(page.contains("written by main"), "{page}\n{errors}");
}

/// A database for tests, on a Unix socket and on TCP. It is Debian's, which refuses to be root's.
#[tokio::test]
async fn postgresql() {
    if !is_wanted() {
        return;
    }
    as_ordinary_user("real_projects::postgresql");
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        println!("*** SKIPPED as root: PostgreSQL, which refuses to be root's ***");
        return;
    }
    let provider = Provider::start().await;
    let (_daemon, mut client) = open(&provider, json!({}), &[]).await;
    let bin = "PATH=$(echo /usr/lib/postgresql/*/bin):$PATH;";
    let init = format!("{bin} initdb -D ~/db -U tester -A trust >/dev/null && echo made");
    let serve = format!("{bin} exec postgres -D ~/db -k /tmp -h 127.0.0.1 -p 5433");
    let wait =
        format!("{bin} until pg_isready -q -h 127.0.0.1 -p 5433; do sleep 0.1; done; echo ready");
    let ask = |host: &str| {
        format!(
            "{bin} psql -h {host} -p 5433 -U tester postgres -Atc 'create table if not exists t (n int); insert into t values (7); select count(*) from t'"
        )
    };
    let result = call(&mut client, &provider, &json!({"command": init})).await;
    assert!(
        result["result"].as_str().unwrap().contains("made"),
        "{result}"
    );
    call(
        &mut client,
        &provider,
        &json!({"command": serve, "background": true}),
    )
    .await;
    for (line, expected) in [
        (wait, "ready"),
        (ask("/tmp"), "INSERT 0 1\n1\n"),
        (ask("127.0.0.1"), "INSERT 0 1\n2\n"),
    ] {
        let result = call(
            &mut client,
            &provider,
            &json!({"command": line, "timeout": 60}),
        )
        .await;
        let text = result["result"].as_str().unwrap();
        assert!(text.contains(expected), "{line}: {result}");
    }
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
    as_ordinary_user("real_projects::python");
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
    // The toolchain of an ordinary user, where root's is not for others: `.ci/full projects` puts one there.
    let steps = [(
        "[ ! -d /opt/outrigger-rust ] || PATH=/opt/outrigger-rust/bin:$PATH; cargo test --quiet 2>&1",
        "1 passed",
    )];
    as_ordinary_user("real_projects::rust");
    if !is_wanted() {
        return;
    }
    // Somebody who has used Cargo before. It keeps there which registry it uses.
    let home = std::env::var_os("HOME").unwrap();
    let index = ".cargo/registry/index/index.crates.io-1949cf8c6b5b557f";
    let index = Path::new(&home).join(index);
    if !index.exists() {
        std::fs::create_dir_all(&index).unwrap();
        let config = r#"{"dl": "https://static.crates.io/crates", "api": "https://crates.io"}"#;
        std::fs::write(index.join("config.json"), config).unwrap();
    }
    // As docs/tools.md has it, and without the cache.
    let provider = Provider::start().await;
    for caches in [&["cargo"][..], &[]] {
        let bash = json!({"hosts": ["cargo", "static.crates.io"], "caches": caches});
        let (_daemon, mut client) = open(&provider, bash, &files).await;
        steps_of(&mut client, &provider, &steps).await;
    }
}
