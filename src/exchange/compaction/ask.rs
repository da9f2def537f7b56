//! Asking a model for a summary.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt;
use tracing::Instrument as _;

use super::cut::Cut;
use super::{Attempt, Compactor, summary};
use crate::exchange::budget::{estimate, text_tokens};
use crate::exchange::context::{Context, Setup};
use crate::exchange::failure;
use crate::exchange::ledger::Kind;
use crate::exchange::offer::ToolOffer;
use crate::exchange::spans;
use crate::exchange::turn::jitter;
use crate::message::{Message, Model, Notice, Pricing, Severity, Usage};
use crate::protocol::event::Event;
use crate::protocol::word;
use crate::provider::retry::{Failures, next_delay};
use crate::provider::{Chunk, End, ErrorKind, Provider, ProviderError, Request, ToolChoice};
use crate::spend::Expected;
use crate::telemetry::metrics;

/// The most bytes of a model's answer that are read.
const MAX_ANSWER: usize = 4 * summary::MAX_BYTES;

/// Tokens that an answer may have beside the summary.
const THINKING: u64 = 8_192;

/// Why there is no summary.
pub(super) enum NoSummary {
    Cancelled,
    /// The provider failed; what it said.
    Failed(String),
    /// It is not taken; what is wrong with it.
    Refused(String),
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
        let model = &model_of(setup, self.context);
        let seen = attempt.seen_before(cut, setup, model);
        let most_tokens = summary::most_tokens(&attempt.shares);
        let taken = attempt.shares.head.saturating_add(most_tokens);
        let own = setup.provider.model(model).context_window;
        let window = own.map_or(attempt.shares.window, |own| own.min(attempt.shares.window));
        let fits = window.saturating_sub(taken);
        // The window is in the provider's tokens, and what is sent is estimated.
        let fits = self.context.conversation.gauge.lock().estimated(fits);
        let prompt = summary::prompt(most_tokens, instructions);
        let messages = summary::request(&seen, fits, &prompt);
        let sent = attempt.shares.head.saturating_add(estimate(&messages));
        let most = (most_tokens, window.saturating_sub(sent));
        let mut request = Request {
            model,
            ..request(setup, offer, &messages, most)
        };
        loop {
            let answer = self.ask(attempt, request, most_tokens).await?;
            let is_call = answer.text.trim().is_empty() && answer.has_calls;
            if is_call && request.tool_choice == ToolChoice::Auto {
                request.tool_choice = ToolChoice::None;
                continue;
            }
            return match summary::problem(&answer.text, answer.end.stop, estimate(&seen)) {
                None => Ok(answer.text),
                Some(problem) => Err(NoSummary::Refused(problem.to_owned())),
            };
        }
    }

    /// Sends a request, again where that may help.
    pub(super) async fn ask(
        &mut self,
        attempt: &mut Attempt,
        request: Request<'_>,
        most_tokens: u64,
    ) -> Result<Answer, NoSummary> {
        let setup = self.setup;
        let known = known_model(setup, request.model);
        let input = self.offer.tokens.saturating_add(estimate(request.messages));
        let estimated = Expected {
            input,
            output: most_tokens,
        };
        let mut failures = Failures::default();
        loop {
            self.reserve(estimated, known.pricing.as_ref())?;
            let entry = setup
                .rates
                .enter(self.context.session.id.as_str(), input + most_tokens);
            let admitted = self.cancel.run_until_cancelled(entry.admitted()).await;
            let admitted = admitted.ok_or(NoSummary::Cancelled)?;
            let has_begun = AtomicBool::new(false);
            let span = spans::of_request("compaction", &setup.provider_id, request.model);
            let answer = answer(&*setup.provider, request, &has_begun).instrument(span.clone());
            let answered = self.cancel.run_until_cancelled(answer).await;
            match &answered {
                Some(Ok(answer)) => spans::answered(&span, answer.end.stop, &answer.end.usage),
                Some(Err(error)) => spans::failed(&span, error),
                None => spans::cancelled(&span),
            }
            let has_failed = matches!(answered, Some(Err(_)));
            if answered.is_none() || (has_failed && has_begun.load(Ordering::Relaxed)) {
                // It is billed, and nobody says how much.
                let (nothing, kind) = (Usage::default(), Kind::Compaction);
                let estimate = (input, most_tokens);
                self.ledger.add(kind, &nothing, &known, estimate, true);
                attempt.cost.add_unknown();
            }
            drop(admitted);
            let Some(answered) = answered else {
                self.ledger.reserved = None;
                return Err(NoSummary::Cancelled);
            };
            let error = match answered {
                Ok(answer) => {
                    metrics::provider_answered(&setup.provider_id, "ok");
                    self.count(attempt, &answer, &known, input);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            self.ledger.reserved = None;
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
                return Err(NoSummary::Failed(
                    redactor.redact(&error.message).into_owned(),
                ));
            };
            let waited = self.cancel.run_until_cancelled(error.wait(delay)).await;
            waited.ok_or(NoSummary::Cancelled)?;
        }
    }

    /// Reserves what a request is expected to cost. At a cap nobody is asked: code sums up.
    fn reserve(&mut self, expected: Expected, pricing: Option<&Pricing>) -> Result<(), NoSummary> {
        let caps = &self.ledger.caps;
        let reserved = match pricing {
            Some(pricing) => caps.reserve(expected.cost(pricing)).ok(),
            None if caps.tightest().is_none() || self.context.services.spend.allows_unpriced() => {
                return Ok(());
            }
            None => None,
        };
        self.ledger.reserved = reserved;
        if self.ledger.reserved.is_some() {
            return Ok(());
        }
        let problem = "a cap on money allows no request for a summary by the model (budget, limits.maxCostUsd, or a model without prices)";
        self.emit(Event::SessionNotice(Notice {
            severity: Severity::Warning,
            code: "budget_reached".to_owned(),
            message: format!("{problem}: the conversation is made shorter without it"),
        }));
        Err(NoSummary::Failed(problem.to_owned()))
    }

    fn count(&mut self, attempt: &mut Attempt, answer: &Answer, model: &Model, input: u64) {
        let usage = &answer.end.usage;
        let estimate = (input, text_tokens(answer.text.len()));
        let kind = Kind::Compaction;
        self.ledger.add(kind, usage, model, estimate, false);
        attempt.usage = Some(attempt.usage.unwrap_or_default().plus(*usage));
        attempt.cost.add(usage, model.pricing.as_ref());
    }
}

