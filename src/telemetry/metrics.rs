//! Figures for an operator, in Prometheus' text form.
//!
//! What happens now and then is counted where it happens; nothing is counted for a delta. How many of something there
//! are now is a number of its own ([`Gauge`]), read when somebody asks. Labels are words of the contract, names of
//! provider instances and names of tools that there are: never an id, a model, or what a model made up.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::core::Collector as _;
use prometheus::proto::MetricFamily;
use prometheus::{
    CounterVec, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, TextEncoder,
    register_histogram_vec, register_int_counter_vec,
};

/// Upper bounds of the ranges of durations, in seconds: from a file that is read to an exchange of an hour.
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

    /// Returns how many there are now.
    pub fn now(&self) -> usize {
        usize::try_from(self.now.load(Ordering::Relaxed)).unwrap_or(0)
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

/// What happened since the start, by labels.
type Counter = LazyLock<IntCounterVec>;

/// How long it took, by labels.
type Durations = LazyLock<HistogramVec>;

#[expect(
    clippy::expect_used,
    reason = "names and labels are constants, and a test makes them all"
)]
fn counter(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    register_int_counter_vec!(name, help, labels).expect("a figure is well formed and named once")
}

#[expect(
    clippy::expect_used,
    reason = "names and labels are constants, and a test makes them all"
)]
fn durations(name: &str, help: &str, labels: &[&str]) -> HistogramVec {
    register_histogram_vec!(name, help, labels, BUCKETS.to_vec())
        .expect("a figure is well formed and named once")
}

#[expect(
    clippy::expect_used,
    reason = "names and labels are constants, and a test makes them all"
)]
fn shares(name: &str, help: &str, labels: &[&str]) -> HistogramVec {
    let tenths: Vec<f64> = (1_u8..=10).map(|tenth| f64::from(tenth) / 10.0).collect();
    register_histogram_vec!(name, help, labels, tenths)
        .expect("a figure is well formed and named once")
}

/// Tasks of the runtime.
const TASKS: (&str, &str) = ("outrigger_tasks", "Tasks of the runtime.");

/// Bytes of the store's log of changes.
const STORE_LOG: (&str, &str) = (
    "outrigger_store_wal_bytes",
    "Bytes of the store's log of changes, after its last commit.",
);

/// Whether the store keeps what is said.
const STORE_UP: (&str, &str) = (
    "outrigger_store_up",
    "1 while the store keeps what is said, 0 while it does not.",
);

/// How a daemon holds its sessions in a database that others may have, too.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    /// Sessions that are its own.
    pub sessions: u64,
    /// Seconds until the lease ends that is not renewed.
    pub left: u64,
    /// Sessions taken from daemons that were gone.
    pub taken: u64,
    /// How often the lease was not renewed in time.
    pub lapses: u64,
}

impl Lease {
    fn families(self) -> prometheus::Result<Vec<MetricFamily>> {
        let mut families = Vec::new();
        for (name, help, now) in [
            (
                "outrigger_lease_sessions",
                "Sessions of the database that are this daemon's.",
                self.sessions,
            ),
            (
                "outrigger_lease_left_seconds",
                "Seconds until others may take them, unless the lease is renewed.",
                self.left,
            ),
        ] {
            let gauge = IntGauge::new(name, help)?;
            gauge.set(i64::try_from(now).unwrap_or(i64::MAX));
            families.extend(gauge.collect());
        }
        for (name, help, count) in [
            (
                "outrigger_lease_taken_total",
                "Sessions taken from daemons that were gone.",
                self.taken,
            ),
            (
                "outrigger_lease_lapses_total",
                "Times that the lease was not renewed before others may take the sessions.",
                self.lapses,
            ),
        ] {
            let counter = IntCounter::new(name, help)?;
            counter.inc_by(count);
            families.extend(counter.collect());
        }
        Ok(families)
    }
}

/// Returns figures in Prometheus' text form.
pub fn text(families: &[MetricFamily]) -> prometheus::Result<String> {
    TextEncoder::new().encode_to_string(families)
}

