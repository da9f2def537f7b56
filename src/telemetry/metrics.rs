//! Figures for an operator, in Prometheus' text form.
//!
//! What happens now and then is counted where it happens; nothing is counted for a delta. How many of something there
//! are now is a number of its own ([`Gauge`]), read when somebody asks. Labels are words of the contract, names of
//! provider instances and names of tools that there are: never an id, a model, or what a model made up.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

/// Upper bounds of the durations told apart, in seconds: from a file that is read to an exchange of an hour.
const BUCKETS: [f64; 14] = [
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0,
];

/// How many of something there are now.
#[derive(Debug)]
pub struct Gauge {
    name: &'static str,
    help: &'static str,
    now: AtomicI64,
}

/// One of what a [`Gauge`] counts, until it is dropped.
#[derive(Debug)]
#[must_use = "it is counted for as long as this lives"]
pub struct Counted(&'static Gauge);

impl Gauge {
    const fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            now: AtomicI64::new(0),
        }
    }

    /// Counts one more until the value returned is dropped.
    pub fn enter(&'static self) -> Counted {
        self.now.fetch_add(1, Ordering::Relaxed);
        Counted(self)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Open sockets.
pub static CONNECTIONS: Gauge = Gauge::new("outrigger_connections", "Open WebSockets.");
/// Sessions, with and without a socket.
pub static SESSIONS: Gauge = Gauge::new(
    "outrigger_sessions",
    "Sessions, also those in their grace period.",
);
/// Conversations of all sessions.
pub static CONVERSATIONS: Gauge =
    Gauge::new("outrigger_conversations", "Conversations of all sessions.");
/// Exchanges that run.
pub static EXCHANGES: Gauge = Gauge::new("outrigger_exchanges_running", "Exchanges that run.");
/// Sends that wait for the exchange before them.
pub static QUEUED_SENDS: Gauge = Gauge::new(
    "outrigger_sends_queued",
    "Sends that wait for the exchange before them.",
);
/// Calls that wait for others, or for a file.
pub static QUEUED_CALLS: Gauge = Gauge::new(
    "outrigger_tool_calls_queued",
    "Tool calls that wait for other calls or for a file.",
);
/// Calls that run.
pub static RUNNING_CALLS: Gauge =
    Gauge::new("outrigger_tool_calls_running", "Tool calls that run.");
/// Questions that nobody has answered yet.
pub static OPEN_APPROVALS: Gauge = Gauge::new(
    "outrigger_approvals_open",
    "Approvals that wait for the user.",
);

static GAUGES: [&Gauge; 8] = [
    &CONNECTIONS,
    &SESSIONS,
    &CONVERSATIONS,
    &EXCHANGES,
    &QUEUED_SENDS,
    &QUEUED_CALLS,
    &RUNNING_CALLS,
    &OPEN_APPROVALS,
];

/// What is counted and timed since the start.
struct Figures {
    registry: Registry,
    connections: IntCounterVec,
    resumes: IntCounterVec,
    replay_gaps: IntCounterVec,
    exchanges: IntCounterVec,
    provider_requests: IntCounterVec,
    provider_retries: IntCounterVec,
    tokens: IntCounterVec,
    tool_calls: IntCounterVec,
    approvals: IntCounterVec,
    exchange_seconds: HistogramVec,
    first_byte_seconds: HistogramVec,
    tool_seconds: HistogramVec,
    approval_seconds: HistogramVec,
}

static FIGURES: LazyLock<Figures> = LazyLock::new(Figures::new);

impl Figures {
    fn new() -> Self {
        let registry = Registry::new();
        let counter = |name, help, labels: &[&str]| {
            registered(&registry, IntCounterVec::new(Opts::new(name, help), labels))
        };
        let histogram = |name, help, labels: &[&str]| {
            let options = HistogramOpts::new(name, help).buckets(BUCKETS.to_vec());
            registered(&registry, HistogramVec::new(options, labels))
        };
        Self {
            connections: counter("outrigger_connections_total", "WebSockets accepted.", &[]),
            resumes: counter(
                "outrigger_resumes_total",
                "Sessions that got another socket, by `how`.",
                &["how"],
            ),
            replay_gaps: counter(
                "outrigger_replay_gaps_total",
                "Times that a client's place in the log was no longer kept.",
                &[],
            ),
            exchanges: counter(
                "outrigger_exchanges_total",
                "Exchanges that ended, by `end`.",
                &["end"],
            ),
            provider_requests: counter(
                "outrigger_provider_requests_total",
                "Requests for a turn, by `provider` and `outcome`.",
                &["provider", "outcome"],
            ),
            provider_retries: counter(
                "outrigger_provider_retries_total",
                "Turns asked for again, by `provider` and `reason`.",
                &["provider", "reason"],
            ),
            tokens: counter(
                "outrigger_tokens_total",
                "Tokens as the provider counted them, by `provider` and `kind`.",
                &["provider", "kind"],
            ),
            tool_calls: counter(
                "outrigger_tool_calls_total",
                "Tool calls that were settled, by `tool` and `outcome`.",
                &["tool", "outcome"],
            ),
            approvals: counter(
                "outrigger_approvals_total",
                "Approvals that were settled, by `outcome`.",
                &["outcome"],
            ),
            exchange_seconds: histogram(
                "outrigger_exchange_seconds",
                "How long exchanges took.",
                &[],
            ),
            first_byte_seconds: histogram(
                "outrigger_provider_first_byte_seconds",
                "From a request to the first of its answer, by `provider`.",
                &["provider"],
            ),
            tool_seconds: histogram(
                "outrigger_tool_seconds",
                "How long tool calls ran, by `tool`.",
                &["tool"],
            ),
            approval_seconds: histogram(
                "outrigger_approval_wait_seconds",
                "How long the user took, by `outcome`.",
                &["outcome"],
            ),
            registry,
        }
    }
}

#[expect(
    clippy::expect_used,
    reason = "names and labels are constants, and a test makes them all"
)]
fn registered<T: Collector + Clone + 'static>(
    registry: &Registry,
    made: prometheus::Result<T>,
) -> T {
    let made = made.expect("a figure's name and labels are well formed");
    let kept = Box::new(made.clone());
    registry.register(kept).expect("a figure is named once");
    made
}

