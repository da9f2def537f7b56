//! The vendor's own compaction in the place of a summary, with the two vendors that have one.

use serde_json::{Value, json};

use crate::support::server::{Answer, Server};
use crate::support::wire::{Block, Wire};
use crate::support::{Client, Daemon, Provider};

/// The vendors, and what `compaction.native` calls them.
const VENDORS: [(Wire, &str); 2] = [(Wire::Anthropic, "anthropic"), (Wire::Responses, "openai")];

/// What a compaction says; of OpenAI's it is a secret.
const SAID: &str = "gAAAA: what was said so far";

/// The tokens of a request before and after.
const LONG: usize = 15_000;
const SHORT: usize = 1_000;

fn answer(wire: Wire, block: Block, tokens: usize) -> Answer {
    let frames = wire.frames(&[block]).into_iter();
    let counted = |frame: String| {
        let (anthropic, responses) = ("\"input_tokens\":10,", "\"input_tokens\":16,");
        let counted = format!("\"input_tokens\":{tokens},");
        frame
            .replace(anthropic, &counted)
            .replace(responses, &counted)
    };
    Answer::stream(wire).frames(&frames.map(counted).collect::<Vec<_>>())
}

fn text(wire: Wire, text: &str, tokens: usize) -> Answer {
    answer(wire, Block::text(text), tokens)
}

/// Refuses a request as the vendor does for the compaction that it begins with.
fn refusal(wire: Wire) -> Answer {
    let error = match wire {
        Wire::Anthropic => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no",
            "details": {"error_code": "compaction_signature_invalid"}}})
        }
        _ => {
            json!({"error": {"type": "invalid_request_error", "code": "invalid_value", "param": "input",
            "message": "Invalid input[0]: the compaction item could not be decrypted."}})
        }
    };
    Answer::json(400, &error)
}

/// A daemon whose provider answers in turn, after two exchanges, of which the first one is long.
struct Talk {
    wire: Wire,
    server: Server,
    daemon: Daemon,
    client: Client,
}

impl Talk {
    async fn begin(wire: Wire, native: &str, answers: Vec<Answer>) -> Self {
        let server = Server::start().await;
        let first = [text(wire, "one", LONG), text(wire, "two", LONG)];
        let answers = first.into_iter().chain(answers).collect();
        let mut settings = wire.settings(&server.case("v", wire, answers));
        settings["api_key"] = json!("key-of-nobody");
        settings["model"] = json!("m");
        let config = json!({
            "chat": {"provider": "v"}, "providers": {"v": settings}, "compaction": {"native": native},
        });
        let daemon = Daemon::with(&Provider::start().await, config).await;
        let client = daemon.connect().await;
        let mut talk = Self {
            wire,
            server,
            daemon,
            client,
        };
        talk.say(&format!("first {}", "x".repeat(3 * LONG)), "m")
            .await;
        talk.say("second", "m").await;
        talk
    }

    /// Says something to a model; returns how its exchange ended, and the last request.
    async fn say(&mut self, words: &str, model: &str) -> (Value, Vec<Value>) {
        let send = json!({"type": "chat:send", "content": words, "model": model, "systemPrompt": "Talk.",
            "toolPermissions": {"file_read": {"allowed": true}}});
        self.client.send(send).await;
        let end = self.client.until("chat:stream-end").await;
        (end["payload"]["stopReason"].clone(), self.request())
    }

    /// Has the conversation made shorter; returns what it is told of it, of begin and end.
    async fn compact(&mut self, more: Value) -> (Value, Value) {
        let mut wanted = json!({"type": "chat:compact", "mode": "summary"});
        wanted
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.client.send(wanted).await;
        let started = self.client.until("chat:compaction").await;
        let ended = self.client.until("chat:compaction").await;
        (started["payload"].clone(), ended["payload"].clone())
    }

    async fn kill(self) -> Self {
        let session = self.client.session();
        let daemon = self.daemon.after_kill().await;
        let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
        // Behind all that is told once more.
        client.ask(json!({"type": "session:state"})).await;
        Self {
            daemon,
            client,
            ..self
        }
    }

