//! The configuration that is in force, and how another one takes its place while the daemon runs.
//!
//! What is read once, at the start, stays as it was: [`LIVE`] names the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::RwLock;
use secrecy::ExposeSecret as _;
use serde_json::Value;

use super::show::Shown;
use super::{Config, McpServerConfig, McpTransport};
use crate::permission::Workflow;

/// The configuration that is in force; clones are the same one.
#[derive(Clone, Debug)]
pub struct Current(Arc<RwLock<Live>>);

#[derive(Debug)]
struct Live {
    config: Arc<Config>,
    /// Workflows that clients put there, which no file has.
    put: BTreeMap<String, Workflow>,
}

impl Current {
    /// Has this configuration be in force.
    pub fn new(config: impl Into<Arc<Config>>) -> Self {
        Self(Arc::new(RwLock::new(Live {
            config: config.into(),
            put: BTreeMap::new(),
        })))
    }

    /// Returns the configuration as it is now.
    pub fn now(&self) -> Arc<Config> {
        Arc::clone(&self.0.read().config)
    }

    /// Takes over what may change while the daemon runs, of these keys.
    pub fn take(&self, new: &Config, keys: &[String]) {
        let mut live = self.0.write();
        let mut config = Config::clone(&live.config);
        for (prefix, take) in LIVE {
            if keys.iter().any(|key| is_below(key, prefix)) {
                take(&mut config, new);
            }
        }
        for (name, workflow) in &live.put {
            let put = || workflow.clone();
            config.workflows.entry(name.clone()).or_insert_with(put);
        }
        live.config = Arc::new(config);
    }

    /// Changes how the web is searched.
    pub fn search_by(&self, searxng_url: Option<String>, brave_api_key: Option<String>) {
        let mut live = self.0.write();
        let mut config = Config::clone(&live.config);
        let search = &mut config.tools.web_search;
        if let Some(url) = searxng_url {
            search.searxng_url = (!url.is_empty()).then_some(url);
        }
        if let Some(key) = brave_api_key {
            search.brave_api_key = (!key.is_empty()).then(|| key.into());
        }
        live.config = Arc::new(config);
    }

    /// Adds a workflow, or takes one away that was added so. Returns false where the configuration's own would be changed,
    /// or where there are `most` already.
    pub fn put_workflow(&self, name: &str, workflow: Option<Workflow>, most: usize) -> bool {
        let mut live = self.0.write();
        let is_own = live.config.workflows.contains_key(name) && !live.put.contains_key(name);
        let is_one_too_many =
            workflow.is_some() && live.put.len() >= most && !live.put.contains_key(name);
        if is_own || is_one_too_many {
            return false;
        }
        let mut config = Config::clone(&live.config);
        match workflow {
            Some(workflow) => {
                config.workflows.insert(name.to_owned(), workflow.clone());
                live.put.insert(name.to_owned(), workflow);
            }
            None => {
                config.workflows.remove(name);
                live.put.remove(name);
            }
        }
        live.config = Arc::new(config);
        true
    }

    /// Returns whether a client put this workflow there.
    pub fn is_put(&self, name: &str) -> bool {
        self.0.read().put.contains_key(name)
    }
}

/// Takes one part of another configuration over.
type Take = fn(&mut Config, &Config);

/// What may change while the daemon runs, by the beginning of its keys. MCP servers and keys of providers are taken over
/// by who has them.
const LIVE: [(&str, Take); 13] = [
    ("approval", |now, new| {
        let remember = now.approval.remember;
        now.approval = new.approval;
        now.approval.remember = remember;
    }),
    ("chat", |now, new| {
        let (provider, ollama) = (now.chat.provider.clone(), now.chat.detect_ollama.clone());
        now.chat = new.chat.clone();
        (now.chat.provider, now.chat.detect_ollama) = (provider, ollama);
    }),
    ("compaction", |now, new| {
        now.compaction = new.compaction.clone();
    }),
    ("session", |now, new| now.session = new.session.clone()),
    ("workflows", |now, new| {
        now.workflows = new.workflows.clone();
    }),
    ("tools.web_search", |now, new| {
        let enabled = now.tools.web_search.enabled;
        now.tools.web_search = new.tools.web_search.clone();
        now.tools.web_search.enabled = enabled;
    }),
    ("tools.client", |now, new| {
        now.tools.client = new.tools.client;
    }),
    ("tools.max_concurrent", |now, new| {
        now.tools.max_concurrent = new.tools.max_concurrent;
    }),
    ("tools.on_violation", |now, new| {
        now.tools.on_violation = new.tools.on_violation;
    }),
    ("tools.timeout", |now, new| {
        now.tools.timeout = new.tools.timeout;
    }),
    ("mcp.allow_runtime_add", |now, new| {
        now.mcp.allow_runtime_add = new.mcp.allow_runtime_add;
    }),
    ("mcp.servers", |now, new| {
        now.mcp.servers = new.mcp.servers.clone();
    }),
    ("shutdown", |now, new| {
        now.shutdown_grace = new.shutdown_grace;
    }),
];

