//! Two users, of whom one tries everything to get at what the other one has: a table of attempts, of which none gets through.

use super::*;
use crate::kept::database::database;

/// An id as sessions have it, which is none's.
const MADE_UP: &str = "0123456789abcdef0123456789abcdef";

/// What anna has, by which it would be seen that somebody got at it.
struct Secrets {
    session: String,
    rule: String,
    exchange: String,
}

/// Words of anna's, of which none may ever come to ben.
const WORDS: [&str; 4] = ["a needle", "Anna's plan", "secret-label", "only for anna"];

/// Has anna leave something of all that is kept.
async fn left_by(anna: &mut Client) -> Secrets {
    let input = json!({"path": "plan.txt", "content": "only for anna, again"});
    let result = run(anna, "file_write", &input).await;
    assert_eq!(result["status"], "success", "{result}");
    let rename = json!({"type": "session:rename", "title": "Anna's plan"});
    anna.ask(rename).await;
    let label = json!({"type": "session:label", "labels": ["secret-label"]});
    anna.ask(label).await;
    let rules = anna.ask(json!({"type": "approval:list"})).await;
    let rule = rules["payload"]["rules"][0]["ruleId"].as_str();
    let end = anna.all("chat:stream-end").pop().unwrap();
    Secrets {
        session: anna.session(),
        rule: rule.expect("an answer that is remembered").to_owned(),
        exchange: end["messageId"].as_str().unwrap().to_owned(),
    }
}

/// Looks that nothing of anna's has come to ben.
fn assert_blind(ben: &Client, secrets: &Secrets, after: &str) {
    for frame in &ben.seen {
        let text = frame.to_string();
        let asked_for = text.contains("session_not_found") || text.contains("no session");
        let names = text.contains(&secrets.session) && !asked_for;
        assert!(!names, "{after}: {text}");
        for word in WORDS {
            assert!(!text.contains(word), "{after}: {text}");
        }
    }
}

/// Asks for something of anna's session, and of one that there is not; returns both answers, without ids and times.
async fn both(ben: &mut Client, frame: &Value, session: &str) -> [Value; 2] {
    let mut answers = Vec::new();
    for id in [session, MADE_UP] {
        let frame = frame.to_string().replace("$SESSION", id);
        let answer = ben.ask(serde_json::from_str(&frame).unwrap()).await;
        let answer = json!([answer["type"], answer["payload"]]);
        let text = answer.to_string().replace(id, "ID");
        answers.push(serde_json::from_str(&text).unwrap());
    }
    answers.try_into().unwrap()
}

#[tokio::test]
async fn ids_of_another_user_answer_as_those_of_nobody() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, json!({})).await;
    let mut anna = users.connect("anna").await;
    let secrets = left_by(&mut anna).await;
    let mut ben = users.connect("ben").await;
    let id = "$SESSION";
    let frames = [
        json!({"type": "session:open", "sessionId": id, "lastSeq": 0}),
        json!({"type": "session:resume", "sessionId": id, "lastSeq": 0}),
        json!({"type": "session:rename", "sessionId": id, "title": "taken"}),
        json!({"type": "session:archive", "sessionId": id}),
        json!({"type": "session:archive", "sessionId": id, "archived": false}),
        json!({"type": "session:label", "sessionId": id, "labels": ["taken"]}),
        json!({"type": "session:export", "sessionId": id}),
        json!({"type": "session:export", "sessionId": id, "format": "markdown"}),
        json!({"type": "session:fork", "sessionId": id}),
        json!({"type": "session:fork", "sessionId": id, "conversationId": "default", "before": 1}),
        json!({"type": "session:delete", "sessionId": id}),
    ];
    for frame in &frames {
        let [real, unknown] = both(&mut ben, frame, &secrets.session).await;
        assert_eq!(real[0], "session:error", "{frame}: {real}");
        assert_eq!(real, unknown, "{frame}");
        assert_blind(&ben, &secrets, &frame.to_string());
    }
    // By the query of a socket: another session, or none.
    let token = users.own_token("ben").await;
    for (query, expected) in [
        ("", None),
        ("&after=0", None),
        ("&takeOver=1&role=driver", None),
        ("&role=observer", Some(4002)),
        ("&role=approver", Some(4002)),
        ("&client=a-name-that-nobody-guesses", None),
    ] {
        let mut ends = Vec::new();
        for id in [secrets.session.as_str(), MADE_UP] {
            let query = format!("?session={id}{query}");
            let reached = Client::reach_by(&users.daemon, &query, &token).await;
            ends.push(reached.as_ref().err().copied());
            if let Ok(mut client) = reached {
                assert_ne!(client.session(), secrets.session, "{query}");
                client.until("session:error").await;
                assert_blind(&client, &secrets, &query);
            }
        }
        assert_eq!(ends, [expected, expected], "{query}");
    }
    // Nothing of it was changed, and it is still anna's.
    let listed = anna.ask(json!({"type": "session:list"})).await;
    let row = &listed["payload"]["sessions"][0];
    assert_eq!(row["title"], "Anna's plan", "{listed}");
    assert_eq!(row["labels"], json!(["secret-label"]), "{listed}");
    let history = anna.ask(json!({"type": "chat:history"})).await;
    assert!(history.to_string().contains("a needle"), "{history}");
    // She herself gets each of them from another session of hers, where ben got none; to be on it comes last of all.
    let mut other = users.connect("anna").await;
    for frame in frames.iter().skip(2) {
        let frame = frame.to_string().replace(id, &secrets.session);
        let answer = other.ask(serde_json::from_str(&frame).unwrap()).await;
        let kind = answer["type"].as_str().unwrap();
        assert!(kind.ends_with("-result"), "{frame}: {answer}");
    }
}

