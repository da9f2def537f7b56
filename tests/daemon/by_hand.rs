//! What a person needs besides frames: text mode for a bare WebSocket client, and the console page.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::hosts::is_full;
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// A person at a socket in text mode, and all that was read so far.
struct Person {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    read: String,
}

impl Person {
    async fn connect(daemon: &Daemon, query: &str) -> Self {
        let url = format!("ws://127.0.0.1:{}/ws?text=1{query}", daemon.port);
        let mut request = url.into_client_request().unwrap();
        let bearer = format!("Bearer {}", daemon.token);
        request
            .headers_mut()
            .insert("authorization", bearer.parse().unwrap());
        let (socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        let mut person = Self {
            socket,
            read: String::new(),
        };
        person.until("/help lists what can be typed").await;
        person
    }

    async fn types(&mut self, line: &str) {
        self.socket.send(Message::text(line)).await.unwrap();
    }

    /// Reads on until these words come; returns what was read since the last time.
    async fn until(&mut self, words: &str) -> String {
        let mut since = String::new();
        while !since.contains(words) {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => since.push_str(&format!("{text}\n")),
                Some(Ok(_)) => {}
                other => panic!("{other:?} before {words:?}; read:\n{}{since}", self.read),
            }
        }
        self.read.push_str(&since);
        since
    }
}

#[tokio::test]
async fn a_conversation_in_lines() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut person = Person::connect(&daemon, "").await;

    provider.then(Turn::text("Hello.\nHow are you?"));
    person.types("good morning").await;
    let answer = person.until("── done").await;
    assert!(answer.contains("Hello.\nHow are you?\n"), "{answer}");

    provider.then(Turn::call("bash", &json!({"command": "echo one"})));
    provider.then(Turn::text("It ran."));
    person.types("run it").await;
    let asked = person.until("y yes, n no").await;
    assert!(
        asked.contains("wants to run bash\n  command: echo one"),
        "{asked}"
    );
    person.types(r#"e {"command":"echo two"}"#).await;
    let ran = person.until("── done").await;
    assert!(ran.contains("two") && ran.contains("It ran."), "{ran}");

    provider.then(Turn::call("bash", &json!({"command": "echo three"})));
    provider.then(Turn::text("As you like."));
    person.types("again").await;
    person.until("y yes, n no").await;
    person.types("n not now").await;
    let refused = person.until("── done").await;
    assert!(
        refused.contains("not now") && !refused.contains("▸"),
        "{refused}"
    );

    person.types("y").await;
    person.until("nothing is asked").await;
    person.types("/trust supervised").await;
    person.until("supervised").await;
    person.types("/nonsense").await;
    person.until("there is no command /nonsense").await;
    person.types("/help").await;
    person.until("/cancel").await;
}

#[tokio::test]
async fn a_port_in_the_background_is_exposed_by_a_line() {
    let provider = Provider::start().await;
    let settings = json!({"chat": {"trust_level": "autonomous"}});
    let daemon = Daemon::with(&provider, settings).await;
    if !is_full(&daemon.connect().await) {
        return;
    }
    let server =
        "my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => q(127.0.0.1:0)) or die; sleep 600";
    daemon.file("server.pl", format!("use IO::Socket::INET; {server}"));
    let mut person = Person::connect(&daemon, "").await;
    let start = json!({"command": "exec perl server.pl", "background": true});
    provider.then(Turn::call("bash", &start));
    provider.then(Turn::text("It runs."));
    person.types("go").await;
    let open = person.until("/expose ").await;
    let (_, rest) = open.split_once("/expose ").unwrap();
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    person.types(&format!("/expose {port}")).await;
    person
        .until(&format!("port {port} is at http://127.0.0.1:"))
        .await;
    person.types("/expose 1").await;
    person.until("on port 1").await;
}

#[tokio::test]
async fn text_mode_goes_on_with_a_session_and_cancels() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut person = Person::connect(&daemon, "").await;
    let id = person.read.rsplit("session ").next().unwrap().trim();
    let again = format!("&session={id}&after=0");

    provider.then(Turn::call(
        "bash",
        &json!({"command": "echo begun; sleep 60"}),
    ));
    person.types("hang").await;
    person.until("y yes, n no").await;
    drop(person);

    let mut person = Person::connect(&daemon, &again).await;
    // The open question is among what is emitted again.
    person.until("y yes, n no").await;
    person.types("y").await;
    person.until("begun").await;
    person.types("/cancel").await;
    let ended = person.until("── cancelled").await;
    assert!(ended.contains("– t1"), "{ended}");
    person.types("/quit").await;
    while let Some(Ok(message)) = person.socket.next().await {
        if message.is_close() {
            break;
        }
    }
}

