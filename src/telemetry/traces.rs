//! Spans for a collector of OpenTelemetry: which of the log's spans are sent, under which names, and what goes along.
//!
//! Only what a table here names leaves the daemon, under the names of OpenTelemetry's conventions for generative AI
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>, read on 2026-11-27): times, counts, and words and names that
//! the log may have too. Events of the log are no part of a span, so nothing else can come in by them.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, TracerProvider as _};
use opentelemetry::{Array, Context, InstrumentationScope, Key, KeyValue, StringValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SpanData, SpanEvents, SpanLimits, SpanLinks};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span as SdkSpan, SpanProcessor};
use tokio::sync::mpsc;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// Spans that ended and wait to be sent: some minutes of a busy daemon. Those beyond are lost, and counted.
pub const SPAN_QUEUE: usize = 4_096;

/// The longest text that goes along with a span, in bytes: names of models are a client's to choose.
const MAX_TEXT: usize = 256;

/// The name of a whole exchange, by the conventions.
const EXCHANGE: &str = "invoke_agent outrigger";

/// What of the log's spans is sent, and the operation that each is.
const SPANS: [(&str, &str); 4] = [
    ("exchange", "invoke_agent"),
    ("turn", ""),
    ("request", "chat"),
    ("call", "execute_tool"),
];

/// Fields of the log's spans that are sent, with the names that they are sent under.
const FIELDS: [(&str, &str); 6] = [
    ("message_id", "outrigger.exchange.id"),
    ("turn", "outrigger.turn"),
    ("provider", PROVIDER),
    ("model", MODEL),
    ("tool", TOOL),
    ("tool_id", "gen_ai.tool.call.id"),
];

const PROVIDER: &str = "gen_ai.provider.name";
const MODEL: &str = "gen_ai.request.model";
const TOOL: &str = "gen_ai.tool.name";
const SESSION: &str = "session.id";
const CONVERSATION: &str = "gen_ai.conversation.id";
const OPERATION: &str = "gen_ai.operation.name";
const FINISH: &str = "gen_ai.response.finish_reasons";
const INPUT: &str = "gen_ai.usage.input_tokens";
const OUTPUT: &str = "gen_ai.usage.output_tokens";
const CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
const CACHE_WRITE: &str = "gen_ai.usage.cache_creation.input_tokens";
const ERROR: &str = "error.type";
const STOP: &str = "outrigger.stop_reason";
const OUTCOME: &str = "outrigger.outcome";
const COST: &str = "outrigger.cost_usd";
const PURPOSE: &str = "outrigger.purpose";

/// What is noted on spans here, and is no field of the log.
const NOTED: [&str; 15] = [
    PROVIDER,
    MODEL,
    SESSION,
    CONVERSATION,
    FINISH,
    INPUT,
    OUTPUT,
    CACHE_READ,
    CACHE_WRITE,
    ERROR,
    STOP,
    OUTCOME,
    COST,
    PURPOSE,
    OPERATION,
];

/// Where spans go when they end.
pub struct Sink(SdkTracer);

/// The spans that ended, for whoever sends them.
pub struct Ended {
    spans: mpsc::Receiver<SpanData>,
    lost: Arc<AtomicU64>,
}

/// Returns both ends of the queue of spans.
pub fn queue() -> (Sink, Ended) {
    let (sender, spans) = mpsc::channel(SPAN_QUEUE);
    let lost = Arc::<AtomicU64>::default();
    let queue = Queue {
        spans: sender,
        lost: Arc::clone(&lost),
    };
    // Each of these would come of `OTEL_…` in the environment else; the daemon's configuration alone decides.
    let provider = SdkTracerProvider::builder()
        .with_sampler(Sampler::AlwaysOn)
        .with_span_limits(SpanLimits::default())
        .with_resource(Resource::builder_empty().build())
        .with_span_processor(queue)
        .build();
    let scope = InstrumentationScope::builder("outrigger");
    let scope = scope.with_version(env!("CARGO_PKG_VERSION")).build();
    (
        Sink(provider.tracer_with_scope(scope)),
        Ended { spans, lost },
    )
}

impl Ended {
    /// Adds up to `most` spans, having waited for the first; returns how many, 0 where no more will come.
    pub async fn recv_many(&mut self, spans: &mut Vec<SpanData>, most: usize) -> usize {
        self.spans.recv_many(spans, most).await
    }

    /// Returns a span that waits.
    pub fn try_recv(&mut self) -> Option<SpanData> {
        self.spans.try_recv().ok()
    }

    /// Returns a queue that is over, and that has lost so many.
    #[cfg(test)]
    pub(crate) fn over(lost: u64) -> Self {
        let (_, spans) = mpsc::channel(1);
        let lost = Arc::new(AtomicU64::new(lost));
        Self { spans, lost }
    }

