//! Who is let in, for how long, and as whom.

use super::*;
use crate::support::eventually;
use crate::telemetry::get;

/// Returns whether a token opens a socket.
async fn opens(users: &Users, token: &str) -> bool {
    Client::reach_by(&users.daemon, "", token).await.is_ok()
}

#[tokio::test]
async fn users_come_with_tokens_and_the_daemons_own_is_its_operators() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, json!({})).await;
    let anna = users.own_token("anna").await;
    for (token, expected) in [
        (anna.as_str(), true),
        (&users.daemon.token, true),
        ("", false),
        (anna.trim_end_matches(char::is_alphanumeric), false),
        (
            &users.token("anna", "1h", &["--iss", "others"]).await,
            false,
        ),
    ] {
        assert_eq!(opens(&users, token).await, expected, "{token}");
    }
    // Everywhere that the daemon's own token travels.
    let url = format!("ws://127.0.0.1:{}/ws?token={anna}", users.daemon.port);
    assert!(tokio_tungstenite::connect_async(url).await.is_ok());
    let operator = users.token("olga", "1h", &["--role", "operator"]).await;
    let observer = users.token("oskar", "1h", &["--role", "observer"]).await;
    for (token, status) in [
        (&anna, "403"),
        (&observer, "403"),
        (&operator, "200"),
        (&users.daemon.token, "200"),
        (&"wrong".to_owned(), "401"),
    ] {
        for path in [
            "/metrics",
            "/admin/sessions",
            "/admin/users",
            "/admin/nodes",
        ] {
            let answer = get(&users.daemon, path, token).await;
            let status = format!("HTTP/1.1 {status}");
            assert!(answer.starts_with(&status), "{path}: {answer}");
        }
    }
    // Who may not see what is everybody's may not end the daemon either.
    let url = format!("http://127.0.0.1:{}", users.daemon.port);
    let mut drain = Command::new(env!("CARGO_BIN_EXE_outrigger"));
    drain.args(["admin", "drain", "--no-wait", "--url", &url]);
    let drain = drain.env("OUTRIGGER_TOKEN", &anna).output().await.unwrap();
    let problem = String::from_utf8_lossy(&drain.stderr);
    assert!(problem.contains("this is for operators"), "{problem}");
    let ready = get(&users.daemon, "/readyz", "").await;
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    // Nothing of a token is in the log.
    let log = format!("{:?}", users.daemon.log());
    let signature = anna.rsplit('.').next().unwrap();
    assert!(!log.contains(signature) && !log.contains(&anna));
}

#[tokio::test]
async fn a_socket_is_told_whether_its_token_is_an_operators() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, json!({})).await;
    let anna = users.own_token("anna").await;
    let operator = users.token("anna", "1h", &["--role", "operator"]).await;
    let observer = users.token("anna", "1h", &["--role", "observer"]).await;
    let own = users.daemon.token.clone();
    let told = |client: &Client| client.seen[0]["payload"]["operator"].clone();
    let first = Client::reach_by(&users.daemon, "", &anna).await.unwrap();
    assert_eq!(told(&first), Value::Null);
    // Of one session, by whoever asks.
    let again = format!("?session={}", first.session());
    for (token, role, expected) in [
        (&operator, "driver", json!(true)),
        (&operator, "observer", json!(true)),
        (&observer, "observer", Value::Null),
        (&anna, "driver", Value::Null),
    ] {
        let query = format!("{again}&role={role}&takeOver=1");
        let client = Client::reach_by(&users.daemon, &query, token).await;
        assert_eq!(told(&client.unwrap()), expected, "{role}");
    }
    let client = Client::reach_by(&users.daemon, "", &own).await.unwrap();
    assert_eq!(told(&client), json!(true));
}

#[tokio::test]
async fn a_socket_ends_with_its_token() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, json!({})).await;
    // On a busy machine it is over before it was of use.
    let (short, mut client) = loop {
        let short = users.token("anna", "3s", &[]).await;
        if let Ok(client) = Client::reach_by(&users.daemon, "", &short).await {
            break (short, client);
        }
    };
    assert_eq!(client.closed().await, 4004);
    // Its last second is its own.
    eventually("nobody is let in by it", async || {
        !opens(&users, &short).await
    })
    .await;
}

