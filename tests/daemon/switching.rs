//! A conversation that goes from one provider to another and back, with calls and thinking behind it.
//!
//! In every direction the new provider gets all that was said and done, in its own form and in
//! order, without the other's thinking; and the old one gets its own thinking back as it was.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::support::server::{Answer, Server};
use crate::support::wire::{Block, Wire};
use crate::support::{Client, Daemon, Provider};

/// Who answers: an instance and a model.
#[derive(Clone)]
struct Speaker {
    instance: String,
    wire: Wire,
    model: &'static str,
    /// Stands in all that it says and thinks.
    tag: &'static str,
}

/// What a speaker says in one exchange: thinking, text and two calls, then thinking and text.
fn exchange(tag: &str, round: usize) -> [Vec<Block>; 2] {
    let id = |call: &str| format!("call_{tag}{round}{call}");
    [
        vec![
            Block::thinking(
                &format!("thought-{tag}-{round}."),
                &format!("c2ln{tag}{round}"),
            ),
            Block::text(&format!("looking-{tag}-{round}")),
            Block::call(&id("x"), "file_read", json!({"path": "x.txt"})),
            Block::call(&id("y"), "file_read", json!({"path": "y.txt"})),
        ],
        vec![
            Block::thinking(
                &format!("later-{tag}-{round}."),
                &format!("bGF0{tag}{round}"),
            ),
            Block::text(&format!("answer-{tag}-{round}")),
        ],
    ]
}

/// All pairs: every wire to every other, and every wire from one of its models to another.
fn pairs() -> Vec<(Speaker, Speaker)> {
    let speaker = |wire: Wire, pair: &str, tag: &'static str, model: &'static str| Speaker {
        instance: format!("{pair}-{tag}"),
        wire,
        model,
        tag,
    };
    let mut pairs = Vec::new();
    for first in Wire::ALL {
        for second in Wire::ALL {
            let pair = format!("{}-{}", first.name(), second.name());
            let (model, other) = ("claude-opus-5-5", "claude-sonnet-5-5");
            let mut to = speaker(second, &pair, "Second", other);
            let from = speaker(first, &pair, "First", model);
            if first == second {
                // Another model of the same instance.
                to.instance = from.instance.clone();
            }
            pairs.push((from, to));
        }
    }
    pairs
}

#[tokio::test]
async fn every_direction_keeps_the_history() {
    let server = Server::start().await;
    let pairs = pairs();
    let mut instances = Map::new();
    for (from, to) in &pairs {
        let rounds = [(from, 1), (to, 1), (from, 2)];
        for speaker in [from, to] {
            let answers = rounds
                .iter()
                .filter(|(other, _)| other.instance == speaker.instance)
                .flat_map(|(other, round)| exchange(other.tag, *round))
                .map(|blocks| Answer::stream(speaker.wire).frames(&speaker.wire.frames(&blocks)))
                .collect();
            let url = server.case(&speaker.instance, speaker.wire, answers);
            let mut settings = speaker.wire.settings(&url);
            settings["api_key"] = json!("key-of-nobody");
            instances.insert(speaker.instance.clone(), settings);
        }
    }
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"providers": instances})).await;
    daemon.file("x.txt", "content-x\n");
    daemon.file("y.txt", "content-y\n");
    let mut client = daemon.connect().await;
    for (from, to) in &pairs {
        for (speaker, content) in [
            (from, "question-1"),
            (to, "question-2"),
            (from, "question-3"),
        ] {
            say(
                &mut client,
                speaker,
                &format!("{}>{}", from.instance, to.instance),
                content,
            )
            .await;
        }
    }
    for (from, to) in &pairs {
        let name = format!("{} to {} and back", from.instance, to.instance);
        let (there, back) = if from.instance == to.instance {
            let all = server.requests(&from.instance);
            (all[2].clone(), all[4].clone())
        } else {
            (
                server.requests(&to.instance)[0].clone(),
                server.requests(&from.instance)[2].clone(),
            )
        };
        check_order(
            &name,
            &there,
            &[
                "question-1",
                "looking-First-1",
                "content-x",
                "content-y",
                "answer-First-1",
                "question-2",
            ],
        );
        check_order(
            &name,
            &back,
            &[
                "question-1",
                "looking-First-1",
                "content-x",
                "content-y",
                "answer-First-1",
                "question-2",
                "looking-Second-1",
                "content-x",
                "content-y",
                "answer-Second-1",
                "question-3",
            ],
        );
        check_calls(&name, to.wire, &there, 2);
        check_calls(&name, from.wire, &back, 4);
        check_thinking(&name, &there, &[], &["First"]);
        let own: &[&str] = match from.wire {
            Wire::Anthropic => &[
                "thought-First-1",
                "c2lnFirst1",
                "later-First-1",
                "bGF0First1",
            ],
            Wire::Responses => &["c2lnFirst1", "bGF0First1"],
            // Replies with calls alone.
            Wire::Chat => &["thought-First-1"],
            Wire::Ollama => &["thought-First-1", "later-First-1"],
        };
        check_thinking(&name, &back, own, &["Second"]);
    }
}

