use serde_json::{Value, json};

use super::*;
use crate::protocol::command::{Empty, Layer};

fn event(kind: &str, payload: &Value) -> Event {
    serde_json::from_value(json!({"type": kind, "payload": payload})).unwrap()
}

fn queued(conversation: &str, position: usize) -> Event {
    let place = json!({"conversationId": conversation, "messageId": "m1", "position": position});
    event("chat:queued", &place)
}

/// What a socket reads from there on, by number (0 for none) and type, or by the position.
fn read(log: &mut Log, socket: Option<SocketId>, after: u64) -> Vec<(u64, String)> {
    read_safe(log, socket, after, u64::MAX)
}

/// The same where the changes up to `safe` are.
fn read_safe(log: &mut Log, socket: Option<SocketId>, after: u64, safe: u64) -> Vec<(u64, String)> {
    let mut frames = Vec::new();
    log.read(after, usize::MAX, safe, socket, &mut frames);
    let seen = frames.iter().map(|frame| {
        let frame: Value = serde_json::from_str(frame).unwrap();
        let what = match frame["payload"]["position"].as_u64() {
            Some(position) => position.to_string(),
            None => frame["type"].as_str().unwrap().to_owned(),
        };
        (frame["seq"].as_u64().unwrap_or_default(), what)
    });
    seen.collect()
}

fn log() -> Log {
    Log::new(1 << 20, Vec::new())
}

/// A log, and sockets that get frames of their own.
fn watched<const COUNT: usize>() -> (Log, [SocketId; COUNT]) {
    let mut log = log();
    let sockets = std::array::from_fn(|_| SocketId::new(None));
    for socket in sockets {
        log.watch(socket);
    }
    (log, sockets)
}

fn at() -> Timestamp {
    Timestamp::default()
}

#[test]
fn an_answer_is_its_sockets_alone_and_has_its_place() {
    let (mut log, [one, two]) = watched();
    log.append(queued("a", 1), None, at());
    let asked = RequestId::apart(Some(RequestId::from("q")), one);
    log.append(Event::SessionPingResult(Empty {}), Some(&asked), at());
    log.append(queued("a", 2), None, at());
    let numbered = [(1, "1".to_owned()), (2, "2".to_owned())];
    assert_eq!(read(&mut log, None, 0), numbered);
    assert_eq!(read(&mut log, Some(two), 0), numbered);
    let own = read(&mut log, Some(one), 0);
    let answer = (0, "session:ping-result".to_owned());
    assert_eq!(own, [numbered[0].clone(), answer, numbered[1].clone()]);
    // Once.
    assert_eq!(read(&mut log, Some(one), 0), numbered);
}

#[test]
fn an_answer_to_the_driver_is_told_to_nobody_else_with_a_role() {
    let (mut log, [driver, other]) = watched();
    let asked = RequestId::from("q").of(driver);
    log.append(Event::SessionPingResult(Empty {}), Some(&asked), at());
    // Whoever shows the conversation learns that it is closed.
    let closed = event(
        "chat:close-result",
        &json!({"conversationId": "a", "closed": true}),
    );
    log.append(closed, Some(&asked), at());
    let mut seen_by = |socket| {
        let mut frames = Vec::new();
        log.read(0, usize::MAX, u64::MAX, socket, &mut frames);
        let frames = frames.iter().map(|frame| {
            let frame: Value = serde_json::from_str(frame).unwrap();
            (frame["seq"].clone(), frame["replyTo"].clone())
        });
        frames.collect::<Vec<_>>()
    };
    let (one, two) = (json!(1), json!(2));
    let (named, bare) = (json!("q"), Value::Null);
    let to_driver = [(one.clone(), named.clone()), (two.clone(), named)];
    assert_eq!(seen_by(Some(driver)), to_driver);
    assert_eq!(seen_by(Some(other)), [(two.clone(), bare.clone())]);
    // A socket without a role sees all numbers.
    assert_eq!(seen_by(None), [(one, bare.clone()), (two, bare)]);
}

fn delta(conversation: &str, content: &str) -> Event {
    let payload = json!({
        "conversationId": conversation, "messageId": "m1", "turn": 0, "index": 0, "content": content,
    });
    event("chat:text-delta", &payload)
}

fn gap() -> Event {
    let gap = json!({"code": "replay_gap", "message": "lost"});
    event("session:error", &gap)
}

#[test]
fn a_resync_does_not_take_somebody_elses_number_for_a_text_that_was_merged() {
    let slow = SocketId::new(None);
    let mut log = Log::new(1 << 20, vec![Layer::Stream]);
    log.watch(slow);
    let from = log.begin_own_resync(slow, 0, &gap(), at());
    log.append(delta("a", "one"), None, at());
    log.append(queued("b", 7), None, at());
    // Into the first one, since nobody has read that.
    log.append(delta("a", "two"), None, at());
    let a = ConversationId::new("a");
    log.own_snapshot(slow, &a, |_| vec![queued("a", 4)], at());
    log.finish_own_resync(slow, &[a], Vec::new(), at());
    let seen = read(&mut log, Some(slow), from);
    let expected = [
        (0, "session:error"),
        (0, "4"),
        (0, "session:resynced"),
        (2, "7"),
    ];
    assert_eq!(seen, expected.map(|(seq, what)| (seq, what.to_owned())));
}

