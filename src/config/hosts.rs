//! `tools.bash.hosts` and `tools.bash.ports`: where commands may connect to. `tools.web_fetch` has lists of the same sort.

mod managers;
mod server;

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::error::nearest;
use crate::sandbox::Ports;

pub use managers::{MANAGER_SETTINGS, Managers, Registries, Variable, registries};
pub use server::{HostPort, url_host};

/// Most characters of a name, by RFC 1035.
const MAX_NAME: usize = 253;

/// One entry of the list of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEntry {
    /// This host.
    Name(String),
    /// All hosts below this name, as written by `*.example.org`; not the name itself.
    Below(String),
    /// This address, also one of a private network.
    Address(IpAddr),
    /// The hosts that the user's own settings of a package manager name.
    Manager(PackageManager),
}

/// A package manager whose settings say which hosts it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageManager {
    /// npm.
    Npm,
    /// pnpm.
    Pnpm,
    /// Yarn.
    Yarn,
    /// pip.
    Pip,
    /// Cargo.
    Cargo,
    /// Go.
    Go,
    /// uv.
    Uv,
    /// Maven.
    Maven,
    /// Gradle.
    Gradle,
}

impl PackageManager {
    /// All of them, as a list is written.
    const NAMES: [(&str, Self); 9] = [
        ("npm", Self::Npm),
        ("pnpm", Self::Pnpm),
        ("yarn", Self::Yarn),
        ("pip", Self::Pip),
        ("cargo", Self::Cargo),
        ("go", Self::Go),
        ("uv", Self::Uv),
        ("maven", Self::Maven),
        ("gradle", Self::Gradle),
    ];

    /// Returns its name, which is the program's, too, where that is asked.
    pub fn name(self) -> &'static str {
        let named = Self::NAMES.iter().find(|(_, manager)| *manager == self);
        named.map_or("", |(name, _)| name)
    }
}

impl HostEntry {
    /// Reads an entry.
    ///
    /// # Errors
    /// A sentence for the operator, where it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let manager = PackageManager::NAMES.iter().find(|(name, _)| *name == text);
        if let Some((_, manager)) = manager {
            return Ok(Self::Manager(*manager));
        }
        if let Some(address) = address(text) {
            return Ok(Self::Address(address));
        }
        let (name, is_below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if ends_in_number(&name) {
            return Err(format!(
                "{text:?} is no host: what ends in a number is read as an address, and this is none; write an address in full, such as \"10.0.0.7\" or \"fd00::7\""
            ));
        }
        let is_label = |label: &str| {
            let is_usual = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
            (1..=63).contains(&label.len()) && label.chars().all(is_usual)
        };
        // A word alone is a manager with a typo rather than a host of the local network.
        let is_name = name.len() <= MAX_NAME && name.contains('.') && name.split('.').all(is_label);
        match (is_name, is_below) {
            (true, false) => Ok(Self::Name(name)),
            (true, true) => Ok(Self::Below(name)),
            (false, _) => {
                let managers: Vec<&str> = PackageManager::NAMES.iter().map(|(it, _)| *it).collect();
                let near = match nearest(text, managers.iter().copied()) {
                    Some(near) => format!("; did you mean {near:?}?"),
                    None => String::new(),
                };
                Err(format!(
                    "{text:?} is no host; write \"example.org\", \"*.example.org\", an address such as \"10.0.0.7\", without a scheme, port or path, or one of {}{near}",
                    managers.join(", ")
                ))
            }
        }
    }
}

/// Reads an address as it is usually written; one of version 6 may be in brackets, as in a URL.
fn address(text: &str) -> Option<IpAddr> {
    let inner = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse().ok().map(|it: Ipv6Addr| it.into()),
        None => text.parse().ok(),
    }
}

/// Whether programs take a name for an address: they read `127.1` and `0x7f.1` as `127.0.0.1`, and no domain's last part is
/// a number. As the URL standard has it.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_decimal = !last.is_empty() && last.bytes().all(|it| it.is_ascii_digit());
    let hexadecimal = last.strip_prefix("0x");
    is_decimal || hexadecimal.is_some_and(|it| it.bytes().all(|it| it.is_ascii_hexdigit()))
}

