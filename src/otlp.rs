//! Sends spans and figures to a collector of OpenTelemetry, by OTLP over HTTP.
//!
//! Nobody waits for it: spans come by a bounded queue, figures are read when it is time. A collector that is down or slow
//! costs what it would have been told, and a line in the log when that begins and when it ends.

mod figures;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::transform::common::tonic::{Attributes, ResourceAttributesWithSchema};
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::trace::SpanData;
use prometheus::proto::MetricFamily;
use prost::Message as _;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::config::OtlpConfig;
use crate::http::{Clients, causes};
use crate::telemetry::traces::Ended;

/// The most spans of one request.
const BATCH: usize = 512;

/// How long the first span of a request waits for others.
const DELAY: Duration = Duration::from_secs(5);

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long spans are sent again that the collector does not take now: meanwhile others wait, in a queue that has an end.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait before each further time.
const PAUSE: Duration = Duration::from_secs(5);

/// Where spans and figures are sent to.
pub(crate) struct Collector {
    clients: Clients,
    endpoint: String,
    headers: HeaderMap,
    /// What is said of this daemon.
    resource: Vec<KeyValue>,
    began: SystemTime,
}

/// Spans and figures on their way to a collector.
pub(crate) struct Exporting {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

/// Why something was not taken.
struct NotTaken {
    problem: String,
    /// Whether it may be taken later.
    is_passing: bool,
}

/// Begins to send, where something is to be sent. `families` reads the figures.
pub(crate) fn begin(
    config: &OtlpConfig,
    spans: Option<Ended>,
    families: impl Fn() -> prometheus::Result<Vec<MetricFamily>> + Send + 'static,
) -> Exporting {
    let stop = CancellationToken::new();
    let collector = Arc::new(Collector::new(config));
    let mut tasks = Vec::new();
    if let Some(spans) = spans {
        let (collector, stop, mut spans) = (Arc::clone(&collector), stop.clone(), spans);
        tasks.push(tokio::spawn(async move {
            send_spans(&collector, &mut spans, stop).await;
        }));
    }
    if config.metrics {
        let sending = send_figures(collector, config.interval, families, stop.clone());
        tasks.push(tokio::spawn(sending));
    }
    Exporting { stop, tasks }
}

impl Exporting {
    /// Sends what is left, and gives up after so long.
    pub(crate) async fn finish(self, moments: Duration) {
        self.stop.cancel();
        let rest = futures::future::join_all(self.tasks);
        if timeout(moments, rest).await.is_err() {
            tracing::info!("the collector did not take the last spans and figures in time");
        }
    }
}

/// Sends spans as they end, many in one request, until `stop`; then those that are left.
async fn send_spans(collector: &Collector, ended: &mut Ended, stop: CancellationToken) {
    let mut health = Health::new("spans");
    let mut batch = Vec::new();
    while stop
        .run_until_cancelled(next(ended, &mut batch))
        .await
        .is_some_and(|()| !batch.is_empty())
    {
        let body = collector.spans(std::mem::take(&mut batch));
        let sending = send_often(collector, &body, &mut health);
        if stop.run_until_cancelled(sending).await.is_none() {
            // Once more, for the last time.
            health.note(&collector.send("/v1/traces", body).await);
        }
        tell_lost(ended);
    }
    loop {
        batch.extend(std::iter::from_fn(|| ended.try_recv()).take(BATCH - batch.len().min(BATCH)));
        if batch.is_empty() {
            // Also those that ended while the last ones were sent.
            return tell_lost(ended);
        }
        let body = collector.spans(std::mem::take(&mut batch));
        health.note(&collector.send("/v1/traces", body).await);
    }
}

/// Says how many spans had no place in the queue since this was said last.
fn tell_lost(ended: &Ended) {
    let lost = ended.take_lost();
    if lost > 0 {
        tracing::warn!(
            lost,
            "spans were not sent, since the collector takes them too slowly"
        );
    }
}

/// Waits for the spans of a request.
async fn next(ended: &mut Ended, batch: &mut Vec<SpanData>) {
    if ended.recv_many(batch, BATCH).await == 0 {
        return;
    }
    let until = Instant::now() + DELAY;
    while let Some(room) = BATCH.checked_sub(batch.len()).filter(|room| *room > 0) {
        let more = timeout_at(until, ended.recv_many(batch, room)).await;
        if matches!(more, Err(_) | Ok(0)) {
            return;
        }
    }
}

/// Sends spans until they are taken, for [`PATIENCE`] at most.
async fn send_often(collector: &Collector, body: &[u8], health: &mut Health) {
    let sending = async {
        loop {
            let sent = collector.send("/v1/traces", body.to_owned()).await;
            health.note(&sent);
            match sent {
                Err(NotTaken {
                    is_passing: true, ..
                }) => sleep(PAUSE).await,
                _ => return,
            }
        }
    };
    if timeout(PATIENCE, sending).await.is_err() {
        tracing::debug!("the collector did not take spans in time, which are given up");
    }
}

/// Sends the figures every so often until `stop`, and then as they are at the end.
async fn send_figures(
    collector: Arc<Collector>,
    every: Duration,
    families: impl Fn() -> prometheus::Result<Vec<MetricFamily>>,
    stop: CancellationToken,
) {
    let mut health = Health::new("figures");
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_last = stop.run_until_cancelled(ticks.tick()).await.is_none();
        match families() {
            Ok(families) => {
                let sending = collector.send("/v1/metrics", collector.figures(&families));
                let sent = match is_last {
                    true => Some(sending.await),
                    false => stop.run_until_cancelled(sending).await,
                };
                if let Some(sent) = sent {
                    health.note(&sent);
                }
            }
            Err(error) => tracing::error!(%error, "figures that cannot be written"),
        }
        if is_last {
            return;
        }
    }
}