/// Returns the model that sums up.
fn model_of(setup: &Setup, context: &Context) -> String {
    let config = &context.services.config().compaction;
    let named = config.model_of(&setup.provider_id);
    named.unwrap_or(&setup.model).to_owned()
}

/// Returns what is known of a model of the conversation's provider.
fn known_model(setup: &Setup, model: &str) -> Model {
    match model == setup.model {
        true => setup.known_model(),
        false => setup.priced(setup.provider.model(model)),
    }
}

/// Returns a request of the conversation's own model, with what stands before the messages as in its turns. The answer has room
/// for `most_tokens` and for thinking, as far as `left` tokens of the window hold both.
pub(super) fn request<'r>(
    setup: &'r Setup,
    offer: &'r ToolOffer,
    messages: &'r [Message],
    (most_tokens, left): (u64, u64),
) -> Request<'r> {
    let (choice, thinking) = match setup.provider.caches_by_settings() {
        true => (ToolChoice::Auto, setup.thinking),
        false => (ToolChoice::None, None),
    };
    // Many models think first, asked or not.
    let thought = thinking.and_then(|thinking| thinking.budget_tokens);
    let thought = thought.map_or(THINKING, |budget| u64::from(budget).max(THINKING));
    let most = (most_tokens + thought).min(left).max(most_tokens);
    Request {
        model: &setup.model,
        system: &setup.system,
        front: &offer.front,
        messages,
        tools: &offer.specs,
        tool_choice: choice,
        max_tokens: u32::try_from(most).ok(),
        temperature: setup.temperature,
        thinking,
        cache_key: &setup.cache_key,
        output: None,
        compact: None,
    }
}

/// What a model answered.
pub(super) struct Answer {
    text: String,
    has_calls: bool,
    pub(super) end: End,
}

async fn answer(
    provider: &dyn Provider,
    request: Request<'_>,
    has_begun: &AtomicBool,
) -> Result<Answer, ProviderError> {
    let mut stream = provider.stream(request).await?;
    let (mut text, mut has_calls) = (String::new(), false);
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        has_begun.store(true, Ordering::Relaxed);
        match chunk {
            Chunk::Text(more) => text.push_str(&more),
            Chunk::ToolCallStart { .. } => has_calls = true,
            Chunk::End(mut end) => {
                end.usage = end.usage.believed();
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
