//! The built-in provider: plays scripts, so that a frontend can be built, shown and tested without a
//! key and without a network. It is also what answers where no provider is configured, and says so.
//!
//! A script is a YAML, TOML or JSON file; `docs/scripts.md` describes the form, `config/demo.yaml` is
//! the one that is compiled in. `providers.NAME.script` names a file, a directory of files (their
//! steps in the order of the names), or a directory that `--record` made (its exchanges in order).
//!
//! For each turn the first step whose conditions hold is played: thinking, text in pieces with
//! pauses, calls, an error before or after output, or a recording through the real parser. Scripts
//! are read at the first turn, not at the start, and are not read again.
//!
//! Read next: `script` (the form), `situation` (conditions), `play` (a step as a stream).

mod load;
mod play;
mod recording;
mod script;
mod situation;

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

use super::{ChunkStream, ErrorKind, Provider, ProviderError, Request};
use crate::config::ProviderConfig;
use crate::message::Model;
use script::Script;
use situation::Situation;

/// The model's name where the script gives none.
const MODEL: &str = "scripted";

/// A script in a provider's place.
pub(super) struct Scripted {
    config: Arc<ProviderConfig>,
    script: OnceLock<Result<Script, ProviderError>>,
}

impl Scripted {
    /// Makes an instance without reading its script.
    pub(super) fn new(config: Arc<ProviderConfig>) -> Self {
        Self {
            config,
            script: OnceLock::new(),
        }
    }

    /// The script, read once.
    fn script(&self) -> Result<&Script, ProviderError> {
        self.script
            .get_or_init(|| load::load(self.config.script.as_deref()))
            .as_ref()
            .map_err(Clone::clone)
    }

    fn answer(&self, request: Request<'_>) -> Result<ChunkStream, ProviderError> {
        let script = self.script()?;
        let situation = Situation::of(&request);
        let step = script.step_for(&situation).ok_or_else(|| {
            let message = match script.is_recorded {
                true => format!("all {} recordings were played", script.steps.len()),
                false => "the script has no step for this message".to_owned(),
            };
            ProviderError::new(ErrorKind::InvalidRequest, message)
        })?;
        play::step(script, step, &situation, &self.config.id, request.model)
    }
}

impl Provider for Scripted {
    fn stream<'a>(
        &'a self,
        request: Request<'a>,
    ) -> BoxFuture<'a, Result<ChunkStream, ProviderError>> {
        async move {
            let chunks = self.answer(request).map_err(marked)?;
            Ok(chunks.map(|chunk| chunk.map_err(marked)).boxed())
        }
        .boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<Model>, ProviderError>> {
        async move {
            let named = self.script()?.model.as_deref();
            Ok(vec![self.model(named.unwrap_or(MODEL))])
        }
        .boxed()
    }

    fn validate(&self) -> BoxFuture<'_, Result<(), ProviderError>> {
        async move { self.script().map(drop) }.boxed()
    }

    fn model(&self, id: &str) -> Model {
        Model {
            id: id.to_owned(),
            provider: self.config.id.clone(),
            display_name: "Scripted (no language model)".to_owned(),
            context_window: self.script().ok().and_then(|script| script.context_window),
            max_output_tokens: None,
            supports_tools: true,
            supports_thinking: Some(true),
            supports_vision: Some(false),
            pricing: None,
        }
    }
}

/// Says that an error is a script's, so that nobody is sent to look at an address.
fn marked(error: ProviderError) -> ProviderError {
    ProviderError {
        scripted: true,
        ..error
    }
}

#[cfg(test)]
mod tests;
