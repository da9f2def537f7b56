//! Servers that ask their user to sign in: how that goes, what lasts, and what an attacker gets.

mod attacks;
pub(crate) mod elsewhere;
pub(crate) mod fake;

use reqwest::redirect::Policy;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::until_state;
use crate::support::{Client, Daemon, Provider, within};
use fake::Fake;

/// A browser whose user says yes to everything; it stops at what is not followed.
fn browser() -> reqwest::Client {
    // Fails where another test has done it.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .build()
        .unwrap()
}

/// Opens the page of a sign-in; returns where that sends the browser.
async fn opened(asked: &Value) -> String {
    let url = asked["url"].as_str().unwrap();
    let answer = browser().get(url).send().await.unwrap();
    assert_eq!(answer.status(), 302, "{asked}");
    answer.headers()["location"].to_str().unwrap().to_owned()
}

/// Goes to an address; returns the status and the page.
async fn visited(url: &str) -> (u16, String) {
    let answer = browser().get(url).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// A daemon with servers of these names.
async fn daemon(servers: &[(&str, Value)]) -> (Daemon, Client, Provider) {
    let provider = Provider::start().await;
    let servers: serde_json::Map<String, Value> = servers
        .iter()
        .map(|(name, config)| ((*name).to_owned(), config.clone()))
        .collect();
    let config = json!({
        "mcp": { "servers": servers, "tokens": "file" },
        "chat": { "provider": "test", "trust_level": "autonomous" },
    });
    let daemon = Daemon::with(&provider, config).await;
    let client = daemon.connect().await;
    (daemon, client, provider)
}

/// Returns the payload of a type that is the nth of its sort, counted from 0, also of those that were read over; one that
/// comes twice counts once.
async fn nth(client: &mut Client, kind: &str, n: usize) -> Value {
    loop {
        let mut all: Vec<Value> = Vec::new();
        for payload in client.all(kind) {
            if !all.contains(&payload) {
                all.push(payload);
            }
        }
        if let Some(payload) = all.get(n) {
            return payload.clone();
        }
        client.next().await;
    }
}

/// Waits for what a server asks of its user for the nth time.
async fn asked(client: &mut Client, n: usize) -> Value {
    nth(client, "mcp:auth-required", n).await
}

/// Signs in as asked for the nth time.
async fn signed_in(client: &mut Client, n: usize) -> Value {
    let asked = asked(client, n).await;
    let (status, page) = visited(&opened(&asked).await).await;
    assert_eq!(status, 200, "{page}");
    asked
}

/// Waits until a server is given up; returns why.
async fn refused(client: &mut Client, name: &str) -> String {
    let row = until_state(client, name, "failed").await;
    row["error"].as_str().unwrap().to_owned()
}

/// Begins to call a tool.
async fn call(client: &mut Client, tool: &str) {
    let execute = json!({"type": "tool:execute", "toolName": format!("mcp__docs__{tool}")});
    client.ask(execute).await;
}

/// The same in another conversation, side by side with the first.
async fn call_beside(client: &mut Client, tool: &str) {
    let name = format!("mcp__docs__{tool}");
    let execute = json!({"type": "tool:execute", "toolName": name, "conversationId": "beside"});
    client.ask(execute).await;
}

/// Calls a tool; returns the result.
async fn called(client: &mut Client, tool: &str) -> Value {
    let before = client.all("chat:tool-result").len();
    call(client, tool).await;
    nth(client, "chat:tool-result", before).await
}

/// Fails where anything secret stands in what the daemon logged, sent or keeps where others may read it.
fn nothing_leaks(daemon: &Daemon, client: &Client, fake: &Fake) {
    let log = std::fs::read_to_string(daemon.project().parent().unwrap().join("log"));
    let log = log.unwrap_or_default();
    let frames = client.seen.iter().map(Value::to_string);
    let frames: String = frames.collect();
    for secret in fake.secrets() {
        assert!(!log.contains(&secret), "{secret} in the log:\n{log}");
        assert!(!frames.contains(&secret), "{secret} in a frame");
    }
}

#[tokio::test]
async fn somebody_signs_in_once_and_it_lasts() {
    let fake = Fake::start().await;
    let (daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    let asked = asked(&mut client, 0).await;
    assert_eq!(asked["server"], "docs");
    assert_eq!(asked["host"], fake.issuer.strip_prefix("http://").unwrap());
    assert_eq!(asked["scopes"], json!(["read"]));
    let row = until_state(&mut client, "docs", "signIn").await;
    assert!(
        row["error"].as_str().unwrap().contains("sign in at"),
        "{row}"
    );
    // A session that comes later is told as well.
    let mut late = daemon.connect().await;
    assert_eq!(self::asked(&mut late, 0).await["url"], asked["url"]);
    let (status, page) = visited(&opened(&asked).await).await;
    assert_eq!(status, 200, "{page}");
    assert!(
        page.contains("signed in to the MCP server “docs”"),
        "{page}"
    );
    until_state(&mut client, "docs", "ready").await;
    assert_eq!(called(&mut client, "look").await["status"], "success");
    // What is asked for, and what a code is exchanged with.
    let resource = format!("{}/mcp", fake.mcp);
    for form in [&fake.asked("/authorize")[0], &fake.asked("/token")[0]] {
        assert_eq!(form["resource"], resource, "{form:?}");
    }
    let registered: Value = serde_json::from_str(&fake.asked("/register")[0]["body"]).unwrap();
    let redirect = format!("http://127.0.0.1:{}/oauth/callback", daemon.port);
    assert_eq!(registered["redirect_uris"], json!([redirect]));
    assert_eq!(registered["token_endpoint_auth_method"], "none");
    // A token that ended is renewed, and nobody is asked.
    fake.end_tokens(false);
    assert_eq!(called(&mut client, "look").await["status"], "success");
    let renewed = &fake.asked("/token")[1];
    assert_eq!(renewed["grant_type"], "refresh_token");
    assert_eq!(renewed["resource"], resource);
    nothing_leaks(&daemon, &client, &fake);
    // It outlives the daemon, in a file that only its user may read.
    let kept = daemon
        .project()
        .parent()
        .unwrap()
        .join("state/mcp-sign-ins");
    let files: Vec<_> = std::fs::read_dir(&kept).unwrap().flatten().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&files[0].metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let daemon = daemon.after_end().await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "docs", "ready").await;
    assert_eq!(fake.asked("/authorize").len(), 1);
    // Until somebody signs out, which the authorization server is told.
    let out = json!({"type": "mcp:sign-out", "server": "docs"});
    assert_eq!(client.ask(out).await["type"], "mcp:sign-out-result");
    signed_in(&mut client, 0).await;
    until_state(&mut client, "docs", "ready").await;
    let notices = client.all("session:notice");
    let restarts = notices.iter().filter(|it| it["code"] == "mcp_restarting");
    let restarts: Vec<&Value> = restarts.map(|it| &it["message"]).collect();
    let message = "the MCP server `docs` is started again: it was signed out";
    assert_eq!(restarts, [message]);
    assert_eq!(fake.asked("/revoke").len(), 1);
    nothing_leaks(&daemon, &client, &fake);
}

#[tokio::test]
async fn a_client_with_a_secret_shows_it_as_the_server_wants() {
    for (methods, in_body) in [("client_secret_basic", false), ("client_secret_post", true)] {
        let metadata = json!({"token_endpoint_auth_methods_supported": [methods]});
        let fake = Fake::start().await.with_metadata(metadata);
        let auth = json!({"auth": {"client_id": "mine", "client_secret": "a secret: one"}});
        let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&auth))]).await;
        signed_in(&mut client, 0).await;
        until_state(&mut client, "docs", "ready").await;
        let out = json!({"type": "mcp:sign-out", "server": "docs"});
        client.ask(out).await;
        for path in ["/token", "/revoke"] {
            let form = &fake.asked(path)[0];
            assert_eq!(form["client_id"], "mine", "{path}");
            let in_header = form.get("basic").map(String::as_str);
            assert_eq!(in_header.is_none(), in_body, "{path}: {form:?}");
            if let Some(pair) = in_header {
                // As in a form, where a blank is `+` or `%20`.
                assert_eq!(
                    pair.replace('+', "%20"),
                    "mine:a%20secret%3A%20one",
                    "{path}"
                );
            }
            let secret = form.get("client_secret").map(String::as_str);
            assert_eq!(secret, in_body.then_some("a secret: one"), "{path}");
        }
    }
}