#[tokio::test]
async fn at_another_daemon_on_the_database_they_are_nobodys_too() {
    let Some(url) = database() else {
        return;
    };
    let provider = Provider::start().await;
    let of = |name: &str| {
        let secret = "a secret of the cluster, of 32 characters";
        let cluster = json!({"name": name, "url": "http://127.0.0.1:0", "secret": secret});
        json!({"store": {"url": url}, "cluster": cluster})
    };
    let users = Users::start(&provider, of("one")).await;
    let second = users.another(&provider, of("two")).await;
    let mut anna = users.connect("anna").await;
    let secrets = left_by(&mut anna).await;
    for id in [secrets.session.as_str(), MADE_UP] {
        let token = users.own_token("ben").await;
        let query = format!("?session={id}&takeOver=1");
        let mut ben = Client::reach_by(&second, &query, &token).await.unwrap();
        ben.until("session:error").await;
        assert_blind(&ben, &secrets, &query);
        for frame in [
            json!({"type": "session:open", "sessionId": "$SESSION", "lastSeq": 0}),
            json!({"type": "session:export", "sessionId": "$SESSION"}),
            json!({"type": "session:fork", "sessionId": "$SESSION"}),
            json!({"type": "session:rename", "sessionId": "$SESSION", "title": "taken"}),
            json!({"type": "session:delete", "sessionId": "$SESSION"}),
        ] {
            let [real, unknown] = both(&mut ben, &frame, &secrets.session).await;
            assert_eq!(real[0], "session:error", "{frame}: {real}");
            assert_eq!(real, unknown, "{frame}");
        }
        let listed = ben
            .ask(json!({"type": "session:list", "query": "needle"}))
            .await;
        assert_eq!(listed["payload"]["sessions"], json!([]), "{listed}");
        assert_blind(&ben, &secrets, "at another daemon");
    }
    // Nobody threw anna out; she herself is passed on to it.
    anna.ask(json!({"type": "session:ping"})).await;
    let token = users.own_token("anna").await;
    let query = format!("?session={}&takeOver=1", secrets.session);
    let hers = Client::reach_by(&second, &query, &token).await.unwrap();
    assert_eq!(hers.session(), secrets.session);
}

