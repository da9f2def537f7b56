//! Servers of others, as npm and PyPI have them, in versions that were tried.
//!
//! They are installed once into the build's own directory. Where a registry cannot be reached, or npm or
//! Python is missing, the test says so aloud and looks at nothing.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::{AUTONOMOUS, running, until_state};
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

const NPM: [&str; 3] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
];

/// Set to try the ten most used servers, half of which are large; `.ci/mcp-servers` does.
const ALL: &str = "OUTRIGGER_MCP_SERVERS";

/// Further ones, for that.
const MORE_NPM: [&str; 3] = [
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    "@upstash/context7-mcp@4.1.1",
    "@playwright/mcp@0.0.83",
];

const MORE_PYPI: [&str; 1] = ["mcp-server-fetch==2026.10.24"];

/// No longer kept, so it needs an older library than the others.
const OLD_PYPI: [&str; 2] = ["mcp-server-sqlite==2025.4.25", "mcp==1.*"];

const PYPI: [&str; 2] = ["mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19"];

/// Where the servers are installed, once for all tests; `None` where they cannot be.
///
/// A mark is written last, with what is there and where: an installation that broke off, that was moved, or that is of
/// other versions is made anew. Programs of Python name their interpreter by its whole path.
fn installed(
    kind: &str,
    packages: &[&str],
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(kind);
    let mark = folder.join("installed");
    let wanted = format!("{}\n{}\n", folder.display(), packages.join("\n"));
    if std::fs::read_to_string(&mark).is_ok_and(|text| text == wanted) {
        return Some(folder);
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    match install(&folder) {
        Ok(()) => {
            std::fs::write(&mark, &wanted).unwrap();
            Some(folder)
        }
        Err(why) => {
            // Past the capture of a test's output, for `.ci/run` to repeat.
            let said = format!("*** SKIPPED: MCP servers of {kind}: {why} ***\n");
            std::io::stderr().write_all(said.as_bytes()).unwrap();
            None
        }
    }
}

pub(super) fn npm() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| installed("npm", &NPM, |folder| npm_install(folder, &NPM)));
    folder.as_deref()
}

fn pypi() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| python("pypi", &PYPI));
    folder.as_deref()
}

fn npm_install(folder: &Path, packages: &[&str]) -> Result<(), String> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]);
    // The browser of Playwright's server is not asked for.
    npm.env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1");
    finish(npm.arg(folder).args(packages))
}