#[tokio::test]
async fn a_browser_elsewhere_ends_on_an_address_that_is_pasted() {
    let fake = Fake::start().await;
    let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    let asked = asked(&mut client, 0).await;
    let ended = opened(&asked).await;
    let answer = client
        .ask(json!({"type": "mcp:auth", "server": "docs", "url": ended}))
        .await;
    assert_eq!(
        answer["payload"],
        json!({"server": "docs", "signedIn": true})
    );
    until_state(&mut client, "docs", "ready").await;
    // Once is enough.
    let again = client
        .ask(json!({"type": "mcp:auth", "server": "docs", "url": ended}))
        .await;
    assert_eq!(again["payload"]["code"], "mcp_error", "{again}");
}

#[tokio::test]
async fn more_rights_are_asked_for_when_a_call_needs_them() {
    let fake = Fake::start().await;
    let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    signed_in(&mut client, 0).await;
    until_state(&mut client, "docs", "ready").await;
    call(&mut client, "wipe").await;
    let more = signed_in(&mut client, 1).await;
    assert_eq!(more["more"], true, "{more}");
    assert_eq!(more["scopes"], json!(["read", "write"]));
    // The call waited.
    let result = nth(&mut client, "chat:tool-result", 0).await;
    assert_eq!(result["status"], "success", "{result}");
    // What was granted is not asked for again, though the server forbids it all the same.
    fake.forbids("error=\"insufficient_scope\", scope=\"write\"");
    let result = called(&mut client, "wipe").await;
    assert_eq!(result["status"], "error", "{result}");
    let words = result["result"].as_str().unwrap();
    assert!(words.contains("were granted already"), "{words}");
    assert_eq!(fake.asked("/authorize").len(), 2);
}