/// Returns all figures. `store_log` are the bytes of the store's log of changes where it has one, `store_up` whether it
/// keeps what is said where there is a store, `lease` how
/// sessions are held in a database.
pub fn families(
    store_log: Option<u64>,
    store_up: Option<bool>,
    lease: Option<Lease>,
) -> prometheus::Result<Vec<MetricFamily>> {
    let runtime = tokio::runtime::Handle::try_current();
    let tasks = runtime.map_or(0, |it| it.metrics().num_alive_tasks());
    let mut families = prometheus::gather();
    let tasks = (TASKS.0, TASKS.1, i64::try_from(tasks).unwrap_or(i64::MAX));
    let log = store_log.map(|it| i64::try_from(it).unwrap_or(i64::MAX));
    let log = log.map(|bytes| (STORE_LOG.0, STORE_LOG.1, bytes));
    let up = store_up.map(|is_up| (STORE_UP.0, STORE_UP.1, i64::from(is_up)));
    let gauges = GAUGES.map(|one| (one.name, one.help, one.now.load(Ordering::Relaxed)));
    for (name, help, now) in gauges.into_iter().chain([tasks]).chain(log).chain(up) {
        let gauge = IntGauge::new(name, help)?;
        gauge.set(now);
        families.extend(gauge.collect());
    }
    if let Some(lease) = lease {
        families.extend(lease.families()?);
    }
    families.extend(spent_in_all()?);
    Ok(families)
}

/// Counts a socket that was accepted.
pub fn connected() {
    static TOTAL: Counter =
        LazyLock::new(|| counter("outrigger_connections_total", "WebSockets accepted.", &[]));
    TOTAL.with_label_values::<&str>(&[]).inc();
}

/// Counts a session that got another socket, by taking it from the one before or in its grace period.
pub fn resumed(taken_over: bool) {
    static TOTAL: Counter = LazyLock::new(|| {
        let help = "Sessions that got another socket, by `how`.";
        counter("outrigger_resumes_total", help, &["how"])
    });
    let how = if taken_over { "taken_over" } else { "resumed" };
    TOTAL.with_label_values(&[how]).inc();
}

/// Counts a client whose place in the log was no longer kept.
pub fn replay_gap() {
    static TOTAL: Counter = LazyLock::new(|| {
        let help = "Times that a client's place in the log was no longer kept.";
        counter("outrigger_replay_gaps_total", help, &[])
    });
    TOTAL.with_label_values::<&str>(&[]).inc();
}

/// Counts an exchange that ended; one that was dropped before it ran took no time that could be measured.
pub fn exchange_ended(end: &str, took: Option<Duration>) {
    static TOTAL: Counter = LazyLock::new(|| {
        let help = "Exchanges that ended, by `end`.";
        counter("outrigger_exchanges_total", help, &["end"])
    });
    static SECONDS: Durations = LazyLock::new(|| {
        durations(
            "outrigger_exchange_seconds",
            "How long exchanges took.",
            &[],
        )
    });
    TOTAL.with_label_values(&[end]).inc();
    if let Some(took) = took {
        observe(&SECONDS, &[], took);
    }
}

/// Counts a webhook: `delivered`, `failed` where it was given up, `dropped` where it was not tried to the end.
pub fn webhook(outcome: &str) {
    static TOTAL: Counter = LazyLock::new(|| {
        let help = "Webhooks, by `outcome`.";
        counter("outrigger_webhooks_total", help, &["outcome"])
    });
    TOTAL.with_label_values(&[outcome]).inc();
}

/// Times the first of an answer.
pub fn first_byte(provider: &str, took: Duration) {
    static SECONDS: Durations = LazyLock::new(|| {
        let help = "From a request to the first of its answer, by `provider`.";
        durations("outrigger_provider_first_byte_seconds", help, &["provider"])
    });
    observe(&SECONDS, &[provider], took);
}

/// Counts a request for a turn that came to an end: `ok`, `cancelled`, or the sort of failure.
pub fn provider_answered(provider: &str, outcome: &str) {
    static TOTAL: Counter = LazyLock::new(|| {
        let help = "Requests for a turn, by `provider` and `outcome`.";
        counter(
            "outrigger_provider_requests_total",
            help,
            &["provider", "outcome"],
        )
    });
    TOTAL.with_label_values(&[provider, outcome]).inc();
}

/// Counts a turn that is requested again because of this sort of failure.
pub fn provider_retried(provider: &str, reason: &str) {
    static TOTAL: Counter = LazyLock::new(|| {
        let help = "Turns asked for again, by `provider` and `reason`.";
        counter(
            "outrigger_provider_retries_total",
            help,
            &["provider", "reason"],
        )
    });
    TOTAL.with_label_values(&[provider, reason]).inc();
}

/// Counts a compaction by how and why, and what came of it.
pub fn compacted(kind: &str, trigger: &str, outcome: &str) {
    static TOTAL: Counter = LazyLock::new(|| {
        let help = "Compactions of conversations, by `kind`, `trigger` and `outcome`.";
        counter(
            "outrigger_compactions_total",
            help,
            &["kind", "trigger", "outcome"],
        )
    });
    TOTAL.with_label_values(&[kind, trigger, outcome]).inc();
}