impl Collector {
    fn new(config: &OtlpConfig) -> Self {
        let headers = config.headers.iter().filter_map(|(name, value)| {
            // Checked with the configuration.
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let mut value = HeaderValue::from_str(value.expose_secret()).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        });
        let instance = getrandom::u64().unwrap_or_default();
        let own = [
            ("service.name", config.service.clone()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id", format!("{instance:016x}")),
        ];
        let named = config.resource.iter();
        let named = named.map(|(key, value)| (key.as_str(), value.clone()));
        // What whoever deploys it says goes first.
        let own = own
            .into_iter()
            .filter(|(key, _)| !config.resource.contains_key(*key));
        Self {
            clients: Clients::default(),
            endpoint: config.endpoint.clone(),
            headers: headers.collect(),
            resource: own
                .chain(named)
                .map(|(key, value)| attribute(key, value))
                .collect(),
            began: SystemTime::now(),
        }
    }

    /// Returns spans as they are sent.
    fn spans(&self, spans: Vec<SpanData>) -> Vec<u8> {
        let resource = ResourceAttributesWithSchema {
            attributes: Attributes(self.resource.clone()),
            schema_url: None,
        };
        let request = ExportTraceServiceRequest {
            resource_spans: group_spans_by_resource_and_scope(spans, &resource),
        };
        request.encode_to_vec()
    }

    /// Returns figures as they are sent.
    fn figures(&self, families: &[MetricFamily]) -> Vec<u8> {
        let times = (self.began, SystemTime::now());
        let request = ExportMetricsServiceRequest {
            resource_metrics: vec![figures::of(families, self.resource.clone(), times)],
        };
        request.encode_to_vec()
    }

    /// Sends something once.
    async fn send(&self, path: &str, body: Vec<u8>) -> Result<(), NotTaken> {
        let passing = |problem: String| NotTaken {
            problem,
            is_passing: true,
        };
        let url = format!("{}{path}", self.endpoint);
        let client = self.clients.get(&url, None).await;
        let client = client.map_err(|error| passing(error.to_string()))?;
        let request = client
            .post(url)
            .timeout(TIMEOUT)
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(body);
        let answer = request.send().await;
        let answer = answer.map_err(|error| passing(causes(&error.without_url())))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        Err(NotTaken {
            problem: format!("it answered {status}"),
            is_passing: matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            ),
        })
    }
}

/// Whether a collector takes what it is sent, so that the log has a line when that changes, and no more.
struct Health {
    what: &'static str,
    is_well: bool,
}

impl Health {
    fn new(what: &'static str) -> Self {
        Self {
            what,
            is_well: true,
        }
    }

    fn note(&mut self, sent: &Result<(), NotTaken>) {
        let what = self.what;
        let was_well = std::mem::replace(&mut self.is_well, sent.is_ok());
        match sent {
            Err(NotTaken { problem, .. }) if was_well => tracing::warn!(
                what,
                problem,
                "the collector takes nothing (telemetry.otlp.endpoint)"
            ),
            Ok(()) if !was_well => tracing::info!(what, "the collector takes them again"),
            _ => {}
        }
    }
}

fn attribute(key: &str, value: String) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(Value::StringValue(value)),
        }),
        ..KeyValue::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio::net::TcpListener;

    use super::*;

    fn collector(listener: &TcpListener) -> Collector {
        Collector::new(&OtlpConfig {
            endpoint: format!("http://{}", listener.local_addr().unwrap()),
            headers: BTreeMap::new(),
            traces: true,
            metrics: false,
            interval: Duration::from_secs(1),
            service: "outrigger".to_owned(),
            resource: BTreeMap::new(),
        })
    }

    #[tokio::test]
    async fn spans_that_were_lost_at_the_end_are_told_of() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        let mut ended = Ended::over(3);
        send_spans(&collector(&listener), &mut ended, stop).await;
        assert_eq!(ended.take_lost(), 0, "nobody was told");
    }

    #[tokio::test(start_paused = true)]
    async fn spans_are_given_up_after_a_while_whatever_the_collector_does() {
        // It takes connections, and says nothing.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let collector = collector(&listener);
        let began = Instant::now();
        send_often(&collector, b"spans", &mut Health::new("spans")).await;
        assert_eq!(began.elapsed().as_secs(), PATIENCE.as_secs());
    }
}
