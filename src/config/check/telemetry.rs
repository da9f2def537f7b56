//! `[telemetry.otlp]`: where a collector is, and what the standard variables say of it.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;

use super::super::OtlpConfig;
use super::super::keys::{OTLP_ENDPOINT_VARIABLE, OTLP_HEADERS_VARIABLE};
use super::super::named_value::NamedValue;
use super::super::origin::{Origin, without_password};
use super::super::sections::OtlpSettings;
use super::findings::Findings;

const ENDPOINT: [&str; 3] = ["telemetry", "otlp", "endpoint"];

/// The word for the address that the standard variables have.
const FROM_ENVIRONMENT: &str = "env";

/// Says how OTLP is spoken; there is one way here.
const PROTOCOL_VARIABLE: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const PROTOCOL: &str = "http/protobuf";

/// What whoever deploys a program says of it.
const NAME_VARIABLE: &str = "OTEL_SERVICE_NAME";
const RESOURCE_VARIABLE: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// The name of the service where nobody gave another.
const NAME: &str = "outrigger";

/// Checks the section; `None` where nothing is sent.
pub(super) fn check(settings: OtlpSettings, findings: &mut Findings<'_>) -> Option<OtlpConfig> {
    let mut headers = settings.headers;
    let endpoint = match settings.endpoint.trim() {
        "" => return None,
        FROM_ENVIRONMENT => {
            headers.extend(headers_of_environment(findings));
            endpoint_of_environment(findings)?
        }
        endpoint => endpoint.to_owned(),
    };
    findings.url(&ENDPOINT, &endpoint);
    for (name, value) in &headers {
        let is_name = HeaderName::from_bytes(name.as_bytes()).is_ok();
        if !is_name || HeaderValue::from_str(value.expose_secret()).is_err() {
            findings.refuse(
                &["telemetry", "otlp", "headers", name],
                "is no header of HTTP: names are letters, digits and hyphens, values printable ASCII",
            );
        }
    }
    if !settings.traces && !settings.metrics {
        findings.warnings.push(
            "telemetry.otlp.endpoint is set, and nothing is sent: telemetry.otlp.traces and telemetry.otlp.metrics are false"
                .to_owned(),
        );
        return None;
    }
    let environment = &findings.sources.environment;
    let named = environment.get(RESOURCE_VARIABLE).unwrap_or_default();
    let mut resource = pairs(named);
    let service = resource.remove("service.name");
    let service = environment
        .get(NAME_VARIABLE)
        .map(str::to_owned)
        .or(service);
    Some(OtlpConfig {
        endpoint: endpoint.trim_end_matches('/').to_owned(),
        headers,
        traces: settings.traces,
        metrics: settings.metrics,
        interval: settings.interval,
        service: service.unwrap_or_else(|| NAME.to_owned()),
        resource,
    })
}

/// Returns the address that the standard variable has.
fn endpoint_of_environment(findings: &mut Findings<'_>) -> Option<String> {
    let environment = &findings.sources.environment;
    if let Some(protocol) = environment.get(PROTOCOL_VARIABLE)
        && protocol != PROTOCOL
    {
        let message = format!(
            "the variable {PROTOCOL_VARIABLE} is {protocol:?}, and only {PROTOCOL} is spoken here; set it to that, and {OTLP_ENDPOINT_VARIABLE} to the collector's port for it, often 4318"
        );
        findings.refuse(&ENDPOINT, message);
        return None;
    }
    let Some(endpoint) = environment.get(OTLP_ENDPOINT_VARIABLE).map(str::to_owned) else {
        let message = format!(
            "is \"{FROM_ENVIRONMENT}\", and the variable {OTLP_ENDPOINT_VARIABLE} is not set; set it, or name the collector here"
        );
        findings.refuse(&ENDPOINT, message);
        return None;
    };
    let origin = Origin::Variable(OTLP_ENDPOINT_VARIABLE.to_owned());
    findings.derive(&ENDPOINT, without_password(&endpoint), origin);
    Some(endpoint)
}