#[tokio::test]
async fn what_is_taken_back_is_closed_at_once() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, json!({})).await;
    let one = users.token("anna", "1h", &["--jti", "one"]).await;
    let two = users.token("anna", "1h", &["--jti", "two"]).await;
    let mut first = Client::reach_by(&users.daemon, "", &one).await.unwrap();
    let mut second = Client::reach_by(&users.daemon, "", &two).await.unwrap();
    std::fs::write(&users.revoked, "jti one\n").unwrap();
    assert_eq!(first.closed().await, 4005);
    assert!(!opens(&users, &one).await);
    let pong = second.ask(json!({"type": "session:ping"})).await;
    assert_eq!(pong["type"], "session:ping-result");
    std::fs::write(&users.revoked, "sub anna\n").unwrap();
    assert_eq!(second.closed().await, 4005);
    eventually("nobody of that name is let in", async || {
        !opens(&users, &two).await
    })
    .await;
    assert!(opens(&users, &users.own_token("ben").await).await);
}

#[tokio::test]
async fn a_token_narrows_what_its_user_may_do() {
    let provider = Provider::start().await;
    let users = Users::start(
        &provider,
        json!({"chat": {"provider": "test", "trust_level": "autonomous"}}),
    )
    .await;
    let own = shown(&users.work.join("anna")).to_owned();
    let more = ["--root", own.as_str(), "--trust", "guided"];
    let token = users.token("anna", "1h", &more).await;
    // The daemon's own project is none of the folders.
    let mut client = Client::reach_by(&users.daemon, "", &token).await.unwrap();
    let ready = client.seen[0]["payload"].clone();
    assert_eq!(ready["trustLevel"], "guided", "{ready}");
    assert!(ready["project"].is_null(), "{ready}");
    for (frame, expected) in [
        (json!({"project": own}), None),
        (
            json!({"project": users.work.join("ben")}),
            Some("forbidden"),
        ),
        (
            json!({"project": users.work.join("anna/../ben")}),
            Some("forbidden"),
        ),
        (json!({"project": users.work}), Some("forbidden")),
        (json!({"project": "/etc"}), Some("forbidden")),
        (json!({"trustLevel": "supervised"}), None),
        (json!({"trustLevel": "autonomous"}), Some("forbidden")),
        (json!({"approvalPolicy": "allow_all"}), Some("forbidden")),
        (json!({"approvalPolicy": "deny_all"}), None),
    ] {
        let mut wanted = frame.clone();
        wanted["type"] = json!("session:configure");
        let answer = client.ask(wanted).await;
        assert_eq!(
            answer["payload"]["code"].as_str(),
            expected,
            "{frame}: {answer}"
        );
    }
    let send = json!({"type": "chat:send", "content": "go", "trustLevel": "autonomous"});
    assert_eq!(client.ask(send).await["payload"]["code"], "forbidden");
    // A token for less does not get onto a session of the same user that works elsewhere.
    let deep = users.work.join("anna/deep");
    std::fs::create_dir(&deep).unwrap();
    let narrow = users.token("anna", "1h", &["--root", shown(&deep)]).await;
    let query = format!("?session={}", client.session());
    let refused = Client::reach_by(&users.daemon, &query, &narrow).await;
    assert_eq!(refused.err(), Some(4002));
    let mut narrow = Client::reach_by(&users.daemon, "", &narrow).await.unwrap();
    let open = json!({"type": "session:open", "sessionId": client.session(), "lastSeq": 0});
    assert_eq!(narrow.ask(open).await["payload"]["code"], "forbidden");
    // Of a role that looks on there is no driving.
    let session = client.session();
    let observer = users.token("anna", "1h", &["--role", "observer"]).await;
    let query = format!("?session={session}&role=driver");
    assert_eq!(
        Client::reach_by(&users.daemon, &query, &observer)
            .await
            .err(),
        Some(0)
    );
    let query = format!("?session={session}&role=observer");
    let mut observer = Client::reach_by(&users.daemon, &query, &observer)
        .await
        .unwrap();
    let send = json!({"type": "chat:send", "content": "go"});
    assert_eq!(observer.ask(send).await["payload"]["code"], "forbidden");
}