#[tokio::test]
async fn two_calls_that_need_the_same_rights_wait_for_one_page() {
    let fake = Fake::start().await;
    let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    signed_in(&mut client, 0).await;
    until_state(&mut client, "docs", "ready").await;
    call(&mut client, "wipe").await;
    let open = asked(&mut client, 1).await;
    call_beside(&mut client, "wipe").await;
    while client.all("mcp:auth-required").len() < 3 {
        client.next().await;
    }
    // The page that the user has had open since the first.
    let (status, page) = visited(&opened(&open).await).await;
    assert_eq!(status, 200, "{page}");
    for n in 0..2 {
        let result = nth(&mut client, "chat:tool-result", n).await;
        assert_eq!(result["status"], "success", "{result}");
    }
    assert_eq!(fake.asked("/authorize").len(), 2);
}

#[tokio::test]
async fn a_call_on_its_way_while_somebody_signs_in_is_made_again() {
    let fake = Fake::start().await;
    let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    signed_in(&mut client, 0).await;
    until_state(&mut client, "docs", "ready").await;
    call(&mut client, "wipe").await;
    asked(&mut client, 1).await;
    // Forbidden with the old token, which is told once there is a new one.
    let mut forbidden = fake.hold("tools/call");
    call_beside(&mut client, "wipe").await;
    forbidden.reached().await;
    signed_in(&mut client, 1).await;
    let result = nth(&mut client, "chat:tool-result", 0).await;
    assert_eq!(result["status"], "success", "{result}");
    forbidden.go_on();
    let result = nth(&mut client, "chat:tool-result", 1).await;
    assert_eq!(result["status"], "success", "{result}");
    assert_eq!(fake.asked("/authorize").len(), 2);
}

