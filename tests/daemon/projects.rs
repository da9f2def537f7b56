//! Which project a session works in: the daemon's own, one that it names, or none.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::mcp::Fake;
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

/// Folders of projects beside each other.
struct Work {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Work {
    fn new(projects: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        for project in projects {
            std::fs::create_dir_all(path.join(project)).unwrap();
        }
        Self {
            _folder: folder,
            path,
        }
    }

    fn shown(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// A configuration that lets sessions name these folders, and no others.
    fn allowed(&self) -> Value {
        json!({ "project": { "allowed": [self.shown("*")] } })
    }
}

/// Has the model make calls of tools, one after the other, that nobody is asked for.
async fn run(client: &mut Client, provider: &Provider, calls: &[(&str, Value)]) -> Vec<Value> {
    for (tool, input) in calls {
        provider.then(Turn::call(tool, input));
    }
    provider.then(Turn::text("done"));
    let before = client.all("chat:tool-result").len();
    client
        .send(json!({"type": "chat:send", "content": "go", "trustLevel": "autonomous"}))
        .await;
    client.until("chat:stream-end").await;
    client.all("chat:tool-result").split_off(before)
}

fn names(tools: &Value) -> Vec<&str> {
    let tools = tools.as_array().unwrap().iter();
    tools.map(|name| name.as_str().unwrap()).collect()
}

async fn configure(client: &mut Client, project: &str) -> Value {
    client
        .ask(json!({"type": "session:configure", "project": project}))
        .await
}

fn is_at(payload: &Value, root: &Path) -> bool {
    payload["project"]["root"] == json!(root) && payload.get("projectError").is_none()
}

#[tokio::test]
async fn without_a_usable_folder_there_is_a_daemon_and_it_says_why() {
    let work = Work::new(&["a"]);
    std::fs::write(work.path.join("file"), "").unwrap();
    for (root, why) in [
        ("/".to_owned(), "a directory of the system"),
        (work.shown("file"), "it is not a directory"),
        (work.shown("gone"), "there is no such directory"),
    ] {
        let provider = Provider::start().await;
        let fake = Fake::new();
        let config = json!({
            "project": { "root": root, "allowed": [work.shown("*")] },
            "mcpServers": { "fake": fake.config(&[]) },
        });
        let daemon = Daemon::with(&provider, config).await;
        let mut client = daemon.connect().await;
        let ready = client.seen[0]["payload"].clone();
        assert!(ready.get("project").is_none(), "{ready}");
        let said = ready["projectError"].as_str().unwrap();
        assert!(
            said.contains(why) && said.contains("--project-root"),
            "{said}"
        );
        assert_eq!(names(&ready["tools"]), ["task", "web_fetch", "web_search"]);
        // There is an answer, and the model knows; what it makes up does not run.
        let command = json!({"command": "pwd"});
        let results = run(&mut client, &provider, &[("bash", command)]).await;
        assert_eq!(results[0]["status"], "error", "{results:?}");
        let asked = &provider.requests()[0];
        assert!(
            asked["messages"]
                .to_string()
                .contains("There is no project")
        );
        assert_eq!(asked["tools"].as_array().unwrap().len(), 3);
        // A server that is a program would run in the project.
        eventually("the server is given up", async || {
            let servers = client.ask(json!({"type": "mcp:list"})).await;
            let server = &servers["payload"]["servers"][0];
            server["state"] == "failed" && server["error"].as_str().unwrap().contains(why)
        })
        .await;
        // A session that names one has it.
        let client = Client::connect(&daemon, &format!("?project={}", work.shown("a"))).await;
        let ready = &client.seen[0]["payload"];
        assert!(is_at(ready, &work.path.join("a")), "{ready}");
        assert!(names(&ready["tools"]).contains(&"bash"), "{ready}");
    }
}

#[tokio::test]
async fn sessions_of_one_daemon_work_in_projects_of_their_own() {
    let work = Work::new(&["a", "b"]);
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, work.allowed()).await;
    let query = format!("?project={}", work.shown("a"));
    let mut one = Client::connect(&daemon, &query).await;
    let mut two = daemon.connect().await;
    let configured = configure(&mut two, &work.shown("b")).await;
    assert!(
        is_at(&configured["payload"], &work.path.join("b")),
        "{configured}"
    );
    let calls = [
        ("bash", json!({"command": "pwd > here; cat here"})),
        (
            "file_write",
            json!({"path": "written", "content": "by a tool"}),
        ),
    ];
    for (client, name) in [(&mut one, "a"), (&mut two, "b")] {
        let results = run(client, &provider, &calls).await;
        let said = results[0]["result"].as_str().unwrap();
        assert!(said.contains(&work.shown(name)), "{said}");
        assert_eq!(results[1]["status"], "success", "{results:?}");
        let here = std::fs::read_to_string(work.path.join(name).join("here")).unwrap();
        assert_eq!(here.trim(), work.shown(name));
        assert!(work.path.join(name).join("written").exists());
        // The model is told where it is, by the prompt and by the tool.
        let asked = provider.requests().pop().unwrap();
        let prompt = asked["messages"][0].to_string();
        assert!(prompt.contains(&work.shown(name)), "{prompt}");
        let tools = asked["tools"].as_array().unwrap();
        let bash = tools.iter().find(|it| it["function"]["name"] == "bash");
        let described = bash.unwrap()["function"]["description"].to_string();
        assert!(
            described.contains("Where commands run here (sandbox: ")
                && described.contains(&work.shown(name)),
            "{described}"
        );
    }
    assert!(!daemon.project().join("here").exists());
    // What is one session's project is nothing to the other.
    let file = json!({"path": work.shown("a/written")});
    let results = run(&mut two, &provider, &[("file_read", file)]).await;
    assert_eq!(results[0]["status"], "error");
    assert_eq!(
        two.all("chat:stream-end")[1]["stopReason"],
        "sandbox_violation"
    );
}

/// Another folder or a link at its path is not the project.
#[tokio::test]
async fn a_project_that_is_changed_under_way_is_given_to_no_call() {
    let work = Work::new(&["a", "other"]);
    std::fs::write(work.path.join("other/file"), "of the other").unwrap();
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, work.allowed()).await;
    let query = format!("?project={}", work.shown("a"));
    let mut client = Client::connect(&daemon, &query).await;
    let calls = [
        ("bash", json!({"command": "cat file; touch made"})),
        ("file_read", json!({"path": "file"})),
    ];
    let project = work.path.join("a");
    std::fs::write(project.join("file"), "of the project").unwrap();
    for result in run(&mut client, &provider, &calls).await {
        let said = result["result"].to_string();
        assert!(said.contains("of the project"), "{said}");
    }
    std::fs::rename(&project, work.path.join("moved")).unwrap();
    let other = work.path.join("other");
    for change in ["gone", "another folder", "a link"] {
        match change {
            "another folder" => std::fs::create_dir(&project)
                .and_then(|()| std::fs::copy(other.join("file"), project.join("file")))
                .map(drop),
            "a link" => std::fs::remove_dir_all(&project)
                .and_then(|()| std::os::unix::fs::symlink(&other, &project)),
            _ => Ok(()),
        }
        .unwrap();
        let results = run(&mut client, &provider, &calls[..1]).await;
        let said = results[0]["result"].to_string();
        assert_ne!(results[0]["status"], "success", "{change}: {said}");
        assert!(!said.contains("of the other"), "{change}: {said}");
        assert!(said.contains(&work.shown("a")), "{change}: {said}");
    }
    assert!(!other.join("made").exists());
}

