//! The configuration that is in force, and what of another one can take its place while the daemon runs.
//!
//! What is read once, at the start, stays as it was: [`LIVE`] names the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::origin::MASK;
use super::reading::is_below;
use super::typed::written;
use super::{Config, WebSearchConfig};
use crate::permission::Workflow;

/// The configuration that is in force; clones are the same one.
#[derive(Clone, Debug)]
pub struct Current(Arc<RwLock<Live>>);

#[derive(Debug)]
struct Live {
    config: Arc<Config>,
    /// Workflows that clients put there, which no file has.
    put: BTreeMap<String, Workflow>,
    /// What clients set of how the web is searched.
    search: SearchSet,
}

/// What clients set of how the web is searched, which counts until the daemon ends; `None` where none did. An empty text
/// stands for no such service.
#[derive(Debug, Default)]
struct SearchSet {
    searxng_url: Option<String>,
    brave_api_key: Option<SecretString>,
}

impl SearchSet {
    /// Has it count in the place of what the configuration says.
    fn lay_over(&self, search: &mut WebSearchConfig) {
        if let Some(url) = &self.searxng_url {
            search.searxng_url = Some(url.clone()).filter(|url| !url.is_empty());
        }
        if let Some(key) = &self.brave_api_key {
            let is_key = |key: &SecretString| !key.expose_secret().is_empty();
            search.brave_api_key = Some(key.clone()).filter(is_key);
        }
    }
}

impl Current {
    /// Has this configuration be in force.
    pub fn new(config: impl Into<Arc<Config>>) -> Self {
        Self(Arc::new(RwLock::new(Live {
            config: config.into(),
            put: BTreeMap::new(),
            search: SearchSet::default(),
        })))
    }

    /// Returns the configuration as it is now.
    pub fn now(&self) -> Arc<Config> {
        Arc::clone(&self.0.read().config)
    }

    /// Puts in force what may change while the daemon runs, where one of these keys is concerned. What clients set stays,
    /// but a workflow that has the name of one of the operator's.
    pub fn apply(&self, new: &Config, keys: &[String]) {
        let mut live = self.0.write();
        let mut config = Config::clone(&live.config);
        for (prefix, copy) in LIVE {
            // Workflows always: one of which nothing is set has no key.
            if prefix == WORKFLOWS || keys.iter().any(|key| is_below(key, prefix)) {
                copy(&mut config, new);
            }
        }
        for (_, copy) in READ_ONCE {
            copy(&mut config, &live.config);
        }
        live.put.retain(|name, _| !new.workflows.contains_key(name));
        for (name, workflow) in &live.put {
            config.workflows.insert(name.clone(), workflow.clone());
        }
        live.search.lay_over(&mut config.tools.web_search);
        live.config = Arc::new(config);
    }

    /// Changes how the web is searched, until the daemon ends.
    pub fn search_by(&self, searxng_url: Option<String>, brave_api_key: Option<String>) {
        let mut live = self.0.write();
        let mut config = Config::clone(&live.config);
        let search = &mut live.search;
        search.searxng_url = searxng_url.or(search.searxng_url.take());
        let key = brave_api_key.map(SecretString::from);
        search.brave_api_key = key.or(search.brave_api_key.take());
        live.search.lay_over(&mut config.tools.web_search);
        live.config = Arc::new(config);
    }

