//! Recorded lists of models, read by the provider as `model:list` reads them.

use serde_json::{Value, json};

use crate::manifest::{self, Recording};
use crate::server::{Cut, Server};
use crate::wires;

/// The context that is asked for where the configuration names none; what a model can do is its limit.
const DEFAULT_CONTEXT: u64 = 32_768;

#[tokio::test]
async fn every_recorded_list_is_reported_with_what_each_model_can_do() {
    let Some(recordings) = manifest::load() else {
        return;
    };
    let recordings: &'static [Recording] = Vec::leak(recordings);
    let server = Server::start(recordings).await;
    let lists = recordings
        .iter()
        .enumerate()
        .filter(|(_, recording)| recording.api == "ollama-tags");
    let mut read = 0;
    for (index, recording) in lists {
        let url = server.url(index, Cut::Whole);
        let provider = wires::provider("ollama-chat", &url).unwrap();
        let models = provider.models().await.unwrap();
        let listed = serde_json::to_value(models).unwrap();
        let tags: Value = serde_json::from_slice(&recording.body).unwrap();
        assert_eq!(
            listed,
            expected(&tags, &show(recordings)),
            "{}",
            recording.file
        );
        read += 1;
    }
    assert!(read > 0, "no recorded list");
}

fn show(recordings: &[Recording]) -> Value {
    let show = recordings.iter().find(|one| one.api == "ollama-show");
    serde_json::from_slice(&show.expect("a recording of /api/show").body).unwrap()
}

/// Reads the recordings by their documents' words, for comparison.
fn expected(tags: &Value, show: &Value) -> Value {
    let can = |word: &str| {
        show["capabilities"]
            .as_array()
            .unwrap()
            .contains(&json!(word))
    };
    let architecture = show["model_info"]["general.architecture"].as_str().unwrap();
    let longest = &show["model_info"][format!("{architecture}.context_length")];
    let window = longest.as_u64().unwrap().min(DEFAULT_CONTEXT);
    let models = tags["models"].as_array().unwrap().iter().map(|model| {
        json!({"id": model["name"], "provider": "recorded", "displayName": model["name"],
            "contextWindow": window, "supportsTools": can("tools"),
            "supportsThinking": can("thinking"), "supportsVision": can("vision")})
    });
    models.collect()
}