/// The transcript of text mode in the README is what a person sees, but for times and sizes.
#[tokio::test]
async fn quit_closes_the_socket_by_the_persons_wish() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut person = Person::connect(&daemon, "").await;
    person.types("/quit").await;
    loop {
        match person.socket.next().await {
            Some(Ok(Message::Close(frame))) => {
                assert_eq!(frame.map(|frame| frame.code.into()), Some(1000));
                break;
            }
            Some(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn the_transcript_of_the_readme_is_what_comes() {
    let provider = Provider::start().await;
    let scripted =
        json!({"chat": {"provider": "scripted"}, "providers": {"scripted": {"kind": "scripted"}}});
    let daemon = Daemon::with(&provider, scripted).await;
    daemon.file("README.md", "# Demo\n\nA project with one file.\n");
    let mut person = Person::connect(&daemon, "").await;
    person.types("demo").await;
    person.until("y yes, n no").await;
    person.types("y").await;
    person.until("── done").await;
    let seen: Vec<String> = person.read.lines().map(steady).collect();
    let readme = include_str!("../../README.md");
    let shown = readme
        .lines()
        .skip_while(|line| *line != "~~~text")
        .skip(1)
        .take_while(|line| *line != "~~~")
        // What was typed, and what `ls` says of another machine.
        .filter(|line| !line.starts_with("> ") && !line.contains("rw"));
    let mut from = 0;
    let mut compared = 0;
    for line in shown {
        let line = steady(line);
        let found = seen[from..].iter().position(|other| *other == line);
        let at = found.unwrap_or_else(|| panic!("{line:?} of the README is not in\n{seen:#?}"));
        from += at + 1;
        compared += 1;
    }
    assert!(compared > 12, "only {compared} lines were compared");
}

/// What of a frame is the same in each run and on each machine: its names, and the kinds of its values.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| {
                !["timestamp", "sandbox", "providers", "tools"].contains(&name.as_str())
            })
            .map(|(name, value)| match name.as_str() {
                "type" | "features" | "seq" => (name.clone(), value.clone()),
                _ => (name.clone(), shape(value)),
            })
            .collect(),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::String(_) => json!("text"),
        Value::Number(_) => json!(0),
        Value::Bool(_) | Value::Null => value.clone(),
    }
}

#[tokio::test]
async fn the_frames_of_the_document_are_what_comes() {
    let provider = Provider::start().await;
    let scripted =
        json!({"chat": {"provider": "scripted"}, "providers": {"scripted": {"kind": "scripted"}}});
    let daemon = Daemon::with(&provider, scripted).await;
    daemon.file("README.md", "# Demo\n\nA project with one file.\n");
    let mut client = daemon.connect().await;
    let mut came = client.seen.clone();
    let mut compared = 0;
    for line in include_str!("../../docs/by-hand.md").lines() {
        let frame = |text| serde_json::from_str::<Value>(text).unwrap();
        if let Some(typed) = line.strip_prefix("    > ") {
            client.send(frame(typed)).await;
        } else if let Some(shown) = line.strip_prefix("    < ") {
            let next = match came.pop() {
                Some(ready) => ready,
                None => client.next().await,
            };
            assert_eq!(shape(&next), shape(&frame(shown)), "{next}");
            compared += 1;
        }
    }
    assert!(compared > 10, "only {compared} frames were compared");
}

/// A line without what is another in each run: numbers, paths, ids.
fn steady(line: &str) -> String {
    let line = line.split("session ").next().unwrap_or_default();
    let line = line.replace("sandbox: fallback", "sandbox: full");
    let words = line.split(' ').filter(|word| !word.is_empty());
    let words = words.map(|word| match word.starts_with('/') && word.len() > 6 {
        true => "PATH".to_owned(),
        false => word.replace(|c: char| c.is_ascii_digit(), ""),
    });
    words
        .collect::<Vec<_>>()
        .join(" ")
        .replace(" ms", " s")
        .replace(". s", " s")
}

/// Head and body of an answer to a GET.
async fn get(port: u16, path: &str, host: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

#[tokio::test]
async fn the_page_is_served_with_its_policy_and_can_be_switched_off() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let (head, body) = get(daemon.port, "/", "localhost").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    for part in [
        "content-type: text/html",
        "content-security-policy: default-src 'none'",
        "frame-ancestors 'none'",
        "referrer-policy: no-referrer",
        "x-content-type-options: nosniff",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
    assert!(
        !body.contains(&daemon.token),
        "the token is the user's to bring"
    );
    let (head, _) = get(daemon.port, "/", "evil.example").await;
    assert!(head.starts_with("http/1.1 403"), "{head}");

    assert_eq!(
        daemon.console.as_deref(),
        Some(format!("http://127.0.0.1:{}/#token={}", daemon.port, daemon.token).as_str())
    );

    let off = Daemon::with(&provider, json!({"server": {"console": false}})).await;
    assert_eq!(off.console, None);
    for path in ["/", "/console/app.js"] {
        let (head, _) = get(off.port, path, "localhost").await;
        assert!(head.starts_with("http/1.1 404"), "{path}: {head}");
    }
}

#[tokio::test]
async fn what_is_said_to_a_person_who_looks_on_is_said_to_nobody_else() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut driver = Client::connect(&daemon, "?role=driver").await;
    let query = format!("&session={}&role=observer", driver.session());
    let mut person = Person::connect(&daemon, &query).await;
    person.types("/help").await;
    person.until("/quit").await;
    let ping = serde_json::json!({"type": "session:ping"});
    driver.ask(ping).await;
    assert!(driver.all("session:notice").is_empty());
    driver.check_numbers();
}