#[test]
fn what_a_resync_told_is_not_told_again_after_the_line_broke() {
    let client = "a name of 16 letters";
    let mut log = log();
    let slow = SocketId::new(Some(client));
    log.watch(slow);
    let from = log.begin_own_resync(slow, 0, &gap(), at());
    log.append(queued("a", 1), None, at());
    log.append(queued("b", 2), None, at());
    let a = ConversationId::new("a");
    log.own_snapshot(slow, &a, |_| vec![queued("a", 4)], at());
    log.finish_own_resync(slow, &[a], Vec::new(), at());
    assert_eq!(read(&mut log, Some(slow), from).len(), 4);
    // Its line broke; it is there again before the daemon has noticed, or after that.
    for is_noticed in [false, true] {
        if is_noticed {
            log.unwatch(slow);
        }
        let again = SocketId::new(Some(client));
        log.watch(again);
        assert_eq!(read(&mut log, Some(again), from), [(2, "2".to_owned())]);
        log.unwatch(again);
    }
    // Another client is told all of it.
    let other = SocketId::new(None);
    log.watch(other);
    assert_eq!(read(&mut log, Some(other), from).len(), 2);
}

#[test]
fn a_new_connection_gets_what_waits_and_the_one_before_nothing() {
    let client = Some("a name of 16 letters");
    let mut log = log();
    let (before, after) = (SocketId::new(client), SocketId::new(client));
    log.watch(before);
    log.watch(after);
    let asked = RequestId::apart(None, before);
    log.append(Event::SessionPingResult(Empty {}), Some(&asked), at());
    assert_eq!(read(&mut log, Some(before), 0), []);
    let answer = (0, "session:ping-result".to_owned());
    assert_eq!(read(&mut log, Some(after), 0), [answer]);
}

#[test]
fn few_clients_that_are_gone_are_remembered() {
    let mut log = log();
    for _ in 0..=MAX_GONE {
        let socket = SocketId::new(None);
        log.watch(socket);
        let from = log.begin_own_resync(socket, 0, &gap(), at());
        log.append(queued("a", 1), None, at());
        let a = ConversationId::new("a");
        log.own_snapshot(socket, &a, |_| Vec::new(), at());
        log.finish_own_resync(socket, &[a], Vec::new(), at());
        assert!(from < log.last());
        log.unwatch(socket);
    }
    assert_eq!(log.apart.gone.len(), MAX_GONE);
}

#[test]
fn who_looks_on_does_not_have_dropped_what_the_driver_has_not_read() {
    let (driver, other) = (SocketId::new(None), SocketId::new(None));
    let mut log = Log::new(4096, Vec::new());
    log.watch(driver);
    log.watch(other);
    log.set_driver(Some(driver));
    let large = json!({"code": "internal", "message": "x".repeat(5000)});
    log.append(event("session:error", &large), None, at());
    assert_eq!(read(&mut log, Some(other), 0).len(), 1);
    log.append(queued("a", 1), None, at());
    assert_eq!(read(&mut log, Some(driver), 0).len(), 2);
}

#[test]
fn who_fell_behind_is_told_how_things_stand_and_others_see_nothing_of_it() {
    let (mut log, [slow, other]) = watched();
    log.append(queued("a", 1), None, at());
    let from = log.begin_own_resync(slow, 0, &gap(), at());
    assert_eq!(from, 1);
    // Before and after the moment at which `a` says how it stands.
    log.append(queued("a", 2), None, at());
    log.append(queued("b", 3), None, at());
    let a = ConversationId::new("a");
    log.own_snapshot(slow, &a, |_| vec![queued("a", 4)], at());
    log.append(queued("a", 5), None, at());
    log.finish_own_resync(slow, &[a], Vec::new(), at());
    let seen = read(&mut log, Some(slow), from);
    let expected = [
        (0, "session:error"),
        (0, "4"),
        (0, "session:resynced"),
        (3, "3"),
        (4, "5"),
    ];
    let expected = expected.map(|(seq, what)| (seq, what.to_owned()));
    assert_eq!(seen, expected);
    assert_eq!(read(&mut log, Some(other), 0).len(), 4);
}

#[test]
fn who_takes_nothing_is_given_up_and_one_frame_always_fits() {
    let one = SocketId::new(None);
    let mut log = log();
    let too_slow = log.watch(one);
    let asked = RequestId::apart(None, one);
    let large = "x".repeat(MOST_BYTES);
    let large = event(
        "session:error",
        &json!({"code": "internal", "message": large}),
    );
    log.append(large.clone(), Some(&asked), at());
    assert!(!too_slow.is_cancelled());
    log.append(large, Some(&asked), at());
    assert!(too_slow.is_cancelled());
    log.unwatch(one);
    assert!(log.apart.here.is_empty());
}

#[test]
fn an_answer_waits_until_what_was_changed_before_is_safe() {
    let (mut log, [one]) = watched();
    let mut answer = |change| {
        log.note_given(change);
        let asked = RequestId::apart(Some(RequestId::from("q")), one);
        log.append(Event::SessionPingResult(Empty {}), Some(&asked), at());
    };
    answer(1);
    answer(2);
    log.append(queued("a", 1), None, at());
    let told = (0, "session:ping-result".to_owned());
    assert_eq!(read_safe(&mut log, Some(one), 0, 0), []);
    let first = read_safe(&mut log, Some(one), 0, 1);
    assert_eq!(first, std::slice::from_ref(&told));
    assert_eq!(read_safe(&mut log, Some(one), 0, 1), []);
    let after = (1, "1".to_owned());
    assert_eq!(read_safe(&mut log, Some(one), 0, 2), [told, after]);
}
