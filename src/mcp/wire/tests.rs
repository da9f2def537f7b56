use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};

use super::*;

async fn read(sent: &str, most: usize) -> Vec<Value> {
    let mut output = BufReader::with_capacity(7, sent.as_bytes());
    let intake = Intake::of("s");
    let mut lines = Vec::new();
    while let Some(line) = next(&mut output, most, &intake).await.unwrap() {
        assert_eq!(line.last(), Some(&b'\n'));
        lines.push(serde_json::from_slice(&line).unwrap_or_default());
    }
    lines
}

#[tokio::test]
async fn a_long_answer_fails_its_request_and_the_next_one_is_read() {
    let long = "x\\\"id\\\":9".repeat(2_000);
    for sent in [
        format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"text":"{long}"}}}}"#),
        format!(r#"{{"result":{{"text":"{long}"}},"jsonrpc":"2.0","id":3}}"#),
        format!(r#"{{"result":{{"text":"{long}"}}, "id": 3, "jsonrpc": "2.0"}}"#),
    ] {
        let lines = read(&format!("{sent}\n{{\"id\":4}}\n"), 9_000).await;
        assert_eq!(lines[0]["id"], 3);
        let message = lines[0]["error"]["message"].as_str().unwrap();
        let size = format!("has {} bytes, more than the 9000", sent.len() + 1);
        assert!(message.contains(&size), "{message}");
        assert_eq!(lines[1], json!({"id": 4}));
    }
    let nobodys = format!("{{\"method\":\"a\",\"params\":\"{long}\"}}\n");
    assert_eq!(read(&nobodys, 9_000).await, [Value::Null]);
}

#[tokio::test]
async fn what_is_not_understood_is_left_out_and_the_rest_is_kept() {
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [
        {"type": "weird"}, {"type": "text", "text": "after"}, {"type": "image"},
    ]}});
    let lines = read(&format!("{answer}\n"), MAX_LINE).await;
    let content = &lines[0]["result"]["content"];
    let first = content[0]["text"].as_str().unwrap();
    assert!(first.contains("\"weird\""), "{first}");
    assert_eq!(content[1]["text"], "after");
    assert_eq!(content[2]["type"], "text");
    let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [
        {"name": "bad", "inputSchema": 5}, {"name": "good", "inputSchema": {"type": "object"}},
    ]}});
    let lines = read(&format!("{list}\n"), MAX_LINE).await;
    let tools = &lines[0]["result"]["tools"];
    let schema = tools[0]["inputSchema"].as_object().unwrap();
    assert!(unfit(schema).unwrap().contains("not understood"));
    assert_eq!(tools[1], list["result"]["tools"][1]);
    assert!(unfit(tools[1]["inputSchema"].as_object().unwrap()).is_none());
}

#[tokio::test]
async fn what_is_nested_too_deep_is_cut_there() {
    let (open, close) = ("{\"a\":[".repeat(3_000), "]}".repeat(3_000));
    let sent = format!("{{\"deep\":{open}\"]\\\"\"{close},\"after\":1}}\n");
    let lines = read(&sent, MAX_LINE).await;
    assert_eq!(lines[0]["after"], 1);
    let text = lines[0].to_string();
    assert!(text.contains("[nested too deep, left out]"), "{text}");
    let flat = format!("{{\"flat\":\"{}\"}}\n", "[".repeat(500));
    assert_eq!(fit(flat.clone().into_bytes()), flat.as_bytes());
}

#[tokio::test]
async fn the_end_of_the_output_is_the_end() {
    let mut reader = follow(&b"{\"id\":1}\n{\"unfinished"[..], Intake::of("s"));
    let mut text = String::new();
    reader.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "{\"id\":1}\n");
}

#[tokio::test(start_paused = true)]
async fn a_flood_waits_in_the_pipe() {
    let intake = Intake::of("s");
    let (mut theirs, output) = tokio::io::duplex(1_024);
    let mut written = 0;
    let server = async {
        loop {
            theirs.write_all(b"garbage\n").await.unwrap();
            written += 1;
        }
    };
    let mut reader = follow(output, Arc::clone(&intake));
    let mut read = Vec::new();
    let why = tokio::select! {
        why = intake.failed() => why,
        _ = reader.read_to_end(&mut read) => unreachable!(),
        () = server => unreachable!(),
    };
    assert!(why.contains("sends too much"), "{why}");
    assert!(written < 20_000, "{written}");
}