/// Notes what share of a conversation's tokens was left after a compaction.
pub fn compacted_to(after: u64, before: u64) {
    static RATIO: Durations = LazyLock::new(|| {
        let help = "Tokens after a compaction by those before it.";
        shares("outrigger_compaction_ratio", help, &[])
    });
    let ratio = after as f64 / before.max(1) as f64;
    RATIO.with_label_values(&[] as &[&str]).observe(ratio);
}

/// Counts the tokens of a turn, by kind: `input`, `output`, `cache_read`, `cache_write`.
pub fn tokens(provider: &str, kind: &'static str, count: u64) {
    static TOTAL: Counter = LazyLock::new(|| {
        let help = "Tokens as the provider counted them, by `provider` and `kind`.";
        counter("outrigger_tokens_total", help, &["provider", "kind"])
    });
    TOTAL.with_label_values(&[provider, kind]).inc_by(count);
}

/// Counts what a request cost, in micro-dollars; `kind` is what it was for.
pub fn spent(provider: &str, kind: &'static str, micros: i64) {
    let key = (provider.to_owned(), kind);
    let mut spent = SPENT.lock();
    let sum = spent.entry(key).or_default();
    *sum = sum.saturating_add(micros);
}

/// Counts a request that a cap did not allow, by what that is for.
pub fn budget_reached(scope: &str) {
    static TOTAL: Counter = LazyLock::new(|| {
        let help = "Requests to a model that a cap did not allow, by `scope`.";
        counter("outrigger_budget_reached_total", help, &["scope"])
    });
    TOTAL.with_label_values(&[scope]).inc();
}

/// Micro-dollars by provider and kind: whole numbers, so that their sum is that of the ledger.
static SPENT: Mutex<BTreeMap<(String, &'static str), i64>> = Mutex::new(BTreeMap::new());

/// Returns what was spent as a figure in dollars; `None` where nothing was.
fn spent_in_all() -> prometheus::Result<Vec<MetricFamily>> {
    let spent = SPENT.lock();
    if spent.is_empty() {
        return Ok(Vec::new());
    }
    let help = "US dollars that requests to models cost, by `provider` and `kind`.";
    let options = Opts::new("outrigger_spend_usd_total", help);
    let dollars = CounterVec::new(options, &["provider", "kind"])?;
    for ((provider, kind), micros) in spent.iter() {
        let counter = dollars.with_label_values(&[provider.as_str(), kind]);
        counter.inc_by(*micros as f64 / 1e6);
    }
    Ok(dollars.collect())
}

/// Counts a call that was settled; `tool` is a tool that there is, or `unknown`. One that did not run has no duration.
pub fn tool_settled(tool: &str, outcome: &str, ran: Option<Duration>) {
    static TOTAL: Counter = LazyLock::new(|| {
        let help = "Tool calls that were settled, by `tool` and `outcome`.";
        counter("outrigger_tool_calls_total", help, &["tool", "outcome"])
    });
    static SECONDS: Durations = LazyLock::new(|| {
        durations(
            "outrigger_tool_seconds",
            "How long tool calls ran, by `tool`.",
            &["tool"],
        )
    });
    TOTAL.with_label_values(&[tool, outcome]).inc();
    if let Some(ran) = ran {
        observe(&SECONDS, &[tool], ran);
    }
}

/// Counts a question that was settled after so long.
pub fn approval_settled(outcome: &str, waited: Duration) {
    static TOTAL: Counter = LazyLock::new(|| {
        let help = "Approvals that were settled, by `outcome`.";
        counter("outrigger_approvals_total", help, &["outcome"])
    });
    static SECONDS: Durations = LazyLock::new(|| {
        let help = "How long the user took, by `outcome`.";
        durations("outrigger_approval_wait_seconds", help, &["outcome"])
    });
    TOTAL.with_label_values(&[outcome]).inc();
    observe(&SECONDS, &[outcome], waited);
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
        compacted("prune", "auto", "done");
        compacted_to(1, 2);
        tool_settled("bash", "success", Some(Duration::from_secs(1)));
        approval_settled("approved", Duration::from_secs(1));
        spent("p", "turn", 300);
        budget_reached("exchange");
        webhook("delivered");
        let lease = Lease {
            sessions: 1,
            left: 15,
            taken: 0,
            lapses: 0,
        };
        let figures = text(&families(Some(1), Some(true), Some(lease)).unwrap()).unwrap();
        let named: Vec<&str> = figures
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
            .collect();
        assert_eq!(named.len(), 18 + GAUGES.len() + 3 + 4, "{named:?}");
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
