//! Calls that the client runs, in any order of call, answer, drop, resume, cancel, time-out, register and unregister: each
//! call that was handed out has one result, is answered or taken back once, and the history is valid.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::exchange::history::is_valid;
use crate::message::Message as Said;
use crate::provider::Stop;

/// Cases where all tests are wanted.
const FULL_CASES: u32 = 10_000;

const TOOLS: [&str; 3] = ["a", "b", "c"];

/// What happens besides what [`super::Act`] has.
#[derive(Clone, Debug)]
enum Deed {
    Act(Act),
    /// Registers the tools of these numbers, with a description of this number.
    Register(BTreeSet<u8>, bool, u8),
    Unregister(Option<u8>),
    /// Answers the call that is so many before the newest it saw.
    Output(u8, Answer),
    CancelTool(u8),
    /// Says something at a trust level where nothing is asked.
    Go(u8),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Progress,
    Whole,
    Failure,
    Wrong,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let tools = || prop::collection::btree_set(0..3_u8, 0..4);
    let answer = prop::sample::select(vec![
        Answer::Progress,
        Answer::Whole,
        Answer::Whole,
        Answer::Failure,
        Answer::Wrong,
    ]);
    let one = prop_oneof![
        8 => (0..30_u8).prop_map(|steps| Deed::Act(Act::Steps(steps))),
        2 => (0..40_000_u16).prop_map(|millis| Deed::Act(Act::Pass(millis))),
        8 => (1..4_000_u16).prop_map(|most| Deed::Act(Act::Read(most))),
        2 => (0..20_u8).prop_map(|arrive| Deed::Act(Act::Break(arrive))),
        4 => (0..30_u8).prop_map(|forgets| Deed::Act(Act::Return(forgets))),
        4 => (0..3_u8).prop_map(Deed::Go),
        1 => (0..3_u8).prop_map(|who| Deed::Act(Act::Say(who, "queue"))),
        1 => (0..3_u8, any::<bool>()).prop_map(|(who, queued)| Deed::Act(Act::Cancel(who, queued))),
        2 => (0..3_u8, any::<bool>()).prop_map(|(back, yes)| Deed::Act(Act::Answer(back, yes))),
        1 => (0..3_u8).prop_map(|who| Deed::Act(Act::Close(who))),
        4 => (tools(), any::<bool>(), 0..2_u8)
            .prop_map(|(tools, replace, said)| Deed::Register(tools, replace, said)),
        1 => prop::option::of(0..3_u8).prop_map(Deed::Unregister),
        8 => (0..4_u8, answer).prop_map(|(back, answer)| Deed::Output(back, answer)),
        1 => (0..4_u8).prop_map(Deed::CancelTool),
    ];
    prop::collection::vec(one, 0..60)
}

fn script() -> impl Strategy<Value = Vec<(Vec<Move>, Finish)>> {
    let one = prop_oneof![
        1 => Just(Move::Say),
        5 => prop::sample::select(vec!["client__a", "client__b", "client__c"])
            .prop_map(Move::Named),
        1 => Just(Move::Call("ok")),
    ];
    let turn = prop::collection::vec(one, 0..4);
    prop::collection::vec((turn, Just(Finish::End(Stop::ToolUse))), 0..12)
}

/// Returns the id of the call that is so many before the newest that the client saw handed out.
fn handed_out(client: &Client, back: u8) -> Option<Value> {
    let frames = client.seen.values().rev();
    let mut calls = frames.filter(|it| it.contains("\"chat:tool-call\""));
    let frame = calls.nth(usize::from(back))?;
    let frame: Value = serde_json::from_str(frame).unwrap();
    Some(frame["payload"]["toolId"].clone())
}

async fn act(client: &mut Client, deed: &Deed) -> Result<(), TestCaseError> {
    match deed {
        Deed::Act(act) => client.act(act).await?,
        Deed::Register(tools, replace, said) => {
            let tools = tools.iter().filter_map(|it| TOOLS.get(usize::from(*it)));
            let tools: Vec<Value> = tools
                .map(|name| {
                    json!({"name": name, "description": format!("Says {said}."), "inputSchema": {},
                        "timeoutMs": 20_000})
                })
                .collect();
            let register = json!({"type": "tool:register", "tools": tools, "replace": replace});
            client.ask(register).await;
        }
        Deed::Unregister(which) => {
            let name = which.and_then(|it| TOOLS.get(usize::from(it)));
            let names = name.map(|name| vec![*name]);
            client
                .ask(json!({"type": "tool:unregister", "names": names}))
                .await;
        }
        Deed::Output(back, answer) => {
            if let Some(id) = handed_out(client, *back) {
                let mut output = json!({"type": "chat:tool-output", "toolId": id});
                match answer {
                    Answer::Progress => output["chunk"] = json!("more"),
                    Answer::Whole => output["content"] = json!("done"),
                    Answer::Failure => {
                        output["content"] = json!("failed");
                        output["isError"] = json!(true);
                    }
                    Answer::Wrong => {}
                }
                client.ask(output).await;
            }
        }
        Deed::CancelTool(back) => {
            if let Some(id) = handed_out(client, *back) {
                client
                    .ask(json!({"type": "tool:cancel", "toolId": id}))
                    .await;
            }
        }
        Deed::Go(who) => {
            let go = json!({"type": "chat:send", "conversationId": format!("c{who}"), "content": "go",
                "trustLevel": "autonomous"});
            client.ask(go).await;
        }
    }
    Ok(())
}

