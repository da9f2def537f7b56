//! A title by a model: once for each session, beside its conversations, and never over the user's own.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};
use crate::telemetry::get;

/// A daemon whose sessions are named by a model of their own provider, and a client that watches the list.
async fn titled(provider: &Provider, titles: &Provider) -> (Daemon, Client) {
    let more = json!({
        "session": { "title_model": "namer/org/small" },
        "providers": { "namer": {
            "kind": "openai", "wire": "chat", "base_url": titles.url(),
            "api_key": "namer-key-0123456789", "max_retries": 0,
        } },
    });
    let daemon = Daemon::with(provider, more).await;
    let mut client = daemon.connect().await;
    watch(&mut client).await;
    (daemon, client)
}

async fn watch(client: &mut Client) {
    let layers = json!({"type": "session:configure", "layers": ["stream", "state", "sessions"]});
    client.ask(layers).await;
}

/// Waits until the list is told of this title.
async fn until_title(client: &mut Client, title: &str) {
    loop {
        let update = client.until("session:updated").await;
        if update["payload"]["title"] == title {
            return;
        }
    }
}

async fn listed_title(client: &mut Client) -> Value {
    let session = client.session();
    let page = client.ask(json!({"type": "session:list"})).await;
    let sessions = page["payload"]["sessions"].as_array().unwrap();
    let own = sessions.iter().find(|it| it["sessionId"] == session);
    own.unwrap_or_else(|| panic!("{page}"))["title"].clone()
}

#[tokio::test]
async fn a_model_names_a_session_after_its_first_exchange_and_once() {
    let (provider, titles) = (Provider::start().await, Provider::start().await);
    let (daemon, mut client) = titled(&provider, &titles).await;
    // One that fails is no beginning to name a session after.
    provider.then(Turn::plain(401, "application/json", "{}"));
    client.say("hello there").await;
    client.until("chat:stream-end").await;
    assert!(titles.requests().is_empty());
    titles.then(Turn::text("\n \"A login\tpage\"\nand why\n"));
    provider.then(Turn::text("It was a typo."));
    client.say("Fix the login page").await;
    until_title(&mut client, "A login page").await;
    assert_eq!(listed_title(&mut client).await, "A login page");
    provider.then(Turn::text("yes"));
    client.say("are you sure?").await;
    client.until("chat:stream-end").await;

    let asked = titles.requests();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let asked = &asked[0];
    assert_eq!(asked["model"], "org/small");
    assert!(asked.get("tools").is_none(), "{asked}");
    let limit = asked
        .get("max_completion_tokens")
        .or(asked.get("max_tokens"));
    assert_eq!(limit, Some(&json!(256)), "{asked}");
    let shown = asked["messages"].to_string();
    assert!(
        shown.contains("hello there") && shown.contains("It was a typo."),
        "{shown}"
    );
    // Nothing of it is in a history or an exchange.
    let history = client.ask(json!({"type": "chat:history"})).await;
    assert!(!history.to_string().contains("A login"), "{history}");
    assert_eq!(client.all("chat:stream-end").len(), 3);
    client.check_numbers();
    // It stays over a restart, and no title is asked for again.
    let session = client.session();
    let daemon = daemon.after_kill().await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    provider.then(Turn::text("again"));
    client.say("and again").await;
    client.until("chat:stream-end").await;
    assert_eq!(listed_title(&mut client).await, "A login page");
    assert_eq!(titles.requests().len(), 1);
}

/// Returns the lines of the log that say why there is no title.
fn complaints(daemon: &Daemon) -> Vec<String> {
    let lines = daemon.log().into_iter().map(|line| line.to_string());
    lines
        .filter(|line| line.contains("no title by session.title_model"))
        .collect()
}