fn python(kind: &str, packages: &[&str]) -> Option<PathBuf> {
    installed(kind, packages, |folder| {
        finish(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut pip = Command::new(folder.join("bin/pip"));
        finish(pip.args(["install", "--quiet"]).args(packages))
    })
}

fn finish(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{name}: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

pub(super) fn everything(folder: &Path) -> PathBuf {
    folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// A daemon with one server and a model that makes these calls.
async fn with(server: &Value, calls: &[(&str, Value)]) -> (Daemon, Client, Provider) {
    let provider = Provider::start().await;
    for (tool, input) in calls {
        provider.then(Turn::call(&format!("mcp__peer__{tool}"), input));
    }
    provider.then(Turn::text("done"));
    let mut config = AUTONOMOUS();
    config["mcpServers"] = json!({ "peer": server });
    let daemon = Daemon::with(&provider, config).await;
    let client = daemon.connect().await;
    (daemon, client, provider)
}

async fn results(client: &mut Client) -> Vec<Value> {
    until_state(client, "peer", "ready").await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    client.all("chat:tool-result")
}

fn said(result: &Value) -> &str {
    result["result"].as_str().unwrap()
}

/// Calls that every transport of server-everything must take.
const EVERYTHING: fn() -> Vec<(&'static str, Value)> = || {
    vec![
        ("echo", json!({"message": "over the wire"})),
        ("echo", json!({"massage": 1})),
        (
            "trigger-long-running-operation",
            json!({"duration": 0.4, "steps": 4}),
        ),
        ("get-tiny-image", json!({})),
        ("get-structured-content", json!({"location": "New York"})),
    ]
};

fn check_everything(client: &Client, results: &[Value]) {
    let statuses: Vec<&Value> = results.iter().map(|result| &result["status"]).collect();
    assert_eq!(
        statuses,
        ["success", "error", "success", "success", "success"],
        "{results:#?}"
    );
    assert!(said(&results[0]).contains("over the wire"));
    assert!(said(&results[3]).contains("[image image/png]"));
    assert!(
        results[4]["metadata"]["results"].is_object(),
        "{results:#?}"
    );
    let progress = client.all("chat:tool-delta");
    assert!(progress.len() >= 2, "{progress:?}");
    assert!(progress.iter().all(|delta| delta["stream"] == "progress"));
}

#[tokio::test]
async fn everything_over_stdio() {
    let Some(folder) = npm() else { return };
    let script = everything(folder);
    let server = json!({ "command": "node", "args": [script, "stdio"] });
    let (mut daemon, mut client, _provider) = with(&server, &EVERYTHING()).await;
    let results = results(&mut client).await;
    check_everything(&client, &results);
    // It stays alive when its input ends; the daemon does not leave it behind.
    let path = daemon.project().parent().unwrap().join("central");
    assert!(path.exists());
    drop(daemon.stdin.take());
    assert!(daemon.child.wait().await.unwrap().success());
}

#[tokio::test]
async fn everything_is_ended_and_killed_without_a_trace() {
    let Some(folder) = npm() else { return };
    // A path of its own, so that no other test's process is counted.
    let place = tempfile::tempdir().unwrap();
    let mark = place.path().join("mark");
    std::fs::create_dir(&mark).unwrap();
    let server = json!({ "command": "node", "args": [everything(folder), "stdio", mark] });
    let long = json!({"duration": 600, "steps": 600});
    let calls = [
        ("trigger-long-running-operation", long),
        ("echo", json!({"message": "back again"})),
    ];
    let (mut daemon, mut client, _provider) = with(&server, &calls).await;
    until_state(&mut client, "peer", "ready").await;
    client.say("go").await;
    client.until("chat:tool-delta").await;
    let pid = process_of(&mark);
    assert!(finish(Command::new("kill").args(["-9", &pid.to_string()])).is_ok());
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert_eq!(results[0]["status"], "error");
    assert!(said(&results[0]).contains("ended during the call"));
    assert!(said(&results[1]).contains("back again"), "{results:?}");
    drop(daemon.stdin.take());
    assert!(daemon.child.wait().await.unwrap().success());
    assert_eq!(running(&mark), 0);
}

/// The one process that has a path among its arguments.
fn process_of(mark: &Path) -> u32 {
    let wanted = mark.to_str().unwrap().as_bytes();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(Result::ok)
        .find_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            line.windows(wanted.len())
                .any(|window| window == wanted)
                .then_some(pid)
        })
        .expect("a process of the server")
}

#[tokio::test]
async fn everything_over_streamable_http() {
    let Some(folder) = npm() else { return };
    // It takes no port 0. Below those that the system gives out, so that no other test has it by then.
    let port = 20_000 + std::process::id() % 10_000;
    let mut server = tokio::process::Command::new("node")
        .arg(everything(folder))
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let mut printed = String::new();
    while !printed.contains("listening on port") {
        let line = lines.next_line().await.unwrap();
        let line = line.unwrap_or_else(|| panic!("it does not listen on port {port}: {printed}"));
        printed.push_str(&line);
        printed.push('\n');
    }
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let config = json!({ "url": format!("http://127.0.0.1:{port}/mcp") });
    let (_daemon, mut client, _provider) = with(&config, &EVERYTHING()).await;
    let results = results(&mut client).await;
    check_everything(&client, &results);
}

#[tokio::test]
async fn filesystem_reaches_the_directory_that_it_was_given() {
    let Some(folder) = npm() else { return };
    let place = tempfile::tempdir().unwrap();
    let given = place.path().join("given");
    std::fs::create_dir(&given).unwrap();
    std::fs::write(given.join("a.txt"), "in the file").unwrap();
    std::fs::write(place.path().join("b.txt"), "outside").unwrap();
    let script = folder.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let server = json!({ "command": "node", "args": [script, given] });
    let calls = [
        ("read_text_file", json!({"path": given.join("a.txt")})),
        (
            "read_text_file",
            json!({"path": place.path().join("b.txt")}),
        ),
        (
            "write_file",
            json!({"path": given.join("c.txt"), "content": "written"}),
        ),
    ];
    let (_daemon, mut client, _provider) = with(&server, &calls).await;
    let results = results(&mut client).await;
    assert!(said(&results[0]).contains("in the file"), "{results:#?}");
    assert_eq!(results[1]["status"], "error");
    assert!(!said(&results[1]).contains("\noutside"));
    assert_eq!(results[2]["status"], "success", "{results:#?}");
    assert_eq!(
        std::fs::read_to_string(given.join("c.txt")).unwrap(),
        "written"
    );
}

#[tokio::test]
async fn time_answers_with_a_structure() {
    let Some(folder) = pypi() else { return };
    let program = folder.join("bin/mcp-server-time");
    let server = json!({ "command": program, "args": ["--local-timezone", "UTC"] });
    let calls = [
        ("get_current_time", json!({"timezone": "Europe/Berlin"})),
        ("get_current_time", json!({"timezone": "Nowhere/None"})),
    ];
    let (_daemon, mut client, _provider) = with(&server, &calls).await;
    let results = results(&mut client).await;
    assert!(said(&results[0]).contains("Europe/Berlin"), "{results:#?}");
    assert_eq!(results[1]["status"], "error");
}

#[tokio::test]
async fn git_reads_the_repository_that_it_was_given() {
    let Some(folder) = pypi() else { return };
    let place = tempfile::tempdir().unwrap();
    let repository = place.path().join("repository");
    let git = |args: &[&str]| finish(Command::new("git").arg("-C").arg(&repository).args(args));
    std::fs::create_dir(&repository).unwrap();
    git(&["init", "--quiet"]).unwrap();
    std::fs::write(repository.join("new.txt"), "").unwrap();
    let program = folder.join("bin/mcp-server-git");
    let server = json!({ "command": program, "args": ["--repository", repository] });
    let calls = [
        ("git_status", json!({"repo_path": repository})),
        ("git_status", json!({"repo_path": "/"})),
    ];
    let (_daemon, mut client, _provider) = with(&server, &calls).await;
    let results = results(&mut client).await;
    assert!(said(&results[0]).contains("new.txt"), "{results:#?}");
    assert_eq!(results[1]["status"], "error");
}

#[tokio::test]
async fn everything_asks_the_user_in_a_call() {
    let Some(folder) = npm() else { return };
    let server = json!({ "command": "node", "args": [everything(folder), "stdio"] });
    let calls = [
        ("trigger-elicitation-request", json!({})),
        ("echo", json!({"message": "after it"})),
    ];
    let (_daemon, mut client, _provider) = with(&server, &calls).await;
    until_state(&mut client, "peer", "ready").await;
    client
        .ask(json!({"type": "session:configure", "inputRequests": true}))
        .await;
    client.say("go").await;
    let request = client.until("chat:tool-input-request").await["payload"].clone();
    let properties = request["requestedSchema"]["properties"].as_object();
    let fields: Vec<&String> = properties.unwrap().keys().collect();
    assert_eq!(fields[..2], ["name", "check"], "{request}");
    let answer = |content: Value| {
        json!({"type": "chat:tool-input", "requestId": request["requestId"],
            "action": "accept", "content": content})
    };
    let wrong = json!({"name": "Ada", "titledMultipleSelectEnum": ["fish-9"]});
    let refused = client.ask(answer(wrong)).await;
    assert_eq!(refused["payload"]["code"], "invalid_payload", "{refused}");
    let right = json!({"name": "Ada", "check": true, "email": "ada@example.org",
        "birthdate": "1815-12-10", "integer": 7, "legacyTitledEnum": "pet-2",
        "untitledMultipleSelectEnum": ["Guitar", "Bass"], "titledSingleSelectEnum": "hero-2"});
    client.ask(answer(right)).await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert_eq!(results[0]["status"], "success", "{results:#?}");
    assert!(said(&results[0]).contains("- Name: Ada"), "{results:#?}");
    assert!(said(&results[1]).contains("after it"), "{results:#?}");
}

#[tokio::test]
async fn memory_keeps_its_graph_where_it_may_write() {
    let Some(folder) = npm() else { return };
    let script = folder.join("node_modules/@modelcontextprotocol/server-memory/dist/index.js");
    let place = tempfile::tempdir().unwrap();
    let named = place.path().join("notes.jsonl");
    let plain = json!({ "command": "node", "args": [script] });
    let configured =
        json!({ "command": "node", "args": [script], "env": {"MEMORY_FILE_PATH": named} });
    let lost = json!({ "command": "node", "args": [script],
        "env": {"MEMORY_FILE_PATH": "/usr/share/notes.jsonl"} });
    let entity =
        json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]});
    for (server, is_kept) in [(&plain, true), (&configured, true), (&lost, false)] {
        let calls = [
            ("create_entities", entity.clone()),
            ("read_graph", json!({})),
        ];
        let (daemon, mut client, _provider) = with(server, &calls).await;
        let results = results(&mut client).await;
        if !is_kept {
            assert_eq!(results[0]["status"], "error", "{results:#?}");
            let hint = "`mcp.servers.peer.read_write` names more";
            assert!(said(&results[0]).contains(hint), "{results:#?}");
            continue;
        }
        assert_eq!(results[0]["status"], "success", "{results:#?}");
        assert!(said(&results[1]).contains("Ada"), "{results:#?}");
        // It is neither in the project nor beside the package.
        assert!(!daemon.project().join("memory.jsonl").exists());
    }
    assert!(std::fs::read_to_string(&named).unwrap().contains("Ada"));
}

