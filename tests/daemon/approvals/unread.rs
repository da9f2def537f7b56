//! Answers that cannot be read: there may be a denial among them.

use serde_json::json;

use super::{answer, approve, bash, begin, is_asked, revoke, rules, unasked};
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

#[tokio::test]
async fn while_what_was_denied_cannot_be_read_everything_is_asked() {
    let provider = Provider::start().await;
    let more = json!({
        "approval": {"remember": "always"},
        "chat": {"trust_level": "autonomous"},
    });
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let supervised = json!({"type": "session:configure", "trustLevel": "supervised"});
    client.ask(supervised).await;
    begin(&mut client, &provider, "default", bash("touch b")).await;
    answer(
        &mut client,
        json!({"approved": false, "remember": "always"}),
    )
    .await;
    client.until("chat:stream-end").await;
    let daemon = daemon.after_end().await;
    // The one table that cannot be read.
    let store = rusqlite::Connection::open(daemon.store()).unwrap();
    store
        .busy_timeout(std::time::Duration::from_mins(1))
        .unwrap();
    let rename = |from: &str, to: &str| {
        let rename = format!("ALTER TABLE {from} RENAME TO {to}");
        store.execute_batch(&rename).unwrap();
    };
    rename("rule", "hidden");
    let mut client = daemon.connect().await;
    let notice = client.until("session:notice").await;
    assert_eq!(notice["payload"]["code"], "answers_unread", "{notice}");
    for turn in [
        bash("touch b"),
        bash("echo fine"),
        Turn::call("file_list", &json!({"path": "."})),
    ] {
        begin(&mut client, &provider, "default", turn).await;
        let confirm = client.until("chat:tool-confirm").await;
        let reason = confirm["payload"]["reason"].as_str().unwrap();
        assert!(reason.contains("cannot be read"), "{confirm}");
        let denied = json!({"approved": false});
        let id = &confirm["payload"]["toolId"];
        client.ask(approve(id, &denied)).await;
        client.until("chat:stream-end").await;
    }
    rename("hidden", "rule");
    loop {
        let notice = client.until("session:notice").await;
        if notice["payload"]["code"] == "answers_read" {
            break;
        }
    }
    unasked(&mut client, &provider, "default", bash("echo fine")).await;
    let result = unasked(&mut client, &provider, "default", bash("touch b")).await;
    assert!(
        result["result"]
            .as_str()
            .unwrap()
            .contains("denied this before"),
        "{result}"
    );
    assert!(!daemon.project().join("b").exists());
}

#[tokio::test]
async fn a_denial_that_is_damaged_has_everything_asked_until_it_is_revoked() {
    let provider = Provider::start().await;
    let more = json!({
        "approval": {"remember": "always"},
        "chat": {"trust_level": "autonomous"},
    });
    for scope in ["session", "always"] {
        let daemon = Daemon::with(&provider, more.clone()).await;
        let mut client = daemon.connect().await;
        let supervised = json!({"type": "session:configure", "trustLevel": "supervised"});
        client.ask(supervised).await;
        begin(&mut client, &provider, "default", bash("touch b")).await;
        answer(&mut client, json!({"approved": false, "remember": scope})).await;
        client.until("chat:stream-end").await;
        let session = client.session();
        let daemon = daemon.after_end().await;
        let store = rusqlite::Connection::open(daemon.store()).unwrap();
        let damaged = store.execute("UPDATE rule SET rule = substr(rule, 5)", []);
        assert_eq!(damaged, Ok(1));

        let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
        let autonomous = json!({"type": "session:configure", "trustLevel": "autonomous"});
        client.ask(autonomous).await;
        is_asked(&mut client, &provider, "default", bash("echo fine")).await;
        let notices = client.all("session:notice");
        let told = notices.iter().any(|it| it["code"] == "answers_unread");
        assert!(told, "{notices:?}");
        let listed = rules(&mut client).await;
        let [rule] = &listed[..] else {
            panic!("{listed:?}");
        };
        assert_eq!(rule["approved"], false, "{rule}");
        assert_eq!(
            rule["matches"], "something that this version cannot read",
            "{rule}"
        );
        revoke(&mut client, json!({"ruleId": rule["ruleId"]})).await;
        unasked(&mut client, &provider, "default", bash("echo fine")).await;
    }
}
