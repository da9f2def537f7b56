//! Asking a model for a summary.

use futures::StreamExt;

use super::cut::Cut;
use super::{Attempt, Compactor, summary};
use crate::exchange::budget::estimate;
use crate::exchange::context::Setup;
use crate::exchange::failure;
use crate::exchange::turn::{ToolOffer, jitter};
use crate::message::{Message, Model, Usage};
use crate::protocol::word;
use crate::provider::retry::{Failures, next_delay};
use crate::provider::{Chunk, End, ErrorKind, Provider, ProviderError, Request, Stop, ToolChoice};
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
        let (setup, offer) = (self.setup, self.offer);
        let config = &self.context.services.config.compaction;
        let model = config.model_of(&setup.provider_id).unwrap_or(&setup.model);
        let seen = attempt.seen_before(cut, setup, model);
        let most_tokens = summary::most_tokens(&attempt.shares);
        let taken = attempt.shares.head.saturating_add(most_tokens);
        let fits = attempt.shares.window.saturating_sub(taken);
        // The window is in the provider's tokens, and what is sent is estimated.
        let fits = self.context.conversation.gauge.lock().estimated(fits);
        let messages = summary::request(&seen, fits, &summary::prompt(instructions));
        let mut request = Request {
            model,
            ..request(setup, offer, &messages, most_tokens)
        };
        loop {
            let answer = self.ask(attempt, request).await?;
            let is_call = answer.text.trim().is_empty() && answer.has_calls;
            if is_call && request.tool_choice == ToolChoice::Auto {
                request.tool_choice = ToolChoice::None;
                continue;
            }
            let was_cut = answer.end.stop == Stop::MaxTokens;
            return match summary::problem(&answer.text, was_cut, estimate(&seen)) {
                None => Ok(answer.text),
                Some(problem) => Err(NoSummary::Problem(problem.to_owned())),
            };
        }
    }

    /// Sends a request, again where that may help.
    pub(super) async fn ask(
        &mut self,
        attempt: &mut Attempt,
        request: Request<'_>,
    ) -> Result<Answer, NoSummary> {
        let setup = self.setup;
        let mut failures = Failures::default();
        loop {
            let answer = answer(&*setup.provider, request);
            let Some(answered) = self.cancel.run_until_cancelled(answer).await else {
                return Err(NoSummary::Cancelled);
            };
            let error = match answered {
                Ok(answer) => {
                    metrics::provider_answered(&setup.provider_id, "ok");
                    let model = setup.provider.model(request.model);
                    self.count(attempt, &answer.end.usage, &model);
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
                // What names it in an answer to a request for one may mean that request.
                let is_refused = match request.compact {
                    Some(_) => error.kind == ErrorKind::Compaction,
                    None => error.names_compaction(),
                };
                if is_refused {
                    self.drop_native(attempt);
                }
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

/// Returns a request of the conversation's own model, with what stands before the messages as in its turns.
pub(super) fn request<'r>(
    setup: &'r Setup,
    offer: &'r ToolOffer,
    messages: &'r [Message],
    most_tokens: u64,
) -> Request<'r> {
    let (choice, thinking) = match setup.provider.caches_by_settings() {
        true => (ToolChoice::Auto, setup.thinking),
        false => (ToolChoice::None, None),
    };
    let thought = thinking.and_then(|thinking| thinking.budget_tokens);
    let most_tokens = u32::try_from(most_tokens).unwrap_or(u32::MAX);
    Request {
        model: &setup.model,
        system: &setup.system,
        messages,
        tools: &offer.specs,
        tool_choice: choice,
        max_tokens: Some(most_tokens.saturating_add(thought.unwrap_or(0))),
        temperature: setup.temperature,
        thinking,
        cache_key: &setup.cache_key,
        compact: None,
    }
}

/// What a model answered.
pub(super) struct Answer {
    text: String,
    has_calls: bool,
    pub(super) end: End,
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
                    end,
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
