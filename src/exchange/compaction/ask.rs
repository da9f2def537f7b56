//! Asking a model for a summary.

use futures::StreamExt;

use super::cut::Cut;
use super::{Attempt, Compactor, summary, view};
use crate::exchange::budget::estimate;
use crate::exchange::failure;
use crate::exchange::turn::jitter;
use crate::message::{Message, Model, Usage};
use crate::protocol::word;
use crate::provider::retry::{Failures, next_delay};
use crate::provider::{Chunk, ErrorKind, Provider, ProviderError, Request, Stop, ToolChoice};
use crate::telemetry::metrics;

/// The most bytes of a model's answer that are read.
const MAX_ANSWER: usize = 4 * summary::MAX_BYTES;

/// Why there is no summary.
pub(super) enum NoSummary {
    Cancelled,
    Problem(String),
}

impl Compactor<'_, '_> {
    /// Asks the model for a summary of all before the cut.
    pub(super) async fn summary(
        &mut self,
        attempt: &mut Attempt,
        cut: Cut,
        instructions: &str,
    ) -> Result<String, NoSummary> {
        let config = &self.context.services.config.compaction;
        let head = attempt.messages.get(..cut.base).unwrap_or_default();
        let seen = view::view(head, &attempt.before);
        let most_tokens = summary::most_tokens(&attempt.shares);
        let taken = attempt.shares.head.saturating_add(most_tokens);
        let fits = attempt.shares.window.saturating_sub(taken);
        // The window is in the provider's tokens, and what is sent is estimated.
        let fits = self.context.conversation.gauge.lock().estimated(fits);
        let instructions = [config.instructions.as_str(), instructions].join("\n");
        let messages = summary::request(&seen, fits, &instructions);
        let mut choice = match self.setup.provider.caches_by_settings() {
            true => ToolChoice::Auto,
            false => ToolChoice::None,
        };
        loop {
            let answer = self.ask(attempt, &messages, choice, most_tokens).await?;
            if answer.text.trim().is_empty() && answer.has_calls && choice == ToolChoice::Auto {
                choice = ToolChoice::None;
                continue;
            }
            let was_cut = answer.stop == Stop::MaxTokens;
            return match summary::problem(&answer.text, was_cut, estimate(&seen)) {
                None => Ok(answer.text),
                Some(problem) => Err(NoSummary::Problem(problem.to_owned())),
            };
        }
    }

    /// Sends a request, again where that may help.
    async fn ask(
        &mut self,
        attempt: &mut Attempt,
        messages: &[Message],
        choice: ToolChoice,
        most_tokens: u64,
    ) -> Result<Answer, NoSummary> {
        let setup = self.setup;
        let config = &self.context.services.config.compaction;
        let model = config.model_of(&setup.provider_id).unwrap_or(&setup.model);
        let thinking = match setup.provider.caches_by_settings() {
            true => setup.thinking,
            false => None,
        };
        let thought = thinking
            .and_then(|thinking| thinking.budget_tokens)
            .unwrap_or(0);
        let most_tokens = u32::try_from(most_tokens).unwrap_or(u32::MAX);
        let request = Request {
            model,
            system: &setup.system,
            messages,
            tools: &self.offer.specs,
            tool_choice: choice,
            max_tokens: Some(most_tokens.saturating_add(thought)),
            temperature: setup.temperature,
            thinking,
            cache_key: &setup.cache_key,
            compact: None,
        };
        let mut failures = Failures::default();
        loop {
            let answer = answer(&*setup.provider, request);
            let Some(answered) = self.cancel.run_until_cancelled(answer).await else {
                return Err(NoSummary::Cancelled);
            };
            let error = match answered {
                Ok(answer) => {
                    metrics::provider_answered(&setup.provider_id, "ok");
                    self.count(attempt, &answer.usage, &setup.provider.model(model));
                    return Ok(answer);
                }
                Err(error) => error,
            };
            let failure = word(&failure::meaning(error.kind).0);
            if !error.not_sent {
                metrics::provider_answered(&setup.provider_id, &failure);
            }
            let tries = failures.add(&error);
            let Some(delay) = next_delay(setup.max_retries, &error, tries, jitter()) else {
                let redactor = &self.context.services.redactor;
                return Err(NoSummary::Problem(
                    redactor.redact(&error.message).into_owned(),
                ));
            };
            let waited = self.cancel.run_until_cancelled(error.wait(delay)).await;
            waited.ok_or(NoSummary::Cancelled)?;
        }
    }

    fn count(&mut self, attempt: &mut Attempt, usage: &Usage, model: &Model) {
        self.ledger.add_request(usage, model);
        attempt.usage = Some(attempt.usage.unwrap_or_default().plus(*usage));
        attempt.cost.add(usage, model.pricing.as_ref());
    }
}

/// What a model answered.
struct Answer {
    text: String,
    has_calls: bool,
    stop: Stop,
    usage: Usage,
}

async fn answer(provider: &dyn Provider, request: Request<'_>) -> Result<Answer, ProviderError> {
    let mut stream = provider.stream(request).await?;
    let (mut text, mut has_calls) = (String::new(), false);
    while let Some(chunk) = stream.next().await {
        match chunk? {
            Chunk::Text(more) => text.push_str(&more),
            Chunk::ToolCallStart { .. } => has_calls = true,
            Chunk::End(end) => {
                return Ok(Answer {
                    text,
                    has_calls,
                    stop: end.stop,
                    usage: end.usage,
                });
            }
            _ => {}
        }
        if text.len() > MAX_ANSWER {
            let problem = "the summary is larger than anybody asked for";
            return Err(ProviderError::new(ErrorKind::InvalidRequest, problem));
        }
    }
    let problem = "the answer ended before its end marker";
    Err(ProviderError::new(ErrorKind::IncompleteStream, problem))
}