    /// Returns the value of a key that a client set, secrets masked; `None` where none did.
    pub fn set_by_client(&self, key: &str) -> Option<Value> {
        let live = self.0.read();
        let text = match key.strip_prefix("tools.web_search.")? {
            "searxng_url" => live.search.searxng_url.clone()?,
            "brave_api_key" => match live.search.brave_api_key.as_ref()?.expose_secret() {
                "" => String::new(),
                _ => MASK.to_owned(),
            },
            _ => return None,
        };
        Some(text.into())
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

/// Copies a section of another configuration.
type CopySection = fn(&mut Config, &Config);

const WORKFLOWS: &str = "workflows";

/// What may change while the daemon runs, by the beginning of its keys. Where one key below a beginning is other than
/// before, the **whole** section is copied, and what is read once or was set by clients is put back after that. MCP servers,
/// and keys and addresses of providers, are changed by who has them.
const LIVE: [(&str, CopySection); 13] = [
    ("approval", |now, new| now.approval = new.approval),
    ("chat", |now, new| now.chat = new.chat.clone()),
    ("compaction", |now, new| {
        now.compaction = new.compaction.clone();
    }),
    ("session", |now, new| now.session = new.session.clone()),
    (WORKFLOWS, |now, new| {
        now.workflows = new.workflows.clone();
    }),
    ("tools.web_search", |now, new| {
        now.tools.web_search = new.tools.web_search.clone();
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
const READ_ONCE: [(&str, CopySection); 6] = [
    ("approval.remember", |now, old| {
        now.approval.remember = old.approval.remember;
    }),
    ("chat.provider", |now, old| {
        now.chat.provider.clone_from(&old.chat.provider);
    }),
    ("chat.detect_ollama", |now, old| {
        now.chat.detect_ollama.clone_from(&old.chat.detect_ollama);
    }),
    ("tools.client.enabled", |now, old| {
        now.tools.client.enabled = old.tools.client.enabled;
    }),
    ("tools.web_search.cache_ttl", |now, old| {
        now.tools.web_search.cache_ttl = old.tools.web_search.cache_ttl;
    }),
    ("tools.web_search.enabled", |now, old| {
        now.tools.web_search.enabled = old.tools.web_search.enabled;
    }),
];

/// Returns whether a change of this key, from what is in force to another configuration, counts while the daemon runs. Of
/// providers only those are changed that there are: where one is gone, its key is.
pub fn is_live(key: &str, now: &Config, new: &Config) -> bool {
    let is_of = |config: &Config, part: &str| {
        let mut providers = config.providers.iter();
        providers.any(|it| written(&["providers", &it.id, part]) == key)
    };
    if is_of(now, "api_key") || (is_of(now, "base_url") && is_of(new, "base_url")) {
        return true;
    }
    let is_read_once = READ_ONCE.iter().any(|(name, _)| *name == key);
    LIVE.iter().any(|(prefix, _)| is_below(key, prefix)) && !is_read_once
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::loaded;

    #[test]
    fn what_may_change_does_and_the_rest_stays() {
        let (old, _) = loaded(&[("BRAVE_API_KEY", "one-secret")]);
        let (new, _) = loaded(&[
            ("OUTRIGGER_CHAT__MAX_TURNS", "20"),
            ("OUTRIGGER_SERVER__PORT", "1"),
            ("OUTRIGGER_APPROVAL__REMEMBER", "once"),
            ("OUTRIGGER_TOOLS__CLIENT__ENABLED", "false"),
            ("OUTRIGGER_TOOLS__WEB_SEARCH__CACHE_TTL", "1s"),
            ("BRAVE_API_KEY", "other-secret"),
        ]);
        let current = Current::new(old.clone());
        let keys = [
            "approval.remember",
            "chat.max_turns",
            "server.port",
            "tools.client.enabled",
            "tools.web_search.brave_api_key",
            "tools.web_search.cache_ttl",
        ];
        let live = keys.map(|key| is_live(key, &old, &new));
        assert_eq!(live, [false, true, false, false, true, false]);
        current.apply(&new, &keys.map(str::to_owned));
        let now = current.now();
        assert_eq!(now.chat.max_turns, 20);
        assert_eq!(now.server.port, old.server.port);
        assert_eq!(now.approval.remember, old.approval.remember);
        assert!(now.tools.client.enabled);
        let search = &now.tools.web_search;
        assert_eq!(search.cache_ttl, old.tools.web_search.cache_ttl);
        let key = search.brave_api_key.as_ref();
        assert_eq!(key.unwrap().expose_secret(), "other-secret");
    }

    #[test]
    fn what_a_client_set_of_the_search_outlives_a_reload() {
        let (config, _) = loaded(&[("BRAVE_API_KEY", "the-operators")]);
        let (new, _) = loaded(&[
            ("BRAVE_API_KEY", "the-operators"),
            ("OUTRIGGER_TOOLS__WEB_SEARCH__LIMIT", "3"),
            ("OUTRIGGER_TOOLS__WEB_SEARCH__SEARXNG_URL", "http://b"),
        ]);
        let current = Current::new(config);
        let keys = ["limit", "searxng_url"].map(|key| format!("tools.web_search.{key}"));
        assert_eq!(current.set_by_client(&keys[1]), None);
        current.search_by(Some("http://a".to_owned()), Some(String::new()));
        current.apply(&new, &keys);
        let now = current.now();
        let search = &now.tools.web_search;
        assert_eq!(search.limit, 3);
        assert_eq!(search.searxng_url.as_deref(), Some("http://a"));
        assert!(search.brave_api_key.is_none());
        assert_eq!(current.set_by_client(&keys[1]), Some("http://a".into()));
        let brave = current.set_by_client("tools.web_search.brave_api_key");
        assert_eq!(brave, Some("".into()));
    }

    #[test]
    fn a_workflow_that_was_put_outlives_a_reload_and_never_hides_the_operators_own() {
        let own = ("OUTRIGGER_WORKFLOWS__OWN__MODEL", "m");
        let (config, _) = loaded(&[own]);
        let current = Current::new(config.clone());
        let workflow = Some(Workflow::default());
        assert!(!current.put_workflow("own", workflow.clone(), 2));
        assert!(!current.put_workflow("own", None, 2));
        assert!(current.put_workflow("a", workflow.clone(), 2));
        assert!(current.put_workflow("b", workflow.clone(), 2));
        assert!(!current.put_workflow("c", workflow.clone(), 2));
        assert!(current.put_workflow("b", None, 2));
        current.apply(&config, &["workflows.own.model".to_owned()]);
        let now = current.now();
        let names: Vec<_> = now.workflows.keys().cloned().collect();
        assert_eq!(names, ["a", "own"]);
        assert!(current.is_put("a") && !current.is_put("own"));
        // From when the operator has one of that name, it is the operator's.
        let (config, _) = loaded(&[own, ("OUTRIGGER_WORKFLOWS__A__MODEL", "m")]);
        current.apply(&config, &["workflows.a.model".to_owned()]);
        assert_eq!(current.now().workflows["a"].model.as_deref(), Some("m"));
        assert!(!current.is_put("a"));
        assert!(!current.put_workflow("a", workflow, 2));
        assert!(!current.put_workflow("a", None, 2));
    }

    #[test]
    fn what_may_change_is_known_by_the_whole_parts_of_its_key() {
        let one = ("OUTRIGGER_PROVIDERS__ONE__KIND", "openai");
        let two = ("OUTRIGGER_PROVIDERS__TWO__KIND", "openai");
        let (now, _) = loaded(&[one, two]);
        let three = ("OUTRIGGER_PROVIDERS__THREE__KIND", "openai");
        let (new, _) = loaded(&[one, three]);
        for (key, live) in [
            ("chat.max_turns", true),
            ("chatter.x", false),
            ("tools.timeout", true),
            ("tools.bash.timeout", false),
            ("providers.one.api_key", true),
            ("providers.one.base_url", true),
            ("providers.one.model", false),
            ("providers.two.api_key", true),
            ("providers.two.base_url", false),
            ("providers.three.api_key", false),
            ("providers.three.base_url", false),
            ("mcp.servers.a.command", true),
            ("server.port", false),
        ] {
            assert_eq!(is_live(key, &now, &new), live, "{key}");
        }
    }
}
