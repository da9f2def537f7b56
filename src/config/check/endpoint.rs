//! Where a provider instance's API is, and which wire format is spoken there.

use std::net::IpAddr;

use super::super::ProviderKind;
use super::super::keys;
use super::super::origin::Origin;
use super::super::presets::Preset;
use super::super::settings::Wire;
use super::findings::Findings;

/// Finds an instance's base URL: its own, its vendor's variable's, else the preset's.
pub(super) fn base_url(
    name: &str,
    preset: &Preset,
    set: Option<&str>,
    findings: &mut Findings<'_>,
) -> Option<String> {
    let path = ["providers", name, "base_url"];
    let (text, origin) = match set.map(str::trim).filter(|url| !url.is_empty()) {
        Some(url) => (url.to_owned(), None),
        None => match keys::base_url(&findings.sources.environment, preset) {
            Some((url, origin)) => (url, Some(origin)),
            None => (
                preset.base_url.to_owned(),
                Some(Origin::Derived("of the preset")),
            ),
        },
    };
    // A wrong address is the variable's fault where one holds it.
    let variable = match &origin {
        Some(Origin::Variable(variable)) => vec![variable.as_str()],
        _ => path.to_vec(),
    };
    let url = findings.url(&variable, &text)?;
    if url.query().is_some() || url.fragment().is_some() {
        findings.refuse(
            &variable,
            "the API's paths are added to this URL; it can have no ? and #",
        );
    }
    let text = text.trim_end_matches('/');
    let text = match preset.kind {
        // The wire's path starts with /v1 here; people copy the URL with it.
        ProviderKind::Anthropic => text.strip_suffix("/v1").unwrap_or(text),
        _ => text,
    };
    if let Some(origin) = origin {
        findings.derive(&path, text, origin);
    }
    Some(text.to_owned())
}

pub(super) fn wire(
    name: &str,
    preset: &Preset,
    wire: Option<Wire>,
    base_url: &str,
    findings: &mut Findings<'_>,
) -> ProviderKind {
    let is_openai = |host: String| host == "api.openai.com" || host.ends_with(".api.openai.com");
    match (preset.kind, wire) {
        (ProviderKind::Responses | ProviderKind::Chat, Some(Wire::Responses)) => {
            ProviderKind::Responses
        }
        (ProviderKind::Responses | ProviderKind::Chat, Some(Wire::Chat)) => ProviderKind::Chat,
        (ProviderKind::Responses, None) if !host(base_url).is_some_and(is_openai) => {
            ProviderKind::Chat
        }
        (kind, None) => kind,
        (kind, Some(_)) => {
            findings.refuse(
                &["providers", name, "wire"],
                "only kind \"openai\" and what is compatible with it has a choice of wire",
            );
            kind
        }
    }
}

pub(super) fn host(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url.trim()).ok()?;
    url.host_str().map(str::to_owned)
}

/// Returns whether a server is on this machine, seen from a container too.
pub(super) fn is_local(base_url: &str) -> bool {
    reqwest::Url::parse(base_url.trim()).is_ok_and(|url| {
        crate::http::is_loopback(&url) || url.host_str() == Some("host.docker.internal")
    })
}

/// Returns whether a server is on this machine or in its network: `http://ollama:11434`, `10.0.0.2`.
pub(super) fn is_nearby(base_url: &str) -> bool {
    let in_network = |host: String| match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(address)) => address.is_private() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_unique_local() || address.is_unicast_link_local(),
        Err(_) => {
            let near = [".local", ".internal", ".lan"];
            !host.contains('.') || near.iter().any(|domain| host.ends_with(domain))
        }
    };
    is_local(base_url) || host(base_url).is_some_and(in_network)
}
