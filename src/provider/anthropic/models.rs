//! The vendor's list of models.

use serde_json::Value;

use super::capabilities::{Capabilities, Mode};
use crate::message::Model;
use crate::provider::models;

/// Returns the models of one page of `GET /v1/models`, and where the next page begins, where there is one
/// (`docs/providers.md`, "Lists of models").
pub(super) fn page(
    page: &Value,
    provider: &str,
    preset: &str,
) -> (Vec<(Model, Capabilities)>, Option<String>) {
    let entries = page.get("data").and_then(Value::as_array);
    let listed = entries.into_iter().flatten();
    let listed = listed.filter(|entry| text(entry, "lifecycle") != Some("retired"));
    let models = listed.filter_map(|entry| {
        let capabilities = Capabilities::from_listing(entry);
        Some((model(entry, &capabilities, provider, preset)?, capabilities))
    });
    let more = page.get("has_more").and_then(Value::as_bool) == Some(true);
    let last = page.get("last_id").and_then(Value::as_str);
    (models.collect(), last.filter(|_| more).map(str::to_owned))
}

fn model(
    entry: &Value,
    capabilities: &Capabilities,
    provider: &str,
    preset: &str,
) -> Option<Model> {
    let id = text(entry, "id").filter(|id| !id.is_empty())?;
    let supported = |name: &str| {
        let capability = entry.get("capabilities")?.get(name)?;
        capability.get("supported")?.as_bool()
    };
    let types = entry.pointer("/capabilities/thinking/types");
    let thinks = || {
        let takes = |mode| capabilities.takes(mode);
        types.map(|_| takes(Mode::Adaptive) || takes(Mode::Enabled))
    };
    let number = |name: &str| entry.get(name).and_then(Value::as_u64).filter(|it| *it > 0);
    let mut model = Model {
        id: id.to_owned(),
        provider: provider.to_owned(),
        display_name: text(entry, "display_name").unwrap_or(id).to_owned(),
        // llama.cpp's list is the same for all of its APIs.
        context_window: number("max_input_tokens")
            .or_else(|| entry.pointer("/meta/n_ctx")?.as_u64()),
        max_output_tokens: number("max_tokens"),
        supports_tools: true,
        supports_thinking: supported("thinking").or_else(thinks),
        supports_vision: supported("image_input"),
        pricing: None,
    };
    models::complete(&mut model, preset);
    Some(model)
}

fn text<'a>(entry: &'a Value, name: &str) -> Option<&'a str> {
    entry.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_is_read() {
        let page = json!({
            "data": [
                {"type": "model", "id": "claude-test-1", "display_name": "Test 1",
                    "lifecycle": "active", "max_input_tokens": 500_000, "max_tokens": 64_000,
                    "capabilities": {"image_input": {"supported": false}, "thinking": {
                        "types": {"adaptive": {"supported": true}}}}},
                {"id": "claude-gone", "lifecycle": "retired"},
                {"id": "bare"},
                {"id": "local.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 8192, "n_ctx_train": 262_144}},
                {"id": ""}, {}, 3, null,
            ],
            "has_more": true, "first_id": "claude-test-1", "last_id": "bare",
        });
        let (models, after) = super::page(&page, "main", "anthropic");
        let ids: Vec<_> = models.iter().map(|(model, _)| &*model.id).collect();
        assert_eq!(ids, ["claude-test-1", "bare", "local.gguf"]);
        assert_eq!(models[2].0.context_window, Some(8192));
        let (model, capabilities) = &models[0];
        assert_eq!(model.display_name, "Test 1");
        assert_eq!(model.context_window, Some(500_000));
        assert_eq!(model.max_output_tokens, Some(64_000));
        assert_eq!(model.supports_thinking, Some(true));
        assert_eq!(model.supports_vision, Some(false));
        assert_eq!(capabilities.modes, [Mode::Adaptive]);
        assert_eq!(after.as_deref(), Some("bare"));
    }

    #[test]
    fn the_last_page_has_none_after_it() {
        for page in [
            json!({"data": [], "has_more": false, "last_id": "x"}),
            json!({"data": {}, "has_more": true}),
            json!(null),
        ] {
            assert_eq!(super::page(&page, "main", "anthropic"), (Vec::new(), None));
        }
    }
}