#[tokio::test]
async fn a_sign_in_counts_towards_no_time_limit_of_the_call_that_waits_for_it() {
    let fake = Fake::start().await;
    let config = fake.config(&json!({"timeout": "5s"}));
    let (_daemon, mut client, _provider) = daemon(&[("docs", config)]).await;
    signed_in(&mut client, 0).await;
    until_state(&mut client, "docs", "ready").await;
    call(&mut client, "wipe").await;
    asked(&mut client, 1).await;
    // Another call that began after it comes to the end of the limit, which both have.
    let silent = fake.hold("tools/call");
    call_beside(&mut client, "look").await;
    let result = nth(&mut client, "chat:tool-result", 0).await;
    let words = result["result"].as_str().unwrap();
    assert!(words.contains("did not answer within 5 s"), "{result}");
    assert_eq!(result["conversationId"], "beside");
    signed_in(&mut client, 1).await;
    let result = nth(&mut client, "chat:tool-result", 1).await;
    assert_eq!(result["status"], "success", "{result}");
    silent.go_on();
}

/// The limit goes on, and whoever reads of it knows what was missing.
#[tokio::test]
async fn where_nobody_is_there_a_call_does_not_wait_beyond_its_limit() {
    let fake = Fake::start().await;
    let config = fake.config(&json!({"timeout": "5s"}));
    let (daemon, mut client, _provider) = daemon(&[("docs", config)]).await;
    signed_in(&mut client, 0).await;
    until_state(&mut client, "docs", "ready").await;
    drop(client);
    daemon.reconfigure(|config| config["approval"]["unattended"] = json!("deny"));
    let daemon = daemon.after_end().await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "docs", "ready").await;
    let result = called(&mut client, "wipe").await;
    let words = result["result"].as_str().unwrap();
    let host = fake.issuer.strip_prefix("http://").unwrap();
    let open = format!(
        "did not answer within 5 s (mcp.servers.docs.timeout); a sign-in is open at {host} until "
    );
    assert!(words.contains(&open), "{words}");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends_and_asked_for_when_it_cannot_be() {
    let fake = Fake::start().await;
    fake.tokens_last(10);
    let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    signed_in(&mut client, 0).await;
    until_state(&mut client, "docs", "ready").await;
    assert!(fake.asked("/token").len() > 1);
    fake.tokens_last(3_600);
    assert_eq!(called(&mut client, "look").await["status"], "success");
    // Taken back where it was issued: the call waits for its user.
    fake.end_tokens(true);
    call(&mut client, "look").await;
    signed_in(&mut client, 1).await;
    let result = nth(&mut client, "chat:tool-result", 1).await;
    assert_eq!(result["status"], "success", "{result}");
}

#[tokio::test]
async fn a_renewal_goes_on_where_its_call_is_cancelled() {
    let fake = Fake::start().await;
    let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    signed_in(&mut client, 0).await;
    until_state(&mut client, "docs", "ready").await;
    fake.end_tokens(false);
    let mut token = fake.hold("/token");
    call(&mut client, "look").await;
    token.reached().await;
    client.ask(json!({"type": "chat:cancel"})).await;
    let result = nth(&mut client, "chat:tool-result", 0).await;
    assert_eq!(result["metadata"]["cancelled"], true, "{result}");
    token.go_on();
    // The refresh token was used up: what came for it is kept.
    assert_eq!(called(&mut client, "look").await["status"], "success");
    assert_eq!(fake.asked("/token").len(), 2);
    assert_eq!(fake.asked("/authorize").len(), 1);
}