#[tokio::test]
async fn what_is_about_all_sessions_is_about_a_users_own() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, json!({})).await;
    let mut ben = users.connect("ben").await;
    let layers = json!({"type": "session:configure", "layers": ["stream", "state", "sessions"]});
    ben.ask(layers).await;
    let mut anna = users.connect("anna").await;
    let secrets = left_by(&mut anna).await;
    let all = |rows: &str| vec![rows.to_owned()];
    for (frame, empty) in [
        (json!({"type": "session:list"}), all("/sessions")),
        (
            json!({"type": "session:list", "query": "needle"}),
            all("/sessions"),
        ),
        (
            json!({"type": "session:list", "query": "plan"}),
            all("/sessions"),
        ),
        (
            json!({"type": "session:list", "labels": ["secret-label"]}),
            all("/sessions"),
        ),
        (
            json!({"type": "session:list", "archived": true}),
            all("/sessions"),
        ),
        (
            json!({"type": "session:list", "project": users.work.join("anna")}),
            all("/sessions"),
        ),
        (
            json!({"type": "tool:history", "scope": "daemon"}),
            all("/executions"),
        ),
        (
            json!({"type": "tool:history", "scope": "daemon", "toolName": "file_write"}),
            all("/executions"),
        ),
        (
            json!({"type": "tool:export", "scope": "daemon", "format": "jsonl"}),
            all("/text"),
        ),
        (json!({"type": "approval:list"}), all("/rules")),
        (
            json!({"type": "usage:report", "groupBy": "session"}),
            all("/rows"),
        ),
        (
            json!({"type": "usage:report", "groupBy": "conversation"}),
            all("/rows"),
        ),
        (
            json!({"type": "usage:report", "groupBy": "user"}),
            all("/rows"),
        ),
        (
            json!({"type": "usage:report", "groupBy": "model"}),
            all("/rows"),
        ),
        (
            json!({"type": "usage:report", "groupBy": "day"}),
            all("/rows"),
        ),
        (json!({"type": "files:changes"}), all("/changes")),
        (json!({"type": "chat:history"}), all("/messages")),
        (
            json!({"type": "session:state"}),
            vec!["/conversations".to_owned(), "/approvals".to_owned()],
        ),
    ] {
        let answer = ben.ask(frame.clone()).await;
        let kind = format!("{}-result", frame["type"].as_str().unwrap());
        assert_eq!(answer["type"], kind, "{frame}: {answer}");
        let first = &empty[0];
        for place in &empty {
            let rows = answer["payload"].pointer(place).unwrap();
            assert!(
                *rows == json!([]) || *rows == json!(""),
                "{frame}: {answer}"
            );
        }
        // None of anna's is put away.
        if frame["archived"].is_null() {
            let own = anna.ask(frame.clone()).await;
            let rows = own["payload"].pointer(first).unwrap();
            let is_empty = *rows == json!([]) || *rows == json!("");
            assert!(!is_empty, "{frame}: {own}");
        }
    }
    let sums = ben
        .ask(json!({"type": "tool:metrics", "scope": "daemon"}))
        .await;
    assert!(!sums.to_string().contains("file_write"), "{sums}");
    // Calls, exchanges, questions and answers of anna's, by their names: in ben's own session there are none.
    for (frame, code) in [
        (
            json!({"type": "tool:status", "toolId": "t1"}),
            "tool_not_found",
        ),
        (
            json!({"type": "tool:output", "toolId": "t1"}),
            "tool_not_found",
        ),
        (
            json!({"type": "tool:cancel", "toolId": "t1"}),
            "tool_not_found",
        ),
        (
            json!({"type": "files:revert", "toolId": "t1"}),
            "tool_not_found",
        ),
        (
            json!({"type": "files:revert", "messageId": secrets.exchange}),
            "invalid_payload",
        ),
        (
            json!({"type": "files:changes", "since": secrets.exchange}),
            "invalid_payload",
        ),
        (
            json!({"type": "approval:revoke", "ruleId": secrets.rule}),
            "rule_not_found",
        ),
        (
            json!({"type": "chat:tool-approve", "toolId": "t1", "approved": true}),
            "approval_not_found",
        ),
        (
            json!({"type": "tool:expose", "port": 8080}),
            "conversation_not_found",
        ),
    ] {
        let answer = ben.ask(frame.clone()).await;
        assert_eq!(answer["payload"]["code"], code, "{frame}: {answer}");
    }
    // What was allowed anna for good is asked ben, and what anna changes is not told him.
    let call = json!({"tool": "file_write", "input": {"path": "mine.txt", "content": "x"}});
    ben.say(&format!("call: {call}")).await;
    let asked = ben.until("chat:tool-confirm").await;
    let deny = json!({"type": "chat:tool-approve", "toolId": asked["payload"]["toolId"], "approved": false});
    ben.send(deny).await;
    ben.until("chat:stream-end").await;
    assert_blind(&ben, &secrets, "lists and events");
    let told = ben.all("session:updated");
    assert!(
        told.iter()
            .all(|it| it["sessionId"] == ben.session().as_str()),
        "{told:?}"
    );
    assert!(!told.is_empty());
    // Anna's is as it was.
    let rules = anna.ask(json!({"type": "approval:list"})).await;
    assert_eq!(
        rules["payload"]["rules"][0]["ruleId"],
        secrets.rule.as_str()
    );
}

