//! The recordings and what each has to come to; the form is in the recordings' README.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct Manifest {
    format: u32,
    recordings: Vec<Recording>,
}

#[derive(Deserialize)]
pub(crate) struct Recording {
    pub(crate) file: String,
    pub(crate) api: String,
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) expect: Option<Expect>,
    #[serde(skip)]
    pub(crate) body: Vec<u8>,
}

#[derive(Deserialize)]
pub(crate) struct Expect {
    pub(crate) model: Option<String>,
    pub(crate) text: Option<Text>,
    pub(crate) thinking: Option<Text>,
    pub(crate) refusal: Option<Text>,
    pub(crate) tool_calls: Vec<Call>,
    pub(crate) server_tools: Vec<Value>,
    pub(crate) thinking_blocks: Vec<Value>,
    pub(crate) citations: usize,
    pub(crate) stop: Stop,
    pub(crate) complete: bool,
    pub(crate) usage: Option<BTreeMap<String, u64>>,
    pub(crate) error: Option<ExpectedError>,
}

#[derive(Deserialize)]
pub(crate) struct Text {
    pub sha256: String,
    pub(crate) bytes: usize,
    pub(crate) chars: usize,
    pub(crate) head: String,
}

#[derive(Deserialize)]
pub(crate) struct Call {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: Option<Map<String, Value>>,
    pub(crate) arguments_raw: Option<String>,
    pub(crate) valid: bool,
}

#[derive(Deserialize)]
pub(crate) struct Stop {
    pub(crate) raw: Option<String>,
    pub(crate) normalised: String,
}

#[derive(Deserialize)]
pub(crate) struct ExpectedError {
    #[serde(rename = "type")]
    pub(crate) error_type: Option<String>,
    /// Text or number, as sent.
    pub(crate) code: Value,
    pub(crate) message: Option<String>,
    pub(crate) category: String,
}

/// Loads the recordings; `None`, said aloud, where there are none to load.
pub(crate) fn load() -> Option<Vec<Recording>> {
    let folder = folder();
    let path = folder.join("manifest.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        assert!(
            std::env::var_os("OUTRIGGER_RECORDINGS").is_none(),
            "OUTRIGGER_RECORDINGS names no recordings: {} cannot be read",
            path.display()
        );
        // Not `eprintln!`, which a test that passes keeps to itself.
        let folder = folder.display();
        writeln!(
            std::io::stderr(),
            "\n*** SKIPPED: no recordings at {folder} (set OUTRIGGER_RECORDINGS) ***\n"
        )
        .expect("stderr");
        return None;
    };
    let manifest: Manifest = serde_json::from_str(&text).expect("a readable manifest");
    assert_eq!(manifest.format, 1, "format of the manifest");
    let read = |mut recording: Recording| {
        recording.body = std::fs::read(folder.join(&recording.file)).expect("a recording");
        recording
    };
    Some(manifest.recordings.into_iter().map(read).collect())
}

fn folder() -> PathBuf {
    std::env::var_os("OUTRIGGER_RECORDINGS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/recordings"),
        PathBuf::from,
    )
}
