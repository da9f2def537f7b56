//! Several sockets on one session: who drives, who approves, who looks on.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

async fn join(daemon: &Daemon, session: &str, role: &str) -> Client {
    Client::connect(daemon, &format!("?session={session}&after=0&role={role}")).await
}

/// The numbered frames so far that answer nothing.
fn numbered(client: &Client) -> Vec<Value> {
    let is_one = |it: &&Value| it.get("seq").is_some() && it.get("replyTo").is_none();
    client.seen.iter().filter(is_one).cloned().collect()
}

#[tokio::test]
async fn all_see_the_same_numbered_events_and_an_approver_answers_for_all() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call("bash", &json!({"command": "touch made"})))
        .then(Turn::text("done"));
    let daemon = Daemon::start(&provider).await;
    let mut driver = Client::connect(&daemon, "?role=driver").await;
    let session = driver.session();
    let mut approver = join(&daemon, &session, "approver").await;
    let mut observer = join(&daemon, &session, "observer").await;
    let own = observer.until("session:roles").await;
    assert_eq!(
        own["payload"],
        json!({"driver": true, "approvers": 1, "observers": 1, "role": "observer"})
    );
    assert!(own.get("seq").is_none());
    driver.say("go").await;
    for client in [&mut driver, &mut approver, &mut observer] {
        client.until("chat:tool-confirm").await;
    }
    // Who looks on is answered, but may not decide.
    let approve = json!({"type": "chat:tool-approve", "toolId": "t1", "approved": true});
    let refused = observer.ask(approve.clone()).await;
    assert_eq!(refused["payload"]["code"], "forbidden", "{refused}");
    assert!(refused.get("seq").is_none());
    let refused = approver
        .ask(json!({"type": "chat:send", "content": "me too"}))
        .await;
    assert_eq!(refused["payload"]["code"], "forbidden", "{refused}");
    let accepted = approver.ask(approve.clone()).await;
    assert_eq!(accepted["payload"]["accepted"], true, "{accepted}");
    let late = driver.ask(approve).await;
    assert_eq!(late["payload"]["code"], "approval_not_found", "{late}");
    for client in [&mut driver, &mut approver, &mut observer] {
        client.until("chat:stream-end").await;
        client.check_order();
    }
    driver.check_numbers();
    assert!(daemon.project().join("made").exists());
    // Each has read up to the end of the exchange; what the driver asked for is its own.
    let end = |client: &Client| {
        let all = numbered(client);
        let at = all.iter().position(|it| it["type"] == "chat:stream-end");
        all[..=at.unwrap()].to_vec()
    };
    assert_eq!(end(&driver), end(&approver));
    assert_eq!(end(&driver), end(&observer));
    let named = |client: &Client| {
        let frames = client.seen.iter();
        frames
            .filter(|it| it.get("replyTo").is_some() && it.get("seq").is_some())
            .count()
    };
    assert_eq!((named(&driver), named(&observer)), (1, 0));
}

#[tokio::test]
async fn one_drives_at_a_time_and_another_one_takes_over() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut first = Client::connect(&daemon, "?role=driver").await;
    let session = first.session();
    let query = format!("?session={session}&role=driver");
    assert_eq!(Client::reach(&daemon, &query).await.err(), Some(4003));
    let mut second = join(&daemon, &session, "observer").await;
    let taken = second.ask(json!({"type": "session:take-over"})).await;
    assert_eq!(taken["payload"], json!({"role": "driver"}));
    let own = first
        .find(|it| it["type"] == "session:roles" && it["payload"]["role"] == "approver")
        .await;
    assert!(own.get("seq").is_none());
    provider.then(Turn::text("a"));
    second.say("go").await;
    for client in [&mut first, &mut second] {
        client.until("chat:stream-end").await;
    }
    let refused = first
        .ask(json!({"type": "chat:send", "content": "b"}))
        .await;
    assert_eq!(refused["payload"]["code"], "forbidden");
    // By the query, too; and a socket without a role throws the driver out, and nobody else.
    let mut third = Client::connect(&daemon, &format!("{query}&takeOver=1")).await;
    second
        .find(|it| it["type"] == "session:roles" && it["payload"]["role"] == "approver")
        .await;
    let mut plain = Client::connect(&daemon, &format!("?session={session}")).await;
    assert_eq!(third.closed().await, 4001);
    provider.then(Turn::text("c"));
    plain.say("go on").await;
    for client in [&mut first, &mut second, &mut plain] {
        client
            .find(|it| it["type"] == "chat:stream-end" && it["payload"]["messageId"] == "m2")
            .await;
    }
}

