use super::*;
use crate::arguments::{Arguments, Command};
use clap::Parser as _;
use serde_json::{Value, json};

/// A machine with this configuration and nothing else set.
fn machine(toml: &str) -> (tempfile::TempDir, Result<Machine, Vec<Finding>>) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("config.toml");
    std::fs::write(&file, toml).unwrap();
    let project = place.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let sources = Sources {
        config_file: Some(file),
        home: Some(place.path().to_owned()),
        working_directory: project,
        ..Sources::default()
    };
    let machine = config::load(&sources)
        .map(|loaded| Machine {
            providers: Providers::new(&loaded.config),
            clients: Clients::default(),
            sources,
            loaded,
        })
        .map_err(|errors| errors.0.iter().map(unreadable).collect());
    (place, machine)
}

#[test]
fn the_command_line_names_it() {
    let arguments = Arguments::try_parse_from(["outrigger", "doctor", "--json"]).unwrap();
    assert!(matches!(arguments.into_command(), Command::Doctor(it) if it.json));
}

#[test]
fn each_error_of_the_configuration_is_a_finding() {
    let (_place, machine) = machine("[server]\nprot = 1\nhost = \"nowhere at all\"\n");
    let findings = machine.err().unwrap();
    let text = finding::text(&findings);
    assert!(text.contains("server.prot"), "{text}");
    assert!(text.contains("server.host"), "{text}");
    assert!(!finding::is_well(&findings));
}

#[test]
fn a_project_that_is_there_is_well() {
    let (_place, machine) = machine("");
    let findings = place::project(&machine.unwrap());
    assert!(finding::is_well(&findings), "{findings:?}");
    assert_eq!(findings.len(), 2);
}

#[test]
fn what_becomes_of_a_violation_is_reported_also_where_a_workflow_differs() {
    let (_place, machine) = machine(
        "[tools]\non_violation = \"error\"\n[workflows.strict]\non_violation = \"stop\"\n[workflows.same]\n",
    );
    let text = finding::text(&rules::violations(&machine.unwrap()));
    for part in [
        "an error that the model reads",
        "\"strict\" it stops the exchange",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("same"), "{text}");
}

#[tokio::test]
async fn a_port_in_use_by_something_else_is_a_failure() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    // Whoever connects learns at once that this is no daemon.
    let answering = std::thread::spawn(move || drop(taken.accept()));
    let (_place, machine) = machine(&format!("[server]\nport = {port}\n"));
    let findings = place::port(&machine.unwrap()).await;
    answering.join().unwrap();
    let text = finding::text(&findings);
    assert!(
        text.starts_with("failed") && text.contains("--port"),
        "{text}"
    );
}

#[test]
fn a_program_of_an_mcp_server_that_is_missing_is_a_failure() {
    let (_place, machine) = machine(
        "[mcp.servers.time]\ncommand = \"no-such-program\"\nargs = [\"-u\", \"/no/such/server.py\"]\n",
    );
    let findings = place::programs(&machine.unwrap());
    let text = finding::text(&findings);
    assert!(
        text.contains("time: there is no program `no-such-program`"),
        "{text}"
    );
    assert!(
        text.contains("time: mcp.servers.time.args, number 2: it is not there"),
        "{text}"
    );
    assert!(!finding::is_well(&findings));
}

#[test]
fn hooks_are_listed_and_what_they_run_is_looked_for() {
    let (place, machine) = machine(
        "[hooks.a]\non = 'before_tool'\ncommand = '/bin/sh'\nargs = ['/bin/sh', '-c']\n\
         [hooks.b]\non = 'before_send'\nurl = 'https://hooks.example:8443/secret'\n\
         [hooks.c]\non = 'stop'\ncommand = 'no-such-program'\n\
         [hooks.d]\non = 'stop'\ncommand = '/etc/passwd'\non_failure = 'continue'\n\
         [hooks.e]\non = 'compact'\ncommand = '/bin/sh'\nargs = ['/no/such/file', '~/hook.sh', 'hook.py']\n\
         [hooks.f]\nenabled = false\n",
    );
    let text = finding::text(&hooks::hooks(&machine.unwrap()));
    let lines: Vec<&str> = text.lines().collect();
    for (line, begins) in lines.iter().zip([
        "ok       hook  a (before_tool): /bin/sh",
        "ok       hook  b (before_send): hooks.example:8443",
        "failed   hook  c (stop): there is no program `no-such-program`; it counts as refused each time -> set hooks.c.command",
        "warning  hook  d (stop): `/etc/passwd` cannot be executed; things go on without it",
        "ok       hook  e (compact): /bin/sh",
        "warning  hook  e (compact): hooks.e.args has \"/no/such/file\": it is not there",
        "warning  hook  e (compact): hooks.e.args has \"~/hook.sh\": `~`",
        "warning  hook  e (compact): hooks.e.args has \"hook.py\": it is looked for where the program runs",
    ]) {
        assert!(line.starts_with(begins), "{line}");
    }
    assert_eq!(lines.len(), 8, "{text}");
    assert!(!text.contains("secret"), "{text}");
    drop(place);
}

