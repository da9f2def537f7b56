use serde_json::json;

use super::*;

mod composing;
mod questions;
mod servers;
mod sessions;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// An event from its type and payload.
fn event(kind: &str, payload: &Value) -> Event {
    serde_json::from_value(json!({ "type": kind, "payload": payload })).unwrap()
}

fn ready(resumed: bool) -> Event {
    event(
        "session:ready",
        &json!({"protocolVersion": 1, "daemonVersion": "0.1.0", "sessionId": "s", "resumed": resumed,
            "resumeGraceMs": 60000, "persistent": true, "epoch": 1, "trustLevel": "guided",
            "project": {"name": "p", "root": "/p", "central": "/c"},
            "sandbox": {"mode": "full", "paths": "kernel", "commands": [], "network": "off"},
            "providers": [], "tools": [], "layers": ["stream", "state"]}),
    )
}

fn question(id: &str) -> Event {
    event(
        "chat:tool-confirm",
        &json!({"conversationId": "default", "messageId": "m1", "toolId": id, "toolName": "bash",
            "input": {"command": "ls"}, "danger": {"level": "warning", "reasons": []}, "reason": "r"}),
    )
}

fn resolved(id: &str, outcome: &str, by: &str) -> Event {
    event(
        "chat:tool-resolved",
        &json!({"conversationId": "default", "messageId": "m1", "toolId": id, "outcome": outcome, "by": by}),
    )
}

fn sent() -> Event {
    event(
        "chat:send-result",
        &json!({"conversationId": "default", "messageId": "m1", "state": "started"}),
    )
}

fn end(reason: &str) -> Event {
    event(
        "chat:stream-end",
        &json!({"conversationId": "default", "messageId": "m1", "stopReason": reason, "partial": false,
            "turns": 1, "toolCalls": 0, "usage": {}, "durationMs": 1}),
    )
}

fn refusal(code: &str) -> Event {
    event("session:error", &json!({"code": code, "message": "no"}))
}

/// A chat, and what it did since it was last looked at: requests, prompts and ends, in short.
struct Story {
    talk: Talk,
    did: Vec<String>,
}

impl Story {
    /// A chat that knows that the session is ready.
    fn begin(options: Options) -> Self {
        let mut story = Self {
            talk: Talk::new(options),
            did: Vec::new(),
        };
        story.event(&ready(false), None);
        story
    }

    fn conversation() -> Self {
        Self::begin(Options::default())
    }

    fn one_question() -> Self {
        Self::begin(Options {
            prompt: Some("hi".to_owned()),
            ..Options::default()
        })
    }

    fn event(&mut self, event: &Event, reply_to: Option<u64>) {
        let actions = self.talk.event(event, reply_to, NOW);
        self.note(&actions);
    }

    fn line(&mut self, line: Option<&str>) {
        self.line_at(line, 0);
    }

    /// A line so many seconds later.
    fn line_at(&mut self, line: Option<&str>, seconds: i64) {
        let now = Timestamp::from_second(seconds).unwrap();
        let actions = self.talk.line(line, now);
        self.note(&actions);
    }

    /// A conversation with somebody who types, and a question on the screen.
    fn asked() -> Self {
        let mut story = Self::begin(Options {
            attended: true,
            ..Options::default()
        });
        story.line(Some("hello"));
        story.event(&sent(), Some(1));
        story.event(&question("t1"), None);
        story.did.clear();
        story
    }

    fn note(&mut self, actions: &[Action]) {
        self.did
            .extend(actions.iter().filter_map(|action| match action {
                Action::Show(_) => None,
                Action::Send(id, command) => {
                    let command = serde_json::to_value(command).unwrap();
                    let (kind, payload) = (&command["type"], &command["payload"]);
                    let detail = [
                        "content",
                        "approved",
                        "host",
                        "input",
                        "remember",
                        "reason",
                        "unattended",
                        "queued",
                    ]
                    .iter()
                    .filter_map(|name| Some(format!(" {name}={}", payload.get(name)?)))
                    .collect::<String>();
                    Some(format!("{id} {}{detail}", kind.as_str().unwrap()))
                }
                Action::Read { prompt, fresh } => {
                    let prompt = prompt.split(',').next().unwrap_or_default().trim();
                    Some(format!(
                        "read {prompt}{}",
                        if *fresh { " fresh" } else { "" }
                    ))
                }
                Action::Edit(input) => Some(format!("edit {}", Value::Object(input.clone()))),
                Action::Wait(time) => Some(format!("wait {}", time.as_secs())),
                Action::Open(id) => Some(format!("open {id}")),
                Action::Forget => Some("forget".to_owned()),
                Action::Quit(End::Budget) => Some("quit budget".to_owned()),
                Action::Quit(End::Well) => Some("quit true".to_owned()),
                Action::Quit(End::Badly) => Some("quit false".to_owned()),
                Action::Quit(End::Refused) => Some("quit refused".to_owned()),
            }));
    }