#[tokio::test]
async fn what_is_about_the_daemon_is_for_operators() {
    let provider = Provider::start().await;
    let more = json!({"mcp": {"allow_runtime_add": true}, "session": {"allow_workflow_put": true}});
    let users = Users::start(&provider, more).await;
    let mut ben = users.connect("ben").await;
    let token = users.token("olga", "1h", &["--role", "operator"]).await;
    let mut olga = Client::reach_by(&users.daemon, "", &token).await.unwrap();
    for frame in [
        json!({"type": "config:get"}),
        json!({"type": "config:get", "key": "providers.test.api_key"}),
        json!({"type": "config:reload"}),
        json!({"type": "provider:configure", "provider": "test", "apiKey": "sk-taken-0123456789"}),
        json!({"type": "search:configure", "searxngUrl": "https://evil.example"}),
        json!({"type": "workflow:put", "name": "w", "workflow": {}}),
        json!({"type": "mcp:add", "name": "m", "command": "/bin/true"}),
        json!({"type": "mcp:remove", "name": "m"}),
        json!({"type": "mcp:auth", "server": "m"}),
        json!({"type": "mcp:auth", "server": "m", "code": "a code that somebody got hold of"}),
        json!({"type": "mcp:sign-out", "server": "m"}),
    ] {
        let answer = ben.ask(frame.clone()).await;
        assert_eq!(answer["payload"]["code"], "forbidden", "{frame}: {answer}");
        let message = answer["payload"]["message"].as_str().unwrap();
        assert!(message.contains("operators"), "{frame}: {answer}");
        let answer = olga.ask(frame.clone()).await;
        let message = answer["payload"]["message"].to_string();
        assert!(!message.contains("operators"), "{frame}: {answer}");
    }
    // Who reads the configuration again is told of it, and no other user.
    let told =
        |it: &Value| it["type"] == "session:notice" && it["payload"]["code"] == "config_reloaded";
    if !olga.seen.iter().any(told) {
        olga.find(told).await;
    }
    ben.ask(json!({"type": "session:ping"})).await;
    assert!(
        ben.all("session:notice").is_empty(),
        "{:?}",
        ben.all("session:notice")
    );
}

#[tokio::test]
async fn files_and_commands_of_another_user_are_out_of_reach() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, json!({})).await;
    let mut anna = users.connect("anna").await;
    let secrets = left_by(&mut anna).await;
    let mut ben = users.connect("ben").await;
    let secret = users.work.join("anna/plan.txt");
    for (tool, input) in [
        ("file_read", json!({"path": secret})),
        ("file_read", json!({"path": "../anna/plan.txt"})),
        ("file_list", json!({"path": users.work.join("anna")})),
        ("file_search", json!({"pattern": "only", "path": "../anna"})),
        ("file_write", json!({"path": secret, "content": "taken"})),
        (
            "file_edit",
            json!({"path": "../anna/plan.txt", "oldText": "only", "newText": "x"}),
        ),
    ] {
        let result = run(&mut ben, tool, &input).await;
        let text = result.to_string();
        assert!(!text.contains("only for anna"), "{tool}: {text}");
    }
    for (tool, input) in [
        ("file_read", json!({"path": secret})),
        ("file_search", json!({"pattern": "only"})),
    ] {
        let result = run(&mut anna, tool, &input).await.to_string();
        assert!(result.contains("only for anna"), "{tool}: {result}");
    }
    assert_eq!(
        std::fs::read_to_string(&secret).unwrap(),
        "only for anna, again"
    );
    if ben.seen[0]["payload"]["sandbox"]["mode"] == "full" {
        // Each conversation has a home, temporary files and a network of its own.
        for command in
            ["echo only for anna > ~/kept; echo only for anna > /tmp/kept; true".to_owned()]
        {
            run(&mut anna, "bash", &json!({"command": command})).await;
        }
        let own = json!({"command": "cat ~/kept /tmp/kept"});
        let own = run(&mut anna, "bash", &own).await.to_string();
        assert!(own.contains("only for anna"), "{own}");
        for command in [
            "cat ~/kept /tmp/kept; ls -a ~ /tmp".to_owned(),
            format!("cat {}", secret.display()),
        ] {
            let result = run(&mut ben, "bash", &json!({"command": command})).await;
            assert!(!result.to_string().contains("only for anna"), "{result}");
        }
    }
    // A session that is not there cannot be worked in either.
    let token = users.own_token("ben").await;
    let query = format!("?project={}", shown(&users.work.join("anna")));
    let mut other = Client::reach_by(&users.daemon, &query, &token)
        .await
        .unwrap();
    assert!(other.seen[0]["payload"]["project"].is_null());
    let refused = other.until("session:error").await;
    assert_eq!(refused["payload"]["code"], "forbidden", "{refused}");
    assert_blind(&other, &secrets, "another's folder");
}
