use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::provider::ErrorKind;
use crate::provider::frames::{Frames, Piece};

fn frames() -> Frames {
    Frames::new(false, "text/event-stream")
}

/// Names and data of the events; what else it was comes without a name.
fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
    let mut frames = frames();
    let mut pieces = pieces.iter();
    let outcome = pieces
        .try_for_each(|piece| frames.push(Bytes::copy_from_slice(piece)))
        .and_then(|()| frames.end());
    let events = frames.pieces.into_iter().map(|piece| match piece {
        Piece::Frame(frame) => (frame.event, frame.data),
        Piece::Whole(body) => (String::new(), body),
    });
    let error = outcome.err().map(|error| (String::new(), error.message));
    events.chain(error).collect()
}

#[test]
fn events_as_servers_write_them() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("data: a\n\n", &[("", "a")]),
        ("event: ping\r\ndata: {}\r\n\r\n", &[("ping", "{}")]),
        ("data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]),
        ("\u{feff}data:x\n\n", &[("", "x")]),
        (": comment\n\n:\n\ndata: a\n\n", &[("", "a")]),
        ("data: a\ndata: b\n\n", &[("", "a\nb")]),
        ("id: 1\nretry: 5\ndata:  two\n\n", &[("", " two")]),
        ("event: empty\n\ndata\n\ndata:\n\n", &[]),
        // No blank line at the end: whole data comes, cut data does not.
        ("data: 1\n\ndata: [DONE]", &[("", "1"), ("", "[DONE]")]),
        ("data: {\"a\":1}\n", &[("", "{\"a\":1}")]),
        ("event: e\ndata: {\"a\":", &[]),
        ("data: {\"a\":1}\nevent: x", &[("", "{\"a\":1}")]),
        // No blank line between.
        (
            "data: {\"a\":1}\ndata: {\"b\":2}\n\n",
            &[("", "{\"a\":1}"), ("", "{\"b\":2}")],
        ),
        ("data: {\ndata: \"a\":1}\n\n", &[("", "{\n\"a\":1}")]),
        // Events without data; the data of an event may be that of two lines of which one is empty.
        ("event: x\nerror: {}\n\n", &[("error", "{}")]),
        ("event: x\nerror: {}", &[("error", "{}")]),
        ("data\ndata: a\n\n", &[("", "\na")]),
        (
            "event: x\nevent: y\nid\ndata:a\n\ndata:b\n\n",
            &[("y", "a"), ("", "b")],
        ),
        ("data: data: {}\n\ndatabase: {}\n\n", &[("", "{}")]),
        // What the format does not know.
        (
            "data: 1\n\nerror: {\"m\":2}\n\n",
            &[("", "1"), ("error", "{\"m\":2}")],
        ),
        (
            "data: 1\nerror: {\"m\":2}",
            &[("", "1"), ("error", "{\"m\":2}")],
        ),
        ("error: text\n\ndata: 1\n\n", &[("", "1")]),
        ("{\"error\":\"x\"}\n", &[("", "{\"error\":\"x\"}")]),
        (
            "data: 1\n\n{\"error\":\"x\"}\n\n",
            &[("", "1"), ("", "{\"error\":\"x\"}")],
        ),
    ];
    for (text, expected) in cases {
        let expected: Vec<(String, String)> = expected
            .iter()
            .map(|(event, data)| ((*event).to_owned(), (*data).to_owned()))
            .collect();
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(events(&[text.as_bytes()]), expected, "{text:?}");
        assert_eq!(events(&single), expected, "{text:?} byte by byte");
    }
}

#[test]
fn broken_characters_hold_nothing_back() {
    let found = events(&[b"data: a\xff\n\n", b"data: b\n\n"]);
    assert_eq!(
        found,
        [
            (String::new(), "a\u{fffd}".to_owned()),
            (String::new(), "b".to_owned())
        ]
    );
}

#[test]
fn an_event_without_end_is_refused() {
    let line = format!("data: {}\n", "x".repeat(1024 * 1024));
    let mut frames = frames();
    let error = loop {
        if let Err(error) = frames.push(Bytes::from(line.clone())) {
            break error;
        }
    };
    assert_eq!(error.kind, ErrorKind::Protocol);
    assert!(frames.pieces.is_empty());
}

#[test]
fn lines_of_no_data_count_too() {
    let mut event = Event::default();
    event
        .take_line(&format!("data:{}", "x".repeat(MAX_EVENT_BYTES - 1)))
        .unwrap();
    event.take_line("data:").unwrap();
    assert_eq!(
        event.take_line("data:").unwrap_err().kind,
        ErrorKind::Protocol
    );
}

#[test]
fn comments_are_no_event_however_many() {
    let mut frames = frames();
    for _ in 0..10 {
        frames
            .push(Bytes::from(": wait\n".repeat(100_000)))
            .unwrap();
    }
    frames.push(Bytes::from_static(b"data: a\n\n")).unwrap();
    assert_eq!(frames.pieces.len(), 1);
}

proptest! {
    #[test]
    fn any_bytes_cut_anyhow_give_the_same_events(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just(b"data: {\"a\":1}".to_vec()),
                Just(b"event: x".to_vec()),
                Just(b"error: {}".to_vec()),
                Just(b"\n".to_vec()),
                Just(b"\r".to_vec()),
                Just(b"\xef\xbb\xbf".to_vec()),
                Just("é".as_bytes().to_vec()),
                proptest::collection::vec(any::<u8>(), 0..8),
            ],
            0..24,
        ),
        cut in 1usize..9,
    ) {
        let bytes = pieces.concat();
        let cut: Vec<&[u8]> = bytes.chunks(cut).collect();
        prop_assert_eq!(events(&[&bytes]), events(&cut));
    }
}
