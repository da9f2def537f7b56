//! `tools.web_fetch.allow_private`: servers that pages may be read from though they are not public.

use std::borrow::Cow;
use std::net::IpAddr;

use reqwest::Url;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::sandbox::{Host, is_metadata};

/// A server, by the host and the port that a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// The host.
    pub host: Host,
    /// The TCP port.
    pub port: u16,
}

impl HostPort {
    /// Reads `HOST:PORT`.
    ///
    /// # Errors
    /// A sentence for the operator, where it is none, or one that hands out keys.
    pub fn parse(text: &str) -> Result<Self, String> {
        let read = || {
            let (host, port) = text.rsplit_once(':')?;
            let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
            // One of version 6 is in brackets.
            let has_more = host.contains(':') && !host.starts_with('[');
            let is_usual = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
            let url = Url::parse(&format!("http://{host}/")).ok();
            let url =
                url.filter(|url| url.port().is_none() && !has_more && host.chars().all(is_usual))?;
            let host = url_host(&url)?;
            Some(Self { host, port })
        };
        let server = read().ok_or_else(|| {
            format!(
                "{text:?} is no server; write a host and its port, such as \"wiki.example.org:443\", \"10.0.0.7:8080\" or \"[fd00::7]:443\", without a scheme, path or *"
            )
        })?;
        match server.host {
            Host::Address(address) if is_metadata(address) => Err(format!(
                "{text:?} is link-local, or hands out keys of a cloud: nothing is read from there"
            )),
            _ => Ok(server),
        }
    }

    /// Returns whether it is named as one of this machine's.
    pub fn is_local(&self) -> bool {
        match &self.host {
            Host::Address(address) => address.is_loopback(),
            Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }
}

/// Returns the host of an `http` or `https` URL: an address where it is one in any of the ways that a URL may write it.
pub fn url_host(url: &Url) -> Option<Host> {
    let host = url.host_str()?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(Host::Address(address.to_canonical()));
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    (!name.is_empty()).then_some(Host::Name(name))
}

impl<'de> Deserialize<'de> for HostPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

impl JsonSchema for HostPort {
    fn schema_name() -> Cow<'static, str> {
        "HostPort".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_a_host_and_a_port() {
        for (text, expected) in [
            ("127.0.0.1:8080", Some("127.0.0.1 8080")),
            ("[::1]:80", Some("::1 80")),
            ("[::ffff:10.0.0.7]:80", Some("10.0.0.7 80")),
            ("Wiki.Example.org.:443", Some("wiki.example.org 443")),
            ("wiki:443", Some("wiki 443")),
            ("localhost:3000", Some("localhost 3000")),
            ("127.1:80", Some("127.0.0.1 80")),
            ("wiki.example.org", None),
            ("wiki.example.org:0", None),
            ("wiki.example.org:70000", None),
            ("wiki.example.org:443/a", None),
            ("https://wiki.example.org:443", None),
            ("user@wiki.example.org:443", None),
            ("*.example.org:443", None),
            ("a b:443", None),
            ("a:80:443", None),
            (":443", None),
            ("::1:443", None),
            ("", None),
            ("169.254.169.254:80", None),
            ("[fe80::1]:80", None),
            ("[fd00:ec2::254]:80", None),
            ("100.100.100.200:80", None),
        ] {
            let parsed = HostPort::parse(text);
            let shown = parsed.as_ref().map(|it| format!("{} {}", it.host, it.port));
            assert_eq!(shown.ok().as_deref(), expected, "{text}");
            if let Err(error) = parsed {
                assert!(error.contains(&format!("{text:?}")), "{error}");
            }
        }
        for (text, expected) in [
            ("127.0.0.1:1", true),
            ("localhost:1", true),
            ("10.0.0.1:1", false),
        ] {
            assert_eq!(
                HostPort::parse(text).unwrap().is_local(),
                expected,
                "{text}"
            );
        }
    }
}
