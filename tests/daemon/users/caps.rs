//! What a token narrows holds wherever it could be got around: by a word in what runs, and on a session of before.

use super::*;
use crate::support::eventually;

/// Asks the model to write a file, which a level below `autonomous` asks the user about.
fn write_plan() -> String {
    let call = json!({"tool": "file_write", "input": {"path": "plan.txt", "content": "other"}});
    format!("call: {call}")
}

async fn autonomous(provider: &Provider) -> Users {
    let more = json!({"chat": {"provider": "test", "trust_level": "autonomous"}});
    Users::start(provider, more).await
}

/// Comes to a session with a token of anna's for her folder, and for no more than `more` says.
async fn come(users: &Users, session: &str, more: &[&str]) -> Client {
    let folder = users.work.join("anna");
    let mut all = vec!["--root", shown(&folder)];
    all.extend(more);
    let token = users.token("anna", "1h", &all).await;
    let query = format!("?session={session}");
    Client::reach_by(&users.daemon, &query, &token)
        .await
        .unwrap()
}

#[tokio::test]
async fn who_may_have_less_done_narrows_what_it_has_a_word_in() {
    for by_edit in [false, true] {
        // A token for as much changes nothing, and shows that the call would run.
        for (more, is_asked) in [(&["--trust", "guided"][..], true), (&[], false)] {
            let provider = Provider::start().await;
            let users = autonomous(&provider).await;
            let mut anna = users.connect("anna").await;
            let (turn, pause) = Turn::paused(&[json!({"content": "wait"})], &[], "stop");
            provider.then(turn);
            anna.say("begin").await;
            anna.until("chat:text-delta").await;
            let later = json!({"type": "chat:send", "content": "later"});
            let later = anna.ask(later).await["payload"]["messageId"].clone();
            let mut second = come(&users, &anna.session(), more).await;
            let frame = match by_edit {
                true => json!({
                    "type": "chat:queue", "action": "edit", "messageId": later, "content": write_plan(),
                }),
                false => json!({"type": "chat:send", "content": write_plan(), "whenBusy": "steer"}),
            };
            let taken = second.ask(frame).await;
            assert!(taken["payload"]["code"].is_null(), "{taken}");
            pause.go_on();
            let came = second
                .find(|it| it["type"] == "chat:tool-confirm" || it["type"] == "chat:tool-result")
                .await;
            let asked = came["type"] == "chat:tool-confirm";
            assert_eq!(asked, is_asked, "{more:?} {by_edit}: {came}");
            let plan = std::fs::read_to_string(users.work.join("anna/plan.txt")).unwrap();
            assert_eq!(plan == "other", !is_asked, "{more:?} {by_edit}");
        }
    }
}

#[tokio::test]
async fn what_waited_over_a_restart_does_no_more_than_its_sender_may() {
    for (more, is_asked) in [(&["--trust", "guided"][..], true), (&[], false)] {
        let provider = Provider::start().await;
        let mut users = autonomous(&provider).await;
        let mut anna = users.connect("anna").await;
        let (turn, _pause) = Turn::paused(&[json!({"content": "wait"})], &[], "stop");
        provider.then(turn);
        anna.say("begin").await;
        anna.until("chat:text-delta").await;
        let session = anna.session();
        let mut second = come(&users, &session, more).await;
        let send = json!({"type": "chat:send", "content": write_plan()});
        let queued = second.ask(send).await;
        assert_eq!(queued["payload"]["state"], "queued", "{queued}");
        users.daemon = users.daemon.after_kill().await;
        // Who comes back may have all done.
        let mut again = come(&users, &session, &[]).await;
        assert_eq!(again.session(), session);
        again.say("go on").await;
        let came = again
            .find(|it| it["type"] == "chat:tool-confirm" || it["type"] == "chat:tool-result")
            .await;
        let asked = came["type"] == "chat:tool-confirm";
        assert_eq!(asked, is_asked, "{more:?}: {came}");
    }
}

#[tokio::test]
async fn a_session_of_before_is_not_opened_by_a_token_for_other_folders() {
    let provider = Provider::start().await;
    let soon = json!({"session": {"resume_grace": "1ms"}});
    let users = Users::start(&provider, soon).await;
    let mut anna = users.connect("anna").await;
    anna.say("remember this").await;
    anna.until("chat:stream-end").await;
    let session = anna.session();
    drop(anna);
    let mut other = users.connect("anna").await;
    eventually("the session has ended", async || {
        let listed = other.ask(json!({"type": "session:list"})).await;
        let sessions = listed["payload"]["sessions"].as_array().unwrap().clone();
        let its = sessions.iter().find(|it| it["sessionId"] == session);
        its.is_some_and(|it| it["live"] == false)
    })
    .await;
    let deep = users.work.join("anna/deep");
    std::fs::create_dir(&deep).unwrap();
    let narrow = users.token("anna", "1h", &["--root", shown(&deep)]).await;
    let query = format!("?session={session}");
    let mut narrow = Client::reach_by(&users.daemon, &query, &narrow)
        .await
        .unwrap();
    assert_ne!(narrow.session(), session);
    let refused = narrow.until("session:error").await;
    assert_eq!(refused["payload"]["code"], "forbidden", "{refused}");
    let open = json!({"type": "session:open", "sessionId": session, "lastSeq": 0});
    let refused = narrow.ask(open).await;
    assert_eq!(refused["payload"]["code"], "forbidden", "{refused}");
    // One for its folder opens it.
    let opened = come(&users, &session, &[]).await;
    assert_eq!(opened.session(), session);
}

#[tokio::test]
async fn what_a_server_said_at_its_end_is_for_operators() {
    let provider = Provider::start().await;
    let line = "echo words of the server >&2; exit 7";
    let server = json!({"command": "/bin/sh", "args": ["-c", line]});
    let users = Users::start(&provider, json!({"mcpServers": {"broken": server}})).await;
    let token = users.token("olga", "1h", &["--role", "operator"]).await;
    let mut olga = Client::reach_by(&users.daemon, "", &token).await.unwrap();
    let row = async |client: &mut Client| {
        let listed = client.ask(json!({"type": "mcp:list"})).await;
        listed["payload"]["servers"][0].clone()
    };
    eventually("the operator is told why", async || {
        let row = row(&mut olga).await;
        let error = row["error"].as_str().unwrap_or_default();
        error.contains("words of the server")
    })
    .await;
    let mut ben = users.connect("ben").await;
    let row = row(&mut ben).await;
    assert_eq!(row["name"], "broken");
    assert!(row["error"].is_string(), "{row}");
    for frame in &ben.seen {
        assert!(!frame.to_string().contains("words of"), "{frame}");
    }
}
