//! What is known of each vendor's endpoint before anybody configures it.
//!
//! Pure data, of `config/presets.toml` as `build.rs` read it: nothing here reads the environment or connects.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

use super::{ProviderConfig, ProviderKind, RateLimits};
use crate::message::{Pricing, Rates};

/// Longest wait for headers and longest silence with a vendor in the cloud.
const HOSTED: Duration = Duration::from_secs(120);
/// The same with a server on the user's machine: it loads the model and reads the whole prompt
/// before its first byte, and sends no pings meanwhile (`docs/providers.md`, "Silence and timeouts").
pub(super) const LOCAL: Duration = Duration::from_secs(600);

/// The defaults of one vendor's endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// The word for it in `kind = "…"`, and the usual name of an instance.
    pub name: &'static str,
    /// Which wire format it speaks.
    pub kind: ProviderKind,
    /// Base URL without a trailing slash; the wire's own path comes after it.
    pub base_url: &'static str,
    /// The environment variable that holds its key.
    pub key_variable: &'static str,
    /// Whether it works without a key: a server on the user's machine.
    #[serde(default)]
    pub key_optional: bool,
    /// Whether its models cost nothing, where it is on the user's machine.
    #[serde(default)]
    pub free: bool,
    /// The default model; empty to take the first that the endpoint lists.
    #[serde(default)]
    pub model: &'static str,
}

impl Preset {
    /// Returns the longest wait for the response headers, and the longest silence within a response.
    pub fn timeout(&self) -> Duration {
        match self.key_optional {
            true => LOCAL,
            false => HOSTED,
        }
    }
}

/// The preset of the instance that needs no network and is always there.
pub const SCRIPTED: Preset = Preset {
    name: "scripted",
    kind: ProviderKind::Scripted,
    base_url: "",
    key_variable: "",
    key_optional: true,
    free: true,
    model: "",
};

impl From<&Preset> for ProviderConfig {
    /// Returns the instance that the preset stands for where the configuration says nothing of it.
    fn from(preset: &Preset) -> Self {
        Self {
            id: preset.name.to_owned(),
            kind: preset.kind,
            preset: preset.name.to_owned(),
            base_url: preset.base_url.to_owned(),
            api_key: None,
            key_optional: preset.key_optional,
            model: preset.model.to_owned(),
            headers: BTreeMap::new(),
            timeout_first_byte: preset.timeout(),
            timeout_idle: preset.timeout(),
            max_retries: 4,
            restart_after_partial: 1,
            num_ctx: None,
            script: None,
            ca_file: None,
            pricing: preset.free.then(|| Pricing {
                rates: Rates::default(),
                long: None,
            }),
            rates: RateLimits::default(),
            record: None,
        }
    }
}

#[expect(clippy::expect_used, reason = "compiled in, and read in tests")]
static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let table = serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/presets.json")));
    let table: BTreeMap<String, Vec<Preset>> = table.expect("a table that is read in tests");
    table.into_values().flatten().collect()
});

/// Returns the preset of that name, e.g. `deepseek`.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Returns all presets, the one to prefer first.
pub fn all() -> &'static [Preset] {
    &PRESETS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_name_finds_its_own_preset() {
        for expected in all() {
            assert_eq!(preset(expected.name), Some(expected));
        }
        assert_eq!(preset("Deepseek"), None);
        assert_eq!(preset(""), None);
    }

    #[test]
    fn names_and_key_variables_are_unique() {
        let names: BTreeSet<_> = all().iter().map(|preset| preset.name).collect();
        let variables: BTreeSet<_> = all().iter().map(|preset| preset.key_variable).collect();
        assert_eq!(names.len(), all().len());
        assert_eq!(variables.len(), all().len());
    }

    #[test]
    fn only_servers_on_the_users_machine_go_without_key_and_tls() {
        for preset in all() {
            let loopback = preset.base_url.starts_with("http://127.0.0.1:");
            assert!(loopback || preset.base_url.starts_with("https://"));
            assert_eq!(preset.key_optional, loopback, "{}", preset.name);
            assert_eq!(preset.model.is_empty(), loopback, "{}", preset.name);
            assert_eq!(preset.timeout() == LOCAL, loopback, "{}", preset.name);
            assert!(!preset.base_url.ends_with('/'), "{}", preset.name);
        }
    }
}