/// Returns the headers that the standard variable has. All of them are taken for secrets.
fn headers_of_environment(findings: &Findings<'_>) -> Vec<(String, NamedValue)> {
    let text = findings.sources.environment.get(OTLP_HEADERS_VARIABLE);
    let pairs = pairs(text.unwrap_or_default()).into_iter();
    let secret = |(name, value)| (name, NamedValue::secret(value));
    pairs.map(secret).collect()
}

/// Reads `name=value,name=value`, values encoded as in URLs; what is no pair is left out.
fn pairs(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let decoded = pairs.map(|(name, value)| {
        let value = percent_decode_str(value.trim()).decode_utf8_lossy();
        (name.trim().to_owned(), value.into_owned())
    });
    decoded.filter(|(name, _)| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::testing::{loaded, refused};
    use crate::config::{Config, OtlpConfig};

    use super::*;

    const KEY: &str = "OUTRIGGER_TELEMETRY__OTLP__ENDPOINT";

    fn otlp(pairs: &[(&str, &str)]) -> Option<OtlpConfig> {
        let (config, _) = loaded(pairs);
        config.otlp
    }

    fn secrets(config: &Config) -> Vec<String> {
        let all = config.secrets().into_iter();
        all.map(|secret| secret.expose_secret().to_owned())
            .collect()
    }

    #[test]
    fn nothing_is_sent_unless_somebody_says_so_here() {
        let standard = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        assert!(otlp(&[]).is_none());
        // It may be meant for what the user works on.
        assert!(otlp(&[standard]).is_none());
        let off = ("OUTRIGGER_TELEMETRY__OTLP__TRACES", "false");
        let off_too = ("OUTRIGGER_TELEMETRY__OTLP__METRICS", "false");
        assert!(otlp(&[(KEY, "env"), standard, off, off_too]).is_none());
        let found = otlp(&[(KEY, "env"), standard, off]).unwrap();
        assert_eq!(found.endpoint, "http://collector:4318");
        assert!(!found.traces && found.metrics);
    }

    #[test]
    fn headers_and_the_resource_are_those_of_the_standard_variables() {
        let all = [
            (KEY, "env"),
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "https://collector:4318/base/",
            ),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Basic%20c2VjcmV0, x-team = seven,no-pair",
            ),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "k8s.pod.name=pod-1,service.name=of-attributes",
            ),
        ];
        let (config, shown) = loaded(&all);
        let found = config.otlp.clone().unwrap();
        assert_eq!(found.endpoint, "https://collector:4318/base");
        let headers = found.headers.iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| (name.as_str(), value.expose_secret()))
            .collect();
        assert_eq!(
            headers,
            [("authorization", "Basic c2VjcmV0"), ("x-team", "seven")]
        );
        assert_eq!(found.service, "of-attributes");
        assert_eq!(found.resource["k8s.pod.name"], "pod-1");
        assert!(secrets(&config).iter().any(|it| it.contains("c2VjcmV0")));
        let shown = format!("{shown:?}");
        assert!(!shown.contains("c2VjcmV0"), "{shown}");
        let named = [all.as_slice(), &[(NAME_VARIABLE, "of-name")]].concat();
        assert_eq!(otlp(&named).unwrap().service, "of-name");
    }

    #[test]
    fn what_cannot_be_sent_to_is_refused() {
        for (pairs, expected) in [
            (
                &[(KEY, "env")] as &[_],
                "OTEL_EXPORTER_OTLP_ENDPOINT is not set",
            ),
            (&[(KEY, "collector:4318")], "expected a URL"),
            (&[(KEY, "http://user:pass@host")], "holds a user"),
            (
                &[(KEY, "env"), (PROTOCOL_VARIABLE, "grpc")],
                "only http/protobuf is spoken",
            ),
            (
                &[
                    (KEY, "http://host"),
                    ("OUTRIGGER_TELEMETRY__OTLP__HEADERS__A", "two\nlines"),
                ],
                "is no header",
            ),
        ] {
            let problem = refused(pairs);
            assert!(problem.contains(expected), "{problem}");
            assert!(!problem.contains("user:pass"), "{problem}");
        }
    }
}