#[tokio::test]
async fn a_code_is_exchanged_also_where_the_browser_hangs_up() {
    let fake = Fake::start().await;
    let (daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    let url = opened(&asked(&mut client, 0).await).await;
    let mut token = fake.hold("/token");
    let url = reqwest::Url::parse(&url).unwrap();
    let (path, query) = (url.path(), url.query().unwrap());
    let host = format!("127.0.0.1:{}", daemon.port);
    let mut browser = TcpStream::connect(&host).await.unwrap();
    let request = format!("GET {path}?{query} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    browser.write_all(request.as_bytes()).await.unwrap();
    token.reached().await;
    browser.shutdown().await.unwrap();
    // The daemon has seen that: it hangs up as well, without a word.
    let mut answer = Vec::new();
    let read = browser.read_to_end(&mut answer);
    within("the end of the connection", read, String::new)
        .await
        .unwrap();
    assert_eq!(answer, b"");
    token.go_on();
    until_state(&mut client, "docs", "ready").await;
}

#[tokio::test]
async fn a_header_of_the_operator_answers_for_the_sign_in() {
    let fake = Fake::start().await;
    let headers = json!({"headers": {"authorization": "Bearer of-the-operator"}});
    let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&headers))]).await;
    let why = refused(&mut client, "docs").await;
    assert!(
        why.contains("does not take the Authorization of its `headers`"),
        "{why}"
    );
    assert!(client.all("mcp:auth-required").is_empty());
    assert!(
        fake.paths().iter().all(|path| path == "/mcp"),
        "{:?}",
        fake.paths()
    );
    let answer = client
        .ask(json!({"type": "mcp:auth", "server": "docs"}))
        .await;
    assert_eq!(answer["payload"]["code"], "mcp_error", "{answer}");
}

#[tokio::test]
async fn a_client_that_is_known_there_is_not_registered() {
    let fake = Fake::start().await;
    let auth = json!({"auth": {"client_id": "mine", "scopes": ["read", "x"]}});
    let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&auth))]).await;
    let asked = signed_in(&mut client, 0).await;
    assert_eq!(asked["scopes"], json!(["read", "x"]));
    until_state(&mut client, "docs", "ready").await;
    assert_eq!(fake.asked("/register").len(), 0);
    assert_eq!(fake.asked("/authorize")[0]["client_id"], "mine");
    // Nobody can register, and nobody is named.
    let closed = Fake::start()
        .await
        .with_metadata(json!({"registration_endpoint": null}));
    let (_daemon, mut client, _provider) = daemon(&[("docs", closed.config(&json!({})))]).await;
    let why = refused(&mut client, "docs").await;
    assert!(why.contains("mcp.servers.docs.auth.client_id"), "{why}");
}

/// What docs/mcp.md shows is what comes, but for numbers and addresses.
#[tokio::test]
async fn the_transcript_of_the_page_is_what_comes() {
    let fake = Fake::start().await;
    let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    let asked = asked(&mut client, 0).await;
    until_state(&mut client, "docs", "signIn").await;
    let paste = json!({"type": "mcp:auth", "server": "docs", "url": opened(&asked).await});
    client.ask(paste).await;
    until_state(&mut client, "docs", "ready").await;
    let page = include_str!("../../../docs/mcp.md");
    let section = page
        .split("\n## ")
        .find(|it| it.starts_with("Servers that ask you"));
    let lines = section.unwrap().lines();
    let lines = lines.filter_map(|line| line.strip_prefix("    < "));
    let shown: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // A notice and an answer may change places.
    for shown in &shown {
        let is_it = |frame: &&Value| {
            let same = |field: &str| frame["payload"][field] == shown["payload"][field];
            frame["type"] == shown["type"] && same("code") && same("severity")
        };
        let came = client.seen.iter().find(is_it);
        let came = came.unwrap_or_else(|| panic!("no {shown} among {:#?}", client.seen));
        let fields = |frame: &Value| -> Vec<String> {
            let payload = frame["payload"].as_object().unwrap();
            payload.keys().cloned().collect()
        };
        assert_eq!(fields(shown), fields(came));
        for field in ["server", "scopes", "signedIn"] {
            assert_eq!(shown["payload"][field], came["payload"][field], "{came}");
        }
    }
    let words = ["docs", "signed in to", "ready with 2 tools"];
    let all = client.all("session:notice");
    let all: String = all.iter().map(Value::to_string).collect();
    assert!(words.iter().all(|it| all.contains(it)), "{all}");
    // The address of the page has what the one in the document has.
    let names = |asked: &Value| -> Vec<String> {
        let url = reqwest::Url::parse(asked["url"].as_str().unwrap()).unwrap();
        url.query_pairs()
            .map(|(name, _)| name.into_owned())
            .collect()
    };
    assert_eq!(names(&shown[0]["payload"]), names(&asked));
}