#[test]
fn a_program_is_looked_for_where_the_daemon_looks() {
    let (_place, machine) = machine("[mcp.servers.time]\ncommand = \"sh\"\n");
    let mut machine = machine.unwrap();
    // Nothing of it is trusted, so programs come from the system's directories.
    machine.sources.environment = [("PATH", "bin:/nonexistent")].into_iter().collect();
    let text = finding::text(&place::programs(&machine));
    assert!(
        text.contains("time: /") && text.contains("bin/sh"),
        "{text}"
    );
}

#[tokio::test]
async fn without_a_provider_the_demonstration_answers() {
    let (_place, machine) = machine("");
    let findings = providers::providers(&machine.unwrap()).await;
    let text = finding::text(&findings);
    assert!(text.contains("ANTHROPIC_API_KEY"), "{text}");
    assert!(finding::is_well(&findings));
}

/// A SearXNG that knows two engines and answers each search so; returns its address.
async fn searxng_that_answers(status: u16, kind: &'static str, body: &'static str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 8192];
            let read = stream.read(&mut head).await.unwrap();
            let is_search = !head[..read].starts_with(b"GET /config");
            let (status, kind, body) = match is_search {
                true => (status, kind, body),
                false => (
                    200,
                    "application/json",
                    r#"{"engines": [{"name": "bing"}, {"name": "wikipedia"}]}"#,
                ),
            };
            let answer = format!(
                "HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }));
    url
}

#[tokio::test]
async fn what_people_get_wrong_about_searxng_is_said_in_one_line() {
    let suspended = r#"{"query": "x", "results": [], "unresponsive_engines": [["bing", "Suspended: too many requests"]]}"#;
    let cases = [
        (403, "text/html", "Forbidden", "failed", "search.formats"),
        (429, "text/html", "", "failed", "limiter"),
        (200, "text/html", "<html></html>", "failed", "JSON"),
        (200, "application/json", suspended, "", "Suspended"),
    ];
    for (status, kind, body, state, words) in cases {
        let url = searxng_that_answers(status, kind, body).await;
        let (_place, machine) = machine(&format!(
            "[tools.web_search]\nsearxng_url = \"{url}\"\nengines = [\"bing\", \"duckduckgoo\"]\n"
        ));
        let findings = search::searxng(&machine.unwrap()).await;
        let text = finding::text(&findings);
        let first = text.lines().next().unwrap();
        assert!(
            first.starts_with(state) && first.contains(words),
            "{status} {kind}: {text}"
        );
        assert!(text.contains("no engine is named duckduckgoo"), "{text}");
    }
}

#[tokio::test]
async fn a_chosen_provider_without_a_key_is_a_failure() {
    let (_place, machine) =
        machine("[chat]\nprovider = \"anthropic\"\n[providers.anthropic]\nmodel = \"m\"\n");
    let findings = providers::providers(&machine.unwrap()).await;
    let text = finding::text(&findings);
    assert!(text.contains("has no key -> set"), "{text}");
    assert!(!finding::is_well(&findings), "{text}");
}