    #[track_caller]
    fn check(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.did), expected);
    }
}

#[test]
fn one_question_is_asked_and_answered() {
    let mut story = Story::one_question();
    story.check(&[r#"c1 chat:send content="hi""#]);
    story.event(&sent(), Some(1));
    story.check(&[]);
    story.event(&end("end_turn"), None);
    story.check(&["quit true"]);
}

#[test]
fn a_question_without_an_answer_ends_badly() {
    for reason in ["error", "timeout", "sandbox_violation", "cancelled"] {
        let mut story = Story::one_question();
        story.event(&sent(), Some(1));
        story.did.clear();
        story.event(&end(reason), None);
        story.check(&["quit false"]);
    }
    let not_admitted = event(
        "chat:error",
        &json!({"conversationId": "default", "code": "queue_full", "message": "m", "retryable": true}),
    );
    for answer in [refusal("provider_not_found"), not_admitted] {
        let mut story = Story::one_question();
        story.did.clear();
        story.event(&answer, Some(1));
        story.check(&["quit false"]);
    }
}

#[test]
fn the_greeting_has_no_trust_level_where_a_flag_asks_for_another() {
    for (trust_level, expected) in [
        (None, "(sandbox: full, trust: guided);"),
        (Some(TrustLevel::Autonomous), "(sandbox: full);"),
    ] {
        let configure = Configure {
            trust_level,
            model: Some("m".to_owned()),
            ..Configure::default()
        };
        let mut talk = Talk::new(Options {
            configure: Some(configure),
            ..Options::default()
        });
        let shown = talk.event(&ready(false), None, NOW).into_iter();
        let shown: String = shown
            .filter_map(|action| match action {
                Action::Show(Piece::Aside(_, text)) => Some(text),
                _ => None,
            })
            .collect();
        assert!(shown.contains(expected), "{shown}");
    }
}

#[test]
fn defaults_are_set_before_anything_is_asked() {
    let options = || Options {
        prompt: Some("hi".to_owned()),
        configure: Some(Configure {
            model: Some("m".to_owned()),
            ..Configure::default()
        }),
        ..Options::default()
    };
    let configured = event(
        "session:configure-result",
        &json!({"trustLevel": "guided", "provider": "p", "model": "m", "workflow": "", "layers": []}),
    );
    let mut story = Story::begin(options());
    story.check(&["c1 session:configure"]);
    story.event(&configured, Some(1));
    story.check(&[r#"c2 chat:send content="hi""#]);
    let mut story = Story::begin(options());
    story.did.clear();
    story.event(&refusal("forbidden"), Some(1));
    story.check(&["quit false"]);
}

#[test]
fn servers_that_are_being_started_are_waited_for() {
    let begin = || {
        let mut story = Story::begin(Options {
            prompt: Some("hi".to_owned()),
            servers: true,
            ..Options::default()
        });
        story.check(&["c1 mcp:list"]);
        story
    };
    let list = |states: &[&str]| {
        let row = |state: &&str| json!({"name": "s", "state": state, "tools": [], "resources": [], "prompts": []});
        let servers: Vec<Value> = states.iter().map(row).collect();
        event("mcp:list-result", &json!({ "servers": servers }))
    };
    let notice = |code: &str| {
        let payload = json!({"severity": "info", "code": code, "message": "m"});
        event("session:notice", &payload)
    };
    for none in [list(&[]), list(&["ready", "failed"]), refusal("forbidden")] {
        let mut story = begin();
        story.event(&none, Some(1));
        story.check(&[r#"c2 chat:send content="hi""#]);
    }
    let mut story = begin();
    // Nothing is waited for yet.
    story.event(&notice("mcp_ready"), None);
    story.event(&list(&["ready", "starting"]), Some(1));
    story.check(&["wait 30"]);
    story.event(&notice("history_repaired"), None);
    story.check(&[]);
    story.event(&notice("mcp_restarting"), None);
    story.event(&notice("mcp_ready"), None);
    story.check(&["c2 mcp:list", "c3 mcp:list"]);
    // It may be older than the notice after it.
    story.event(&list(&["restarting"]), Some(2));
    story.check(&[]);
    story.event(&list(&["ready"]), Some(3));
    story.check(&[r#"c4 chat:send content="hi""#]);
    let late = story.talk.waited();
    story.note(&late);
    story.check(&[]);

    let mut story = begin();
    story.event(&list(&["starting"]), Some(1));
    story.event(&notice("mcp_slow"), None);
    let late = story.talk.waited();
    story.note(&late);
    story.event(&list(&["starting"]), Some(2));
    story.check(&["wait 30", "c2 mcp:list", r#"c3 chat:send content="hi""#]);

    let mut story = begin();
    story.event(&list(&["starting"]), Some(1));
    let actions = story.talk.interrupted();
    story.note(&actions);
    story.check(&["wait 30", "quit false"]);
}

#[test]
fn a_conversation_goes_from_prompt_to_prompt() {
    let mut story = Story::conversation();
    story.check(&["read >"]);
    story.line(Some(""));
    story.check(&["read >"]);
    story.line(Some("hello"));
    story.check(&[r#"c1 chat:send content="hello""#]);
    story.event(&sent(), Some(1));
    story.event(&end("error"), None);
    story.check(&["read >"]);
    story.line(Some("/history"));
    story.check(&["c2 chat:history"]);
    let history = json!({"conversationId": "default", "messages": []});
    story.event(&event("chat:history-result", &history), Some(2));
    story.check(&["read >"]);
    story.line(None);
    story.check(&["quit true"]);
}

#[test]
fn a_path_that_ended_the_exchange_is_gone_on_without() {
    let mut story = Story::conversation();
    story.line(Some("hello"));
    story.event(&sent(), Some(1));
    story.event(&end("sandbox_violation"), None);
    story.did.clear();
    story.line(Some("g"));
    story.check(&[r#"c2 chat:send content="Go on, without that path.""#]);
    story.event(&sent(), Some(2));
    story.event(&end("end_turn"), None);
    story.check(&["read >"]);
    story.line(Some("g"));
    story.check(&[r#"c3 chat:send content="g""#]);
}

#[test]
fn ctrl_c_cancels_and_twice_quits() {
    let mut story = Story::one_question();
    story.did.clear();
    let actions = story.talk.interrupted();
    story.note(&actions);
    story.check(&["c2 chat:cancel queued=true"]);
    let actions = story.talk.interrupted();
    story.note(&actions);
    story.check(&["quit false"]);

    // Before the daemon was there to be asked.
    let mut story = Story {
        talk: Talk::new(Options {
            prompt: Some("hi".to_owned()),
            ..Options::default()
        }),
        did: Vec::new(),
    };
    let actions = story.talk.interrupted();
    story.note(&actions);
    story.check(&["quit false"]);

    let mut story = Story::conversation();
    story.did.clear();
    let actions = story.talk.interrupted();
    story.note(&actions);
    story.line(Some(""));
    let actions = story.talk.interrupted();
    story.note(&actions);
    story.check(&["read >", "read >", "read >"]);
}

#[test]
fn what_has_no_answer_is_sent_again_after_the_replay() {
    let mut story = Story::one_question();
    story.did.clear();
    story.event(&ready(true), None);
    story.check(&["c2 session:ping"]);
    let pong = event("session:ping-result", &json!({}));
    story.event(&pong, Some(2));
    story.check(&[r#"c1 chat:send content="hi""#]);

    let mut story = Story::one_question();
    story.event(&ready(true), None);
    story.event(&sent(), Some(1));
    story.did.clear();
    story.event(&pong, Some(2));
    story.check(&[]);
}

#[test]
fn a_session_that_is_gone_is_begun_anew() {
    let mut story = Story::conversation();
    story.line(Some("hello"));
    story.event(&question("t1"), None);
    story.did.clear();
    story.event(&ready(false), None);
    story.check(&["read >"]);
    story.line(Some("again"));
    story.check(&[r#"c2 chat:send content="again""#]);

    let mut story = Story::one_question();
    story.did.clear();
    story.event(&ready(false), None);
    story.check(&["quit false"]);
}
