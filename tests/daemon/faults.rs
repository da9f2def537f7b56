//! Every fault of a provider on every wire format: exactly what the client sees, and how often the
//! provider is asked. All run side by side on one daemon.

mod answers;
mod spoken;
mod table;
mod transcript;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use tokio::net::TcpSocket;

use crate::support::server::Server;
use crate::support::wire::Wire;
use crate::support::{Client, Daemon, Provider};
use table::{ANY, Fault, faults};
use transcript::transcript;

/// The key of every instance. It looks like no vendor's, so that only knowing it helps.
const KEY: &str = "matrix/of+faults=0123456789";

#[tokio::test]
async fn anthropic() {
    run(Wire::Anthropic).await;
}

#[tokio::test]
async fn openai_chat() {
    run(Wire::Chat).await;
}

#[tokio::test]
async fn openai_responses() {
    run(Wire::Responses).await;
}

#[tokio::test]
async fn ollama() {
    run(Wire::Ollama).await;
}

async fn run(wire: Wire) {
    let server = Server::start().await;
    // Bound and not listening: nobody else gets the port, and nobody answers.
    let deaf = TcpSocket::new_v4().unwrap();
    deaf.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let deaf_url = format!("http://{}", deaf.local_addr().unwrap());
    let faults = faults(wire, KEY);
    let mut instances = Map::new();
    for fault in &faults {
        let url = if fault.refused {
            deaf_url.clone()
        } else {
            server.case(&fault.name, wire, fault.answers.clone())
        };
        instances.insert(fault.name.clone(), instance(fault, &url));
    }
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"providers": instances})).await;
    let mut client = daemon.connect().await;
    for fault in &faults {
        client
            .send(
                json!({"type": "chat:send", "content": "hi", "conversationId": fault.name,
                "provider": fault.name}),
            )
            .await;
    }
    let seen = watch(&mut client, &faults, &server).await;
    let mut wrong = Vec::new();
    for fault in &faults {
        let found = transcript(&seen[&fault.name]);
        if found != fault.seen {
            wrong.push(format!(
                "{}:\n  seen     {found}\n  expected {}",
                fault.name, fault.seen
            ));
        }
        let asked = if fault.refused {
            0
        } else {
            server.requests(&fault.name).len()
        };
        if fault.requests != ANY && asked != fault.requests {
            wrong.push(format!(
                "{}: asked {asked} times, expected {}",
                fault.name, fault.requests
            ));
        }
    }
    let shown = client
        .seen
        .iter()
        .map(Value::to_string)
        .filter(|frame| frame.contains(KEY));
    wrong.extend(shown.map(|frame| format!("the key is shown: {frame}")));
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    client.check_numbers();
}

/// The settings of a fault's instance: one retry, one restart.
fn instance(fault: &Fault, url: &str) -> Value {
    let mut settings = fault.wire.settings(url);
    settings["api_key"] = json!(KEY);
    settings["model"] = json!("test-model");
    settings["max_retries"] = json!(1);
    settings["restart_after_partial"] = json!(1);
    for (name, value) in fault.settings.as_object().unwrap() {
        settings[name] = value.clone();
    }
    settings
}

/// Reads until every conversation is idle; returns the frames of each.
async fn watch(
    client: &mut Client,
    faults: &[Fault],
    server: &Server,
) -> BTreeMap<String, Vec<Value>> {
    let mut seen: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut busy: BTreeSet<String> = faults.iter().map(|fault| fault.name.clone()).collect();
    while !busy.is_empty() {
        let frame = client.next().await;
        let Some(name) = frame["payload"]["conversationId"]
            .as_str()
            .map(str::to_owned)
        else {
            continue;
        };
        let is_shown = ["content", "chunk"].iter().any(|field| {
            let shown = frame["payload"][field].as_str();
            shown.is_some_and(|shown| !shown.is_empty())
        });
        if is_shown {
            server.shown(&name);
        }
        if frame["payload"]["state"] == "idle" {
            busy.remove(&name);
        }
        seen.entry(name).or_default().push(frame);
    }
    seen
}
