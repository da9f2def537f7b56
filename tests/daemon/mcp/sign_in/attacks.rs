//! What an attacker tries: with metadata, with answers of pages, with tokens, with a second server.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fake::Fake;
use super::{asked, call, called, daemon, nothing_leaks, opened, refused, signed_in, visited};
use crate::mcp::until_state;
use crate::support::{Client, Daemon, Provider};

#[tokio::test]
async fn metadata_that_could_lead_elsewhere_is_refused_and_nobody_is_sent_anywhere() {
    let other = Fake::start().await;
    let far = "https://login.example";
    let iss = "authorization_response_iss_parameter_supported";
    let cases = [
        // PKCE is not there, or not as it has to be.
        (json!({"code_challenge_methods_supported": null}), "PKCE"),
        (
            json!({"code_challenge_methods_supported": ["plain"]}),
            "PKCE",
        ),
        // The page is none.
        (
            json!({"authorization_endpoint": "javascript:alert(1)"}),
            "\"javascript\"",
        ),
        (
            json!({"authorization_endpoint": "file:///etc/passwd"}),
            "\"file\"",
        ),
        (
            json!({"authorization_endpoint": "http://login.example/"}),
            "not https",
        ),
        // Codes would go to somebody else, or into the private network.
        (
            json!({"token_endpoint": "https://evil.example/token", iss: null}),
            "takes codes at https://evil.example",
        ),
        (
            json!({"token_endpoint": "https://10.1.2.3/token"}),
            "private network",
        ),
        (
            json!({"token_endpoint": "https://169.254.169.254/token"}),
            "private network",
        ),
        (
            json!({"registration_endpoint": "ftp://x.example/"}),
            "\"ftp\"",
        ),
        // It is somebody else.
        (json!({"issuer": far}), far),
        (json!({"issuer": other.issuer}), "asked"),
        (json!({"issuer": null}), "does not name itself"),
        (json!({"response_types_supported": ["token"]}), "no codes"),
    ];
    for (metadata, expected) in cases {
        let fake = Fake::start().await.with_metadata(metadata.clone());
        let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
        let why = refused(&mut client, "docs").await;
        assert!(why.contains(expected), "{metadata}: {why}");
        assert!(client.all("mcp:auth-required").is_empty(), "{metadata}");
        for path in ["/register", "/authorize", "/token"] {
            assert!(fake.asked(path).is_empty(), "{metadata}: {path}");
        }
    }
}

#[tokio::test]
async fn metadata_of_another_resource_is_not_this_ones() {
    for resource in [
        "https://bank.example/mcp",
        "http://127.0.0.1:1/mcp",
        "nothing",
    ] {
        let fake = Fake::start().await;
        fake.set_resource(json!({"resource": resource}));
        let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
        let why = refused(&mut client, "docs").await;
        assert!(why.contains(resource), "{why}");
        assert!(fake.asked("/register").is_empty());
    }
}

#[tokio::test]
async fn huge_answers_and_loops_of_redirects_end() {
    let resource = "/.well-known/oauth-protected-resource/mcp";
    let server = "/.well-known/oauth-authorization-server";
    let huge = format!("{{\"resource\": \"{}\"}}", "x".repeat(300 * 1024));
    for (path, status, location, body, expected) in [
        (resource, 200, None, huge.as_str(), "more than 256 KiB"),
        (server, 200, None, huge.as_str(), "more than 256 KiB"),
        (resource, 302, Some(resource), "", "redirects"),
        (server, 302, Some(server), "", "redirects"),
        (
            resource,
            302,
            Some("http://127.0.0.1:1/"),
            "",
            "redirect to non-same-origin",
        ),
        (
            server,
            302,
            Some("https://evil.example/"),
            "",
            "redirect to non-same-origin",
        ),
    ] {
        let fake = Fake::start().await;
        fake.instead(path, status, location, body);
        let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
        let why = refused(&mut client, "docs").await;
        assert!(why.contains(expected), "{path} {location:?}: {why}");
        assert!(fake.paths().len() < 20, "{:?}", fake.paths());
    }
}

