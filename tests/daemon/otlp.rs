//! Spans and figures for a collector of OpenTelemetry: what it is told, what it is not, and that nobody waits for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually, within};
use crate::telemetry::{SECRET, exchange, figure, get};

/// A header of the test's, which no log and no body may have.
const HEADER: &str = "Bearer canary-header-0123456789";

/// A collector; its server ends with the test's runtime.
#[derive(Clone)]
struct Collector {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// How many requests were given up by who sent them.
    given_up: Arc<AtomicUsize>,
    manner: Manner,
}

/// A request that is not answered; dropped with its connection.
struct Unanswered(Arc<AtomicUsize>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Asked {
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

/// How it answers.
#[derive(Clone, Copy)]
enum Manner {
    Well,
    /// It takes a request, and never answers.
    Hangs,
}

impl Collector {
    async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let collector = Self {
            port: listener.local_addr().unwrap().port(),
            asked: Arc::default(),
            given_up: Arc::default(),
            manner,
        };
        let router = Router::new().fallback(take).with_state(collector.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        collector
    }

    fn settings(&self) -> serde_json::Value {
        json!({"log": {"level": "info", "format": "json"}, "telemetry": {"otlp": {
            "endpoint": format!("http://127.0.0.1:{}/base", self.port),
            "headers": {"authorization": HEADER},
            "interval": "1s",
        }}})
    }

    fn bodies(&self, path: &str) -> Vec<Bytes> {
        let asked = self.asked.lock().unwrap();
        let asked = asked.iter().filter(|it| it.path == path);
        asked.map(|it| it.body.clone()).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let bodies = self.bodies("/base/v1/traces").into_iter();
        let requests = bodies.map(|it| ExportTraceServiceRequest::decode(it).unwrap());
        let resources = requests.flat_map(|it| it.resource_spans);
        let scopes = resources.flat_map(|it| it.scope_spans);
        scopes.flat_map(|it| it.spans).collect()
    }

    /// The last value of a figure of numbers, with its labels as `name=value`.
    fn figure(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let body = self.bodies("/base/v1/metrics").pop()?;
        let request = ExportMetricsServiceRequest::decode(body).unwrap();
        let metrics = request.resource_metrics[0].scope_metrics[0].metrics.iter();
        let metric = metrics.into_iter().find(|it| it.name == name)?;
        let points = match metric.data.as_ref().unwrap() {
            Data::Sum(sum) => &sum.data_points,
            Data::Gauge(gauge) => &gauge.data_points,
            other => panic!("{other:?}"),
        };
        let point = points.iter().find(|it| texts(&it.attributes) == labels)?;
        match point.value? {
            number_data_point::Value::AsDouble(value) => Some(value),
            number_data_point::Value::AsInt(_) => panic!("{point:?}"),
        }
    }
}

async fn take(
    State(collector): State<Collector>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    collector.asked.lock().unwrap().push(Asked {
        path: uri.path().to_owned(),
        headers,
        body,
    });
    match collector.manner {
        Manner::Well => StatusCode::OK,
        Manner::Hangs => {
            let _unanswered = Unanswered(collector.given_up);
            std::future::pending().await
        }
    }
}

fn text(value: &AnyValue) -> String {
    match value.value.as_ref().unwrap() {
        Any::StringValue(text) => text.clone(),
        Any::IntValue(number) => number.to_string(),
        Any::DoubleValue(number) => number.to_string(),
        Any::ArrayValue(all) => all.values.iter().map(text).collect::<Vec<_>>().join(","),
        other => panic!("{other:?}"),
    }
}

fn texts(attributes: &[KeyValue]) -> Vec<String> {
    let all = attributes.iter();
    all.map(|it| format!("{}={}", it.key, text(it.value.as_ref().unwrap())))
        .collect()
}

/// The spans as lines, each below its parent: its name, with what is noted on it but for ids.
fn tree(spans: &[Span], parent: &[u8], depth: usize, lines: &mut Vec<String>) {
    let mut below: Vec<&Span> = spans
        .iter()
        .filter(|it| it.parent_span_id == parent)
        .collect();
    below.sort_by_key(|it| (it.start_time_unix_nano, texts(&it.attributes)));
    for span in below {
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
        assert!(span.events.is_empty() && span.links.is_empty());
        let noted = texts(&span.attributes).into_iter();
        let noted: Vec<_> = noted
            .filter(|it| !it.starts_with("gen_ai.operation") && !it.starts_with("session.id="))
            .collect();
        lines.push(format!(
            "{}{} {}",
            "  ".repeat(depth),
            span.name,
            noted.join(" ")
        ));
        tree(spans, &span.span_id, depth + 1, lines);
    }
}

#[tokio::test]
async fn an_exchange_is_a_tree_of_spans_without_content() {
    let provider = Provider::start().await;
    let collector = Collector::start(Manner::Well).await;
    // The daemon's own configuration decides, whatever else on its machine sends spans.
    let mut daemon = Daemon::by(&provider, collector.settings(), |config| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_outrigger"));
        command.args(["serve", "--config"]).arg(config);
        command.env("OTEL_TRACES_SAMPLER", "always_off");
        command.env("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "1");
        command
    })
    .await;
    exchange(&daemon, &provider).await;
    let input = ["kind=input", "provider=test"];
    eventually("the figures", async || {
        collector.figure("outrigger_tokens_total", &input) == Some(20.0)
    })
    .await;
    let figures = get(&daemon, "/metrics", &daemon.token).await;
    for (name, labels, written) in [
        (
            "outrigger_provider_requests_total",
            &["outcome=ok", "provider=test"][..],
            "outrigger_provider_requests_total{outcome=\"ok\",provider=\"test\"}",
        ),
        (
            "outrigger_exchanges_total",
            &["end=end_turn"],
            "outrigger_exchanges_total{end=\"end_turn\"}",
        ),
        (
            "outrigger_exchanges_running",
            &[],
            "outrigger_exchanges_running",
        ),
    ] {
        assert_eq!(
            collector.figure(name, labels),
            Some(figure(&figures, written)),
            "{name}"
        );
    }
    // What is left is sent at the end.
    drop(daemon.stdin.take());
    let folder = daemon.left().await;
    let spans = collector.spans();
    let traces: std::collections::BTreeSet<_> = spans.iter().map(|it| &it.trace_id).collect();
    assert_eq!(traces.len(), 1, "{spans:#?}");
    let mut lines = Vec::new();
    tree(&spans, &[], 0, &mut lines);
    let request = "chat test-model outrigger.purpose=turn gen_ai.provider.name=test gen_ai.request.model=test-model";
    let tokens = "gen_ai.usage.input_tokens=10 gen_ai.usage.output_tokens=5";
    assert_eq!(
        lines,
        [
            "invoke_agent outrigger outrigger.exchange.id=m1 gen_ai.provider.name=test gen_ai.request.model=test-model \
             gen_ai.conversation.id=default outrigger.stop_reason=end_turn gen_ai.usage.input_tokens=20 gen_ai.usage.output_tokens=10"
                .to_owned(),
            "  turn outrigger.turn=0".to_owned(),
            format!("    {request} gen_ai.response.finish_reasons=tool_use {tokens}"),
            "    execute_tool bash gen_ai.tool.call.id=t1 gen_ai.tool.name=bash outrigger.outcome=success".to_owned(),
            "    execute_tool unknown gen_ai.tool.call.id=t2 gen_ai.tool.name=unknown outrigger.outcome=error error.type=error"
                .to_owned(),
            "  turn outrigger.turn=1".to_owned(),
            format!("    {request} gen_ai.response.finish_reasons=end_turn {tokens}"),
        ]
    );
    let asked = collector.asked.lock().unwrap();
    let mut paths = std::collections::BTreeSet::new();
    for request in asked.iter() {
        paths.insert(request.path.as_str());
        assert_eq!(request.headers["authorization"], HEADER);
        assert_eq!(request.headers["content-type"], "application/x-protobuf");
        let body = String::from_utf8_lossy(&request.body);
        assert!(body.contains("service.name"), "{body}");
        for secret in ["canary", SECRET, "echo"] {
            assert!(!body.contains(secret), "{body}");
        }
    }
    assert_eq!(
        paths.into_iter().collect::<Vec<_>>(),
        ["/base/v1/metrics", "/base/v1/traces"]
    );
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(
        !log.contains("canary") && !log.contains("the collector"),
        "{log}"
    );
}

/// Has the model answer in text, and waits for the end of that.
async fn converse(client: &mut Client, provider: &Provider) {
    provider.then(Turn::text("answer"));
    client.say("question").await;
    client.until("chat:stream-end").await;
}

#[tokio::test]
async fn a_collector_that_hangs_holds_up_nobody() {
    let provider = Provider::start().await;
    let collector = Collector::start(Manner::Hangs).await;
    let mut daemon = Daemon::with(&provider, collector.settings()).await;
    let mut client = daemon.connect().await;
    let hanging = || collector.asked.lock().unwrap().len();
    // One that waited for the collector would never end before the request that hangs is given up.
    eventually(
        "a whole conversation beside a request that hangs",
        async || {
            let given_up = collector.given_up.load(Ordering::SeqCst);
            let is_held_up = hanging() == given_up;
            converse(&mut client, &provider).await;
            !is_held_up && given_up == collector.given_up.load(Ordering::SeqCst)
        },
    )
    .await;
    drop(daemon.stdin.take());
    let folder = within("the end", daemon.left(), String::new).await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.contains("the last spans and figures in time"), "{log}");
}

#[tokio::test]
async fn a_collector_that_is_not_there_is_told_of_once() {
    let provider = Provider::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = Collector {
        port: listener.local_addr().unwrap().port(),
        asked: Arc::default(),
        given_up: Arc::default(),
        manner: Manner::Well,
    };
    drop(listener);
    let mut daemon = Daemon::with(&provider, nobody.settings()).await;
    let told = |daemon: &Daemon| {
        let log = daemon.log().into_iter();
        log.filter(|it| {
            let message = it["message"].as_str().unwrap_or_default();
            message.starts_with("the collector takes nothing")
        })
        .count()
    };
    let mut client = daemon.connect().await;
    eventually("a line of the log", async || told(&daemon) == 1).await;
    converse(&mut client, &provider).await;
    drop(daemon.stdin.take());
    let ended = within("the end", daemon.child.wait(), String::new).await;
    assert!(ended.unwrap().success());
    // One for spans, one for figures, however often they were sent.
    assert!(told(&daemon) <= 2, "{:#?}", daemon.log());
}
