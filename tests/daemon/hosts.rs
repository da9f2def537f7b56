//! Hosts that commands are asked for one by one (`tools.bash.hosts`).

use serde_json::{Value, json};

use super::approval::{approve, asked, bash};
use super::audit;
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

pub(super) fn settings(hosts: &[&str]) -> Value {
    json!({"tools": {"bash": {"hosts": hosts}}, "chat": {"trust_level": "autonomous"}})
}

fn connect(host: &str, port: u16) -> Turn {
    bash(&format!("cat < /dev/tcp/{host}/{port}"))
}

#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
pub(super) fn is_full(client: &Client) -> bool {
    let is_full = client.seen[0]["payload"]["sandbox"]["mode"] == "full";
    if !is_full {
        println!("*** SKIPPED: the sandbox is not full here ***");
    }
    is_full
}

fn results(client: &Client) -> Vec<String> {
    let results = client.all("chat:tool-result");
    results.iter().map(|it| it["result"].to_string()).collect()
}

/// No name of these exists: what may be connected to fails one step later.
#[tokio::test]
async fn each_host_is_asked_for_once_in_a_conversation() {
    let turns = vec![
        connect("one.invalid", 443),
        connect("one.invalid", 80),
        connect("two.invalid", 443),
        connect("two.invalid", 443),
        connect("listed.invalid", 443),
        connect("one.invalid", 9),
        connect("10.1.2.3", 443),
        Turn::text("done"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    let mut settings = settings(&["listed.invalid"]);
    settings["audit"] = json!({ "path": log });
    let (_daemon, mut client, _provider) = asked(turns, settings).await;
    if !is_full(&client) {
        return;
    }
    for (host, approved) in [("one.invalid", true), ("two.invalid", false)] {
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        assert_eq!(confirm["host"], host, "{confirm}");
        let reason = confirm["reason"].as_str().unwrap();
        assert!(
            reason.contains(host) && reason.contains("port 443"),
            "{reason}"
        );
        let edited = json!({"host": host, "input": {"command": "echo other"}});
        let refused = client.ask(approve(&confirm["toolId"], &edited)).await;
        assert_eq!(refused["payload"]["code"], "invalid_payload", "{refused}");
        let verdict = json!({"host": host, "approved": approved, "reason": "not that one"});
        let answer = client.ask(approve(&confirm["toolId"], &verdict)).await;
        assert_eq!(answer["payload"]["accepted"], true, "{answer}");
    }
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-confirm").len(), 2);
    assert_eq!(client.all("chat:tool-resolved").len(), 2);
    let results = results(&client);
    for (at, expected) in [
        (0, "No route to host"),
        (1, "No route to host"),
        (
            2,
            "not connected to two.invalid (the user denied it: not that one)",
        ),
        (
            3,
            "not connected to two.invalid (the user denied it: not that one)",
        ),
        (4, "No route to host"),
        (0, "not connected to one.invalid (failed to lookup"),
        (4, "not connected to listed.invalid (failed to lookup"),
        (5, "Permission denied"),
        (
            6,
            "not connected to 10.1.2.3 (an address of a private network",
        ),
    ] {
        assert!(results[at].contains(expected), "{at}: {}", results[at]);
    }
    // Whoever watches reads the same, on a line of its own.
    let told = client.all("chat:tool-delta");
    let told = |id: &str| {
        let of_call = told.iter().filter(|it| it["toolId"] == id);
        let texts: Vec<_> = of_call.filter_map(|it| it["chunk"].as_str()).collect();
        texts.concat()
    };
    let denied = "[not connected to two.invalid (the user denied it: not that one)]";
    assert!(
        told("t3").ends_with(&format!("\n{denied}\n")),
        "{}",
        told("t3")
    );
    assert!(told("t6").contains("one.invalid port 9: not on the list of ports"));
    assert!(!told("t5").contains("denied"), "{}", told("t5"));
    let lines = audit::lines(&log, 7).await;
    let decided = |host: &str, decision: &str, by: &str| {
        let mut decided = json!({"host": host, "decision": decision, "decidedBy": by});
        if by == "remembered" {
            decided["scope"] = json!("conversation");
        }
        json!([decided])
    };
    for (at, expected) in [
        (0, decided("one.invalid", "run", "user")),
        (1, decided("one.invalid", "run", "remembered")),
        (2, decided("two.invalid", "refused", "user")),
        (3, decided("two.invalid", "refused", "remembered")),
        (4, Value::Null),
    ] {
        assert_eq!(lines[at]["hosts"], expected, "{at}: {}", lines[at]);
    }
}

#[tokio::test]
async fn supervised_asks_for_a_host_in_each_call_whatever_was_said() {
    let twice = "cat < /dev/tcp/one.invalid/443; cat < /dev/tcp/one.invalid/443";
    let turns = vec![
        connect("one.invalid", 443),
        Turn::text("1"),
        bash(twice),
        Turn::text("2"),
        bash("cat < /dev/tcp/one.invalid/443"),
        Turn::text("3"),
    ];
    let (_daemon, mut client, _provider) = asked(turns, settings(&["listed.invalid"])).await;
    if !is_full(&client) {
        return;
    }
    let yes = json!({"host": "one.invalid", "remember": "session"});
    client.until("chat:tool-confirm").await;
    client.ask(approve(&json!("t1"), &yes)).await;
    client.until("chat:stream-end").await;
    for call in ["t2", "t3"] {
        let again = json!({"type": "chat:send", "content": "x", "trustLevel": "supervised"});
        client.send(again).await;
        for more in [json!({}), yes.clone()] {
            client.until("chat:tool-confirm").await;
            client.ask(approve(&json!(call), &more)).await;
        }
        client.until("chat:stream-end").await;
    }
    let remembered: Vec<Value> = client
        .all("chat:tool-resolved")
        .iter()
        .map(|it| it["remember"].clone())
        .collect();
    let nothing = Value::Null;
    assert_eq!(
        remembered,
        [&json!("session"), &nothing, &nothing, &nothing, &nothing].map(Clone::clone)
    );
}

#[tokio::test]
async fn an_open_question_for_a_host_ends_with_the_call() {
    let turns = vec![
        bash("cat < /dev/tcp/one.invalid/443 & cat < /dev/tcp/two.invalid/443 & wait"),
        Turn::text("done"),
    ];
    let (_daemon, mut client, _provider) = asked(turns, settings(&["listed.invalid"])).await;
    if !is_full(&client) {
        return;
    }
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    client.ask(json!({"type": "chat:cancel"})).await;
    let resolved = client.until("chat:tool-resolved").await["payload"].clone();
    assert_eq!(resolved["toolId"], confirm["toolId"]);
    assert_eq!(resolved["outcome"], "cancelled");
    client.until("chat:stream-end").await;
    let late = client.ask(approve(&confirm["toolId"], &json!({}))).await;
    assert_eq!(late["payload"]["code"], "approval_not_found");
    assert_eq!(client.all("chat:tool-confirm").len(), 1);
}

#[tokio::test]
async fn nobody_is_asked_where_nobody_is_there() {
    let mut settings = settings(&["listed.invalid"]);
    settings["approval"] = json!({"unattended": "deny"});
    let turns = vec![connect("one.invalid", 443), Turn::text("done")];
    let (_daemon, mut client, _provider) = asked(turns, settings).await;
    if !is_full(&client) {
        return;
    }
    client.until("chat:stream-end").await;
    assert!(client.all("chat:tool-confirm").is_empty());
    let results = results(&client);
    let expected = "not connected to one.invalid (nobody is there to be asked)";
    assert!(results[0].contains(expected), "{}", results[0]);
}

#[tokio::test]
async fn what_nobody_answers_is_asked_once_in_a_call() {
    let mut settings = settings(&["listed.invalid"]);
    settings["approval"] = json!({"timeout": "1s"});
    let line = "for i in 1 2 3; do cat < /dev/tcp/one.invalid/443; done";
    let turns = vec![bash(line), Turn::text("done")];
    let (_daemon, mut client, _provider) = asked(turns, settings).await;
    if !is_full(&client) {
        return;
    }
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-confirm").len(), 1);
    assert_eq!(client.all("chat:tool-resolved")[0]["outcome"], "expired");
    let results = results(&client);
    let expected = "not connected to one.invalid (nobody answered in time)";
    assert!(results[0].contains(expected), "{}", results[0]);
}

/// All questions of a call have its id.
#[tokio::test]
async fn an_answer_that_comes_twice_is_none_to_the_question_for_a_host() {
    let mut settings = settings(&["listed.invalid"]);
    settings["chat"]["trust_level"] = json!("guided");
    let turns = vec![connect("one.invalid", 443), Turn::text("done")];
    let (_daemon, mut client, _provider) = asked(turns, settings).await;
    if !is_full(&client) {
        return;
    }
    let own = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(own["host"], Value::Null, "{own}");
    let yes = approve(&own["toolId"], &json!({}));
    let of_host = |host: &str| approve(&own["toolId"], &json!({ "host": host }));
    // It does not run yet, so no host is asked for.
    let early = client.ask(of_host("one.invalid")).await;
    assert_eq!(early["payload"]["code"], "approval_not_found", "{early}");
    assert_eq!(client.ask(yes.clone()).await["payload"]["accepted"], true);
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(confirm["host"], "one.invalid", "{confirm}");
    assert_eq!(confirm["toolId"], own["toolId"]);
    for wrong in [
        yes,
        of_host("two.invalid"),
        of_host("ONE.invalid"),
        of_host(""),
    ] {
        let answer = client.ask(wrong).await;
        assert_eq!(answer["payload"]["code"], "approval_not_found", "{answer}");
    }
    let right = client.ask(of_host("one.invalid")).await;
    assert_eq!(right["payload"]["accepted"], true, "{right}");
    client.until("chat:stream-end").await;
    let resolved = client.all("chat:tool-resolved");
    let hosts: Vec<&Value> = resolved.iter().map(|it| &it["host"]).collect();
    assert_eq!(hosts, [&Value::Null, &json!("one.invalid")]);
}

#[tokio::test]
async fn an_answer_that_comes_after_its_question_expired_is_none_to_the_next() {
    let mut settings = settings(&["listed.invalid"]);
    settings["approval"] = json!({"timeout": "4s"});
    let line = "cat < /dev/tcp/good.invalid/443 & sleep 0.5; cat < /dev/tcp/evil.invalid/443; wait";
    let turns = vec![bash(line), Turn::text("done")];
    let (_daemon, mut client, _provider) = asked(turns, settings).await;
    if !is_full(&client) {
        return;
    }
    let good = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(good["host"], "good.invalid", "{good}");
    let evil = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(evil["host"], "evil.invalid", "{evil}");
    assert_eq!(client.all("chat:tool-resolved")[0]["host"], "good.invalid");
    let late = json!({"host": "good.invalid", "remember": "conversation"});
    let late = client.ask(approve(&good["toolId"], &late)).await;
    assert_eq!(late["payload"]["code"], "approval_not_found", "{late}");
    let extend = |host: Option<&str>| {
        let mut frame = json!({"type": "chat:tool-extend", "toolId": evil["toolId"]});
        if let Some(host) = host {
            frame["host"] = json!(host);
        }
        frame
    };
    for wrong in [extend(Some("good.invalid")), extend(None)] {
        let answer = client.ask(wrong).await;
        assert_eq!(answer["payload"]["code"], "approval_not_found", "{answer}");
    }
    let extended = client.ask(extend(Some("evil.invalid"))).await;
    assert_eq!(extended["type"], "chat:tool-extend-result", "{extended}");
    assert_eq!(extended["payload"]["host"], "evil.invalid", "{extended}");
    let no = json!({"host": "evil.invalid", "approved": false});
    let no = client.ask(approve(&evil["toolId"], &no)).await;
    assert_eq!(no["payload"]["accepted"], true, "{no}");
    client.until("chat:stream-end").await;
    let results = results(&client);
    for expected in [
        "good.invalid (nobody answered in time)",
        "evil.invalid (the user denied it",
    ] {
        assert!(results[0].contains(expected), "{}", results[0]);
    }
}

#[tokio::test]
async fn in_the_background_nobody_is_asked_for_a_host_but_for_the_whole_network() {
    let line = "cat < /dev/tcp/one.invalid/443";
    let start = |network: bool| {
        let input = json!({"command": line, "background": true, "network": network});
        Turn::call("bash", &input)
    };
    let turns = vec![start(false), start(true), Turn::text("done")];
    let (_daemon, mut client, _provider) = asked(turns, settings(&["listed.invalid"])).await;
    if !is_full(&client) {
        return;
    }
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(
        (&confirm["toolId"], &confirm["host"]),
        (&json!("t2"), &Value::Null)
    );
    let answer = client.ask(approve(&confirm["toolId"], &json!({}))).await;
    assert_eq!(answer["payload"]["accepted"], true, "{answer}");
    client.until("chat:stream-end").await;
    let results = results(&client);
    assert!(
        results[0].contains("not connected to one.invalid: not on the list of hosts")
            && results[0].contains("start it with `network`"),
        "{}",
        results[0]
    );
    assert!(results[1].contains("No route to host"), "{}", results[1]);
}

#[tokio::test]
async fn in_the_background_a_host_is_reached_that_was_allowed_in_the_conversation() {
    let in_background = |host: &str| {
        let line = format!("cat < /dev/tcp/{host}/443");
        Turn::call("bash", &json!({"command": line, "background": true}))
    };
    let turns = vec![
        connect("one.invalid", 443),
        connect("two.invalid", 443),
        in_background("one.invalid"),
        in_background("two.invalid"),
        in_background("10.1.2.3"),
        Turn::text("done"),
    ];
    let (_daemon, mut client, _provider) = asked(turns, settings(&["listed.invalid"])).await;
    if !is_full(&client) {
        return;
    }
    for (host, approved) in [("one.invalid", true), ("two.invalid", false)] {
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        assert_eq!(confirm["host"], host, "{confirm}");
        let verdict = json!({"host": host, "approved": approved});
        client.ask(approve(&confirm["toolId"], &verdict)).await;
    }
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-confirm").len(), 2);
    let results = results(&client);
    let refused = "not on the list of hosts";
    assert!(results[2].contains("No route to host"), "{}", results[2]);
    for result in &results[3..5] {
        assert!(result.contains(refused), "{result}");
    }
}

#[tokio::test]
async fn a_port_that_is_not_listed_is_named_in_the_result() {
    let lines = "for i in 1 2; do cat < /dev/tcp/one.invalid/9; done; cat < /dev/tcp/1.2.3.4/8080";
    let background = json!({"command": lines, "background": true});
    for mut more in [
        settings(&["listed.invalid"]),
        json!({"tools": {"bash": {"network": "on"}}}),
    ] {
        more["chat"]["trust_level"] = json!("autonomous");
        let turns = vec![
            bash(lines),
            Turn::call("bash", &background),
            Turn::text("done"),
        ];
        let (_daemon, mut client, _provider) = asked(turns, more).await;
        if !is_full(&client) {
            return;
        }
        client.until("chat:stream-end").await;
        assert!(client.all("chat:tool-confirm").is_empty());
        let note = "[not connected to one.invalid port 9, 1.2.3.4 port 8080: not on the list of ports (tools.bash.ports)]";
        for result in results(&client) {
            assert_eq!(result.matches(note).count(), 1, "{result}");
        }
    }
}

#[tokio::test]
async fn in_the_background_it_is_said_once_that_there_is_no_such_host() {
    let line = "cat < /dev/tcp/listed.invalid/443; cat < /dev/tcp/one.invalid/443; touch tried; exec sleep 600";
    let look = || Turn::call("bash_output", &json!({"id": "b1"}));
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, settings(&["listed.invalid"])).await;
    let mut client = daemon.connect().await;
    if !is_full(&client) {
        return;
    }
    let start = json!({"command": line, "background": true});
    provider
        .then(Turn::call("bash", &start))
        .then(Turn::text("started"));
    client.say("go").await;
    client.until("chat:stream-end").await;
    eventually("its last command", async || {
        daemon.project().join("tried").exists()
    })
    .await;
    provider.then(look()).then(look()).then(Turn::text("seen"));
    client.say("look").await;
    client.until("chat:stream-end").await;
    let said = results(&client).concat();
    for once in [
        "not connected to listed.invalid (failed to lookup",
        "not connected to one.invalid: not on the list of hosts",
    ] {
        assert_eq!(said.matches(once).count(), 1, "{once}: {said}");
    }
}
