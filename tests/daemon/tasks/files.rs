//! Files that may speak for the user, as tasks meet them.

use serde_json::{Value, json};

use super::{end, results, script};
use crate::support::{Client, Daemon, Provider};

/// A client that answers whether files may speak for the user, and does not follow tasks.
async fn asked(daemon: &Daemon) -> Client {
    let mut client = daemon.connect().await;
    let configure = json!({"type": "session:configure", "trustQuestions": true});
    client.ask(configure).await;
    client
}

fn answer(confirm: &Value, approved: bool) -> Value {
    let id = &confirm["payload"]["requestId"];
    json!({"type": "chat:trust-approve", "requestId": id, "approved": approved})
}

/// How many requests to the provider have this in them.
fn told(provider: &Provider, what: &str) -> usize {
    let requests = provider.requests();
    let has = |it: &&Value| it["messages"].to_string().contains(what);
    requests.iter().filter(has).count()
}

#[tokio::test]
async fn what_a_task_meets_is_asked_of_who_may_answer() {
    let provider = Provider::start().await;
    script(&provider, &[&["read:sub/a.txt;say:read"]]);
    let daemon = Daemon::start(&provider).await;
    daemon.file("sub/AGENTS.md", "Below: SPACES.\n");
    daemon.file("sub/a.txt", "a\n");
    let mut client = asked(&daemon).await;
    client.say("go").await;
    let confirm = client.until("chat:trust-confirm").await;
    assert!(confirm["taskId"].is_string(), "{confirm}");
    assert_eq!(confirm["payload"]["files"][0]["path"], "sub/AGENTS.md");
    // The exchange around it says what it waits for.
    let state = client.ask(json!({"type": "session:state"})).await["payload"].clone();
    assert_eq!(state["conversations"][0]["state"], "awaiting-trust");
    assert_eq!(state["trusts"][0], confirm["payload"]);
    let taken = client.ask(answer(&confirm, true)).await;
    assert_eq!(taken["payload"]["accepted"], true, "{taken}");
    end(&mut client).await;
    assert_eq!(results(&client)[0]["result"], "read");
    let resolved = client.all("chat:trust-resolved");
    assert_eq!(
        (resolved.len(), &resolved[0]["outcome"]),
        (1, &json!("trusted"))
    );
    assert_eq!(told(&provider, "SPACES"), 1);
    client.check_numbers();
}

#[tokio::test]
async fn what_several_meet_is_asked_once_and_said_once() {
    let provider = Provider::start().await;
    let prompts = [
        "read:sub/a.txt;say:1",
        "read:sub/a.txt;say:2",
        "read:sub/a.txt;say:3",
    ];
    script(&provider, &[&prompts]);
    // Answers are kept nowhere.
    let daemon = Daemon::with(&provider, json!({"approval": {"remember": "once"}})).await;
    daemon.file("AGENTS.md", "Above: TABS.\n");
    daemon.file("sub/AGENTS.md", "Below: SPACES.\n");
    daemon.file("sub/a.txt", "a\n");
    let mut client = asked(&daemon).await;
    client.say("go").await;
    for path in ["AGENTS.md", "sub/AGENTS.md"] {
        let confirm = client.until("chat:trust-confirm").await;
        let files = confirm["payload"]["files"].as_array().unwrap();
        assert_eq!((files.len(), &files[0]["path"]), (1, &json!(path)));
        client.send(answer(&confirm, true)).await;
    }
    end(&mut client).await;
    assert_eq!(results(&client).len(), 3);
    assert_eq!(client.all("chat:trust-confirm").len(), 2);
    // Two requests of the exchange, and two of each task, of which one came before its folder was known.
    assert_eq!((told(&provider, "TABS"), told(&provider, "SPACES")), (8, 3));
    client.check_numbers();

    let mut other = daemon.connect().await;
    other.say("go").await;
    end(&mut other).await;
    let notices = other.all("session:notice");
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert_eq!(told(&provider, "TABS"), 8);
}
