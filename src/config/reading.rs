//! What a reading of the configuration says, key by key: which values are in force, and which wait for a restart.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::{ExposeSecret as _, SecretString};

use super::show::{Shown, Values};
use super::typed::written;
use super::{Config, McpTransport};

/// Every value that was read, by its key.
#[derive(Clone)]
pub struct Reading {
    /// Secrets are masked here.
    shown: BTreeMap<String, Shown>,
    secrets: BTreeMap<String, SecretString>,
}

/// The values that are in force, and what the sources said last.
///
/// A value that needs a restart stays here as it was read first, however often it is read again.
pub struct Readings {
    in_force: Reading,
    last: Reading,
}

/// One key of both.
pub struct KeyState<'a> {
    /// The key.
    pub key: &'a str,
    /// The value in force; `None` where the key was not there.
    pub in_force: Option<&'a Shown>,
    /// What the sources say; `None` where the key is gone.
    pub last: Option<&'a Shown>,
    /// Whether the two differ, secrets too.
    pub differs: bool,
}

impl Reading {
    /// Returns what was read: a configuration, and each value of it as it is shown.
    pub fn new(config: &Config, shown: Vec<Shown>) -> Self {
        Self {
            shown: by_key(shown),
            secrets: secrets(config),
        }
    }

    fn differs(&self, other: &Self, key: &str) -> bool {
        let value = |of: &Self| of.shown.get(key).map(|it| it.value.clone());
        let secret = |of: &Self| {
            let secret = of.secrets.get(key);
            secret.map(|it| it.expose_secret().to_owned())
        };
        value(self) != value(other) || secret(self) != secret(other)
    }
}

impl Readings {
    /// Returns a function that makes the readings, with this configuration in force. Its values are listed when that is called.
    pub fn first(config: &Config, values: Values) -> impl FnOnce() -> Self + Send + use<> {
        // What is in force changes later.
        let secrets = secrets(config);
        move || {
            Self::new(Reading {
                shown: by_key(values.list()),
                secrets,
            })
        }
    }

    fn new(first: Reading) -> Self {
        Self {
            in_force: first.clone(),
            last: first,
        }
    }

    /// Takes what was read now, and returns the keys whose values are other than those in force.
    pub fn read(&mut self, new: Reading) -> Vec<String> {
        self.last = new;
        let all = [&self.in_force, &self.last];
        let shown = all.into_iter().flat_map(|it| it.shown.keys());
        let secrets = all.into_iter().flat_map(|it| it.secrets.keys());
        let keys: BTreeSet<&String> = shown.chain(secrets).collect();
        keys.into_iter()
            .filter(|key| self.in_force.differs(&self.last, key))
            .cloned()
            .collect()
    }

    /// Notes that what was read last of these keys is in force.
    pub fn put_in_force(&mut self, keys: &[String]) {
        for key in keys {
            copy(key, &self.last.shown, &mut self.in_force.shown);
            copy(key, &self.last.secrets, &mut self.in_force.secrets);
        }
    }

    /// Returns every key, in their order.
    pub fn keys(&self) -> impl Iterator<Item = KeyState<'_>> {
        let (in_force, last) = (&self.in_force.shown, &self.last.shown);
        let keys: BTreeSet<&String> = in_force.keys().chain(last.keys()).collect();
        keys.into_iter().map(move |key| KeyState {
            key,
            in_force: in_force.get(key),
            last: last.get(key),
            differs: self.in_force.differs(&self.last, key),
        })
    }
}

fn copy<T: Clone>(key: &str, from: &BTreeMap<String, T>, to: &mut BTreeMap<String, T>) {
    match from.get(key) {
        Some(value) => drop(to.insert(key.to_owned(), value.clone())),
        None => drop(to.remove(key)),
    }
}

fn by_key(shown: Vec<Shown>) -> BTreeMap<String, Shown> {
    let shown = shown.into_iter();
    shown.map(|it| (it.key.clone(), it)).collect()
}