    /// Returns how many spans were lost since this was asked last.
    pub fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

/// Returns the layer that has spans of the log end in the queue.
pub(super) fn layer<S>(Sink(tracer): Sink) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let is_sent = |it: &Metadata<'_>| it.is_span() && operation(it.name()).is_some();
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_tracked_inactivity(false)
        .with_threads(false)
        .with_target(false)
        .with_context_activation(false)
        .with_filter(filter_fn(is_sent).with_max_level_hint(LevelFilter::INFO))
}

/// Takes spans as they end, and never waits.
#[derive(Debug)]
struct Queue {
    spans: mpsc::Sender<SpanData>,
    lost: Arc<AtomicU64>,
}

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut SdkSpan, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.spans.try_send(shaped(span)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Returns the operation that a span of the log is; `None` where it is not sent.
fn operation(name: &str) -> Option<&'static str> {
    let found = SPANS.iter().find(|(known, _)| *known == name);
    found.map(|(_, operation)| *operation)
}

/// Returns a span as it is sent: under its name of the conventions, and with what the tables name.
fn shaped(mut span: SpanData) -> SpanData {
    let operation = operation(&span.name).unwrap_or_default();
    let noted = span.attributes.into_iter().filter_map(|it| {
        let key = sent_as(it.key.as_str())?;
        Some(KeyValue::new(key, cut(it.value)))
    });
    let named = (!operation.is_empty()).then(|| KeyValue::new(OPERATION, operation));
    span.attributes = named.into_iter().chain(noted).collect();
    let about = |key: &str| {
        let found = span.attributes.iter().find(|it| it.key.as_str() == key);
        found.map(|it| it.value.as_str().into_owned())
    };
    span.name = match operation {
        "invoke_agent" => Cow::Borrowed(EXCHANGE),
        "chat" => format!("chat {}", about(MODEL).unwrap_or_default()).into(),
        "execute_tool" => format!("execute_tool {}", about(TOOL).unwrap_or_default()).into(),
        _ => span.name,
    };
    if operation == "chat" {
        span.span_kind = SpanKind::Client;
    }
    (span.events, span.links) = (SpanEvents::default(), SpanLinks::default());
    span
}

/// Returns the name under which something of a span is sent; `None` where it is not.
fn sent_as(key: &str) -> Option<Key> {
    let noted = NOTED.iter().find(|it| **it == key);
    let field = FIELDS.iter().find(|(field, _)| *field == key);
    let found = noted.copied().or(field.map(|(_, name)| *name))?;
    Some(Key::from_static_str(found))
}

fn cut(value: Value) -> Value {
    match value {
        Value::String(text) if text.as_str().len() > MAX_TEXT => {
            let text = text.as_str();
            let end = text.floor_char_boundary(MAX_TEXT);
            Value::String(text.get(..end).unwrap_or_default().to_owned().into())
        }
        value => value,
    }
}

/// What a request took, as the provider counted it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokens {
    /// Of input, cached ones included.
    pub input: Option<u64>,
    /// Of output.
    pub output: Option<u64>,
    /// Of the input: read from a cache.
    pub cache_read: Option<u64>,
    /// Of the input: written to a cache.
    pub cache_write: Option<u64>,
}

/// Notes whose exchange a span is.
pub fn exchange_of(span: &Span, session: &str, conversation: &str) {
    note(span, SESSION, session);
    note(span, CONVERSATION, conversation);
}

/// Notes what an exchange came to, and ends its span; `error` is the code of what went wrong.
pub fn exchange_ended(
    span: &Span,
    stop: &str,
    error: Option<&str>,
    tokens: Tokens,
    cost: Option<f64>,
) {
    note(span, STOP, stop);
    note_tokens(span, tokens);
    if let Some(cost) = cost {
        span.set_attribute(COST, cost);
    }
    match error {
        Some(error) => failed(span, error),
        None => ended(span),
    }
}

/// Notes what a request to a model is for, and whom it is sent to.
pub fn requested(span: &Span, purpose: &'static str, provider: &str, model: &str) {
    note(span, PURPOSE, purpose);
    note(span, PROVIDER, provider);
    note(span, MODEL, model);
}

/// Notes what a request came to, and ends its span.
pub fn answered(span: &Span, finish: &str, tokens: Tokens) {
    let finish = vec![StringValue::from(finish.to_owned())];
    span.set_attribute(FINISH, Value::Array(Array::String(finish)));
    note_tokens(span, tokens);
    ended(span);
}

/// Notes what a call came to, and ends its span.
pub fn settled(span: &Span, outcome: &str, is_error: bool) {
    note(span, OUTCOME, outcome);
    match is_error {
        true => failed(span, outcome),
        false => ended(span),
    }
}