/// Tasks of the runtime.
const TASKS: (&str, &str) = ("outrigger_tasks", "Tasks of the runtime.");

/// Returns all figures in Prometheus' text form. `tasks` are the runtime's.
pub fn render(tasks: usize) -> prometheus::Result<String> {
    let mut families = FIGURES.registry.gather();
    let tasks = (TASKS.0, TASKS.1, i64::try_from(tasks).unwrap_or(i64::MAX));
    let gauges = GAUGES.map(|one| (one.name, one.help, one.now.load(Ordering::Relaxed)));
    for (name, help, now) in gauges.into_iter().chain([tasks]) {
        let gauge = IntGauge::new(name, help)?;
        gauge.set(now);
        families.extend(gauge.collect());
    }
    TextEncoder::new().encode_to_string(&families)
}

/// A socket was accepted.
pub fn connected() {
    FIGURES.connections.with_label_values::<&str>(&[]).inc();
}

/// A session got another socket, by taking it from the one before or in its grace period.
pub fn resumed(taken_over: bool) {
    let how = if taken_over { "taken_over" } else { "resumed" };
    FIGURES.resumes.with_label_values(&[how]).inc();
}

/// A client's place in the log was no longer kept.
pub fn replay_gap() {
    FIGURES.replay_gaps.with_label_values::<&str>(&[]).inc();
}

/// An exchange ended; one that was dropped before it ran took no time that could be measured.
pub fn exchange_ended(end: &str, took: Option<Duration>) {
    FIGURES.exchanges.with_label_values(&[end]).inc();
    if let Some(took) = took {
        observe(&FIGURES.exchange_seconds, &[], took);
    }
}

/// The first of an answer came.
pub fn first_byte(provider: &str, took: Duration) {
    observe(&FIGURES.first_byte_seconds, &[provider], took);
}

/// A request for a turn came to an end: `ok`, `cancelled`, or the sort of failure.
pub fn provider_answered(provider: &str, outcome: &str) {
    let requests = &FIGURES.provider_requests;
    requests.with_label_values(&[provider, outcome]).inc();
}

/// A turn is asked for again because of this sort of failure.
pub fn provider_retried(provider: &str, reason: &str) {
    let retries = &FIGURES.provider_retries;
    retries.with_label_values(&[provider, reason]).inc();
}

/// A turn took so many tokens of a kind: `input`, `output`, `cache_read`, `cache_write`.
pub fn tokens(provider: &str, kind: &'static str, count: u64) {
    let tokens = &FIGURES.tokens;
    tokens.with_label_values(&[provider, kind]).inc_by(count);
}

/// A call was settled; `tool` is a tool that there is, or `unknown`. One that did not run has no duration.
pub fn tool_settled(tool: &str, outcome: &str, ran: Option<Duration>) {
    let calls = &FIGURES.tool_calls;
    calls.with_label_values(&[tool, outcome]).inc();
    if let Some(ran) = ran {
        observe(&FIGURES.tool_seconds, &[tool], ran);
    }
}

/// A question was settled after so long.
pub fn approval_settled(outcome: &str, waited: Duration) {
    FIGURES.approvals.with_label_values(&[outcome]).inc();
    observe(&FIGURES.approval_seconds, &[outcome], waited);
}

fn observe(histogram: &HistogramVec, labels: &[&str], took: Duration) {
    histogram
        .with_label_values(labels)
        .observe(took.as_secs_f64());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_rendered() {
        connected();
        resumed(true);
        replay_gap();
        exchange_ended("end_turn", Some(Duration::from_secs(1)));
        first_byte("p", Duration::from_secs(1));
        provider_answered("p", "ok");
        provider_retried("p", "timeout");
        tokens("p", "input", 1);
        tool_settled("bash", "success", Some(Duration::from_secs(1)));
        approval_settled("approved", Duration::from_secs(1));
        let figures = render(1).unwrap();
        let named: Vec<&str> = figures
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
            .collect();
        assert_eq!(named.len(), 13 + GAUGES.len() + 1, "{named:?}");
    }

    #[test]
    fn what_was_entered_is_left() {
        static ONE: Gauge = Gauge::new("one", "");
        let (first, second) = (ONE.enter(), ONE.enter());
        drop(first);
        assert_eq!(ONE.now.load(Ordering::Relaxed), 1);
        drop(second);
        assert_eq!(ONE.now.load(Ordering::Relaxed), 0);
    }
}