#[tokio::test]
async fn a_session_with_conversations_stays_where_it_is() {
    let work = Work::new(&["a", "b"]);
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, work.allowed()).await;
    let mut client = Client::connect(&daemon, &format!("?project={}", work.shown("a"))).await;
    let session = client.seen[0]["payload"]["sessionId"].clone();
    run(&mut client, &provider, &[]).await;
    let refused = configure(&mut client, &work.shown("b")).await;
    assert_eq!(refused["payload"]["code"], "invalid_payload");
    let message = refused["payload"]["message"].as_str().unwrap();
    assert!(message.contains("chat:close"), "{message}");
    // Naming the one that it has changes nothing.
    let same = configure(&mut client, &work.shown("a")).await;
    assert!(is_at(&same["payload"], &work.path.join("a")), "{same}");
    // So does another socket, whatever it names.
    let query = format!(
        "?session={}&after=0&project={}",
        session.as_str().unwrap(),
        work.shown("b")
    );
    let mut client = Client::connect(&daemon, &query).await;
    let ready = &client.seen[0]["payload"];
    assert_eq!(ready["resumed"], true);
    assert!(is_at(ready, &work.path.join("a")), "{ready}");
    client
        .ask(json!({"type": "chat:close", "conversationId": "default"}))
        .await;
    let moved = configure(&mut client, &work.shown("b")).await;
    assert!(is_at(&moved["payload"], &work.path.join("b")), "{moved}");
}