#[tokio::test]
async fn a_token_may_be_for_a_role_and_no_more() {
    let provider = Provider::start().await;
    let [approving, observing] = ["approve-0123456789abcdef", "observe-0123456789abcdef"];
    let server = json!({"approver_token": approving, "observer_token": observing});
    let daemon = Daemon::with(&provider, json!({"server": server})).await;
    let driver = daemon.connect().await;
    let session = driver.session();
    let of = |more: &str| format!("?session={session}{more}");
    // Without a role it is as much as the token allows.
    let mut observer = Client::reach_by(&daemon, &of(""), observing).await.unwrap();
    let own = observer.until("session:roles").await;
    assert_eq!(own["payload"]["role"], "observer");
    let refused = observer.ask(json!({"type": "session:take-over"})).await;
    assert_eq!(refused["payload"]["code"], "forbidden", "{refused}");
    for (query, token) in [
        (of("&role=driver"), approving),
        (of("&role=approver"), observing),
        (of("&role=boss"), approving),
        // A session of its own is one that it drives.
        (String::new(), observing),
    ] {
        let refused = Client::reach_by(&daemon, &query, token).await;
        assert_eq!(refused.err(), Some(0), "{query}");
    }
    let mut approver = Client::reach_by(&daemon, &of("&role=observer"), approving)
        .await
        .unwrap();
    let own = approver.until("session:roles").await;
    assert_eq!(own["payload"]["role"], "observer");
    let log = tokio::fs::read_to_string(daemon.project().join("../log")).await;
    let log = log.unwrap();
    assert!(!log.contains(observing) && !log.contains(approving));
}

#[tokio::test]
async fn who_sleeps_is_told_how_things_stand_and_costs_the_others_nothing() {
    let provider = Provider::start().await;
    let long = "x".repeat(200_000);
    let small = json!({"session": {"buffer_bytes": "64KiB"}});
    let daemon = Daemon::with(&provider, small).await;
    let mut driver = Client::connect(&daemon, "?role=driver").await;
    let session = driver.session();
    let mut sleeper = join(&daemon, &session, "observer").await;
    sleeper.until("session:roles").await;
    drop(sleeper);
    for _ in 0..3 {
        provider.then(Turn::text(&long));
        driver.say("more").await;
        driver.until("chat:stream-end").await;
    }
    // It comes back to where it was, which is long gone.
    let mut sleeper = Client::connect(
        &daemon,
        &format!("?session={session}&after=2&role=observer"),
    )
    .await;
    let gap = sleeper.until("session:error").await;
    assert_eq!(gap["payload"]["code"], "replay_gap");
    assert!(gap.get("seq").is_none());
    let history = sleeper.until("chat:history-result").await;
    assert!(history.get("seq").is_none());
    let resynced = sleeper.until("session:resynced").await;
    assert!(resynced.get("seq").is_none());
    let messages = history["payload"]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 6);
    provider.then(Turn::text("last"));
    driver.say("again").await;
    for client in [&mut driver, &mut sleeper] {
        client
            .find(|it| it["type"] == "chat:stream-end" && it["payload"]["messageId"] == "m4")
            .await;
    }
    assert_eq!(sleeper.all("chat:text-delta").len(), 1);
    driver.check_numbers();
    assert!(driver.all("session:error").is_empty());
    assert!(driver.all("chat:history-result").is_empty());
}

#[tokio::test]
async fn a_session_waits_for_who_may_answer_and_not_for_who_looks_on() {
    let provider = Provider::start().await;
    let (turn, pause) = Turn::paused(&[json!({"content": "a"})], &[], "stop");
    provider.then(turn);
    let soon = json!({"session": {"resume_grace": "1ms"}, "store": {"enabled": false}});
    let daemon = Daemon::with(&provider, soon).await;
    let mut driver = Client::connect(&daemon, "?role=driver").await;
    let session = driver.session();
    let mut approver = join(&daemon, &session, "approver").await;
    let mut observer = join(&daemon, &session, "observer").await;
    driver.say("go").await;
    driver.until("chat:text-delta").await;
    drop(driver);
    for client in [&mut approver, &mut observer] {
        client
            .find(|it| it["type"] == "session:roles" && it["payload"]["driver"] == false)
            .await;
    }
    pause.go_on();
    approver.until("chat:stream-end").await;
    drop(approver);
    // Nobody is left who could answer: it ends, and who looks on is told.
    assert_eq!(observer.closed().await, 4002);
    let other = tokio::sync::Mutex::new(daemon.connect().await);
    eventually("the session is gone", async || {
        let open = json!({"type": "session:open", "sessionId": session});
        let answer = other.lock().await.ask(open).await;
        answer["payload"]["code"] == "session_not_found"
    })
    .await;
}