#[tokio::test]
async fn a_token_request_is_not_taken_elsewhere() {
    let (fake, evil) = (Fake::start().await, Fake::start().await);
    let there = format!("{}/token", evil.issuer);
    fake.instead("/token", 307, Some(&there), "");
    let (daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    let asked = asked(&mut client, 0).await;
    let (status, page) = visited(&opened(&asked).await).await;
    assert_eq!(status, 400, "{page}");
    assert!(evil.paths().is_empty(), "{:?}", evil.paths());
    nothing_leaks(&daemon, &client, &fake);
}

#[tokio::test]
async fn an_answer_counts_once_for_the_sign_in_that_it_is_for() {
    let fake = Fake::start().await;
    let (daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    let first = asked(&mut client, 0).await;
    let callback = format!("http://127.0.0.1:{}/oauth/callback", daemon.port);
    let state = reqwest::Url::parse(first["url"].as_str().unwrap()).unwrap();
    let state = state.query_pairs().find(|(name, _)| name == "state");
    let state = state.unwrap().1.into_owned();
    // A code that somebody has others bring: no state, a guessed one, one that is there twice.
    for query in [
        String::new(),
        "?code=stolen".to_owned(),
        "?code=stolen&state=guessed".to_owned(),
        format!("?code=stolen&state=x&state={state}"),
    ] {
        let (status, page) = visited(&format!("{callback}{query}")).await;
        assert_eq!(status, 400, "{query}");
        assert!(page.contains("nobody waits for this answer"), "{page}");
    }
    assert!(fake.asked("/token").is_empty());
    // The sign-in is still open; its answer counts once.
    let ended = opened(&first).await;
    assert_eq!(visited(&ended).await.0, 200);
    let (status, page) = visited(&ended).await;
    assert_eq!(status, 400, "{page}");
    assert_eq!(fake.asked("/token").len(), 1);
    until_state(&mut client, "docs", "ready").await;
    nothing_leaks(&daemon, &client, &fake);
}

#[tokio::test]
async fn a_refusal_and_a_code_that_is_none_are_said_and_are_no_markup() {
    let fake = Fake::start().await;
    let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    let first = asked(&mut client, 0).await;
    fake.answers("code", "");
    fake.answers("error", "access_denied");
    fake.answers("error_description", "<script>alert(1)</script>");
    let (status, page) = visited(&opened(&first).await).await;
    assert_eq!(status, 400);
    assert!(page.contains("access_denied"), "{page}");
    assert!(!page.contains("<script>"), "{page}");
    // It can be begun again, under another state.
    let answer = client
        .ask(json!({"type": "mcp:auth", "server": "docs"}))
        .await;
    let second = answer["payload"]["asked"].clone();
    assert_ne!(second["url"], first["url"]);
    let (_, page) = visited(&opened(&first).await).await;
    assert!(page.contains("nobody waits"), "{page}");
}

/// Two servers of which one wants the other's codes: it says that people sign in at the other's page.
#[tokio::test]
async fn one_server_does_not_get_the_codes_of_another() {
    let (honest, evil) = (Fake::start().await, Fake::start().await);
    let page = format!("{}/authorize", honest.issuer);
    evil.set_metadata(json!({"authorization_endpoint": page}));
    let servers = [
        ("evil", evil.config(&json!({}))),
        ("docs", honest.config(&json!({}))),
    ];
    let (_daemon, mut client, _provider) = daemon(&servers).await;
    let mut asks = BTreeMap::new();
    for n in 0..2 {
        let asked = asked(&mut client, n).await;
        asks.insert(asked["server"].as_str().unwrap().to_owned(), asked);
    }
    // The user sees whose page it is.
    let host = honest.issuer.strip_prefix("http://").unwrap();
    assert_eq!(asks["evil"]["host"], host);
    // The page names itself, and it is not who was asked.
    let (status, said) = visited(&opened(&asks["evil"]).await).await;
    assert_eq!(status, 400, "{said}");
    assert!(said.contains(&honest.issuer), "{said}");
    // A code of the one is nothing to the sign-in of the other.
    let begin = json!({"type": "mcp:auth", "server": "evil"});
    assert_eq!(client.ask(begin).await["type"], "mcp:auth-result");
    let theirs = opened(&asks["docs"]).await;
    let paste = json!({"type": "mcp:auth", "server": "evil", "url": theirs});
    let answer = client.ask(paste).await;
    assert_eq!(answer["payload"]["code"], "mcp_error", "{answer}");
    assert!(evil.asked("/token").is_empty());
    assert_eq!(visited(&theirs).await.0, 200);
    // One whose page does not name itself would have to be believed.
    let silent = Fake::start().await;
    silent.set_metadata(json!({"authorization_endpoint": page,
        "authorization_response_iss_parameter_supported": null}));
    let (_daemon, mut client, _provider) = daemon(&[("docs", silent.config(&json!({})))]).await;
    let why = refused(&mut client, "docs").await;
    assert!(why.contains("RFC 9207"), "{why}");
}

#[tokio::test]
async fn an_answer_of_another_issuer_ends_the_sign_in() {
    for (iss, expected) in [
        ("https://evil.example", "https://evil.example"),
        ("", "does not name itself"),
    ] {
        let fake = Fake::start().await;
        fake.answers("iss", iss);
        let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
        let asked = asked(&mut client, 0).await;
        let ended = opened(&asked).await;
        let (status, page) = visited(&ended).await;
        assert_eq!(status, 400, "{page}");
        assert!(page.contains(expected), "{page}");
        assert!(fake.asked("/token").is_empty());
        // Also with the right name it is over.
        let mended = format!("{ended}&iss={}", fake.issuer);
        assert_eq!(visited(&mended).await.0, 400);
    }
}

#[tokio::test]
async fn a_token_that_the_server_does_not_take_is_not_asked_for_for_ever() {
    let fake = Fake::start().await;
    fake.takes_none();
    let (_daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    signed_in(&mut client, 0).await;
    let why = refused(&mut client, "docs").await;
    assert!(why.contains("audience"), "{why}");
    assert_eq!(client.all("mcp:auth-required").len(), 1);
    assert_eq!(fake.asked("/token").len(), 1);
}

#[tokio::test]
async fn tokens_are_renewed_where_they_came_from_whatever_is_said_since() {
    let (fake, evil) = (Fake::start().await, Fake::start().await);
    let (daemon, mut client, _provider) = daemon(&[("docs", fake.config(&json!({})))]).await;
    let first = signed_in(&mut client, 0).await;
    until_state(&mut client, "docs", "ready").await;
    // Both documents name somebody else from now on.
    fake.set_metadata(json!({"token_endpoint": format!("{}/token", evil.issuer)}));
    fake.set_resource(json!({"authorization_servers": [evil.issuer]}));
    fake.end_tokens(false);
    assert_eq!(called(&mut client, "look").await["status"], "success");
    assert_eq!(fake.asked("/token").len(), 2);
    assert!(evil.paths().is_empty(), "{:?}", evil.paths());
    // Somebody has to sign in anew: at another place, which is said.
    fake.end_tokens(true);
    call(&mut client, "look").await;
    let second = asked(&mut client, 1).await;
    assert_ne!(second["host"], first["host"]);
    assert_eq!(second["wasAt"], first["host"], "{second}");
    // Neither the client nor a token of the first goes there.
    let known = fake.asked("/authorize")[0]["client_id"].clone();
    let page = reqwest::Url::parse(second["url"].as_str().unwrap()).unwrap();
    assert!(!page.as_str().contains(&known), "{page}");
    let sent: Vec<Value> = evil.paths().into_iter().map(Value::from).collect();
    assert!(!sent.contains(&json!("/token")), "{sent:?}");
    nothing_leaks(&daemon, &client, &fake);
}

#[tokio::test]
async fn a_token_that_may_not_drive_does_not_get_the_page() {
    let fake = Fake::start().await;
    let provider = Provider::start().await;
    let observing = "observe-0123456789abcdef";
    let config = json!({
        "server": { "observer_token": observing },
        "mcp": { "servers": { "docs": fake.config(&json!({})) }, "tokens": "file" },
    });
    let daemon = Daemon::with(&provider, config).await;
    let mut driver = daemon.connect().await;
    let query = format!("?session={}", driver.session());
    let mut observer = Client::reach_by(&daemon, &query, observing).await.unwrap();
    let page = asked(&mut driver, 0).await;
    let seen = asked(&mut observer, 0).await;
    assert_eq!(
        (&seen["server"], &seen["host"]),
        (&page["server"], &page["host"])
    );
    assert_eq!(seen["url"], "");
    let state = page["url"]
        .as_str()
        .unwrap()
        .split("state=")
        .nth(1)
        .unwrap();
    let state = state.split('&').next().unwrap();
    // What the driver is answered is its own.
    let asks = json!({"type": "mcp:auth", "payload": {"server": "docs"}});
    let answered = driver.ask(asks).await;
    assert_eq!(answered["payload"]["asked"]["url"], page["url"]);
    observer.ask(json!({"type": "mcp:list"})).await;
    let frames: String = observer.seen.iter().map(Value::to_string).collect();
    assert!(!frames.contains(state), "{frames}");
}

#[tokio::test]
async fn an_error_that_repeats_what_was_sent_tells_none_of_it() {
    let fake = Fake::start().await;
    fake.echoes();
    let auth = json!({"auth": {"client_id": "mine", "client_secret": "hunter2-of-the-client"}});
    let (daemon, mut client, _provider) = daemon(&[("docs", fake.config(&auth))]).await;
    let asked = asked(&mut client, 0).await;
    let (status, page) = visited(&opened(&asked).await).await;
    assert_ne!(status, 200, "{page}");
    let is_told = |client: &Client| {
        let mut all = client.all("session:notice").into_iter();
        all.any(|it| it["code"] == "mcp_sign_in_failed")
    };
    while !is_told(&client) {
        client.next().await;
    }
    let sent = &fake.asked("/token")[0];
    let log = std::fs::read_to_string(daemon.project().parent().unwrap().join("log")).unwrap();
    let frames: String = client.seen.iter().map(Value::to_string).collect();
    let secrets = [&sent["code"], &sent["code_verifier"]].map(String::as_str);
    for secret in secrets.into_iter().chain(["hunter2-of-the-client"]) {
        for text in [&page, &log, &frames] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
    // The configured one is looked for on, after the sign-in that knew it as well.
    let ask = json!({"type": "session:configure", "payload": {"hunter2-of-the-client": 1}});
    let answer = client.ask(ask).await;
    assert!(!answer.to_string().contains("hunter2"), "{answer}");
}
