use futures::FutureExt;

use super::super::frames::SHOWN_BYTES;
use super::*;
use crate::message::Usage;
use crate::provider::decode::{Answer, Wire};
use crate::provider::json::Json;
use crate::provider::{End, Stop};

/// Frames are text; `[DONE]` ends; `"bad"` is an error; a whole body is one text.
struct Plain {
    is_ndjson: bool,
}

const SSE: bool = false;
const NDJSON: bool = true;

impl Wire for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn is_ndjson(&self) -> bool {
        self.is_ndjson
    }

    fn frame(&mut self, frame: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        if frame.as_str() == Some("bad") {
            answer.chunks.push(Chunk::Text("before".into()));
            return Err(ProviderError::new(ErrorKind::Server, "bad"));
        }
        let text = format!("{}{frame}", answer.event);
        answer.chunks.push(Chunk::Text(text));
        Ok(())
    }

    fn whole(&mut self, body: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        answer.chunks.push(Chunk::Text(format!("whole {body}")));
        self.marker(answer)
    }

    fn marker(&mut self, answer: &mut Answer) -> Result<(), ProviderError> {
        answer.done = true;
        answer.chunks.push(Chunk::End(End {
            stop: Stop::EndTurn,
            raw_stop: None,
            usage: Usage::default(),
            native: None,
        }));
        Ok(())
    }

    fn finish(&mut self, answer: &mut Answer) -> Result<(), ProviderError> {
        answer.chunks.push(Chunk::Text("closed".into()));
        Err(ProviderError::new(ErrorKind::IncompleteStream, "cut"))
    }
}

fn plain(is_ndjson: bool) -> Decoder {
    Decoder::new(Box::new(Plain { is_ndjson }), "p", "m", Vec::new())
}

type Piece = Result<&'static str, ErrorKind>;

/// Reads a body and returns its texts, then `end` or the error's kind.
fn read(is_ndjson: bool, content_type: &str, reads: &[Piece], single: bool) -> Vec<String> {
    let mut bytes = Vec::new();
    for read in reads {
        match read {
            Ok(text) if single => {
                bytes.extend(text.bytes().map(|byte| Ok(Bytes::from(vec![byte]))));
            }
            Ok(text) => bytes.push(Ok(Bytes::from_static(text.as_bytes()))),
            Err(kind) => bytes.push(Err(ProviderError::new(*kind, "broke"))),
        }
    }
    let bytes = stream::iter(bytes).boxed();
    let chunks = chunks(bytes, content_type, plain(is_ndjson));
    let found = chunks.map(|chunk| match chunk {
        Ok(Chunk::Text(text)) => text,
        Ok(Chunk::End(_)) => "end".to_owned(),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{:?}", error.kind),
    });
    futures::executor::block_on(found.collect())
}

#[test]
fn a_body_is_what_it_looks_like() {
    let cases: &[(bool, &str, &[Piece], &[&str])] = &[
        (
            SSE,
            "text/event-stream",
            &[Ok("data: 1\n\ndata: [DONE]\n\n")],
            &["1", "end"],
        ),
        (
            SSE,
            "",
            &[Ok("\r\n\u{feff}event: e\ndata: 1\n\ndata: [DONE]")],
            &["e1", "end"],
        ),
        (
            SSE,
            "application/json",
            &[Ok(": wait\n\ndata: [DONE]\n\n")],
            &["end"],
        ),
        (
            SSE,
            "application/json",
            &[Ok("\n\n {\"a\":\n1}\n")],
            &["whole {\"a\":1}", "end"],
        ),
        (
            SSE,
            "text/event-stream",
            &[Ok("{\"a\":1}")],
            &["whole {\"a\":1}", "end"],
        ),
        (
            SSE,
            "text/event-stream",
            &[Ok("{\"a\":1}\n\t\u{feff}{\"b\":2}\n")],
            &["{\"a\":1}", "{\"b\":2}", "closed", "IncompleteStream"],
        ),
        (
            SSE,
            "application/json",
            &[Ok("{\"a\":")],
            &["closed", "Protocol"],
        ),
        (SSE, "text/html", &[Ok("<html>")], &["closed", "Protocol"]),
        (SSE, "text/plain", &[Ok("sorry")], &["closed", "Protocol"]),
        (
            SSE,
            "text/html",
            &[Ok("\r\n <html>"), Err(ErrorKind::Timeout)],
            &["closed", "Protocol"],
        ),
        (
            NDJSON,
            "text/html",
            &[Ok("<html>\n"), Err(ErrorKind::IncompleteStream)],
            &["closed", "Protocol"],
        ),
        (
            SSE,
            "text/plain",
            &[Ok("\u{feff} "), Err(ErrorKind::Timeout)],
            &["closed", "Timeout"],
        ),
        (
            SSE,
            "text/event-stream",
            &[Ok("what: 1\n\ndata: [DONE]\n\n")],
            &["end"],
        ),
        (
            SSE,
            "text/event-stream",
            &[Ok("")],
            &["closed", "IncompleteStream"],
        ),
        (
            SSE,
            "text/event-stream",
            &[Ok("data: 1\n\n")],
            &["1", "closed", "IncompleteStream"],
        ),
        (
            SSE,
            "text/event-stream",
            &[Ok("data: \"bad\"\n\ndata: 1\n\n")],
            &["before", "Server"],
        ),
        (
            SSE,
            "text/event-stream",
            &[Ok("data: 1\n\n"), Err(ErrorKind::Timeout)],
            &["1", "closed", "Timeout"],
        ),
        (
            SSE,
            "text/event-stream",
            &[Ok("data: [DONE]\n\n"), Err(ErrorKind::Timeout)],
            &["end"],
        ),
        (
            NDJSON,
            "application/x-ndjson",
            &[Ok("{\"a\":1}\n2\n"), Err(ErrorKind::IncompleteStream)],
            &["{\"a\":1}", "2", "closed", "IncompleteStream"],
        ),
        (
            NDJSON,
            "application/x-ndjson",
            &[Ok("{\"a\":1}\n{\"b\":")],
            &["{\"a\":1}", "closed", "IncompleteStream"],
        ),
        (
            NDJSON,
            "application/json",
            &[Ok("{\"a\":1}")],
            &["whole {\"a\":1}", "end"],
        ),
        (
            NDJSON,
            "application/json",
            &[Ok("{\n\"a\":1}\n")],
            &["whole {\"a\":1}", "end"],
        ),
        (
            NDJSON,
            "application/x-ndjson",
            &[Ok("{\"a\":")],
            &["closed", "IncompleteStream"],
        ),
        (
            NDJSON,
            "application/x-ndjson",
            &[Ok("{\"a\":"), Err(ErrorKind::Timeout)],
            &["closed", "Timeout"],
        ),
        (
            NDJSON,
            "text/event-stream",
            &[Ok("data: {\"a\":1}\n\ndata: [DONE]\n\n")],
            &["{\"a\":1}", "end"],
        ),
    ];
    for (is_ndjson, content_type, reads, expected) in cases {
        for single in [false, true] {
            let found = read(*is_ndjson, content_type, reads, single);
            assert_eq!(
                found, *expected,
                "{is_ndjson} {content_type} {reads:?} {single}"
            );
        }
    }
}

