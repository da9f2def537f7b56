//! Skills: the model is told names and descriptions after a yes to their files, and reads one by a tool.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

fn skill(name: &str, more: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Does {name} things.\nallowed-tools: Bash(*)\n---\n{more}\n"
    )
}

async fn asked(daemon: &Daemon) -> Client {
    let mut client = daemon.connect().await;
    client
        .ask(json!({"type": "session:configure", "trustQuestions": true}))
        .await;
    client
}

/// Names of the tools of the last request.
fn offered(provider: &Provider) -> Vec<String> {
    let requests = provider.requests();
    let tools = requests.last().unwrap()["tools"]
        .as_array()
        .unwrap()
        .clone();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

fn said(provider: &Provider) -> String {
    provider.requests().last().unwrap()["messages"].to_string()
}

#[tokio::test]
async fn a_projects_skill_is_told_after_a_yes_and_read_as_it_was_shown() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    daemon.file(
        ".agents/skills/paint/SKILL.md",
        skill("paint", "Use OCHRE."),
    );
    daemon.file(".agents/skills/paint/mix.sh", "echo mixed\n");
    daemon.file(".claude/skills/wrong/SKILL.md", skill("other", "x"));
    let mut client = asked(&daemon).await;
    let listed = client.ask(json!({"type": "skill:list"})).await["payload"].clone();
    let known = &listed["skills"][0];
    assert_eq!(
        (&known["name"], &known["trusted"]),
        (&json!("paint"), &json!(false))
    );
    assert!(
        listed["problems"][0].to_string().contains("wrong"),
        "{listed}"
    );

    provider
        .then(Turn::call("skill", &json!({"name": "paint"})))
        .then(Turn::call(
            "bash",
            &json!({"command": "sh .agents/skills/paint/mix.sh"}),
        ));
    client.say("paint it").await;
    let confirm = client.until("chat:trust-confirm").await["payload"].clone();
    let file = &confirm["files"][0];
    assert_eq!(
        (&file["kind"], &file["path"]),
        (&json!("skill"), &json!(".agents/skills/paint/SKILL.md"))
    );
    assert_eq!(confirm["files"].as_array().unwrap().len(), 1);
    assert!(file["text"].as_str().unwrap().contains("OCHRE"));
    let yes =
        json!({"type": "chat:trust-approve", "requestId": confirm["requestId"], "approved": true});
    client.ask(yes).await;
    // What it has by then is not what was shown.
    daemon.file(
        ".agents/skills/paint/SKILL.md",
        skill("paint", "Use CRIMSON."),
    );
    // A script of it is a command like any other: nothing that the skill says lets it run.
    let call = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(call["toolName"], "bash");
    assert!(offered(&provider).contains(&"skill".to_owned()));
    let all = said(&provider);
    assert!(
        all.contains("paint: Does paint things.") && all.contains("OCHRE"),
        "{all}"
    );
    assert!(!all.contains("CRIMSON"), "{all}");
    provider.then(Turn::text("done"));
    client
        .ask(json!({"type": "chat:tool-approve", "toolId": call["toolId"], "approved": true}))
        .await;
    client.until("chat:stream-end").await;
    assert!(said(&provider).contains("mixed"), "{}", said(&provider));
    // The other content is asked about, and after a no nothing of it is told.
    provider.then(Turn::text("done"));
    client.say("again").await;
    let confirm = client.until("chat:trust-confirm").await["payload"].clone();
    assert!(
        confirm["files"][0]["text"]
            .as_str()
            .unwrap()
            .contains("CRIMSON")
    );
    let no =
        json!({"type": "chat:trust-approve", "requestId": confirm["requestId"], "approved": false});
    client.ask(no).await;
    client.until("chat:stream-end").await;
    assert!(!offered(&provider).contains(&"skill".to_owned()));
    assert!(
        !said(&provider).contains("paint: Does"),
        "{}",
        said(&provider)
    );
    let notices = client.all("session:notice");
    assert_eq!(
        notices
            .iter()
            .filter(|it| it["code"] == "skill_not_read")
            .count(),
        1,
        "{notices:?}"
    );
}

#[tokio::test]
async fn the_users_own_skill_counts_before_the_projects_and_needs_no_yes() {
    let provider = Provider::start().await;
    let folder = Daemon::folder(&provider, json!({}));
    let settings = folder.path().join("settings");
    let own = settings.join("outrigger/skills/paint");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("SKILL.md"), skill("paint", "Mine: UMBER.")).unwrap();
    std::fs::write(own.join("colours.txt"), "SIENNA\n").unwrap();
    let environment = [("XDG_CONFIG_HOME", settings.to_str().unwrap())];
    let Ok(daemon) = Daemon::begin(folder, &environment).await else {
        panic!("it is not ready");
    };
    daemon.file(
        ".agents/skills/paint/SKILL.md",
        skill("paint", "Use OCHRE."),
    );
    let mut client = asked(&daemon).await;
    provider
        .then(Turn::calls(&[
            ("skill", json!({"name": "paint"})),
            ("skill", json!({"name": "paint", "path": "colours.txt"})),
            (
                "skill",
                json!({"name": "paint", "path": "../../secrets.toml"}),
            ),
        ]))
        .then(Turn::text("done"));
    client.say("go").await;
    client.until("chat:stream-end").await;
    let all = said(&provider);
    assert!(all.contains("UMBER") && all.contains("SIENNA"), "{all}");
    assert!(!all.contains("OCHRE"), "{all}");
    assert_eq!(client.all("chat:trust-confirm").len(), 0);
    let results = client.all("chat:tool-result");
    let ended: Vec<&Value> = results.iter().map(|it| &it["status"]).collect();
    assert_eq!(
        ended.iter().filter(|it| **it == "error").count(),
        1,
        "{results:?}"
    );
    assert!(all.contains("commands can read that folder"), "{all}");
    let listed = client.ask(json!({"type": "skill:list"})).await["payload"].clone();
    assert_eq!(listed["skills"][0]["source"], "user");
    assert_eq!(listed["skills"][0]["trusted"], true);
}

#[tokio::test]
async fn a_workflow_offers_it_where_it_names_it() {
    let provider = Provider::start().await;
    let allowed = json!({"allowed": true});
    let more = json!({
        "project": {"instructions_trust": "on"},
        "workflows": {
            "with": {"tool_permissions": {"skill": allowed, "file_read": allowed}},
            "without": {"tool_permissions": {"file_read": allowed}},
        },
    });
    let daemon = Daemon::with(&provider, more).await;
    daemon.file(
        ".agents/skills/paint/SKILL.md",
        skill("paint", "Use OCHRE."),
    );
    let mut client = daemon.connect().await;
    for (workflow, is_offered) in [("with", true), ("without", false)] {
        provider.then(Turn::text("done"));
        let send = json!({"type": "chat:send", "content": "go", "workflow": workflow, "conversationId": workflow});
        client.send(send).await;
        client.until("chat:stream-end").await;
        assert_eq!(offered(&provider).contains(&"skill".to_owned()), is_offered);
        assert_eq!(said(&provider).contains("paint: Does"), is_offered);
    }
}
