use std::fs;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use serde_json::json;

use super::*;
use crate::config::ProviderKind;
use crate::message::{
    DangerLevel, Message, Part, Reply, ToolCategory, ToolId, ToolResult, ToolSpec,
};
use crate::provider::testing::config;
use crate::provider::{CallInput, Chunk, Stop, ToolChoice};

fn provider(script: Option<&Path>) -> Scripted {
    Scripted::new(Arc::new(ProviderConfig {
        id: "scripted".to_owned(),
        script: script.map(Path::to_owned),
        ..config(ProviderKind::Scripted, "scripted", "")
    }))
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: String::new(),
        input_schema: json!({"type": "object"}).into(),
        category: ToolCategory::File,
        danger_level: DangerLevel::Safe,
        origin: "core".into(),
    }
}

fn user(text: &str) -> Message {
    Message::User(vec![Part::text(text)])
}

fn result(tool: &str, text: &str, is_error: bool) -> [Message; 2] {
    [
        Message::Reply(Reply::default()),
        Message::ToolResult(ToolResult {
            id: ToolId::new("t1"),
            name: tool.into(),
            content: vec![Part::text(text)],
            is_error,
        }),
    ]
}

/// What a turn came to, in words.
async fn turn(provider: &Scripted, messages: &[Message], tools: &[ToolSpec]) -> String {
    let request = Request {
        front: &[],
        model: "any",
        system: "",
        messages,
        tools,
        tool_choice: ToolChoice::Auto,
        max_tokens: None,
        temperature: None,
        thinking: None,
        cache_key: "c",
        output: None,
        compact: None,
    };
    let mut stream = match provider.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return format!("refused {:?}: {error}", error.kind),
    };
    let mut words = String::new();
    while let Some(chunk) = stream.next().await {
        match chunk {
            Ok(Chunk::Start { .. }) => {}
            Ok(Chunk::Text(text) | Chunk::Thinking(text)) => words.push_str(&text),
            Ok(Chunk::ToolCallStart { name, .. }) => words.push_str(&format!(" [{name}")),
            Ok(Chunk::ToolCallDelta { fragment, .. }) => words.push_str(&fragment),
            Ok(Chunk::ToolCallEnd { input, .. }) => words.push_str(match input {
                CallInput::Object(_) => "]",
                CallInput::Invalid { .. } => " invalid]",
                CallInput::Truncated { .. } => " truncated]",
            }),
            Ok(Chunk::Notice(notice)) => words.push_str(&notice.code),
            Ok(Chunk::End(end)) => words.push_str(&format!(" {:?}", end.stop)),
            Err(error) => words.push_str(&format!(" {:?}", error.kind)),
        }
    }
    words
}

#[tokio::test(start_paused = true)]
async fn the_demonstration_answers_anything_and_shows_tools_and_approval() {
    let demo = provider(None);
    let tools = [tool("file_read"), tool("bash")];
    let mut history = vec![user("Guten Tag")];
    let hello = turn(&demo, &history, &tools).await;
    for part in [
        "> Guten Tag",
        "scripted",
        "ANTHROPIC_API_KEY",
        "**demo**",
        "EndTurn",
    ] {
        assert!(hello.contains(part), "{part} in {hello}");
    }
    history.push(Message::Reply(Reply::default()));
    history.push(user("Show me a DEMO"));
    let reads = turn(&demo, &history, &tools).await;
    assert!(
        reads.contains("[file_read{\"path\":\"README.md\",\"limit\":40}] ToolUse"),
        "{reads}"
    );
    assert!(
        turn(&demo, &history, &[])
            .await
            .contains("understand nothing")
    );

    history.extend(result("file_read", "# Title", false));
    let asks = turn(&demo, &history, &tools).await;
    assert!(
        asks.contains("[bash{\"command\":\"ls -la\"}] ToolUse"),
        "{asks}"
    );
    let alone = turn(&demo, &history, &tools[..1]).await;
    assert!(
        alone.contains("# Title") && alone.contains("EndTurn"),
        "{alone}"
    );

    for (text, failed, expected) in [
        ("total 0", false, "The command ran"),
        ("the user denied it", true, "did not run"),
    ] {
        let mut history = history.clone();
        history.extend(result("bash", text, failed));
        let answer = turn(&demo, &history, &tools).await;
        for part in [expected, text, "ANTHROPIC_API_KEY", "EndTurn"] {
            assert!(answer.contains(part), "{part} in {answer}");
        }
    }
    let missing: Vec<Message> = std::iter::once(user("demo"))
        .chain(result("file_read", "no such file", true))
        .collect();
    assert!(turn(&demo, &missing, &tools).await.contains("[bash"));
}

