//! The figures of `/metrics` as OTLP has them: the same numbers, by the same names. Pure.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prometheus::proto::{Metric as Figure, MetricFamily, MetricType};

use super::attribute;

/// Since the start of the daemon, and not since they were sent last.
const SINCE_START: i32 = AggregationTemporality::Cumulative as i32;

/// Returns the figures; `times` are when the daemon was started, and now.
pub(super) fn of(
    families: &[MetricFamily],
    resource: Vec<KeyValue>,
    (began, now): (SystemTime, SystemTime),
) -> ResourceMetrics {
    let times = (nanos(began), nanos(now));
    let scope = InstrumentationScope {
        name: "outrigger".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    ResourceMetrics {
        resource: Some(Resource {
            attributes: resource,
            ..Resource::default()
        }),
        scope_metrics: vec![ScopeMetrics {
            scope: Some(scope),
            metrics: families.iter().map(|it| metric(it, times)).collect(),
            ..ScopeMetrics::default()
        }],
        ..ResourceMetrics::default()
    }
}

fn metric(family: &MetricFamily, times: (u64, u64)) -> Metric {
    let numbers = |value: fn(&Figure) -> f64| -> Vec<NumberDataPoint> {
        let figures = family.get_metric().iter();
        figures.map(|it| number(it, value(it), times)).collect()
    };
    let data = match family.get_field_type() {
        MetricType::COUNTER => Some(Data::Sum(Sum {
            data_points: numbers(|it| it.get_counter().get_value()),
            aggregation_temporality: SINCE_START,
            is_monotonic: true,
        })),
        MetricType::GAUGE => Some(Data::Gauge(Gauge {
            data_points: numbers(|it| it.get_gauge().get_value()),
        })),
        MetricType::HISTOGRAM => Some(Data::Histogram(Histogram {
            data_points: family
                .get_metric()
                .iter()
                .map(|it| histogram(it, times))
                .collect(),
            aggregation_temporality: SINCE_START,
        })),
        // There are none of these.
        MetricType::SUMMARY | MetricType::UNTYPED => None,
    };
    Metric {
        name: family.name().to_owned(),
        description: family.help().to_owned(),
        data,
        ..Metric::default()
    }
}

fn number(figure: &Figure, value: f64, (began, now): (u64, u64)) -> NumberDataPoint {
    NumberDataPoint {
        attributes: labels(figure),
        start_time_unix_nano: began,
        time_unix_nano: now,
        value: Some(Value::AsDouble(value)),
        ..NumberDataPoint::default()
    }
}

/// Returns a figure of durations: what Prometheus counts up to each bound, OTLP counts between bounds and beyond the last.
fn histogram(figure: &Figure, (began, now): (u64, u64)) -> HistogramDataPoint {
    let histogram = figure.get_histogram();
    let count = histogram.get_sample_count();
    let buckets = histogram.get_bucket().iter();
    let buckets = buckets.filter(|it| it.upper_bound().is_finite());
    let (bounds, up_to): (Vec<f64>, Vec<u64>) = buckets
        .map(|it| (it.upper_bound(), it.cumulative_count()))
        .unzip();
    let mut before = 0;
    let between = up_to.iter().copied().chain([count]).map(|up_to| {
        let here = up_to.saturating_sub(before);
        before = up_to;
        here
    });
    HistogramDataPoint {
        attributes: labels(figure),
        start_time_unix_nano: began,
        time_unix_nano: now,
        count,
        sum: Some(histogram.get_sample_sum()),
        bucket_counts: between.collect(),
        explicit_bounds: bounds,
        ..HistogramDataPoint::default()
    }
}

fn labels(figure: &Figure) -> Vec<KeyValue> {
    let labels = figure.get_label().iter();
    labels
        .map(|label| attribute(label.name(), label.value().to_owned()))
        .collect()
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use prometheus::core::Collector as _;
    use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts};

    use super::*;

    #[test]
    fn numbers_are_the_same_and_buckets_are_apart() {
        let counted =
            IntCounterVec::new(Opts::new("counted_total", "How many."), &["how"]).unwrap();
        counted.with_label_values(&["so"]).inc_by(7);
        let now = IntGauge::new("now", "Now.").unwrap();
        now.set(-3);
        let options = HistogramOpts::new("took_seconds", "How long.").buckets(vec![1.0, 2.0]);
        let took = HistogramVec::new(options, &[]).unwrap();
        for seconds in [0.5, 1.5, 1.5, 9.0] {
            took.with_label_values(&[] as &[&str]).observe(seconds);
        }
        let families = [counted.collect(), now.collect(), took.collect()].concat();
        let times = (UNIX_EPOCH, UNIX_EPOCH);
        let found = of(&families, Vec::new(), times);
        let metrics = &found.scope_metrics[0].metrics;
        let Some(Data::Sum(sum)) = &metrics[0].data else {
            panic!("{metrics:?}");
        };
        assert!(sum.is_monotonic);
        assert_eq!(sum.data_points[0].value, Some(Value::AsDouble(7.0)));
        assert_eq!(
            sum.data_points[0].attributes,
            [attribute("how", "so".to_owned())]
        );
        let Some(Data::Gauge(gauge)) = &metrics[1].data else {
            panic!("{metrics:?}");
        };
        assert_eq!(gauge.data_points[0].value, Some(Value::AsDouble(-3.0)));
        let Some(Data::Histogram(histogram)) = &metrics[2].data else {
            panic!("{metrics:?}");
        };
        let point = &histogram.data_points[0];
        assert_eq!(point.explicit_bounds, [1.0, 2.0]);
        assert_eq!(point.bucket_counts, [1, 2, 1]);
        assert_eq!((point.count, point.sum), (4, Some(12.5)));
    }
}