#[test]
fn a_page_without_lines_is_not_waited_for() {
    let page = Bytes::from("<".repeat(SHOWN_BYTES));
    let bytes = stream::iter([Ok(page)]).chain(stream::pending()).boxed();
    let chunks = chunks(bytes, "", plain(SSE));
    let found: Vec<_> = chunks.collect().now_or_never().unwrap();
    let error = found.last().unwrap().clone().unwrap_err();
    assert!(error.message.contains("a page of HTML"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_a_little_for_the_connection_and_not_for_ever() {
    let started = tokio::time::Instant::now();
    let bytes = stream::iter([Ok(Bytes::from_static(b"data: 1\n\ndata: [DONE]\n\n"))])
        .chain(stream::pending())
        .boxed();
    let chunks = chunks(bytes, "", plain(SSE));
    let found: Vec<_> = chunks.collect().await;
    assert_eq!(found.len(), 2);
    assert!(matches!(found.last(), Some(Ok(Chunk::End(_)))));
    assert!(started.elapsed() >= DRAIN_TIME);
}

#[test]
fn a_server_that_goes_on_after_the_end_marker_is_left() {
    let bytes = stream::iter([Ok(Bytes::from_static(b"data: [DONE]\n\n"))])
        .chain(stream::repeat_with(|| {
            Ok(Bytes::from_static(b"data: 1\n\n"))
        }))
        .boxed();
    let chunks = chunks(bytes, "", plain(SSE));
    let found: Vec<_> = futures::executor::block_on(chunks.collect());
    assert!(matches!(found.as_slice(), [Ok(Chunk::End(_))]));
}

#[test]
fn endless_white_space_is_no_answer_and_is_not_kept() {
    const READ: &str = "\n                                                               ";
    let spaces = READ.trim_start_matches('\n');
    for (head, read) in [("", READ), ("{}\n", READ), ("", spaces), ("{}\n", spaces)] {
        let reads = stream::iter([head]).chain(stream::repeat(read));
        let bytes = reads.map(|read| Ok(Bytes::from_static(read.as_bytes())));
        let decoder = plain(SSE);
        let chunks = chunks(bytes.boxed(), "text/event-stream", decoder);
        let found: Vec<_> = futures::executor::block_on(chunks.collect());
        let error = found.last().unwrap().clone().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol);
        assert!(error.message.contains("1 MiB of white space"), "{error}");
    }
    // So are names of events without data, but not beside data.
    let fields = "event: ping\n\n".repeat(128);
    for (data, expected) in [("", Some("1 MiB of white space")), ("data: 1\n\n", None)] {
        let read = Bytes::from(format!("{fields}{data}"));
        let reads = stream::iter(vec![Ok(read); 1024]);
        let found: Vec<_> =
            futures::executor::block_on(chunks(reads.boxed(), "", plain(SSE)).collect());
        let error = found.last().unwrap().clone().unwrap_err();
        let expected = expected.unwrap_or("cut");
        assert!(error.message.contains(expected), "{error}");
    }
    // A little of it, in many reads, is passed over.
    let reads = stream::iter(["{}\n"])
        .chain(stream::iter(vec![READ; 100]))
        .chain(stream::iter(["{\"a\":1}\n", "[DONE]\n"]));
    let bytes = reads.map(|read| Ok(Bytes::from_static(read.as_bytes())));
    let decoder = plain(SSE);
    let chunks = chunks(bytes.boxed(), "text/event-stream", decoder);
    let found: Vec<_> = futures::executor::block_on(chunks.collect());
    assert_eq!(found.len(), 3, "{found:?}");
}
