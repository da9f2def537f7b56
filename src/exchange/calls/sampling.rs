//! An answer of the session's model that an MCP server asks for in the middle of a call.
//!
//! The user is asked twice: whether the model is asked at all, with all that it would be sent, and whether the server gets
//! what it answered. The model has no tools and sees nothing of the conversation. It counts as a request of the exchange:
//! against its caps, in its sums, at the provider's pace; so does one that breaks off.

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::json;
use tracing::{Instrument as _, Span};

use super::user::User;
use crate::exchange::budget::text_tokens;
use crate::exchange::ledger::Ledger;
use crate::exchange::{failure, spans};
use crate::message::{Message, Model, Part, Reply, Thinking, Usage};
use crate::protocol::word;
use crate::provider::{Chunk, ErrorKind, ProviderError, Request, Stop, ToolChoice};
use crate::spend::{Expected, Reservation};
use crate::telemetry::metrics;
use crate::tool::user::{AskUser as _, Form, Given, Purpose, Sample, Sampled, Unsampled, Wanted};

/// The most tokens of an answer.
const MAX_TOKENS: u32 = 8_192;

/// The most bytes of it that are read.
const MAX_ANSWER: usize = 64 * 1024;

/// How long a model has for it.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A request that was sent. It is counted once, however it ends: whoever waits for it may be gone first, since the call was
/// cancelled or answered, or the server has taken its question back.
struct Asked<'a> {
    ledger: &'a Ledger<'a>,
    model: &'a Model,
    expected: Expected,
    reserved: Option<Reservation>,
    span: Span,
    /// Bytes of the answer so far.
    received: usize,
    /// What the provider counted, where the answer is whole.
    usage: Option<Usage>,
    /// Whether its span has its end.
    is_ended: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            spans::cancelled(&self.span);
        }
        let output = text_tokens(self.received).min(self.expected.output);
        let estimate = (self.expected.input, output);
        let is_broken = self.usage.is_none();
        let usage = self.usage.take().unwrap_or_default();
        let reserved = self.reserved.take();
        self.ledger
            .add_of_call(&usage, self.model, estimate, is_broken, reserved);
    }
}

