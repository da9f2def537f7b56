//! What address may be asked for, by what is written. Where a name leads is looked at when it is connected to.

use std::net::{IpAddr, SocketAddr};

use reqwest::Url;

use crate::config::{HostPort, url_host};
use crate::sandbox::{Host, is_elsewhere, is_metadata, is_public};

/// The longest address, in characters; servers take hardly more.
const MAX_URL: usize = 4_096;

/// Ports below 1024 that pages are read from. Behind the others are services that speak something else.
const PORTS: [u16; 2] = [80, 443];

/// A page that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Without what comes after #.
    pub(super) url: Url,
    pub(super) server: HostPort,
}

impl Target {
    /// Reads an address. An error is a sentence for the model.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > MAX_URL {
            return Err(format!("the URL has more than {MAX_URL} characters"));
        }
        let url = Url::parse(text).map_err(|error| {
            format!("this is no URL: {error}; write it whole, such as https://example.org/page")
        })?;
        Self::of(url)
    }

    /// Reads where an answer says that the page is.
    pub(super) fn join(&self, location: &str) -> Result<Self, String> {
        if location.len() > MAX_URL {
            return Err(format!("a URL of more than {MAX_URL} characters"));
        }
        let url = self.url.join(location);
        let url = url.map_err(|error| format!("what is no URL ({error})"))?;
        Self::of(url)
    }

    fn of(mut url: Url) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "only http and https are read, and this is {}",
                url.scheme()
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "the URL holds a user or a password; pages are read without a login, so leave it out"
                    .to_owned(),
            );
        }
        url.set_fragment(None);
        let (host, port) = url_host(&url)
            .zip(url.port_or_known_default())
            .ok_or("the URL names no host")?;
        let server = HostPort { host, port };
        Ok(Self { url, server })
    }

    /// Returns whether the operator let this very server be private.
    pub(super) fn is_one_of(&self, servers: &[HostPort]) -> bool {
        servers.contains(&self.server)
    }

    /// Returns why it is not read, whoever allows its host; `may_be_private` where the operator said so.
    pub(super) fn refusal(&self, may_be_private: bool) -> Option<String> {
        let HostPort { host, port } = &self.server;
        if may_be_private {
            return match *host {
                Host::Address(address) if is_metadata(address) => Some(format!(
                    "{address} is link-local, or hands out keys of a cloud: nothing is read from there"
                )),
                Host::Address(address) if !may_be_inside(address) => Some(format!(
                    "{address} is the address of no server: nothing is read from there"
                )),
                _ => None,
            };
        }
        let is_inside = match host {
            Host::Address(address) => !is_outside(*address),
            Host::Name(_) => self.server.is_local(),
        };
        if is_inside {
            return Some(format!(
                "{host} is this machine, or of a private network, and the operator does not let pages be read from there (tools.web_fetch.allow_private names servers that may be, such as {named:?})",
                named = self.named(),
            ));
        }
        if *port < 1_024 && !PORTS.contains(port) {
            return Some(format!(
                "port {port} is no port of web pages: those are 80, 443 and from 1024 on"
            ));
        }
        None
    }

    /// Returns host and port, as the configuration has them.
    fn named(&self) -> String {
        let HostPort { host, port } = &self.server;
        match host {
            Host::Address(IpAddr::V6(address)) => format!("[{address}]:{port}"),
            _ => format!("{host}:{port}"),
        }
    }

    /// Returns scheme, host and port: what shares a `robots.txt`.
    pub(super) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Returns path and query.
    pub(super) fn path(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }
}

/// Returns whether an address is anybody's but this machine's and its networks'.
pub(super) fn is_outside(address: IpAddr) -> bool {
    // The port makes no difference.
    is_public(address) && is_elsewhere(SocketAddr::new(address, 443))
}