/// Keys below those that are read once all the same.
const READ_ONCE: [&str; 4] = [
    "approval.remember",
    "chat.provider",
    "chat.detect_ollama",
    "tools.web_search.enabled",
];

/// Returns whether a change of this key counts while the daemon runs.
pub fn is_live(key: &str) -> bool {
    let parts: Vec<&str> = key.split('.').collect();
    match parts.as_slice() {
        ["providers", _, "api_key" | "base_url"] => true,
        _ => LIVE.iter().any(|(prefix, _)| is_below(key, prefix)) && !READ_ONCE.contains(&key),
    }
}

fn is_below(key: &str, prefix: &str) -> bool {
    key.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the keys whose values differ between two readings of the configuration, secrets too.
pub fn changed(
    (old, old_shown): (&Config, &[Shown]),
    (new, new_shown): (&Config, &[Shown]),
) -> Vec<String> {
    let values = |shown: &[Shown]| -> BTreeMap<String, Value> {
        let each = shown.iter();
        each.map(|it| (it.key.clone(), it.value.clone())).collect()
    };
    let (before, after) = (values(old_shown), values(new_shown));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut changed: BTreeSet<String> = keys
        .into_iter()
        .filter(|key| before.get(*key) != after.get(*key))
        .cloned()
        .collect();
    let (old, new) = (secrets(old), secrets(new));
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let other = keys
        .into_iter()
        .filter(|key| old.get(*key) != new.get(*key));
    changed.extend(other.cloned());
    changed.into_iter().collect()
}

/// Returns what is masked where it is shown, by its key.
fn secrets(config: &Config) -> BTreeMap<String, String> {
    let mut secrets = BTreeMap::new();
    for provider in &config.providers {
        let id = &provider.id;
        if let Some(key) = &provider.api_key {
            let key = key.expose_secret().to_owned();
            secrets.insert(format!("providers.{id}.api_key"), key);
        }
        for (name, value) in &provider.headers {
            let value = value.expose_secret().to_owned();
            secrets.insert(format!("providers.{id}.headers.{name}"), value);
        }
    }
    for (name, server) in &config.mcp.servers {
        for (variable, value) in entrusted(server) {
            secrets.insert(format!("mcp.servers.{name}.{variable}"), value);
        }
    }
    let server = &config.server;
    for (key, secret) in [
        (
            "tools.web_search.brave_api_key",
            &config.tools.web_search.brave_api_key,
        ),
        ("server.approver_token", &server.approver_token),
        ("server.observer_token", &server.observer_token),
    ] {
        if let Some(secret) = secret {
            secrets.insert(key.to_owned(), secret.expose_secret().to_owned());
        }
    }
    if let Some(secret) = config.webhooks.as_ref().and_then(|it| it.secret.as_ref()) {
        let secret = secret.expose_secret().to_owned();
        secrets.insert("webhooks.secret".to_owned(), secret);
    }
    secrets
}

fn entrusted(server: &McpServerConfig) -> Vec<(String, String)> {
    let (part, values) = match &server.transport {
        McpTransport::Stdio(server) => ("env", &server.env),
        McpTransport::Http(server) => ("headers", &server.headers),
    };
    let each = values.iter();
    each.map(|(name, value)| (format!("{part}.{name}"), value.expose_secret().to_owned()))
        .collect()
}

/// Returns the names below a prefix of which some key is among these.
pub fn names_below(keys: &[String], prefix: &str) -> BTreeSet<String> {
    let below = keys.iter().filter_map(|key| key.strip_prefix(prefix));
    let rest = below.filter_map(|rest| rest.strip_prefix('.'));
    rest.filter_map(|rest| rest.split('.').next())
        .map(|name| name.trim_matches('"').to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Sources, load};

    fn loaded(pairs: &[(&str, &str)]) -> (Config, Vec<Shown>) {
        let folder = tempfile::tempdir().unwrap();
        let sources = Sources {
            working_directory: folder.path().to_owned(),
            home: Some("/nonexistent/home".into()),
            environment: pairs.iter().copied().collect::<Environment>(),
            ..Sources::default()
        };
        let loaded = load(&sources).unwrap();
        let is_fixed = |it: &Shown| !it.key.starts_with("project.");
        let shown = loaded.origins.into_iter().filter(is_fixed).collect();
        (loaded.config, shown)
    }

    #[test]
    fn changes_are_named_secrets_too_and_what_may_change_does() {
        let old = loaded(&[
            ("OUTRIGGER_CHAT__MAX_TURNS", "10"),
            ("BRAVE_API_KEY", "one-secret"),
        ]);
        let new = loaded(&[
            ("OUTRIGGER_CHAT__MAX_TURNS", "20"),
            ("OUTRIGGER_SERVER__PORT", "1"),
            ("OUTRIGGER_APPROVAL__REMEMBER", "once"),
            ("BRAVE_API_KEY", "other-secret"),
        ]);
        let keys = changed((&old.0, &old.1), (&new.0, &new.1));
        assert_eq!(
            keys,
            [
                "approval.remember",
                "chat.max_turns",
                "server.port",
                "tools.web_search.brave_api_key"
            ]
        );
        let live: Vec<bool> = keys.iter().map(|key| is_live(key)).collect();
        assert_eq!(live, [false, true, false, true]);
        let current = Current::new(old.0);
        current.take(&new.0, &keys);
        let now = current.now();
        assert_eq!(now.chat.max_turns, 20);
        assert_ne!(now.server.port, 1);
        assert_ne!(now.approval.remember, new.0.approval.remember);
        let key = now.tools.web_search.brave_api_key.as_ref();
        assert_eq!(key.unwrap().expose_secret(), "other-secret");
    }

    #[test]
    fn a_workflow_that_was_put_outlives_a_reload_and_never_hides_the_operators_own() {
        let (config, _) = loaded(&[("OUTRIGGER_WORKFLOWS__OWN__MODEL", "m")]);
        let current = Current::new(config.clone());
        let workflow = Some(Workflow::default());
        assert!(!current.put_workflow("own", workflow.clone(), 2));
        assert!(!current.put_workflow("own", None, 2));
        assert!(current.put_workflow("a", workflow.clone(), 2));
        assert!(current.put_workflow("b", workflow.clone(), 2));
        assert!(!current.put_workflow("c", workflow.clone(), 2));
        assert!(current.put_workflow("b", None, 2));
        current.take(&config, &["workflows.own.model".to_owned()]);
        let now = current.now();
        let names: Vec<_> = now.workflows.keys().cloned().collect();
        assert_eq!(names, ["a", "own"]);
        assert!(current.is_put("a") && !current.is_put("own"));
    }

    #[test]
    fn a_key_is_below_a_whole_part_of_it() {
        for (key, live) in [
            ("chat.max_turns", true),
            ("chatter.x", false),
            ("tools.timeout", true),
            ("tools.bash.timeout", false),
            ("providers.a.api_key", true),
            ("providers.a.model", false),
            ("mcp.servers.a.command", true),
            ("server.port", false),
        ] {
            assert_eq!(is_live(key), live, "{key}");
        }
        let keys = [
            "mcp.servers.a.env.X",
            "mcp.servers.b.command",
            "mcp.serversx",
        ];
        let names = names_below(&keys.map(str::to_owned), "mcp.servers");
        assert_eq!(Vec::from_iter(names), ["a", "b"]);
    }
}