/// What a preset wants besides of a history that another provider made.
#[tokio::test]
async fn presets_get_a_foreign_history_as_they_want_it() {
    let server = Server::start().await;
    let presets = ["deepseek", "mistral", "gemini", "openrouter", "groq"];
    let mut instances = Map::new();
    let mut instance = |name: &str, kind: &str, wire: Wire, answers: Vec<Answer>| {
        let url = server.case(name, wire, answers);
        let settings = json!({"kind": kind, "base_url": url, "api_key": "key-of-nobody"});
        instances.insert(name.to_owned(), settings);
    };
    let frames = |wire: Wire, blocks: &[Block]| Answer::stream(wire).frames(&wire.frames(blocks));
    for preset in presets {
        let first = exchange("First", 1).map(|blocks| frames(Wire::Anthropic, &blocks));
        instance(
            &format!("claude-{preset}"),
            "anthropic",
            Wire::Anthropic,
            first.to_vec(),
        );
        let second = exchange("Second", 1).map(|blocks| frames(Wire::Chat, &blocks));
        instance(preset, preset, Wire::Chat, second.to_vec());
    }
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"providers": instances})).await;
    daemon.file("x.txt", "content-x\n");
    daemon.file("y.txt", "content-y\n");
    let mut client = daemon.connect().await;
    for preset in presets {
        for (instance, wire, tag) in [
            (format!("claude-{preset}"), Wire::Anthropic, "First"),
            (preset.to_owned(), Wire::Chat, "Second"),
        ] {
            let speaker = Speaker {
                instance,
                wire,
                model: "claude-opus-5-5",
                tag,
            };
            say(&mut client, &speaker, preset, "question").await;
        }
        let request = &server.requests(preset)[0];
        check_calls(preset, Wire::Chat, request, 2);
        check_thinking(preset, request, &[], &["First"]);
        let messages = request["messages"].as_array().unwrap();
        let replies: Vec<&Value> = messages
            .iter()
            .filter(|one| one["role"] == "assistant")
            .collect();
        let calls = replies[0]["tool_calls"].as_array().unwrap();
        match preset {
            "deepseek" => assert!(replies.iter().all(|reply| reply["reasoning_content"] == "")),
            "mistral" => {
                let ids = calls.iter().map(|call| call["id"].as_str().unwrap());
                let fits =
                    |id: &str| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
                assert!(ids.clone().all(fits), "{:?}", ids.collect::<Vec<_>>());
            }
            "gemini" => {
                let signature = calls[0].pointer("/extra_content/google/thought_signature");
                assert!(signature.is_some() && calls[1].get("extra_content").is_none());
            }
            _ => assert!(replies.iter().all(|reply| reply.get("reasoning").is_none()
                && reply.get("reasoning_details").is_none())),
        }
    }
}

async fn say(client: &mut Client, speaker: &Speaker, conversation: &str, content: &str) {
    client
        .send(
            json!({"type": "chat:send", "content": content, "conversationId": conversation,
            "provider": speaker.instance, "model": speaker.model,
            "toolPermissions": {"file_read": {"allowed": true}}, "thinking": {"enabled": true}}),
        )
        .await;
    let end = client.until("chat:stream-end").await;
    let errors = client.all("chat:error");
    assert_eq!(
        end["payload"]["stopReason"], "end_turn",
        "{conversation} {content}: {errors:?}"
    );
    assert_eq!(end["payload"]["turns"], 2, "{conversation} {content}");
}

/// Checks that texts stand in a request in this order.
fn check_order(name: &str, request: &Value, texts: &[&str]) {
    let sent = request
        .get("messages")
        .or_else(|| request.get("input"))
        .unwrap()
        .to_string();
    let mut rest = sent.as_str();
    for text in texts {
        let Some((_, after)) = rest.split_once(text) else {
            panic!("{name}: {text} is missing or out of order in {sent}");
        };
        rest = after;
    }
}

/// Checks that a request tells all calls, each whole and with an id of its own that any server takes.
fn check_calls(name: &str, wire: Wire, request: &Value, count: usize) {
    let sent = request
        .get("messages")
        .or_else(|| request.get("input"))
        .unwrap();
    let mut ids = BTreeSet::new();
    let mut inputs = Vec::new();
    for item in sent.as_array().unwrap() {
        let calls: Vec<Value> = match wire {
            Wire::Anthropic => item["content"].as_array().cloned().unwrap_or_default(),
            Wire::Responses => vec![item.clone()],
            Wire::Chat | Wire::Ollama => item["tool_calls"].as_array().cloned().unwrap_or_default(),
        };
        for call in calls {
            let (id, input) = match wire {
                Wire::Anthropic if call["type"] == "tool_use" => {
                    (&call["id"], call["input"].clone())
                }
                Wire::Responses if call["type"] == "function_call" => {
                    (&call["call_id"], parsed(&call["arguments"]))
                }
                Wire::Chat => (&call["id"], parsed(&call["function"]["arguments"])),
                Wire::Ollama => (&call["id"], call["function"]["arguments"].clone()),
                Wire::Anthropic | Wire::Responses => continue,
            };
            let id = id.as_str().unwrap();
            let is_plain = id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
            assert!(is_plain && (1..=64).contains(&id.len()), "{name}: {id}");
            ids.insert(id.to_owned());
            inputs.push(input["path"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(ids.len(), count, "{name}: {ids:?}");
    assert_eq!(inputs, ["x.txt", "y.txt"].repeat(count / 2), "{name}");
}

fn parsed(text: &Value) -> Value {
    serde_json::from_str(text.as_str().unwrap()).unwrap()
}

/// Checks whose thinking stands in a request: all of `own`, in order, and none of `others`.
fn check_thinking(name: &str, request: &Value, own: &[&str], others: &[&str]) {
    let sent = request.to_string();
    check_order(name, request, own);
    for tag in others {
        for foreign in [
            format!("thought-{tag}"),
            format!("later-{tag}"),
            format!("c2ln{tag}"),
            format!("bGF0{tag}"),
        ] {
            assert!(!sent.contains(&foreign), "{name}: {foreign} in {sent}");
        }
    }
}