#[tokio::test]
async fn what_goes_wrong_leaves_the_first_words() {
    let refused = "{\"error\": {\"message\": \"bad key namer-key-0123456789\"}}";
    for answer in [
        Turn::plain(500, "application/json", refused),
        Turn::broken(&[json!({"content": "half a ti"})]),
        Turn::text(" \n\"\"\n"),
    ] {
        let (provider, titles) = (Provider::start().await, Provider::start().await);
        let (daemon, mut client) = titled(&provider, &titles).await;
        titles.then(answer);
        provider.then(Turn::text("done"));
        client.say("Fix the login page").await;
        client.until("chat:stream-end").await;
        let is_said = async || !complaints(&daemon).is_empty();
        crate::support::eventually("the log says why", is_said).await;
        provider.then(Turn::text("done"));
        client.say("go on").await;
        client.until("chat:stream-end").await;
        assert_eq!(listed_title(&mut client).await, "Fix the login page");
        // The user is told of no error, no key is in the log, and nothing is tried again.
        for kind in ["session:notice", "session:error", "chat:error"] {
            assert!(client.all(kind).is_empty(), "{:?}", client.seen);
        }
        let complaints = complaints(&daemon);
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert!(!complaints[0].contains("namer-key"), "{complaints:?}");
        assert_eq!(titles.requests().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_without_end_is_cut() {
    let (provider, titles) = (Provider::start().await, Provider::start().await);
    let (_daemon, mut client) = titled(&provider, &titles).await;
    titles.then(Turn::text(&"word ".repeat(10_000)));
    provider.then(Turn::text("done"));
    client.say("Fix the login page").await;
    let title = loop {
        let update = client.until("session:updated").await;
        let title = update["payload"]["title"].as_str().map(str::to_owned);
        if let Some(title) = title.filter(|title| title.starts_with("word")) {
            break title;
        }
    };
    assert!(
        title.chars().count() <= 81 && title.ends_with("word…"),
        "{title}"
    );
}

#[tokio::test]
async fn the_users_own_name_wins_while_a_model_is_asked_and_before() {
    let (provider, titles) = (Provider::start().await, Provider::start().await);
    let (daemon, mut client) = titled(&provider, &titles).await;
    let (turn, mut pause) = Turn::paused(&[], &[json!({"content": "The model's"})], "stop");
    titles.then(turn);
    provider.then(Turn::text("done"));
    client.say("Fix the login page").await;
    pause.reached().await;
    let rename = json!({"type": "session:rename", "title": "Mine"});
    client.ask(rename).await;
    pause.go_on();
    let is_read = async || {
        let figures = get(&daemon, "/metrics", &daemon.token).await;
        figures.contains("outrigger_tokens_total{kind=\"output\",provider=\"namer\"} 5")
    };
    crate::support::eventually("the answer is read, and counted", is_read).await;
    assert_eq!(listed_title(&mut client).await, "Mine");
    let told = |client: &Client| {
        let updates = client.all("session:updated").into_iter();
        let titles = updates.filter_map(|it| it["title"].as_str().map(str::to_owned));
        titles.collect::<Vec<_>>()
    };
    assert_eq!(told(&client), ["Fix the login page", "Mine"]);
}

#[tokio::test]
async fn nobody_is_asked_for_the_title_of_what_is_not_kept() {
    let (provider, titles) = (Provider::start().await, Provider::start().await);
    let (daemon, mut client) = titled(&provider, &titles).await;
    client
        .ask(json!({"type": "session:configure", "ephemeral": true}))
        .await;
    provider.then(Turn::text("done"));
    client.say("Fix the login page").await;
    client.until("chat:stream-end").await;
    // Where it is switched off, as it is by default, there is the request of the exchange alone.
    let plain = Daemon::start(&provider).await;
    let mut client = plain.connect().await;
    provider.then(Turn::text("done"));
    client.say("Fix the login page").await;
    client.until("chat:stream-end").await;
    client.ask(json!({"type": "session:ping"})).await;
    assert_eq!(listed_title(&mut client).await, "Fix the login page");
    assert_eq!(provider.requests().len(), 2);
    assert!(titles.requests().is_empty() && complaints(&daemon).is_empty());
}
