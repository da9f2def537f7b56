//! Recorded answers of real providers, replayed over real HTTP through the provider modules, with
//! the bytes cut in many ways. Each must come to exactly what the manifest expects.
//!
//! `OUTRIGGER_RECORDINGS` names the recordings; without it they are looked for beside the checkout.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test; clippy knows that only of functions marked as such"
)]

mod compare;
mod garbage;
mod manifest;
mod models;
mod outcome;
mod server;
mod variants;
mod wires;

use std::collections::BTreeSet;

use futures::StreamExt;
use outrigger::provider::ProviderError;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use compare::mismatches;
use manifest::Recording;
use outcome::Outcome;
use server::{Cut, Server};

/// Recordings that say what they come to, and lists of models that don't, as of 2026-11-20: more may
/// come, none may go.
const EXPECTED: usize = 222;
const LISTS: usize = 2;

/// Recordings replayed at once: enough that none waits for the network.
const AT_ONCE: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn every_recording_comes_to_what_is_expected() {
    replay_all(
        &[Cut::Whole, Cut::Random(1), Cut::Random(2), Cut::Random(3)],
        1,
    )
    .await;
}

/// One recording of four; all of them where `OUTRIGGER_FULL_TESTS` is set, as `.ci/full` does.
#[tokio::test(flavor = "multi_thread")]
async fn recordings_byte_by_byte_come_to_what_is_expected() {
    let all = std::env::var_os("OUTRIGGER_FULL_TESTS").is_some();
    replay_all(&[Cut::Bytes], if all { 1 } else { 4 }).await;
}

/// Replays one recording of so many.
async fn replay_all(cuts: &[Cut], one_of: usize) {
    let Some(recordings) = manifest::load() else {
        return;
    };
    let (expected, others): (Vec<_>, Vec<_>) = recordings
        .iter()
        .partition(|recording| recording.expect.is_some());
    assert!(
        expected.len() >= EXPECTED && others.len() >= LISTS,
        "only {} recordings with an expectation and {} lists: the manifest was cut short",
        expected.len(),
        others.len()
    );
    let recordings: &'static [Recording] = Vec::leak(recordings);
    let server: &'static Server = Box::leak(Box::new(Server::start(recordings).await));
    let indices = (0..recordings.len()).step_by(one_of);
    let cases = indices.flat_map(|index| cuts.iter().map(move |cut| (index, *cut)));
    let failures: Vec<String> = futures::stream::iter(cases)
        .map(|(index, cut)| tokio::spawn(replay(server, &recordings[index], index, cut)))
        .buffered(AT_ONCE)
        .map(Result::unwrap)
        .concat()
        .await;
    let missing: BTreeSet<&str> = recordings
        .iter()
        .filter(|recording| {
            recording.expect.is_some()
                && wires::provider(&recording.api, "http://127.0.0.1").is_none()
        })
        .map(|recording| recording.api.as_str())
        .collect();
    assert!(
        failures.is_empty() && missing.is_empty(),
        "{} mismatches; wires missing: {missing:?}\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Replays one recording and returns what differs.
async fn replay(
    server: &Server,
    recording: &'static Recording,
    index: usize,
    cut: Cut,
) -> Vec<String> {
    let Some(expect) = &recording.expect else {
        return Vec::new();
    };
    let url = server.url(index, cut);
    let Some(provider) = wires::provider(&recording.api, &url) else {
        return Vec::new();
    };
    let model = expect.model.as_deref().unwrap_or("test-model");
    let outcome = Outcome::of(provider.as_ref(), model).await;
    mismatches(&recording.api, expect, &outcome)
        .into_iter()
        .map(|difference| format!("{} {cut:?}: {difference}", recording.file))
        .collect()
}

/// The classification by itself, whatever wire the error came over.
#[test]
fn every_refusal_is_read_as_expected() {
    let Some(recordings) = manifest::load() else {
        return;
    };
    let mut failures = Vec::new();
    for recording in recordings
        .iter()
        .filter(|recording| recording.status >= 400)
    {
        let Some(error) = recording
            .expect
            .as_ref()
            .and_then(|expect| expect.error.as_ref())
        else {
            continue;
        };
        let headers: HeaderMap = recording
            .headers
            .iter()
            .map(|(name, value)| {
                let name: HeaderName = name.parse().unwrap();
                (name, HeaderValue::from_str(value).unwrap())
            })
            .collect();
        let read = ProviderError::from_response(recording.status, &headers, &recording.body);
        failures.extend(
            compare::error_mismatches(error, &read)
                .into_iter()
                .map(|difference| format!("{}: {difference}", recording.file)),
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