/// Returns what is masked where it is shown, by its key.
fn secrets(config: &Config) -> BTreeMap<String, SecretString> {
    let mut secrets = BTreeMap::new();
    let mut add = |path: &[&str], secret: &str| {
        secrets.insert(written(path), SecretString::from(secret));
    };
    for provider in &config.providers {
        let id = provider.id.as_str();
        if let Some(key) = &provider.api_key {
            add(&["providers", id, "api_key"], key.expose_secret());
        }
        for (name, value) in &provider.headers {
            add(&["providers", id, "headers", name], value.expose_secret());
        }
    }
    for (name, server) in &config.mcp.servers {
        let (part, values) = match &server.transport {
            McpTransport::Stdio(server) => ("env", &server.env),
            McpTransport::Http(server) => ("headers", &server.headers),
        };
        for (variable, value) in values {
            let path = ["mcp", "servers", name, part, variable];
            add(&path, value.expose_secret());
        }
        if let McpTransport::Http(server) = &server.transport
            && let Some(secret) = &server.auth.client_secret
        {
            let path = ["mcp", "servers", name, "auth", "client_secret"];
            add(&path, secret.expose_secret());
        }
    }
    for (name, value) in config.otlp.iter().flat_map(|it| &it.headers) {
        add(
            &["telemetry", "otlp", "headers", name],
            value.expose_secret(),
        );
    }
    let server = &config.server;
    let webhooks = config.webhooks.as_ref();
    let brave = config.tools.web_search.brave_api_key.as_ref();
    let single: [(&[&str], _); 6] = [
        (&["tools", "web_search", "brave_api_key"], brave),
        (
            &["server", "approver_token"],
            server.approver_token.as_ref(),
        ),
        (
            &["server", "observer_token"],
            server.observer_token.as_ref(),
        ),
        (
            &["webhooks", "secret"],
            webhooks.and_then(|it| it.secret.as_ref()),
        ),
        (
            &["cluster", "secret"],
            config.cluster.as_ref().and_then(|it| it.secret.as_ref()),
        ),
        (
            &["store", "url"],
            config.store.as_ref().and_then(|it| it.place.database()),
        ),
    ];
    for (path, secret) in single {
        if let Some(secret) = secret {
            add(path, secret.expose_secret());
        }
    }
    secrets
}

/// Returns whether one of these keys is at a path or below it. Names in the path may have dots in them.
pub fn concerns(keys: &[String], path: &[&str]) -> bool {
    let path = written(path);
    keys.iter().any(|key| is_below(key, &path))
}

/// Returns whether a key is this one or below it.
pub(super) fn is_below(key: &str, above: &str) -> bool {
    key.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::loaded;

    fn reading(pairs: &[(&str, &str)]) -> Reading {
        let (config, shown) = loaded(pairs);
        Reading::new(&config, shown)
    }

    #[test]
    fn what_waits_for_a_restart_is_named_each_time_until_it_is_taken_back() {
        let turns = ("OUTRIGGER_CHAT__MAX_TURNS", "20");
        let port = ("OUTRIGGER_SERVER__PORT", "1");
        let key = ("BRAVE_API_KEY", "one-secret");
        let mut readings = Readings::new(reading(&[key]));
        let keys = readings.read(reading(&[turns, port, ("BRAVE_API_KEY", "other-secret")]));
        assert_eq!(
            keys,
            [
                "chat.max_turns",
                "server.port",
                "tools.web_search.brave_api_key"
            ]
        );
        readings.put_in_force(&[keys[0].clone(), keys[2].clone()]);
        let again = reading(&[turns, port, ("BRAVE_API_KEY", "other-secret")]);
        assert_eq!(readings.read(again), ["server.port"]);
        let state = |readings: &Readings, key: &str| {
            let mut keys = readings.keys();
            let state = keys.find(|it| it.key == key).unwrap();
            let value = |it: Option<&Shown>| it.map(|it| it.value.clone());
            (value(state.in_force), value(state.last), state.differs)
        };
        let (in_force, last, differs) = state(&readings, "server.port");
        assert_eq!((last, differs), (Some(1.into()), true));
        assert_ne!(in_force, Some(1.into()));
        let turns = state(&readings, "chat.max_turns");
        assert_eq!(turns, (Some(20.into()), Some(20.into()), false));
        assert_eq!(readings.read(reading(&[key])), [&*keys[0], &*keys[2]]);
    }

    #[test]
    fn a_key_is_below_a_whole_part_of_it() {
        let keys = [
            r#"mcp.servers."a.b".env.X"#,
            "mcp.servers.c",
            "mcp.serversx.d",
        ];
        let keys = keys.map(str::to_owned);
        for (name, expected) in [
            ("a.b", true),
            ("a", false),
            ("c", true),
            ("d", false),
            ("", false),
        ] {
            assert_eq!(
                concerns(&keys, &["mcp", "servers", name]),
                expected,
                "{name}"
            );
        }
    }
}
