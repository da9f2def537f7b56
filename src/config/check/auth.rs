//! `[auth]`: keys that may be read, and a header that only a proxy may send.

use std::net::IpAddr;

use super::super::sections::{AuthSettings, HeaderSettings, JwtSettings};
use super::super::{AuthConfig, HeaderConfig, JwtConfig, KeySource, UserLimits};
use super::findings::Findings;
use crate::http::is_loopback;

/// Checks the section.
pub(super) fn check(settings: AuthSettings, findings: &mut Findings<'_>) -> AuthConfig {
    AuthConfig {
        jwt: jwt(&settings.jwt, findings),
        header: header(settings.header, findings),
        limits: {
            let given = |most: u64| Some(most).filter(|most| *most > 0);
            UserLimits {
                sessions: given(settings.limits.sessions),
                exchanges: given(settings.limits.exchanges),
                sends_per_minute: given(settings.limits.sends_per_minute),
                disk: settings.limits.disk,
            }
        },
    }
}

fn jwt(settings: &JwtSettings, findings: &mut Findings<'_>) -> Option<JwtConfig> {
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let keys = given(&settings.keys)?;
    let path = ["auth", "jwt", "keys"];
    let keys = match keys.contains("://") {
        true => {
            let url = findings.url(&path, &keys);
            let is_plain = url.is_some_and(|url| url.scheme() == "http" && !is_loopback(&url));
            if is_plain {
                findings.refuse(
                    &path,
                    "must be https: whoever changes the keys on their way lets in whom they want",
                );
            }
            KeySource::Address(keys)
        }
        false => KeySource::File(findings.absolute(keys)),
    };
    Some(JwtConfig {
        keys,
        issuer: given(&settings.issuer),
        audience: given(&settings.audience),
        clock_skew: settings.clock_skew,
        revoked: given(&settings.revoked).map(|path| findings.absolute(path)),
    })
}

fn header(settings: HeaderSettings, findings: &mut Findings<'_>) -> Option<HeaderConfig> {
    let name = settings.name.trim().to_ascii_lowercase();
    if name.is_empty() {
        return None;
    }
    let is_of_http = |name: &str| axum::http::HeaderName::try_from(name).is_ok();
    // What clients and proxies use for something else is nobody's name.
    let is_taken = ["authorization", "host", "origin", "cookie"].contains(&name.as_str());
    if !is_of_http(&name) || is_taken || name.starts_with("sec-") {
        let message = format!("{name:?} cannot be such a header; name one as \"x-auth-user\"");
        findings.refuse(&["auth", "header", "name"], message);
    }
    let path = ["auth", "header", "from"];
    if settings.from.is_empty() {
        findings.refuse(
            &path,
            "is empty: name the addresses of the proxy, or nobody is let in by its header",
        );
    }
    let mut from = Vec::new();
    for text in &settings.from {
        match network(text.trim()) {
            Some(network) => from.push(network),
            None => findings.refuse(
                &path,
                format!("{text:?} is no address; write one as \"10.0.0.5\" or \"10.1.0.0/16\""),
            ),
        }
    }
    Some(HeaderConfig {
        name,
        from,
        operators: settings.operators.into_iter().collect(),
    })
}

/// Reads an address, or a network: an address with the number of its first bits that count.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(most);
    (bits <= most && bits > 0).then_some((address.to_canonical(), bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_counts_from_the_addresses_that_are_named() {
        let from = ["10.0.0.5", "10.1.0.0/16", "::1", "fd00::/8"];
        let config = HeaderConfig {
            name: "x-auth-user".to_owned(),
            from: from.map(|text| network(text).unwrap()).to_vec(),
            operators: Default::default(),
        };
        for (address, expected) in [
            ("10.0.0.5", true),
            ("10.0.0.6", false),
            ("10.1.255.255", true),
            ("10.2.0.0", false),
            ("::ffff:10.0.0.5", true),
            ("::1", true),
            ("fd12::1", true),
            ("fe80::1", false),
            ("127.0.0.1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(config.is_trusted(address), expected, "{address}");
        }
        for text in [
            "",
            "10.0.0",
            "10.0.0.0/33",
            "10.0.0.0/0",
            "proxy",
            "10.0.0.0/x",
        ] {
            assert_eq!(network(text), None, "{text}");
        }
    }
}