#[tokio::test]
async fn the_most_used_servers_start_as_they_are() {
    if std::env::var_os(ALL).is_none() {
        return;
    }
    let (Some(npm), Some(pypi)) = (npm(), pypi()) else {
        panic!("{ALL} is set, and the servers could not be installed");
    };
    let more_npm = installed("npm-more", &MORE_NPM, |folder| {
        npm_install(folder, &MORE_NPM)
    });
    let more_npm = more_npm.unwrap();
    let more_pypi = python("pypi-more", &MORE_PYPI).unwrap();
    let old_pypi = python("pypi-old", &OLD_PYPI).unwrap();
    let place = tempfile::tempdir().unwrap();
    let given = place.path().join("given");
    std::fs::create_dir(&given).unwrap();
    let node = |folder: &Path, script: &str| folder.join("node_modules").join(script);
    let official = |name: &str| format!("@modelcontextprotocol/server-{name}/dist/index.js");
    let servers = json!({
        "everything": {"command": "node", "args": [node(npm, &official("everything")), "stdio"]},
        "filesystem": {"command": "node", "args": [node(npm, &official("filesystem")), given]},
        "memory": {"command": "node", "args": [node(npm, &official("memory"))]},
        "sequential-thinking": {"command": "node", "args": [node(&more_npm, &official("sequential-thinking"))]},
        "context7": {"command": "node", "args": [node(&more_npm, "@upstash/context7-mcp/dist/index.js")]},
        "playwright": {"command": "node", "args": [node(&more_npm, "@playwright/mcp/cli.js"), "--headless"]},
        "git": {"command": pypi.join("bin/mcp-server-git")},
        "time": {"command": pypi.join("bin/mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "fetch": {"command": more_pypi.join("bin/mcp-server-fetch")},
        // A relative path lies in its own folder.
        "sqlite": {"command": old_pypi.join("bin/mcp-server-sqlite"), "args": ["--db-path", "notes.db"]},
    });
    let provider = Provider::start().await;
    let mut config = AUTONOMOUS();
    config["mcpServers"] = servers.clone();
    provider.then(Turn::call(
        "mcp__sqlite__write_query",
        &json!({"query": "CREATE TABLE notes (text TEXT)"}),
    ));
    provider.then(Turn::call("mcp__sqlite__list_tables", &json!({})));
    provider.then(Turn::text("done"));
    let daemon = Daemon::with(&provider, config).await;
    let mut client = daemon.connect().await;
    for name in servers.as_object().unwrap().keys() {
        let row = until_state(&mut client, name, "ready").await;
        let tools = row["tools"].as_array().unwrap();
        assert!(!tools.is_empty(), "{name}: {row}");
        println!("{name}: {} tools", tools.len());
    }
    client.say("go").await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert!(said(&results[1]).contains("notes"), "{results:#?}");
}