async fn play(
    script: Vec<(Vec<Move>, Finish)>,
    deeds: Vec<Deed>,
    buffer_bytes: usize,
) -> Result<(), TestCaseError> {
    let daemon = daemon(script, buffer_bytes);
    let sessions = Sessions::new(Arc::clone(&daemon)).of(Arc::default());
    let session = sessions.create(None).await.expect("room for a session");
    let mut client = Client::connect(session).await;
    let layers = json!({"type": "session:configure", "layers": ["stream", "state", "message"]});
    client.ask(layers).await;
    act(&mut client, &Deed::Register((0..3).collect(), false, 0)).await?;
    act(&mut client, &Deed::Go(0)).await?;
    for deed in &deeds {
        act(&mut client, deed).await?;
        if client.expired {
            return all_gone(&daemon).await;
        }
    }
    client.come_back(0).await?;
    if client.expired {
        return all_gone(&daemon).await;
    }
    // Calls that nobody answers are given up, and the client reads to the end.
    tokio::time::sleep(Duration::from_secs(24 * 3_600)).await;
    while client.read(usize::MAX, usize::MAX).await? {}
    for who in 0..3 {
        let ask = json!({"type": "chat:history", "conversationId": format!("c{who}"), "id": format!("h{who}")});
        client.ask(ask).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        while client.read(usize::MAX, usize::MAX).await? {}
    }
    judge(&client)?;
    judge_calls(&client)?;
    drop(client);
    all_gone(&daemon).await
}

/// Checks what became of the calls that the client was handed.
fn judge_calls(client: &Client) -> Result<(), TestCaseError> {
    let (mut handed, mut results, mut ends) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    for event in client.events() {
        match event {
            Event::ChatToolCall(it) => {
                let is_new = handed.insert(it.tool_id.to_string());
                prop_assert!(is_new || !client.gaps.is_empty(), "handed out twice");
            }
            Event::ChatToolResult(it) => *results.entry(it.tool_id.to_string()).or_insert(0) += 1,
            Event::ChatToolCancelled(it) => {
                *ends.entry(it.tool_id.to_string()).or_insert(0) += 1;
            }
            Event::ChatHistoryResult(it) if client.gaps.is_empty() => {
                let messages: Vec<Said> = it.messages.into_iter().map(Said::from).collect();
                prop_assert!(is_valid(&messages));
            }
            _ => {}
        }
    }
    if !client.gaps.is_empty() {
        return Ok(());
    }
    // An output that counted ended its call; of one that was only progress nothing is counted here.
    let mut asked = BTreeMap::new();
    for frame in client.seen.values() {
        let frame: Value = serde_json::from_str(frame).unwrap();
        if frame["type"] == "chat:tool-output-result" && frame["payload"]["duplicate"] != true {
            let id = frame["payload"]["toolId"].as_str().unwrap().to_owned();
            let reply = frame["replyTo"].as_str().unwrap().to_owned();
            asked.insert(reply, (id, frame["payload"]["accepted"] == true));
        }
    }
    for reply in &client.outputs {
        if let Some((id, true)) = asked.get(reply) {
            *ends.entry(id.clone()).or_insert(0) += 1;
        }
    }
    for id in &handed {
        prop_assert_eq!(results.get(id), Some(&1), "results of {}", id);
        prop_assert_eq!(ends.get(id), Some(&1), "ends of {}", id);
    }
    Ok(())
}

fn cases() -> u32 {
    match std::env::var_os("OUTRIGGER_FULL_TESTS") {
        Some(_) => FULL_CASES,
        None => ProptestConfig::default().cases,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        rng_algorithm: proptest::test_runner::RngAlgorithm::XorShift,
        ..ProptestConfig::default()
    })]

    #[test]
    fn each_call_of_the_client_has_one_result(
        script in script(),
        deeds in deeds(),
        buffer_bytes in prop::sample::select(vec![3_000, 8 << 20, 8 << 20]),
    ) {
        paused().block_on(play(script, deeds, buffer_bytes))?;
    }
}