#[tokio::test]
async fn an_endpoint_is_tried() {
    for (status, state, words) in [
        (405, "ok", "answers"),
        (401, "failed", "headers"),
        (404, "failed", "/mcp"),
    ] {
        use axum::http::StatusCode;

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let status = StatusCode::from_u16(status).unwrap();
        let router = axum::Router::new().fallback(move || async move { status });
        drop(tokio::spawn(
            async move { axum::serve(listener, router).await },
        ));
        let (_place, machine) = machine(&format!("[mcp.servers.far]\nurl = \"{url}\"\n"));
        let text = finding::text(&endpoints::endpoints(&machine.unwrap()).await);
        assert!(text.starts_with(state) && text.contains(words), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[tokio::test]
async fn port_0_is_whichever_is_free() {
    let (_place, machine) = machine("[server]\nport = 0\n");
    let findings = place::port(&machine.unwrap()).await;
    let text = finding::text(&findings);
    assert!(text.starts_with("ok"), "{text}");
    assert!(text.contains("the system chooses a free one"), "{text}");
}

#[test]
fn the_port_may_be_named() {
    let arguments = Arguments::try_parse_from(["outrigger", "doctor", "--port", "99"]).unwrap();
    assert!(matches!(arguments.into_command(), Command::Doctor(it) if it.port == Some(99)));
}

/// A llama.cpp with a small window and a template without tools.
async fn llamacpp(props: Value) -> String {
    use axum::routing::get;

    let list = json!({"object": "list", "data": [{"id": "tiny", "owned_by": "llamacpp",
        "meta": {"n_ctx": props["default_generation_settings"]["n_ctx"], "n_ctx_train": 262_144}}]});
    let router = axum::Router::new()
        .route("/v1/models", get(move || async move { axum::Json(list) }))
        .route("/props", get(move || async move { axum::Json(props) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(tokio::spawn(
        async move { axum::serve(listener, router).await },
    ));
    url
}

#[tokio::test]
async fn a_provider_is_shown_with_model_window_and_tools() {
    let props = |n_ctx: u64, tools: bool| {
        json!({"default_generation_settings": {"n_ctx": n_ctx},
        "chat_template_caps": {"supports_tools": tools}})
    };
    for (props, state, key, words) in [
        (
            props(65_536, true),
            "ok",
            "",
            "answers without a key; model tiny with a window of 65536 tokens and tools\n",
        ),
        (
            props(65_536, true),
            "ok",
            "api_key = \"k1\"\n",
            "accepts the key; model tiny",
        ),
        (
            props(8192, true),
            "warning",
            "",
            "a window of 8192 tokens and tools; that is little",
        ),
        (
            props(65_536, false),
            "warning",
            "",
            "no tools -> name a model",
        ),
    ] {
        let url = llamacpp(props).await;
        let (_place, machine) = machine(&format!(
            "[providers.local]\nkind = \"openai\"\nbase_url = \"{url}\"\n{key}"
        ));
        let findings = providers::providers(&machine.unwrap()).await;
        let text = finding::text(&findings);
        assert!(text.starts_with(state) && text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn a_script_is_a_provider_too() {
    let (_place, machine) =
        machine("[chat]\nprovider = \"play\"\n[providers.play]\nkind = \"scripted\"\n");
    let text = finding::text(&providers::providers(&machine.unwrap()).await);
    assert!(
        text.starts_with("ok")
            && text.contains("play (the default): plays the built-in demonstration"),
        "{text}"
    );
}

/// Somebody who lets in who has this token.
fn guarded(token: &'static str) -> u16 {
    use std::io::{Read as _, Write as _};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap();
            let head = String::from_utf8_lossy(&head[..read]);
            let is_let_in = head.starts_with("GET /healthz")
                || head.contains(&format!("Authorization: Bearer {token}\r\n"));
            let status = if is_let_in { "200 OK" } else { "401 No" };
            write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
    }));
    port
}

#[tokio::test]
async fn the_daemon_of_this_configuration_is_no_other_one() {
    let port = guarded("the-token-of-that-daemon");
    for (token, expected) in [
        (Some("the-token-of-that-daemon"), "ok"),
        (Some("another-token"), "warning"),
        (None, "warning"),
    ] {
        let (_place, machine) = machine(&format!("[server]\nport = {port}\n"));
        let mut machine = machine.unwrap();
        machine.loaded.token = token.map(Into::into);
        let text = finding::text(&place::port(&machine).await);
        assert!(text.starts_with(expected), "{text}");
    }
}

#[tokio::test]
async fn an_ollama_that_nobody_configured_is_said_to_answer() {
    use axum::routing::{get, post};

    let tags = json!({"models": [{"model": "qwen3", "capabilities": ["completion", "tools"]}]});
    let show = json!({"capabilities": ["completion", "tools"],
        "model_info": {"general.architecture": "q", "q.context_length": 40_960}});
    let router = axum::Router::new()
        .route("/api/tags", get(move || async move { axum::Json(tags) }))
        .route("/api/show", post(move || async move { axum::Json(show) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(tokio::spawn(
        async move { axum::serve(listener, router).await },
    ));
    let (_place, machine) = machine(&format!("[chat]\ndetect_ollama = \"{url}\"\n"));
    let machine = machine.unwrap();
    assert!(machine.providers.detect().await.is_some());
    assert_eq!(providers::providers(&machine).await, []);
    let text = finding::text(&providers::ollama(&machine).await);
    let words =
        "model qwen3 with a window of 32768 tokens and tools; it answers, since no provider";
    assert!(text.starts_with("ok") && text.contains(words), "{text}");
}