/// Notes the sort of a failure, and ends the span.
pub fn failed(span: &Span, sort: &str) {
    note(span, ERROR, sort);
    span.set_status(Status::error(""));
    ended(span);
}

/// Ends a span now: what goes on behind it, such as a command in the background, keeps the log's for as long as it runs.
pub fn ended(span: &Span) {
    span.context().span().end();
}

fn note_tokens(span: &Span, tokens: Tokens) {
    for (key, count) in [
        (INPUT, tokens.input),
        (OUTPUT, tokens.output),
        (CACHE_READ, tokens.cache_read),
        (CACHE_WRITE, tokens.cache_write),
    ] {
        if let Some(count) = count {
            span.set_attribute(key, i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

fn note(span: &Span, key: &'static str, text: &str) {
    span.set_attribute(key, text.to_owned());
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::with_default;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// Returns what is sent of the spans that `work` makes.
    fn sent(work: impl FnOnce()) -> Vec<SpanData> {
        let (sink, mut ended) = queue();
        let subscriber = tracing_subscriber::registry().with(layer(sink));
        with_default(subscriber, work);
        std::iter::from_fn(|| ended.try_recv()).collect()
    }

    fn attributes(span: &SpanData) -> Vec<String> {
        let all = span.attributes.iter();
        all.map(|it| format!("{}={}", it.key, it.value.as_str()))
            .collect()
    }

    #[test]
    fn a_span_has_its_parent_and_what_the_tables_name() {
        let spans = sent(|| {
            let _session = tracing::info_span!("session", session_id = "s").entered();
            let exchange = tracing::info_span!("exchange", message_id = "m1", said = "canary");
            exchange_of(&exchange, "s", "default");
            exchange.in_scope(|| {
                let turn = tracing::info_span!("turn", turn = 0_u32, forced = true);
                turn.in_scope(|| {
                    tracing::error!(content = "canary", "canary");
                    tracing::info_span!("other", canary = "canary").in_scope(|| {
                        let request = tracing::info_span!("request");
                        requested(&request, "turn", "p", "m");
                        let tokens = Tokens {
                            input: Some(3),
                            ..Tokens::default()
                        };
                        answered(&request, "end_turn", tokens);
                    });
                    let call = tracing::info_span!("call", tool = "bash", tool_id = "t1");
                    call.record("canary", "canary");
                    settled(&call, "error", true);
                });
                ended(&turn);
            });
            exchange_ended(&exchange, "end_turn", None, Tokens::default(), Some(0.5));
            // One that goes on behind it.
            std::mem::forget(exchange);
        });
        let names: Vec<_> = spans.iter().map(|it| it.name.as_ref()).collect();
        assert_eq!(names, ["chat m", "execute_tool bash", "turn", EXCHANGE]);
        let [chat, call, turn, exchange] = spans.as_slice() else {
            panic!("{names:?}");
        };
        assert_eq!(chat.parent_span_id, turn.span_context.span_id());
        assert_eq!(call.parent_span_id, turn.span_context.span_id());
        assert_eq!(turn.parent_span_id, exchange.span_context.span_id());
        assert_eq!(exchange.parent_span_id, opentelemetry::SpanId::INVALID);
        assert_eq!(chat.span_kind, SpanKind::Client);
        assert_eq!(
            attributes(chat),
            [
                "gen_ai.operation.name=chat",
                "outrigger.purpose=turn",
                "gen_ai.provider.name=p",
                "gen_ai.request.model=m",
                "gen_ai.response.finish_reasons=[\"end_turn\"]",
                "gen_ai.usage.input_tokens=3",
            ]
        );
        assert_eq!(
            attributes(call),
            [
                "gen_ai.operation.name=execute_tool",
                "gen_ai.tool.name=bash",
                "gen_ai.tool.call.id=t1",
                "outrigger.outcome=error",
                "error.type=error",
            ]
        );
        assert_eq!(call.status, Status::error(""));
        assert_eq!(attributes(turn), ["outrigger.turn=0"]);
        let all = format!("{spans:?}");
        assert!(!all.contains("canary"), "{all}");
    }

    #[test]
    fn a_full_queue_loses_and_counts() {
        let (sink, ended) = queue();
        let subscriber = tracing_subscriber::registry().with(layer(sink));
        with_default(subscriber, || {
            for _ in 0..SPAN_QUEUE + 3 {
                drop(tracing::info_span!("turn"));
            }
        });
        assert_eq!((ended.take_lost(), ended.take_lost()), (3, 0));
    }

    #[test]
    fn a_long_name_is_cut() {
        let spans = sent(|| {
            let model = "é".repeat(MAX_TEXT);
            requested(&tracing::info_span!("request"), "turn", "p", &model);
        });
        let found = format!("chat {}", "é".repeat(MAX_TEXT / 2));
        assert_eq!(spans[0].name, found);
    }
}