impl fmt::Display for HostEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Address(address) => address.fmt(f),
            Self::Manager(manager) => f.write_str(manager.name()),
        }
    }
}

impl<'de> Deserialize<'de> for HostEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

impl JsonSchema for HostEntry {
    fn schema_name() -> Cow<'static, str> {
        "HostEntry".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

/// TCP ports of other machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortList {
    /// All of them.
    Any,
    /// These.
    Only(Vec<u16>),
}

impl PortList {
    /// Returns them as the sandbox takes them.
    pub fn of_commands(&self) -> Ports {
        match self {
            Self::Any => Ports::Any,
            Self::Only(ports) => Ports::Only(ports.clone()),
        }
    }
}

impl<'de> Deserialize<'de> for PortList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Word(String),
            Ports(Vec<u64>),
        }
        let allowed = || {
            D::Error::custom(
                "expected \"any\" or a list of ports from 1 to 65535, such as [22, 443]",
            )
        };
        match Written::deserialize(deserializer).map_err(|_| allowed())? {
            Written::Word(word) if word == "any" => Ok(Self::Any),
            Written::Word(_) => Err(allowed()),
            Written::Ports(ports) => {
                let port = |port: u64| u16::try_from(port).ok().filter(|port| *port > 0);
                let ports: Option<Vec<u16>> = ports.into_iter().map(port).collect();
                ports.map(Self::Only).ok_or_else(allowed)
            }
        }
    }
}

impl JsonSchema for PortList {
    fn schema_name() -> Cow<'static, str> {
        "PortList".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}},
            {"const": "any"}
        ]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read() {
        for (text, expected) in [
            ("npm", Some("npm")),
            ("api.example.com", Some("api.example.com")),
            ("API.Example.com.", Some("api.example.com")),
            ("*.example.org", Some("*.example.org")),
            ("10.0.0.7", Some("10.0.0.7")),
            ("[fd00::7]", Some("fd00::7")),
            ("xn--bcher-kva.example", Some("xn--bcher-kva.example")),
            ("nmp", None),
            ("localhost", None),
            ("*", None),
            ("*.*", None),
            ("a.*.example", None),
            ("*.", None),
            ("", None),
            ("https://example.org", None),
            ("example.org:443", None),
            ("example.org/path", None),
            ("user@example.org", None),
            ("bücher.example", None),
            ("example..org", None),
            (" example.org", None),
            ("fd00::7", Some("fd00::7")),
            ("1password.com", Some("1password.com")),
            ("7.0.0.10.in-addr.arpa", Some("7.0.0.10.in-addr.arpa")),
            ("a.0xyz", Some("a.0xyz")),
            // Addresses in disguise, and what is none.
            ("127.1", None),
            ("1.2.3", None),
            ("999.1.1.1", None),
            ("10.0.0.07", None),
            ("10.0.0.7.", None),
            ("0x7f.1", None),
            ("0x7f.0.0.0x1", None),
            ("a.0x", None),
            ("2130706433", None),
            ("*.0.0.1", None),
            ("example.1", None),
            ("[10.0.0.7", None),
            ("[10.0.0.7]", None),
            ("10.0.0.7]]]", None),
            ("[[fd00::7]]", None),
            ("[fd00::7", None),
            ("[example.org]", None),
        ] {
            let entry = HostEntry::parse(text);
            assert_eq!(
                entry.ok().map(|it| it.to_string()).as_deref(),
                expected,
                "{text}"
            );
        }
        let error = HostEntry::parse("nmp").unwrap_err();
        assert!(
            error.contains("\"nmp\" is no host") && error.contains("npm, pnpm"),
            "{error}"
        );
        let error = HostEntry::parse("127.1").unwrap_err();
        assert!(error.contains("ends in a number"), "{error}");
    }

    #[test]
    fn ports_are_read() {
        for (text, expected) in [
            ("\"any\"", Some(PortList::Any)),
            ("[22, 65535]", Some(PortList::Only(vec![22, 65535]))),
            ("[]", Some(PortList::Only(Vec::new()))),
            ("\"all\"", None),
            ("[0]", None),
            ("[65536]", None),
            ("[-1]", None),
            ("443", None),
        ] {
            let read = serde_json::from_str(text);
            assert_eq!(read.ok(), expected, "{text}");
        }
    }
}
