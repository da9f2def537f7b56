//! What has to hold for any bytes that a provider may send; for the fuzz targets here and for the
//! property tests in `tests/conformance/`.

use bytes::Bytes;
use futures::StreamExt;
use futures::executor::block_on;
use futures::stream;
use outrigger::provider::replay::Wire;
use outrigger::provider::{CallInput, Chunk, ProviderError};

type Outcome = Vec<Result<Chunk, ProviderError>>;

/// Bytes of output for each byte of input. A call's input is sent as fragments and again as parsed,
/// text again in the native reply, and its JSON may be longer than what it was made of.
const MAX_GROWTH: usize = 64;

/// Bytes of output that need no input: the texts of errors and notices.
const MAX_FIXED: usize = 16 * 1024;

/// Reads `body` whole and cut into pieces of `cut` bytes, and panics where the two differ, where
/// the chunks are out of order, or where more comes out than went in.
pub(crate) fn check(wire: Wire, body: &[u8], cut: usize) {
    let whole = read(wire, body, body.len());
    assert_eq!(whole, read(wire, body, cut), "cuts make a difference");
    check_order(&whole);
    let size: usize = whole.iter().map(|chunk| format!("{chunk:?}").len()).sum();
    assert!(
        size <= body.len() * MAX_GROWTH + MAX_FIXED,
        "{size} bytes out of {}",
        body.len()
    );
}

fn read(wire: Wire, body: &[u8], cut: usize) -> Outcome {
    let pieces: Vec<_> = body
        .chunks(cut.max(1))
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    let reads = stream::iter(pieces);
    block_on(
        wire.play(reads, "text/event-stream", "test", "model")
            .collect(),
    )
}

/// One start in front, calls opened before they are used and closed once, one end or one error, and
/// nothing after it.
fn check_order(outcome: &Outcome) {
    let mut calls: Vec<bool> = Vec::new();
    let mut started = false;
    let last = outcome.len().checked_sub(1).expect("an end or an error");
    for (place, chunk) in outcome.iter().enumerate() {
        let ends = matches!(chunk, Ok(Chunk::End(_)) | Err(_));
        assert_eq!(ends, place == last, "{chunk:?} at {place} of {last}");
        match chunk {
            Ok(Chunk::Start { .. }) => {
                assert!(!started, "two starts");
                started = true;
                continue;
            }
            Ok(Chunk::Notice(_)) | Err(_) => continue,
            Ok(Chunk::Text(text) | Chunk::Thinking(text)) => assert!(!text.is_empty()),
            Ok(Chunk::ToolCallStart { index, .. }) => {
                assert_eq!(*index, calls.len(), "calls out of order");
                calls.push(true);
            }
            Ok(Chunk::ToolCallDelta { index, fragment }) => {
                assert!(calls[*index] && !fragment.is_empty());
            }
            Ok(Chunk::ToolCallEnd { index, input, .. }) => {
                assert!(std::mem::replace(&mut calls[*index], false), "closed twice");
                if let CallInput::Invalid { reason, .. } = input {
                    assert!(!reason.is_empty());
                }
            }
            Ok(Chunk::End(_)) => {}
        }
        assert!(started, "{chunk:?} before the start");
    }
    assert!(!calls.contains(&true), "a call was left open");
}