/// Returns whether pages may be read from an address where the operator let its server be private.
pub(super) fn may_be_inside(address: IpAddr) -> bool {
    !is_metadata(address) && !address.is_unspecified() && !address.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_of_a_page_is_refused() {
        let long = format!("https://example.org/{}", "a".repeat(MAX_URL));
        for (text, expected) in [
            ("", "this is no URL"),
            ("example.org/a", "this is no URL"),
            ("/etc/passwd", "this is no URL"),
            ("https://", "this is no URL"),
            ("http://[::1", "this is no URL"),
            ("http://1.2.3.400/", "this is no URL"),
            ("file:///etc/passwd", "this is file"),
            ("ftp://example.org/", "this is ftp"),
            ("gopher://example.org/", "this is gopher"),
            ("data:text/html,x", "this is data"),
            ("javascript:alert(1)", "this is javascript"),
            ("https://user:hunter2@example.org/", "without a login"),
            ("https://user@example.org/", "without a login"),
            (&long, "more than 4096"),
        ] {
            let error = Target::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_host_is_what_is_connected_to() {
        for (text, server, path) in [
            ("https://Example.ORG/a?b#c", "example.org:443", "/a?b"),
            ("http://example.org.", "example.org:80", "/"),
            ("http://bücher.example/", "xn--bcher-kva.example:80", "/"),
            ("http://2130706433/", "127.0.0.1:80", "/"),
            ("http://0x7f.1/", "127.0.0.1:80", "/"),
            ("http://0177.0.0.1/", "127.0.0.1:80", "/"),
            ("http://[::ffff:127.0.0.1]/", "127.0.0.1:80", "/"),
            ("http://[2001:db8::1]:8080/", "[2001:db8::1]:8080", "/"),
            (" https:example.org ", "example.org:443", "/"),
            (
                "http://example.org\\@127.0.0.1/",
                "example.org:80",
                "/@127.0.0.1/",
            ),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!(
                (&*target.named(), &*target.path()),
                (server, path),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_public_is_read_from_only_where_the_operator_says_so() {
        // Address, and whether it is read: by itself, and where its server is named.
        for (text, alone, named) in [
            ("https://example.org/", true, true),
            ("http://203.0.113.7:8080/", true, true),
            ("http://example.org:22/", false, true),
            ("http://example.org:25/", false, true),
            ("http://localhost/", false, true),
            ("http://a.localhost:3000/", false, true),
            ("http://127.0.0.1/", false, true),
            ("http://127.1:8080/", false, true),
            ("http://2130706433/", false, true),
            ("http://0x7f000001/", false, true),
            ("http://[::1]/", false, true),
            ("http://[::ffff:127.0.0.1]/", false, true),
            ("http://[::ffff:7f00:1]/", false, true),
            ("http://[64:ff9b::10.0.0.1]/", false, true),
            ("http://10.0.0.1/", false, true),
            ("http://172.16.0.1/", false, true),
            ("http://192.168.0.1/", false, true),
            ("http://100.64.0.1/", false, true),
            ("http://[fd00::1]/", false, true),
            ("http://0.0.0.0/", false, false),
            ("http://0/", false, false),
            ("http://[::]/", false, false),
            ("http://224.0.0.1/", false, false),
            ("http://[ff02::1]/", false, false),
            ("http://169.254.169.254/latest/meta-data/", false, false),
            ("http://2852039166/", false, false),
            ("http://[::ffff:169.254.169.254]/", false, false),
            ("http://[fe80::1]/", false, false),
            ("http://100.100.100.200/", false, false),
            ("http://[fd00:ec2::254]/", false, false),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!(target.refusal(false).is_none(), alone, "{text}");
            assert_eq!(target.refusal(true).is_none(), named, "{text}");
        }
        for (text, expected) in [
            ("http://169.254.169.254/", "link-local"),
            ("http://0.0.0.0/", "of no server"),
            ("http://224.0.0.1/", "of no server"),
        ] {
            let refusal = Target::parse(text).unwrap().refusal(true).unwrap();
            assert!(refusal.contains(expected), "{text}: {refusal}");
        }
        let servers = [HostPort::parse("127.0.0.1:8080").unwrap()];
        for (text, expected) in [
            ("http://127.0.0.1:8080/a", true),
            ("http://127.1:8080/a", true),
            ("http://127.0.0.1:8081/", false),
            ("http://127.0.0.2:8080/", false),
            ("http://localhost:8080/", false),
        ] {
            assert_eq!(
                Target::parse(text).unwrap().is_one_of(&servers),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn a_redirect_is_read_like_an_address() {
        let from = Target::parse("https://example.org/a/b?c").unwrap();
        for (location, expected) in [
            ("d", Ok("https://example.org/a/d")),
            ("/e", Ok("https://example.org/e")),
            ("//other.example/", Ok("https://other.example/")),
            ("http://127.0.0.1/", Ok("http://127.0.0.1/")),
            ("file:///etc/passwd", Err("this is file")),
            ("http://user@other.example/", Err("without a login")),
            ("http://[", Err("no URL")),
        ] {
            match (from.join(location), expected) {
                (Ok(target), Ok(expected)) => assert_eq!(target.url.as_str(), expected),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                (other, _) => panic!("{location}: {other:?}"),
            }
        }
    }
}