#[tokio::test]
async fn a_project_that_cannot_be_is_an_error_and_nothing_is_lost() {
    let work = Work::new(&["a"]);
    std::fs::write(work.path.join("file"), "").unwrap();
    std::os::unix::fs::symlink("a", work.path.join("link")).unwrap();
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, work.allowed()).await;
    let mut own = daemon.connect().await;
    let (before, own_root) = (
        own.seen[0]["payload"]["project"].clone(),
        daemon.project().canonicalize().unwrap(),
    );
    let inside = work.shown("a/sub");
    for (named, code, why) in [
        (
            work.shown("file").as_str(),
            "invalid_payload",
            "is no folder",
        ),
        (
            work.shown("link").as_str(),
            "invalid_payload",
            "without links",
        ),
        (
            work.shown("gone").as_str(),
            "invalid_payload",
            "No such file",
        ),
        ("a", "invalid_payload", "absolute path"),
        (inside.as_str(), "forbidden", "project.allowed"),
        ("/etc", "forbidden", "project.allowed"),
    ] {
        let refused = configure(&mut own, named).await;
        let error = &refused["payload"];
        assert_eq!(refused["type"], "session:error", "{named}: {refused}");
        assert_eq!(error["code"], code, "{named}: {refused}");
        assert!(
            error["message"].as_str().unwrap().contains(why),
            "{refused}"
        );
        // At connect it is no other project then, but none.
        let mut client = Client::connect(&daemon, &format!("?project={named}")).await;
        let ready = client.seen[0]["payload"].clone();
        assert!(ready.get("project").is_none(), "{ready}");
        assert!(
            ready["projectError"].as_str().unwrap().contains(why),
            "{ready}"
        );
        let said = client.until("session:error").await;
        assert_eq!(said["payload"]["code"], code, "{said}");
        let mended = configure(&mut client, &work.shown("a")).await;
        assert!(is_at(&mended["payload"], &work.path.join("a")), "{mended}");
        client.check_numbers();
    }
    // A field of another kind that is wrong keeps the project as well.
    let wrong = own
        .ask(json!({"type": "session:configure", "project": work.shown("a"), "workflow": "none"}))
        .await;
    assert_eq!(wrong["type"], "session:error");
    let same = own.ask(json!({"type": "session:configure"})).await;
    assert_eq!(same["payload"]["project"], before);
    assert!(is_at(&same["payload"], &own_root), "{same}");
}

#[tokio::test]
async fn a_server_that_is_a_program_belongs_to_the_daemons_own_project() {
    let work = Work::new(&["a"]);
    let fake = Fake::new();
    let provider = Provider::start().await;
    let mut config = work.allowed();
    config["mcpServers"] = json!({ "fake": fake.config(&[]) });
    let daemon = Daemon::with(&provider, config).await;
    let mut own = daemon.connect().await;
    let mut other = Client::connect(&daemon, &format!("?project={}", work.shown("a"))).await;
    let is_theirs = |tools: &Value| {
        let tools = tools["payload"]["tools"].as_array().unwrap();
        tools
            .iter()
            .any(|tool| tool["origin"].as_str().unwrap().starts_with("mcp"))
    };
    eventually("the server's tools", async || {
        is_theirs(&own.ask(json!({"type": "tool:list"})).await)
    })
    .await;
    let listed = other.ask(json!({"type": "tool:list"})).await;
    assert!(!is_theirs(&listed), "{listed}");
}
