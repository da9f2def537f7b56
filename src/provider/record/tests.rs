use std::fs;
use std::time::Duration;

use futures::stream;
use reqwest::header::HeaderValue;
use secrecy::SecretString;
use serde_json::json;

use super::*;
use crate::config::ProviderKind;
use crate::provider::{ErrorKind, ProviderError, testing};

fn config(folder: &Path) -> ProviderConfig {
    ProviderConfig {
        id: "my/server".into(),
        api_key: Some(SecretString::from("the-secret-key".to_owned())),
        record: Some(folder.to_owned()),
        ..testing::config(ProviderKind::Chat, "openai", "http://user:pass@host")
    }
}

fn tape(folder: &Path) -> Tape {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("x-ratelimit-reset-tokens", "1s"),
        ("set-cookie", "session=1"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let mut tape = Tape::new(
        folder,
        &config(folder),
        "openai-chat",
        b"{\"model\":\"m\"}".to_vec(),
    );
    tape.answered(200, &headers);
    tape
}

fn manifest(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join(MANIFEST)).unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_exchange_is_kept_with_its_time_and_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("new");
    let reads = stream::iter([(5, "data: 1\n\n"), (700, "data: [DONE]\n\n")])
        .then(|(pause, text)| async move {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            Ok(Bytes::from_static(text.as_bytes()))
        })
        .boxed();
    let read: Vec<_> = tape(&folder).around(reads).collect().await;
    assert_eq!(read.len(), 2);
    let list = manifest(&folder);
    let entry = &list["recordings"][0];
    assert_eq!(entry["file"], "0001-my_server.sse");
    assert_eq!(entry["api"], "openai-chat");
    assert_eq!(entry["timing"], json!([[5, 9], [700, 14]]));
    assert_eq!(entry["ended"], "complete");
    assert_eq!(
        entry["headers"],
        json!({"content-type": "text/event-stream", "x-ratelimit-reset-tokens": "1s"})
    );
    let body = fs::read_to_string(folder.join("0001-my_server.sse")).unwrap();
    assert_eq!(body, "data: 1\n\ndata: [DONE]\n\n");
    let request = fs::read_to_string(folder.join("0001-my_server.request.json")).unwrap();
    assert_eq!(request, "{\"model\":\"m\"}");
    let all = list.to_string() + &body + &request;
    assert!(!all.contains("secret") && !all.contains("pass"), "{all}");
}

#[tokio::test]
async fn later_exchanges_are_added_and_say_how_they_ended() {
    let folder = tempfile::tempdir().unwrap();
    let broke = ProviderError::new(ErrorKind::Timeout, "silence");
    let bytes = stream::iter([Ok(Bytes::from_static(b"a")), Err(broke)]).boxed();
    let mut read = tape(folder.path()).around(bytes);
    while read.next().await.is_some_and(|read| read.is_ok()) {}
    drop(read);
    let unread = tape(folder.path()).around(stream::pending().boxed());
    drop(unread);
    let list = manifest(folder.path());
    let ended: Vec<&Value> = list["recordings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["ended"])
        .collect();
    assert_eq!(ended, ["silence", "left before the end"]);
    assert!(folder.path().join("0002-my_server.sse").is_file());
}

#[tokio::test]
async fn recordings_stand_in_the_order_of_their_requests() {
    let folder = tempfile::tempdir().unwrap();
    let first = tape(folder.path());
    let mut refused = Tape::new(
        folder.path(),
        &config(folder.path()),
        "openai-chat",
        b"{}".to_vec(),
    );
    let third = tape(folder.path());
    drop(third);
    refused.failed(&ProviderError::new(ErrorKind::Connect, "refused"));
    drop(refused);
    drop(first);
    drop(tape(folder.path()));
    let list = manifest(folder.path());
    let ends: Vec<String> = list["recordings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let file = entry["file"].as_str().unwrap();
            format!("{file} {} {}", entry["status"], entry["failed"])
        })
        .collect();
    assert_eq!(
        ends,
        [
            "0001-my_server.sse 200 null",
            "0002-my_server.json null \"connect\"",
            "0003-my_server.sse 200 null",
            "0004-my_server.sse 200 null",
        ]
    );
}

#[test]
fn an_answer_without_end_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let mut tape = futures::executor::block_on(async { tape(folder.path()) });
    let read = Bytes::from(vec![b'a'; 1024 * 1024]);
    for _ in 0..65 {
        tape.add(&read);
    }
    assert_eq!(tape.body.len(), MAX_BODY_BYTES);
    tape.body.clear();
}

#[test]
fn what_is_no_manifest_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(MANIFEST), "mine").unwrap();
    drop(futures::executor::block_on(async { tape(folder.path()) }));
    assert_eq!(
        fs::read_to_string(folder.path().join(MANIFEST)).unwrap(),
        "mine"
    );
}

#[tokio::test]
async fn a_key_that_the_server_repeats_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let reads =
        ["data: the-secr", "et-key\n\n"].map(|text| Ok(Bytes::from_static(text.as_bytes())));
    let reads: Vec<_> = tape(folder.path())
        .around(stream::iter(reads).boxed())
        .collect()
        .await;
    assert_eq!(reads.len(), 2);
    let body = fs::read_to_string(folder.path().join("0001-my_server.sse")).unwrap();
    assert_eq!(body, "data: **************\n\n");
    let entry = &manifest(folder.path())["recordings"][0];
    assert_eq!(entry["bytes"], body.len());
    assert_eq!(entry["timing"][1][1], 8);
}