impl User<'_> {
    /// Asks the user, the model, and the user again.
    pub(super) async fn sampled(&self, wanted: Sample) -> Result<Sampled, Unsampled> {
        if let Some(why) = self.unable() {
            return Err(Unsampled::Failed(why));
        }
        let most = wanted.max_tokens.min(MAX_TOKENS);
        let model = self.exchange.setup.model_key();
        let server = wanted.server.clone();
        self.agreed(&server, question(&wanted, &model, most), Purpose::Sampling)
            .await?;
        let sampled = self.answer(&wanted, most).await?;
        let shown = format!(
            "The model {model} has answered what follows. It goes to the server if you agree.\n{}",
            indented(&sampled.text)
        );
        self.agreed(&server, shown, Purpose::SampledAnswer).await?;
        Ok(sampled)
    }

    async fn agreed(
        &self,
        server: &str,
        message: String,
        purpose: Purpose,
    ) -> Result<(), Unsampled> {
        let form = json!({"type": "object", "properties": {}});
        let asked = Wanted {
            server: server.to_owned(),
            message,
            form: Form::Fields(form.as_object().cloned().unwrap_or_default()),
            purpose,
        };
        match self.ask(asked).await {
            Given::Accepted(_) => Ok(()),
            Given::Declined => Err(Unsampled::Declined),
            Given::Cancelled => Err(Unsampled::Cancelled),
        }
    }

    async fn answer(&self, wanted: &Sample, most: u32) -> Result<Sampled, Unsampled> {
        let _pause = self.clock.pause();
        let exchange = self.exchange;
        let (setup, context) = (exchange.setup, exchange.context);
        let known = setup.known_model();
        let texts = wanted.messages.iter().map(|line| line.text.len());
        let system = wanted.system.as_deref().unwrap_or_default();
        let expected = Expected {
            input: text_tokens(texts.sum::<usize>() + system.len()),
            output: u64::from(most),
        };
        context.services.spend.known().await;
        let reserved = self.afford(&known, expected)?;
        let tokens = expected.input.saturating_add(expected.output);
        let entry = setup.rates.enter(context.session.id.as_str(), tokens);
        let admitted = self.cancel.run_until_cancelled(entry.admitted()).await;
        let _admitted = admitted.ok_or(Unsampled::Cancelled)?;
        let span = spans::of_request("sampling", &setup.provider_id, &setup.model);
        let mut asked = Asked {
            ledger: &exchange.ledger,
            model: &known,
            expected,
            reserved,
            span: span.clone(),
            received: 0,
            usage: None,
            is_ended: false,
        };
        let asking = self.ask_model(wanted, most, &mut asked.received);
        let asking = tokio::time::timeout(TIMEOUT, asking.instrument(span.clone()));
        match self.cancel.run_until_cancelled(asking).await {
            Some(Ok(Ok((sampled, usage, stop)))) => {
                spans::answered(&span, stop, &usage);
                metrics::provider_answered(&setup.provider_id, "ok");
                (asked.usage, asked.is_ended) = (Some(usage), true);
                Ok(sampled)
            }
            Some(Ok(Err(error))) => {
                spans::failed(&span, &error);
                let failure = word(&failure::meaning(error.kind).0);
                metrics::provider_answered(&setup.provider_id, &failure);
                asked.is_ended = true;
                let redactor = &context.services.redactor;
                let why = redactor.redact(&error.message).into_owned();
                Err(Unsampled::Failed(format!("the model failed: {why}")))
            }
            Some(Err(_)) => {
                let why = format!("the model did not answer within {} s", TIMEOUT.as_secs());
                Err(Unsampled::Failed(why))
            }
            None => Err(Unsampled::Cancelled),
        }
    }

    /// Reserves what it may cost. Nobody is asked for more money: the server does without.
    fn afford(&self, known: &Model, expected: Expected) -> Result<Option<Reservation>, Unsampled> {
        let (exchange, failed) = (self.exchange, |why: String| Err(Unsampled::Failed(why)));
        let ledger = &exchange.ledger;
        if let Some(most) = exchange.setup.max_fresh_tokens
            && ledger.total().usage.fresh().saturating_add(expected.output) > most
        {
            return failed(format!(
                "the exchange may take {most} fresh tokens (limits.maxFreshTokens), which it would exceed"
            ));
        }
        let Some(pricing) = &known.pricing else {
            let is_capped = ledger.caps.tightest().is_some();
            return match is_capped && !exchange.context.services.spend.allows_unpriced() {
                true => failed("money is capped, and the model has no price".to_owned()),
                false => Ok(None),
            };
        };
        let cost = expected.cost(pricing);
        match ledger.caps.reserve(cost) {
            Ok(reserved) => Ok(Some(reserved)),
            Err(reached) => failed(failure::cap_reached(&reached, Some(cost))),
        }
    }

    async fn ask_model(
        &self,
        wanted: &Sample,
        most: u32,
        received: &mut usize,
    ) -> Result<(Sampled, Usage, Stop), ProviderError> {
        let setup = self.exchange.setup;
        let messages = wanted.messages.iter().map(|line| match line.is_assistant {
            true => Message::Reply(Reply {
                text: line.text.clone(),
                ..Reply::default()
            }),
            false => Message::User(vec![Part::text(line.text.clone())]),
        });
        let messages: Vec<Message> = messages.collect();
        let request = Request {
            front: &[],
            model: &setup.model,
            system: wanted.system.as_deref().unwrap_or_default(),
            messages: &messages,
            tools: &[],
            tool_choice: ToolChoice::None,
            max_tokens: Some(most),
            temperature: wanted.temperature,
            thinking: Some(Thinking::default()),
            cache_key: "",
            output: None,
            compact: None,
        };
        let mut stream = setup.provider.stream(request).await?;
        let mut text = String::new();
        let sampled = |text: String, is_cut| Sampled {
            model: setup.model.clone(),
            text,
            is_cut,
        };
        while let Some(chunk) = stream.next().await {
            match chunk? {
                Chunk::Text(more) => text.push_str(&more),
                Chunk::End(end) => {
                    let is_cut = end.stop == Stop::MaxTokens;
                    return Ok((sampled(text, is_cut), end.usage.believed(), end.stop));
                }
                _ => {}
            }
            *received = text.len();
            if text.len() > MAX_ANSWER {
                text.truncate(text.floor_char_boundary(MAX_ANSWER));
                return Ok((sampled(text, true), Usage::default(), Stop::MaxTokens));
            }
        }
        let problem = "the answer ended before its end marker";
        Err(ProviderError::new(ErrorKind::IncompleteStream, problem))
    }
}

/// Returns what the user reads before the model is asked.
fn question(wanted: &Sample, model: &str, most: u32) -> String {
    let mut text = format!(
        "The server wants the model {model} to answer, in {most} tokens at most. The model gets what follows, and nothing of this conversation. The answer is shown to you before the server gets it.\n"
    );
    let mut part = |who: &str, said: &str| text.push_str(&format!("{who}:\n{}", indented(said)));
    if let Some(system) = &wanted.system {
        part("System prompt", system);
    }
    for line in &wanted.messages {
        let who = if line.is_assistant {
            "Assistant"
        } else {
            "User"
        };
        part(who, &line.text);
    }
    text
}

/// Sets a text in, so that none of its lines looks like one of the question.
fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}