#[tokio::test(start_paused = true)]
async fn each_act_and_condition_does_what_the_page_says() {
    let cases = [
        (
            "- play: [{ text: 'Hello {user} {other} {' }]",
            "Hello hi {other} { EndTurn",
        ),
        (
            "- play: [{ error: { kind: rate_limit, status: 429, retry_after: 2s } }]",
            "refused RateLimit: the script fails here: RateLimit",
        ),
        (
            "- play: [{ text: a }, { pause: 1h }, { error: { kind: overloaded } }, { text: b }]",
            "a Overloaded",
        ),
        (
            "- play: [{ call: { name: x, raw: '{\"a\":' } }]",
            " [x{\"a\": invalid] ToolUse",
        ),
        (
            "- play: [{ call: { name: x, raw: '{\"a\":' } }]\n  stop: max_tokens",
            " [x{\"a\": truncated] MaxTokens",
        ),
        (
            "- play: [{ call: { name: x } }, { call: { name: y, input: { n: [1, 2.5, null, true] } } }]",
            " [x{}] [y{\"n\":[1,2.5,null,true]}] ToolUse",
        ),
        (
            "- { when: { user: [zzz, HI] }, play: [{ text: a }] }",
            "a EndTurn",
        ),
        (
            "- { when: { user: zzz }, play: [{ text: a }] }\n- play: [{ text: b }]",
            "b EndTurn",
        ),
        (
            "- { when: { turn: 1 }, play: [{ text: a }] }",
            "refused InvalidRequest: the script has no step for this message",
        ),
        (
            "- { when: { result: '' }, play: [{ text: a }] }\n- play: [{ text: b }]",
            "b EndTurn",
        ),
        (
            "- { when: { failed: false }, play: [{ text: a }] }\n- play: [{ text: b }]",
            "b EndTurn",
        ),
        (
            "- { times: 0, play: [{ text: a }] }\n- play: []\n  stop: refusal",
            " Refusal",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.yaml");
    for (steps, expected) in cases {
        fs::write(&path, format!("pace: 1ms\nsteps:\n{steps}\n")).unwrap();
        assert_eq!(
            turn(&provider(Some(&path)), &[user("hi")], &[]).await,
            expected,
            "{steps}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_is_given_as_often_as_it_may_be_and_figures_are_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.toml");
    let script = "
        model = 'm'
        [[steps]]
        times = 2
        play = [{ error = { kind = 'server' } }]
        [[steps]]
        play = [{ text = 'abcdefghij' }]
        usage = { input = 5, cache_read = 2 }
    ";
    fs::write(&path, script).unwrap();
    let scripted = provider(Some(&path));
    let hi = [user("hi")];
    for _ in 0..2 {
        assert!(
            turn(&scripted, &hi, &[])
                .await
                .starts_with("refused Server")
        );
    }
    let request = Request {
        front: &[],
        model: "any",
        system: "",
        messages: &hi,
        tools: &[],
        tool_choice: ToolChoice::None,
        max_tokens: None,
        temperature: None,
        thinking: None,
        cache_key: "c",
        output: None,
        compact: None,
    };
    let chunks: Vec<_> = scripted.stream(request).await.unwrap().collect().await;
    assert_eq!(
        chunks[0],
        Ok(Chunk::Start {
            model: Some("m".into())
        })
    );
    assert_eq!(chunks[1], Ok(Chunk::Text("abcdefgh".into())));
    let Ok(Chunk::End(end)) = &chunks[3] else {
        panic!("{chunks:?}");
    };
    assert_eq!(
        (end.stop, end.usage.input, end.usage.output),
        (Stop::EndTurn, Some(5), None)
    );
    assert_eq!(scripted.models().await.unwrap()[0].id, "m");
}

#[tokio::test]
async fn mistakes_in_a_script_are_named() {
    let cases = [
        ("a.yaml", "steps: []", "needs at least one"),
        ("a.yaml", "steps: [{ play: [{ say: x }] }]", "say"),
        ("a.yaml", "steps: [{ plays: [] }]", "plays"),
        (
            "a.yaml",
            "pace: soon\nsteps: [{ play: [] }]",
            "\"soon\" is no duration",
        ),
        (
            "a.yaml",
            "steps: [{ play: [{ error: { kind: bad } }] }]",
            "unknown variant `bad`, expected one of connect, timeout",
        ),
        (
            "a.yaml",
            "steps: [{ play: [{ text: a }, { recording: { file: f, api: openai-chat } }] }]",
            "stands alone",
        ),
        ("a.json", "{", "a.json"),
        ("a.txt", "", "ends in .yaml"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, text, expected) in cases {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let error = provider(Some(&path)).validate().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotConfigured);
        assert!(
            error.message.contains(expected),
            "{expected} in {}",
            error.message
        );
    }
    let missing = provider(Some(&folder.path().join("none.yaml")));
    assert!(
        missing
            .validate()
            .await
            .unwrap_err()
            .message
            .contains("none.yaml")
    );
}

const CHAT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hallo\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

#[tokio::test(start_paused = true)]
async fn recordings_go_through_the_real_parser() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.sse"), CHAT).unwrap();
    fs::write(
        folder.path().join("b.json"),
        "{\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}",
    )
    .unwrap();
    let script = folder.path().join("script.yaml");
    for (recording, expected) in [
        ("{ file: a.sse, api: openai-chat }", "hallo EndTurn"),
        (
            "{ file: b.json, api: anthropic-messages, status: 529 }",
            "refused Overloaded: busy",
        ),
        ("{ file: a.sse, api: nonsense }", "refused NotConfigured"),
        (
            "{ file: none.sse, api: openai-chat }",
            "refused NotConfigured",
        ),
    ] {
        fs::write(
            &script,
            format!("steps: [{{ play: [{{ recording: {recording} }}] }}]"),
        )
        .unwrap();
        let found = turn(&provider(Some(&script)), &[user("hi")], &[]).await;
        assert!(found.starts_with(expected), "{recording}: {found}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_folder_of_recordings_is_played_in_order_with_its_pauses() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.sse"), CHAT).unwrap();
    fs::write(folder.path().join("b.json"), "{\"error\":\"busy\"}").unwrap();
    let manifest = json!({"format": 1, "recordings": [
        {"file": "b.json", "api": "ollama-chat", "status": 429, "headers": {"retry-after": "7"}},
        {"file": "a.sse", "api": "openai-chat", "status": 200,
         "headers": {"content-type": "text/event-stream"},
         "timing": [[700, 10], [0, 60], [9_999_999, 5]], "provider": "x"},
    ]});
    fs::write(folder.path().join("manifest.json"), manifest.to_string()).unwrap();
    let scripted = provider(Some(folder.path()));
    let started = tokio::time::Instant::now();
    let hi = [user("hi")];
    assert_eq!(turn(&scripted, &hi, &[]).await, "refused RateLimit: busy");
    assert_eq!(turn(&scripted, &hi, &[]).await, "hallo EndTurn");
    assert_eq!(started.elapsed(), Duration::from_millis(2700));
    assert_eq!(
        turn(&scripted, &hi, &[]).await,
        "refused InvalidRequest: all 2 recordings were played"
    );
}

#[tokio::test]
async fn a_folder_of_scripts_is_one_script() {
    let folder = tempfile::tempdir().unwrap();
    let step = |word: &str| json!({"steps": [{"when": {"user": word}, "play": [{"text": word}]}]});
    for word in ["b", "a"] {
        fs::write(
            folder.path().join(format!("{word}.json")),
            step(word).to_string(),
        )
        .unwrap();
    }
    fs::write(folder.path().join("notes.txt"), "no script").unwrap();
    let scripted = provider(Some(folder.path()));
    assert_eq!(turn(&scripted, &[user("ab")], &[]).await, "a EndTurn");
    assert_eq!(turn(&scripted, &[user("b")], &[]).await, "b EndTurn");
    let empty = tempfile::tempdir().unwrap();
    assert!(provider(Some(empty.path())).validate().await.is_err());
}
