//! Connections of a command in the background that were not made. Each is said once.

use crate::sandbox::RefusedPorts;
use crate::tool::exec::{MAX_REFUSED, ports_note};

/// Why a host was not connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tool) enum Unconnected {
    /// Nobody allowed it, and nobody is asked.
    NotListed,
    /// It may be connected to, but there is no address for it, for this reason.
    NoAddress(String),
}

/// All of them, and up to where they were said.
#[derive(Debug)]
pub(super) struct Connections {
    hosts: Vec<(String, Unconnected)>,
    said_hosts: usize,
    ports: RefusedPorts,
    said_ports: usize,
}

impl Connections {
    pub(super) fn new(ports: RefusedPorts) -> Self {
        Self {
            hosts: Vec::new(),
            said_hosts: 0,
            ports,
            said_ports: 0,
        }
    }

    /// Takes note of a host that was not connected to.
    pub(super) fn note(&mut self, host: String, why: Unconnected) {
        let is_noted = self.hosts.iter().any(|(noted, _)| *noted == host);
        if !is_noted && self.hosts.len() < MAX_REFUSED {
            self.hosts.push((host, why));
        }
    }

    /// Returns what the model reads of those of which it was not told yet; each begins on a line of its own.
    pub(super) fn news(&mut self) -> String {
        let mut not_listed = Vec::new();
        let mut no_address = Vec::new();
        for (host, why) in self.hosts.iter().skip(self.said_hosts) {
            match why {
                Unconnected::NotListed => not_listed.push(host.as_str()),
                Unconnected::NoAddress(why) => no_address.push(format!("{host} ({why})")),
            }
        }
        self.said_hosts = self.hosts.len();
        let mut text = String::new();
        if !no_address.is_empty() {
            text.push_str(&format!("\n[not connected to {}]", no_address.join(", ")));
        }
        if !not_listed.is_empty() {
            text.push_str(&format!(
                "\n[not connected to {}: not on the list of hosts (tools.bash.hosts), and nobody is asked for what a command in the background connects to; start it with `network`, for which the user is asked]",
                not_listed.join(", ")
            ));
        }
        let ports = self.ports.list();
        let new = ports.get(self.said_ports..).unwrap_or_default();
        text.extend(ports_note(new));
        self.said_ports = ports.len();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_is_said_once() {
        let mut connections = Connections::new(RefusedPorts::default());
        assert_eq!(connections.news(), "");
        let no_address = || Unconnected::NoAddress("no such name".to_owned());
        connections.note("a.invalid".to_owned(), no_address());
        connections.note("b.invalid".to_owned(), Unconnected::NotListed);
        connections.note("a.invalid".to_owned(), no_address());
        let news = connections.news();
        assert!(
            news.starts_with(
                "\n[not connected to a.invalid (no such name)]\n[not connected to b.invalid: "
            ),
            "{news}"
        );
        connections.note("a.invalid".to_owned(), no_address());
        assert_eq!(connections.news(), "");
        for number in 0..100 {
            connections.note(format!("{number}.invalid"), no_address());
        }
        let news = connections.news();
        assert_eq!(
            news.matches("no such name").count(),
            MAX_REFUSED - 2,
            "{news}"
        );
    }
}