#[tokio::test]
async fn a_client_that_comes_again_takes_the_place_of_its_own_socket() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let name = "client=a-name-that-nobody-guesses";
    let mut before = Client::connect(&daemon, &format!("?role=driver&{name}")).await;
    let session = before.session();
    let asked = before.ask(json!({"type": "session:ping"})).await;
    // Its line broke, and the daemon has not noticed.
    let query = format!("?session={session}&after=0&role=driver&{name}");
    let mut again = Client::connect(&daemon, &query).await;
    assert_eq!(before.closed().await, 4001);
    // It knows its own answer, and asks for nothing twice.
    let answer = again.until("session:ping-result").await;
    assert_eq!(answer["replyTo"], asked["replyTo"]);
    let other = format!("?session={session}&role=driver&client=another-name-of-theirs");
    assert_eq!(Client::reach(&daemon, &other).await.err(), Some(4003));
    // The same for one that looks on, which is there once.
    let observing = format!("?session={session}&role=observer&client=who-looks-on-has-one");
    let mut observer = Client::connect(&daemon, &observing).await;
    let mut observer_again = Client::connect(&daemon, &observing).await;
    assert_eq!(observer.closed().await, 4001);
    let own = observer_again.until("session:roles").await;
    assert_eq!(own["payload"]["observers"], 1, "{own}");
    for name in ["short".to_owned(), "x".repeat(129)] {
        let query = format!("?session={session}&role=driver&client={name}");
        assert_eq!(Client::reach(&daemon, &query).await.err(), Some(0));
    }
}

#[tokio::test]
async fn who_looks_on_comes_and_goes_without_a_number() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut driver = Client::connect(&daemon, "?role=driver").await;
    let session = driver.session();
    let counts = |count: u64| {
        move |it: &Value| it["type"] == "session:roles" && it["payload"]["observers"] == count
    };
    let number = driver.ask(json!({"type": "session:ping"})).await["seq"].clone();
    let mut observer = join(&daemon, &session, "observer").await;
    let told = driver.find(counts(1)).await;
    assert!(told.get("seq").is_none(), "{told}");
    drop(observer.ask(json!({"type": "nothing:like-this"})).await);
    drop(observer);
    driver.find(counts(0)).await;
    let next = driver.ask(json!({"type": "session:ping"})).await["seq"].clone();
    assert_eq!(next.as_u64(), number.as_u64().map(|seq| seq + 1));
}

#[tokio::test]
async fn who_looks_on_begins_no_session_anew() {
    let provider = Provider::start().await;
    let soon = json!({"session": {"resume_grace": "1ms"}});
    let daemon = Daemon::with(&provider, soon).await;
    let mut driver = daemon.connect().await;
    let session = driver.session();
    provider.then(Turn::text("a"));
    driver.say("go").await;
    driver.until("chat:stream-end").await;
    let mut other = Client::connect(&daemon, &format!("?session={session}&role=observer")).await;
    drop(driver);
    assert_eq!(other.closed().await, 4002);
    for role in ["observer", "approver"] {
        let query = format!("?session={session}&role={role}");
        assert_eq!(Client::reach(&daemon, &query).await.err(), Some(4002));
    }
    // It is kept, and who drives begins it.
    let mut driver = Client::connect(&daemon, &format!("?session={session}&role=driver")).await;
    let history = json!({"type": "chat:history", "conversationId": "default"});
    let history = driver.ask(history).await;
    assert_eq!(history["payload"]["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn who_may_not_drive_keeps_nobody_out_who_may() {
    let provider = Provider::start().await;
    let observing = "observe-0123456789abcdef";
    let server = json!({"observer_token": observing, "max_connections": 200});
    let daemon = Daemon::with(&provider, json!({"server": server})).await;
    let driver = Client::connect(&daemon, "?role=driver").await;
    let session = driver.session();
    let of = |role: &str| format!("?session={session}&role={role}");
    let mut observers = Vec::new();
    for _ in 0..64 {
        observers.push(
            Client::reach_by(&daemon, &of("observer"), observing)
                .await
                .unwrap(),
        );
    }
    let further = Client::reach_by(&daemon, &of("observer"), observing).await;
    assert_eq!(further.err(), Some(1013));
    let approver = Client::connect(&daemon, &of("approver")).await;
    let taking = format!("{}&takeOver=1", of("driver"));
    let driver = Client::connect(&daemon, &taking).await;
    drop((approver, driver, observers));

    // Of all places of the daemon, half; and by no name the place of somebody with a better token.
    let server = json!({"observer_token": observing, "max_connections": 4});
    let daemon = Daemon::with(&provider, json!({"server": server})).await;
    let name = "client=a-name-that-got-out";
    let mut driver = Client::connect(&daemon, &format!("?role=driver&{name}")).await;
    let query = format!("?session={}&{name}", driver.session());
    let one = Client::reach_by(&daemon, &query, observing).await;
    let two = Client::reach_by(&daemon, &query, observing).await;
    let three = Client::reach_by(&daemon, &query, observing).await;
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(three.err(), Some(1013));
    let another = daemon.connect().await;
    driver.ask(json!({"type": "session:ping"})).await;
    drop((one, two, driver, another));
}
