//! Bytes that nobody would send, and recordings that were damaged: always one typed outcome, however
//! they are cut. The same invariants as in `fuzz/`, for a bounded time.

use std::path::Path;

use outrigger::provider::ProviderError;
use outrigger::provider::replay::Wire;
use proptest::prelude::*;
use proptest::sample::Index;
use reqwest::header::HeaderMap;

use crate::manifest;

#[path = "../../fuzz/invariants.rs"]
mod invariants;

/// Pieces that lead deep into the parsers.
const PIECES: &[&str] = &[
    "data: ",
    "event: error\n",
    "\n\n",
    "\r\n",
    "\n",
    "\t",
    "\u{feff}",
    "[DONE]",
    "{",
    "}",
    "[]",
    "null",
    "error: {\"message\":1}\n",
    "{\"error\":\"x\"}\n",
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":-1}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"b\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"},\"usage\":null}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"reasoning\":\"b\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"b\",\"arguments\":\"{\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":7,\"function\":{\"arguments\":\"}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{}}\n\n",
    "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":\"f\",\"call_id\":\"c\",\"name\":\"n\"}}\n\n",
    "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"arguments\":\"{}\"}}\n\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n",
    "{\"message\":{\"content\":\"a\",\"thinking\":\"b\",\"tool_calls\":[{\"function\":{\"name\":\"n\",\"arguments\":{}}}]},\"done\":false}\n",
    "{\"done\":true,\"done_reason\":\"length\",\"eval_count\":1e99}\n",
];

fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => proptest::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// What happens to a recording.
#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Flip(Index, u8),
    Remove(Index, Index),
    Repeat(Index, Index),
}

impl Damage {
    fn apply(&self, body: &mut Vec<u8>) {
        if body.is_empty() {
            return;
        }
        match self {
            Self::Cut(at) => body.truncate(at.index(body.len())),
            Self::Flip(at, bits) => {
                let at = at.index(body.len());
                body[at] ^= bits;
            }
            Self::Remove(from, length) => drop(body.drain(range(from, length, body.len()))),
            Self::Repeat(from, length) => {
                let range = range(from, length, body.len());
                let again = body[range.clone()].to_vec();
                body.splice(range.start..range.start, again);
            }
        }
    }
}

fn range(from: &Index, length: &Index, size: usize) -> std::ops::Range<usize> {
    let from = from.index(size);
    from..from + length.index((size - from).min(300))
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), 1u8..).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, length)| Damage::Remove(from, length)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, length)| Damage::Repeat(from, length)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_come_to_one_typed_outcome(body in garbage(), cut in 1usize..40) {
        for wire in Wire::ALL {
            invariants::check(wire, &body, cut);
        }
    }
}

#[test]
fn damaged_recordings_come_to_one_typed_outcome() {
    /// Largest recording that is damaged: more would only take longer.
    const MAX_BYTES: usize = 16 * 1024;
    let Some(recordings) = manifest::load() else {
        return;
    };
    let bodies: Vec<(Wire, Vec<u8>)> = recordings
        .into_iter()
        .filter(|recording| recording.status == 200 && recording.body.len() <= MAX_BYTES)
        .filter_map(|recording| Some((Wire::named(&recording.api)?, recording.body)))
        .collect();
    let config = ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let cases = (
        any::<Index>(),
        proptest::collection::vec(damage(), 1..6),
        1usize..400,
    );
    proptest!(config, |((which, damages, cut) in cases)| {
        let (wire, body) = which.get(&bodies);
        let mut body = body.clone();
        for damage in &damages {
            damage.apply(&mut body);
        }
        invariants::check(*wire, &body, cut);
    });
}

/// The corpus that `cargo fuzz` starts from: each file whole, and cut off at many places.
#[test]
fn the_corpus_comes_to_typed_outcomes() {
    /// Bytes between two places at which a file is cut off; no divisor of anything.
    const STEP: usize = 13;
    for wire in Wire::ALL {
        let target = match wire {
            Wire::Anthropic => "anthropic",
            Wire::Chat => "chat",
            Wire::Responses => "responses",
            Wire::Ollama => "ollama",
        };
        for file in corpus(target) {
            let (cut, body) = file.split_first().expect("a byte that says how to cut");
            for end in (0..body.len()).step_by(STEP).chain([body.len()]) {
                invariants::check(wire, &body[..end], usize::from(*cut));
                invariants::check(wire, &body[..end], 1);
            }
        }
    }
    for file in corpus("refusals") {
        let (status, body) = file.split_first_chunk::<2>().expect("a status");
        for end in 0..=body.len() {
            let status = u16::from_le_bytes(*status);
            let error = ProviderError::from_response(status, &HeaderMap::new(), &body[..end]);
            assert!(!error.message.is_empty() && error.message.len() <= 2048);
        }
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    /// Fewer would mean that files were lost.
    const LEAST: usize = 9;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let files = std::fs::read_dir(folder.join(target)).expect("a corpus");
    let files: Vec<_> = files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    assert!(files.len() >= LEAST, "{target}: {} files", files.len());
    files
}
