use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::provider::Chunk;

/// A call as it came out: id, name, input (`null` where it is no object).
type Seen = (Option<String>, String, Value);

fn feed(calls: &mut Calls, entries: &[Value], answer: &mut Answer) -> Result<(), ProviderError> {
    let texts: Vec<String> = entries.iter().map(Value::to_string).collect();
    let entries = texts.iter().map(|text| serde_json::from_str(text).unwrap());
    calls.feed(&entries.collect::<Vec<Json<'_>>>(), answer)
}

fn collect(deltas: &[Value], cut: bool) -> Vec<Seen> {
    let mut calls = Calls::default();
    let mut answer = Answer::default();
    for delta in deltas {
        feed(&mut calls, delta.as_array().unwrap(), &mut answer).unwrap();
    }
    calls.close(cut, &mut answer);
    let mut seen: Vec<(String, String, Option<Seen>)> = Vec::new();
    for chunk in answer.chunks {
        match chunk {
            Chunk::Start { .. } => {}
            Chunk::ToolCallStart { index, name, .. } => {
                assert_eq!(index, seen.len(), "calls are numbered as they begin");
                seen.push((name, String::new(), None));
            }
            Chunk::ToolCallDelta { index, fragment } => {
                assert!(!fragment.is_empty());
                seen[index].1.push_str(&fragment);
            }
            Chunk::ToolCallEnd {
                index,
                provider_call_id,
                input,
            } => {
                let (name, fragments, end) = &mut seen[index];
                let value = match input {
                    CallInput::Object(object) => Value::Object(object),
                    CallInput::Invalid { raw, .. } | CallInput::Truncated { raw } => {
                        assert_eq!(&raw, fragments);
                        Value::Null
                    }
                };
                assert!(end.is_none());
                *end = Some((provider_call_id, name.clone(), value));
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    seen.into_iter().map(|(_, _, end)| end.unwrap()).collect()
}

fn call(id: &str, name: &str, input: Value) -> Seen {
    let id = (!id.is_empty()).then(|| id.to_owned());
    (id, name.to_owned(), input)
}

fn check(case: &str, deltas: &[Value], expected: &[Seen]) {
    assert_eq!(collect(deltas, false), expected, "{case}");
}

/// One entry of `tool_calls`; empty strings and -1 are left out.
fn entry(index: i64, id: &str, name: &str, arguments: &str) -> Value {
    let mut entry = json!({"function": {}});
    if index >= 0 {
        entry["index"] = json!(index);
    }
    for (place, value) in [("/id", id), ("/function/name", name)] {
        if !value.is_empty() {
            let (parent, key) = place.rsplit_once('/').unwrap();
            entry.pointer_mut(parent).unwrap()[key] = json!(value);
        }
    }
    entry["function"]["arguments"] = json!(arguments);
    entry
}

#[test]
fn calls_in_fragments() {
    let both = [
        call("a", "f", json!({"x": 1})),
        call("b", "g", json!({"y": 2})),
    ];
    check(
        "by index, interleaved",
        &[
            json!([entry(0, "a", "f", "")]),
            json!([entry(1, "b", "g", "{\"y\"")]),
            json!([entry(0, "", "", "{\"x\"")]),
            json!([entry(1, "", "", ":2}"), entry(0, "", "", ":1}")]),
        ],
        &both,
    );
    check(
        "index 0 for all, id once",
        &[
            json!([entry(0, "a", "f", "")]),
            json!([entry(0, "", "", "{\"x\":1}")]),
            json!([entry(0, "b", "g", "")]),
            json!([entry(0, "", "", "{\"y\":2}")]),
        ],
        &both,
    );
    check(
        "id and name in every fragment, index 0 for all",
        &[
            json!([entry(0, "a", "f", "{\"x\"")]),
            json!([entry(0, "b", "g", "{\"y\"")]),
            json!([entry(0, "a", "f", ":1}")]),
            json!([entry(0, "b", "g", ":2}")]),
        ],
        &both,
    );
    check(
        "no index",
        &[
            json!([entry(-1, "a", "f", "{\"x\"")]),
            json!([entry(-1, "", "", ":1}")]),
            json!([entry(-1, "b", "g", "{\"y\":2}")]),
        ],
        &both,
    );
    check(
        "id late",
        &[
            json!([entry(0, "", "f", "{\"x\"")]),
            json!([entry(0, "a", "", ":1}")]),
            json!([entry(1, "", "g", "{\"y\":")]),
            json!([entry(1, "", "", "2}")]),
            json!([entry(1, "b", "", "")]),
        ],
        &both,
    );
    check(
        "id before the name",
        &[
            json!([{"index": 0, "id": "a", "function": {"name": null}}]),
            json!([{"index": 0, "id": "", "function": {"name": "f"}}]),
            json!([entry(0, "", "", "{\"x\":1}")]),
            json!([entry(1, "b", "g", "{\"y\":2}")]),
        ],
        &both,
    );
    check(
        "id changes under way",
        &[
            json!([entry(0, "a", "f", "{\"x\"")]),
            json!([entry(0, "a2", "", ":1}")]),
            json!([entry(1, "b", "g", "{\"y\":2}")]),
        ],
        &both,
    );
}

#[test]
fn calls_whole() {
    let both = [
        call("", "f", json!({"x": 1})),
        call("", "g", json!({"y": 2})),
    ];
    let (f, g) = (
        entry(-1, "", "f", "{\"x\":1}"),
        entry(-1, "", "g", "{\"y\":2}"),
    );
    check("one array", &[json!([f, g])], &both);
    check("two chunks", &[json!([f]), json!([g])], &both);
    let (f, g) = (
        entry(0, "", "f", "{\"x\":1}"),
        entry(0, "", "g", "{\"y\":2}"),
    );
    check("one array, index 0", &[json!([f, g])], &both);
    check("two chunks, index 0", &[json!([f]), json!([g])], &both);
    let twice = [call("", "f", json!({})), call("", "f", json!({}))];
    let f = entry(-1, "", "f", "");
    check("the same, without input", &[json!([f, f])], &twice);
    let same = [
        call("0", "f", json!({"x": 1})),
        call("0", "f", json!({"x": 2})),
    ];
    check(
        "the same id for two",
        &[
            json!([entry(0, "0", "f", "{\"x\":1}")]),
            json!([entry(0, "0", "f", "{\"x\":2}")]),
        ],
        &same,
    );
    check(
        "sent twice",
        &[
            json!([entry(0, "0", "f", "{\"x\":1}")]),
            json!([entry(0, "0", "f", "{\"x\":1}")]),
        ],
        &same[..1],
    );
    check(
        "arguments as an object, missing and null",
        &[
            json!([{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]),
            json!([{"id": "b", "function": {"name": "g"}}]),
            json!([{"id": "c", "function": {"name": "h", "arguments": null}}]),
        ],
        &[
            call("a", "f", json!({"x": 1})),
            call("b", "g", json!({})),
            call("c", "h", json!({})),
        ],
    );
    check(
        "empty entries, a growing name, control characters",
        &[
            json!([{}, {"index": 0}, null, 3]),
            json!([entry(0, "a", "ge", "")]),
            json!([entry(0, "a", "get", "{\"x\":\"a\nb\"}")]),
        ],
        &[call("a", "get", json!({"x": "a\nb"}))],
    );
}

#[test]
fn a_cut_makes_the_last_call_unusable() {
    let deltas = [
        json!([entry(0, "a", "f", "")]),
        json!([entry(1, "b", "g", "{\"y\":2}")]),
        json!([entry(2, "c", "h", "")]),
    ];
    let expected = [
        call("a", "f", json!({})),
        call("b", "g", json!({"y": 2})),
        call("c", "h", Value::Null),
    ];
    assert_eq!(collect(&deltas, true), expected);
}

#[test]
fn what_goes_back_is_never_broken_json() {
    let mut calls = Calls::default();
    let mut answer = Answer::default();
    let signed = json!({"index": 0, "id": "a", "extra_content": {"google": {"thought_signature": "s"}},
        "function": {"name": "f", "arguments": "{\"x\": 1}"}});
    let entries = [signed, entry(1, "", "g", "{\"y\"")];
    feed(&mut calls, &entries, &mut answer).unwrap();
    let native = calls.close(false, &mut answer);
    assert_eq!(
        json!(native),
        json!([
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"},
             "extra_content": {"google": {"thought_signature": "s"}}},
            {"type": "function", "function": {"name": "g", "arguments": "{}"}},
        ])
    );
}

#[test]
fn too_many_calls_are_refused() {
    let mut calls = Calls::default();
    let entries: Vec<Value> = (0..=MAX_CALLS)
        .map(|n| entry(-1, &n.to_string(), "f", "{}"))
        .collect();
    assert!(feed(&mut calls, &entries, &mut Answer::default()).is_err());
}

proptest! {
    /// However two parallel calls are cut into fragments, and whatever of id, name and index is
    /// repeated, they come out as they went in.
    #[test]
    fn any_cutting_gives_the_same_calls(
        cuts in prop::collection::vec((0..40usize, any::<bool>(), any::<bool>()), 0..12),
        with_index in any::<bool>(),
    ) {
        let texts = [r#"{"path":"a {\"b\"} é","n":{"m":[1,{"k":2}]}}"#, r#"{"q":"\\\"}{"}"#];
        let mut deltas = Vec::new();
        for (slot, whole) in (0..).zip(texts) {
            let id = format!("id{slot}");
            let name = format!("f{slot}");
            let index = if with_index { slot } else { -1 };
            deltas.push(json!([entry(index, &id, &name, "")]));
            let mut rest = whole;
            for (at, repeat_id, repeat_name) in &cuts {
                let at = (0..=(*at).min(rest.len())).rev().find(|at| rest.is_char_boundary(*at)).unwrap();
                let (piece, left) = rest.split_at(at);
                rest = left;
                // A name without an id may be taken for a new call, so it is only repeated with it.
                let id = if *repeat_id { id.as_str() } else { "" };
                let name = if *repeat_name && *repeat_id { name.as_str() } else { "" };
                deltas.push(json!([entry(index, id, name, piece)]));
            }
            deltas.push(json!([entry(index, "", "", rest)]));
        }
        let expected: Vec<Seen> = (0..).zip(texts)
            .map(|(slot, whole): (i64, _)| call(&format!("id{slot}"), &format!("f{slot}"), serde_json::from_str(whole).unwrap()))
            .collect();
        prop_assert_eq!(collect(&deltas, false), expected);
    }

    /// No sequence of entries makes the accumulator panic or lose the pairing of start and end.
    #[test]
    fn any_entries_end_as_often_as_they_start(
        entries in prop::collection::vec((-1..3i64, "[ab]?", "(f|fg|h)?", r#"(\{|\}|"|\{\}|x)*"#), 0..12),
        cut in any::<bool>(),
    ) {
        let deltas: Vec<Value> = entries.iter()
            .map(|(index, id, name, arguments)| json!([entry(*index, id, name, arguments)]))
            .collect();
        collect(&deltas, cut);
    }
}
