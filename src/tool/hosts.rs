//! Hosts that commands may connect to without a question (`tools.bash.hosts`).

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use super::exec::Exec;
use crate::config::{HostEntry, Managers, PackageManager, Registries, Variable, registries};
use crate::sandbox::{Host, HostAnswer, is_elsewhere, is_public};

/// The list; clones are the same list.
#[derive(Clone, Debug)]
pub(super) struct HostList(Arc<List>);

#[derive(Debug)]
struct List {
    entries: Vec<HostEntry>,
    managers: Vec<PackageManager>,
    with: Managers,
    /// What the package managers' settings come to, once they have answered.
    answered: OnceCell<Registries>,
}

impl HostList {
    /// Returns the list; `None` where it is empty. `home` is where the user's settings are. Within a runtime the package
    /// managers are asked from now on.
    pub(super) fn new(entries: &[HostEntry], exec: &Exec, home: Option<PathBuf>) -> Option<Self> {
        if entries.is_empty() {
            return None;
        }
        let managers = entries.iter().filter_map(|entry| match entry {
            HostEntry::Manager(manager) => Some(*manager),
            _ => None,
        });
        let managers: Vec<PackageManager> = managers.collect();
        let is_trusted = |manager: &PackageManager| exec.is_trusted(manager.name());
        let with = Managers {
            path: exec.environment().get("PATH").cloned(),
            trusted: managers.iter().copied().filter(is_trusted).collect(),
            home,
            environment: exec.settings_of_managers().to_vec(),
        };
        let list = Self(Arc::new(List {
            entries: entries.to_vec(),
            managers,
            with,
            answered: OnceCell::new(),
        }));
        // The first command that needs them waits less, or not at all.
        if let Ok(runtime) = Handle::try_current() {
            let list = list.clone();
            runtime.spawn(async move { list.answered().await.hosts.len() });
        }
        Some(list)
    }

    /// Whether a host needs no question. The first one that no entry names waits for the package managers.
    pub(super) async fn holds(&self, host: &Host) -> bool {
        holds(&self.0.entries, host) || holds(&self.answered().await.hosts, host)
    }

    /// Returns why nobody may allow a host, where that is so: an address of this machine or of a cloud's own service, or one of a private
    /// network that is not on the list.
    pub(super) fn refuses(&self, host: &Host) -> Option<&'static str> {
        match host {
            Host::Address(address) if !is_elsewhere((*address, 443).into()) => Some(
                "an address to which no command connects: this machine's, or one that hands out keys of a cloud",
            ),
            Host::Address(address) if !is_public(*address) && !holds(&self.0.entries, host) => {
                Some("an address of a private network, which `tools.bash.hosts` does not list")
            }
            _ => None,
        }
    }

    /// Returns the answer to a command's question for a host: a name that it may connect to may lead to the private addresses
    /// on the list, too. The command could connect to these anyway.
    pub(super) fn answer(&self, is_allowed: bool) -> HostAnswer {
        let private = self.0.entries.iter().filter_map(|entry| match entry {
            HostEntry::Address(address) if !is_public(*address) => Some(*address),
            _ => None,
        });
        match is_allowed {
            true => HostAnswer::Allowed {
                private: private.collect(),
            },
            false => HostAnswer::Refused,
        }
    }

    /// Returns what commands are told of the registries of the package managers on the list. Waits for these.
    pub(super) async fn variables(&self) -> &[Variable] {
        &self.answered().await.variables
    }

    async fn answered(&self) -> &Registries {
        let List {
            managers,
            with,
            answered,
            ..
        } = &*self.0;
        let ask = || async move {
            let asked = managers.iter().map(|it| registries(*it, with));
            let mut all = Registries::default();
            for found in join_all(asked).await {
                all.hosts.extend(found.hosts);
                all.variables.extend(found.variables);
            }
            all
        };
        answered.get_or_init(ask).await
    }
}

/// Returns whether one of the entries names a host; none of a package manager does.
pub(super) fn holds(entries: &[HostEntry], host: &Host) -> bool {
    entries.iter().any(|entry| match (entry, host) {
        (HostEntry::Name(listed), Host::Name(name)) => listed == name,
        (HostEntry::Below(listed), Host::Name(name)) => name
            .strip_suffix(listed.as_str())
            .is_some_and(|front| front.len() > 1 && front.ends_with('.')),
        (HostEntry::Address(listed), Host::Address(address)) => {
            listed.to_canonical() == address.to_canonical()
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_may_lead_to_private_addresses_that_are_listed() {
        let entries = ["npm", "example.org", "10.0.0.7", "203.0.113.7", "fd00::7"];
        let list = HostList(Arc::new(List {
            entries: entries.map(|it| HostEntry::parse(it).unwrap()).to_vec(),
            managers: Vec::new(),
            with: Managers::default(),
            answered: OnceCell::new(),
        }));
        let private = ["10.0.0.7", "fd00::7"].map(|it| it.parse().unwrap());
        let allowed = HostAnswer::Allowed {
            private: private.to_vec(),
        };
        assert_eq!(list.answer(true), allowed);
        assert_eq!(list.answer(false), HostAnswer::Refused);
    }

    #[test]
    fn hosts_are_found_in_a_list() {
        let entries = [
            HostEntry::Name("api.example.com".to_owned()),
            HostEntry::Below("example.org".to_owned()),
            HostEntry::Address("10.0.0.7".parse().unwrap()),
        ];
        for (host, expected) in [
            ("api.example.com", true),
            ("www.example.org", true),
            ("a.b.example.org", true),
            ("example.org", false),
            (".example.org", false),
            ("badexample.org", false),
            ("api.example.com.evil.test", false),
            ("x.api.example.com", false),
            ("10.0.0.7", true),
            ("::ffff:10.0.0.7", true),
            ("10.0.0.8", false),
        ] {
            let parsed = host.parse();
            let named = parsed.map_or_else(|_| Host::Name(host.to_owned()), Host::Address);
            assert_eq!(holds(&entries, &named), expected, "{host}");
        }
    }
}
