//! What `/api/tags` and `/api/show` tell of the models on a server.
//!
//! Fields: `docs/providers.md`, "Lists of models". Pure.

use serde_json::Value;

use crate::message::Model;

/// The context requested where the configuration names none, in tokens: enough for tools and some
/// work, and the memory for it fits where a model of usual size fits.
pub(super) const DEFAULT_CONTEXT: u64 = 32_768;

/// Most models of one server that are listed; each costs a request.
pub(super) const MAX_LISTED: usize = 256;

/// What is known of one model. `None` is "the server did not say": it is too old, or imitates Ollama.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The longest context the model was made for, in tokens.
    pub(super) context_length: Option<u64>,
    /// Whether it writes text at all; models for embeddings do not.
    pub(super) completion: Option<bool>,
    pub(super) tools: Option<bool>,
    pub(super) thinking: Option<bool>,
    pub(super) vision: Option<bool>,
    /// Whether it takes levels of thinking only, and cannot stop thinking (gpt-oss).
    pub(super) thinks_in_levels: bool,
}

impl Facts {
    pub(super) fn from_show(show: &Value) -> Self {
        let family = show.pointer("/details/family").and_then(Value::as_str);
        Self {
            context_length: context_length(show),
            thinks_in_levels: matches!(family, Some("gptoss" | "gpt-oss")),
            ..Self::from_capabilities(show)
        }
    }

    /// Reads the `capabilities` of a model in the answer of `/api/tags` or `/api/show`.
    pub(super) fn from_capabilities(model: &Value) -> Self {
        let capabilities = model.get("capabilities").and_then(Value::as_array);
        let has = |word: &str| {
            capabilities.map(|capabilities| capabilities.iter().any(|name| name == word))
        };
        Self {
            completion: has("completion"),
            tools: has("tools"),
            thinking: has("thinking"),
            vision: has("vision"),
            ..Self::default()
        }
    }

    /// The context to ask for: the configured one, else what the model can do up to
    /// [`DEFAULT_CONTEXT`]. The same for every request, for a change makes the server load the
    /// model anew.
    pub(super) fn num_ctx(&self, configured: Option<u64>) -> u64 {
        configured.unwrap_or_else(|| {
            self.context_length
                .map_or(DEFAULT_CONTEXT, |most| most.min(DEFAULT_CONTEXT))
        })
    }

    /// The model as the daemon lists it. Its window is the context that is requested, which is
    /// what a conversation has to fit into, not what the model could do.
    pub(super) fn model(&self, provider: &str, id: &str, configured: Option<u64>) -> Model {
        let window = self.context_length.map(|_| self.num_ctx(configured));
        Model {
            id: id.to_owned(),
            provider: provider.to_owned(),
            display_name: id.to_owned(),
            context_window: window.or(configured),
            max_output_tokens: None,
            supports_tools: self.tools.unwrap_or(true),
            supports_thinking: self.thinking,
            supports_vision: self.vision,
            pricing: None,
        }
    }
}

/// Returns name and capabilities of each model that may chat, in the order of the server.
pub(super) fn listed(tags: &Value) -> Vec<(String, Facts)> {
    let models = tags.get("models").and_then(Value::as_array);
    models
        .into_iter()
        .flatten()
        .filter_map(|model| {
            let name = model.get("model").or_else(|| model.get("name"));
            let name = name.and_then(Value::as_str)?;
            Some((name.to_owned(), Facts::from_capabilities(model)))
        })
        .filter(|(_, facts)| facts.completion != Some(false))
        .take(MAX_LISTED)
        .collect()
}

/// `model_info` names its fields after the architecture; a file without that name has one anyway.
fn context_length(show: &Value) -> Option<u64> {
    let info = show.get("model_info")?.as_object()?;
    let architecture = info.get("general.architecture").and_then(Value::as_str);
    architecture
        .and_then(|name| info.get(&format!("{name}.context_length")))
        .or_else(|| {
            info.iter()
                .find(|(key, _)| key.ends_with(".context_length"))
                .map(|(_, value)| value)
        })
        .and_then(Value::as_u64)
        .filter(|length| *length > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn show_tells_context_and_capabilities() {
        let cases = [
            (
                json!({"capabilities": ["completion", "vision"], "details": {"family": "llama"},
                    "model_info": {"general.architecture": "llama", "clip.context_length": 77, "llama.context_length": 8192}}),
                Facts {
                    context_length: Some(8192),
                    completion: Some(true),
                    tools: Some(false),
                    thinking: Some(false),
                    vision: Some(true),
                    thinks_in_levels: false,
                },
            ),
            (
                json!({"capabilities": ["completion", "tools", "thinking"], "details": {"family": "gptoss"},
                    "model_info": {"gptoss.context_length": 131_072}}),
                Facts {
                    context_length: Some(131_072),
                    completion: Some(true),
                    tools: Some(true),
                    thinking: Some(true),
                    vision: Some(false),
                    thinks_in_levels: true,
                },
            ),
            (
                json!({"model_info": {"general.architecture": "x"}}),
                Facts::default(),
            ),
            (
                json!({"capabilities": null, "model_info": []}),
                Facts::default(),
            ),
            (
                json!({"model_info": {"a.context_length": 0}}),
                Facts::default(),
            ),
            (json!("nonsense"), Facts::default()),
        ];
        for (show, expected) in cases {
            assert_eq!(Facts::from_show(&show), expected, "{show}");
        }
    }

    #[test]
    fn the_context_is_the_configured_one_or_the_models_up_to_a_limit() {
        // (model's maximum, configured, requested, listed as the window)
        let cases = [
            (None, None, 32_768, None),
            (None, Some(9000), 9000, Some(9000)),
            (Some(8192), None, 8192, Some(8192)),
            (Some(262_144), None, 32_768, Some(32_768)),
            (Some(262_144), Some(100_000), 100_000, Some(100_000)),
        ];
        for (context_length, configured, requested, listed) in cases {
            let facts = Facts {
                context_length,
                ..Facts::default()
            };
            assert_eq!(facts.num_ctx(configured), requested);
            assert_eq!(facts.model("p", "m", configured).context_window, listed);
        }
    }

    #[test]
    fn tags_list_what_can_chat_under_its_name() {
        let tags = json!({"models": [
            {"name": "a:latest", "model": "a:latest"},
            {"name": "b"},
            {"model": "embed", "capabilities": ["embedding"]},
            {"model": "c", "capabilities": ["completion", "tools"]},
            {"size": 1}, 7,
        ]});
        let listed = listed(&tags);
        let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a:latest", "b", "c"]);
        assert_eq!(listed[2].1.tools, Some(true));
        assert_eq!(super::listed(&json!({"models": null})), []);
        assert_eq!(super::listed(&json!([])), []);
    }
}