    /// What the last request holds of the conversation.
    fn request(&self) -> Vec<Value> {
        let request = self.body();
        let messages = request.get("messages").or_else(|| request.get("input"));
        let messages = messages.and_then(Value::as_array);
        messages.cloned().unwrap_or_default()
    }

    fn body(&self) -> Value {
        self.server.requests("v").pop().unwrap()
    }

    /// Fails where a request does not begin with the compaction as it came.
    fn begins_native(&self, messages: &[Value]) {
        let expected = match self.wire {
            Wire::Anthropic => {
                json!({"role": "assistant", "content": [{"type": "compaction", "content": SAID,
                "encrypted_content": "gAAA", "signature": "c2ln/w=="}]})
            }
            _ => json!({"type": "compaction", "id": "cmp_0", "encrypted_content": SAID}),
        };
        assert_eq!(messages[0].to_string(), expected.to_string());
        let rest = json!(messages[1..]).to_string();
        // The facts beside it, and not what it says itself.
        assert!(
            rest.contains("record of the conversation") && !rest.contains(SAID),
            "{rest}"
        );
        assert!(rest.contains("second"), "{rest}");
    }

    /// Fails where a request has the compaction, and not a summary in its place.
    fn begins_with_text(&self, messages: &[Value]) {
        assert_eq!(messages[0]["role"], "user");
        let all = json!(messages).to_string();
        assert!(all.contains("record of the conversation"), "{all}");
        assert!(!all.contains(r#""type":"compaction""#), "{all}");
        // What can be read is in the summary.
        assert_eq!(all.contains(SAID), self.wire == Wire::Anthropic, "{all}");
    }
}

fn compaction(wire: Wire) -> Answer {
    answer(wire, Block::Compaction(SAID.to_owned()), LONG)
}

#[tokio::test]
async fn it_stands_first_and_unchanged_for_the_model_that_made_it() {
    for (wire, native) in VENDORS {
        let answers = vec![compaction(wire), text(wire, "three", SHORT)];
        let mut talk = Talk::begin(wire, native, answers).await;
        let before = talk.request();
        let (started, done) = talk.compact(json!({})).await;
        assert_eq!(
            (&started["phase"], &started["kind"]),
            (&json!("started"), &json!("native"))
        );
        assert_eq!(
            (&done["phase"], &done["kind"]),
            (&json!("done"), &json!("native")),
            "{done}"
        );
        let summary = done["summary"].as_str().unwrap();
        assert_eq!(summary.contains(SAID), wire == Wire::Anthropic, "{summary}");
        // The same beginning as the request before, so that most of it is in the provider's cache.
        let asked = talk.body();
        let sent = talk.request();
        assert_eq!(sent[0].to_string(), before[0].to_string());
        match wire {
            Wire::Anthropic => assert_eq!(asked["compaction"], json!({"type": "summarize"})),
            _ => assert_eq!(sent.last(), Some(&json!({"type": "compaction_trigger"}))),
        }
        let (stop, own) = talk.say("third", "m").await;
        assert_eq!(stop, "end_turn");
        talk.begins_native(&own);
        // After a restart it is the same, byte for byte.
        let mut talk = talk.kill().await;
        let (_, again) = talk.say("fourth", "m").await;
        talk.begins_native(&again);
        assert_eq!(bare(&again)[..own.len() - 1], bare(&own)[..own.len() - 1]);
        // Another model cannot read it.
        let (stop, other) = talk.say("fifth", "n").await;
        assert_eq!(stop, "end_turn");
        talk.begins_with_text(&other);
        let (_, back) = talk.say("sixth", "m").await;
        talk.begins_native(&back);
    }
}

/// Messages without the marks of the cache, which go with the last ones.
fn bare(messages: &[Value]) -> Vec<String> {
    let text = messages.iter().map(Value::to_string);
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    text.map(|message| message.replace(mark, "")).collect()
}

#[tokio::test]
async fn where_it_fails_there_is_a_summary() {
    let summary = "Task: talk. State: half. Next step: go on. ".repeat(8);
    for (wire, native) in VENDORS {
        let refused = Answer::json(
            400,
            &json!({"error": {"type": "invalid_request_error", "message": "compaction?"}}),
        );
        let nothing = answer(wire, Block::Compaction(String::new()), LONG);
        let other = VENDORS.iter().find(|(other, _)| *other != wire).unwrap().1;
        for (native, begins, failed) in [
            (native, "native", Some(refused)),
            (native, "native", Some(nothing)),
            (native, "native", Some(text(wire, "no", LONG))),
            ("off", "summary", None),
            // The other vendor's.
            (other, "summary", None),
        ] {
            let asked = usize::from(failed.is_some());
            let mut answers = Vec::from_iter(failed);
            answers.extend([text(wire, &summary, LONG), text(wire, "three", SHORT)]);
            let mut talk = Talk::begin(wire, native, answers).await;
            let (started, done) = talk.compact(json!({})).await;
            assert_eq!(started["kind"], begins);
            assert_eq!(
                (&done["phase"], &done["kind"]),
                (&json!("done"), &json!("summary")),
                "{done}"
            );
            let (stop, sent) = talk.say("third", "m").await;
            assert_eq!(stop, "end_turn");
            assert!(json!(sent).to_string().contains("Next step: go on."));
            let sent = talk.server.requests("v");
            assert_eq!(sent.len(), 2 + asked + 1 + 1);
            let natively = sent.iter().map(Value::to_string);
            let natively = natively
                .filter(|it| it.contains("compaction_trigger") || it.contains("summarize\""));
            assert_eq!(natively.count(), asked);
        }
    }
}

#[tokio::test]
async fn where_it_is_refused_later_a_summary_takes_its_place_for_good() {
    for (wire, native) in VENDORS {
        let refused = [compaction(wire), refusal(wire), text(wire, "three", SHORT)];
        let mut talk = Talk::begin(wire, native, refused.to_vec()).await;
        let (_, done) = talk.compact(json!({})).await;
        assert_eq!(done["kind"], "native");
        let (stop, sent) = talk.say("third", "m").await;
        assert_eq!(stop, "end_turn");
        talk.begins_with_text(&sent);
        let mut requests = talk.server.requests("v");
        assert_eq!(requests.len(), 5);
        let refused = requests.remove(3).to_string();
        assert!(refused.contains(r#""type":"compaction""#), "{refused}");
        let mut talk = talk.kill().await;
        let (stop, sent) = talk.say("fourth", "m").await;
        assert_eq!(stop, "end_turn");
        talk.begins_with_text(&sent);
        assert_eq!(talk.server.requests("v").len(), 6);
        // With nothing left to drop it is an error like any other.
        talk.server.answers("v", vec![refusal(wire)]);
        let (stop, _) = talk.say("fifth", "m").await;
        assert_eq!(stop, "error");
        assert_eq!(talk.server.requests("v").len(), 7);
    }
}

#[tokio::test]
async fn what_it_is_to_mind_is_said_where_the_vendor_takes_it() {
    let summary = "Task: talk. State: half. Next step: go on. ".repeat(8);
    for (wire, native) in VENDORS {
        let answers = match wire {
            Wire::Anthropic => vec![compaction(wire)],
            _ => vec![text(wire, &summary, LONG)],
        };
        let mut talk = Talk::begin(wire, native, answers).await;
        let (_, done) = talk.compact(json!({"instructions": "mind the port"})).await;
        let asked = talk.body();
        match wire {
            Wire::Anthropic => {
                assert_eq!(done["kind"], "native", "{done}");
                let told = asked["compaction"]["instructions"].as_str().unwrap();
                assert!(told.starts_with("The conversation above"), "{told}");
                assert!(told.ends_with("mind the port"), "{told}");
            }
            _ => {
                assert_eq!(done["kind"], "summary", "{done}");
                assert!(asked.to_string().contains("mind the port"), "{asked}");
            }
        }
    }
}
