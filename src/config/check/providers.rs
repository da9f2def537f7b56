//! Provider instances: those of the configuration, those that the environment has keys for, and
//! the scripted one, which is always there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::ExposeSecret;
use serde_json::Value;

use super::super::error::one_of;
use super::super::keys;
use super::super::origin::Origin;
use super::super::presets::{self, LOCAL, Preset, SCRIPTED};
use super::super::sections::Secret;
use super::super::settings::{PricingSettings, ProviderSettings};
use super::super::{ProviderConfig, ProviderKind, RateLimits};
use super::endpoint::{base_url, host, is_local, is_nearby, wire};
use super::findings::Findings;
use crate::message::{Money, Pricing, Rates};
use crate::units::{Number, format_duration};

/// Longest name of an instance, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Checks all instances.
///
/// The order is that of the file, then names that only the environment has, then presets whose
/// key is in the environment, then `scripted`: the first one that is configured is the default.
pub(super) fn check(
    mut settings: BTreeMap<String, ProviderSettings>,
    findings: &mut Findings<'_>,
) -> Vec<ProviderConfig> {
    let mut instances = Vec::new();
    for name in findings.merged.names(&["providers"]) {
        if let Some(settings) = settings.remove(&name) {
            instances.extend(instance(&name, settings, findings));
        }
    }
    for preset in presets::all() {
        if is_in_environment(preset, findings) {
            let new = !instances.iter().any(|known| is_same(known, preset));
            instances.extend(new.then(|| unnamed(preset.name, findings)).flatten());
        }
    }
    if !instances.iter().any(|known| known.id == SCRIPTED.name) {
        instances.extend(unnamed(SCRIPTED.name, findings));
    }
    instances
}

/// Finds an instance by the name that `path` holds; a preset is one even without a key, which may
/// come at run time.
pub(super) fn referred(
    path: &[&str],
    name: &str,
    instances: &mut Vec<ProviderConfig>,
    findings: &mut Findings<'_>,
) {
    if instances.iter().any(|instance| instance.id == name) {
        return;
    }
    if presets::preset(name).is_some() {
        instances.extend(unnamed(name, findings));
        return;
    }
    let names: Vec<&str> = instances.iter().map(|known| known.id.as_str()).collect();
    let message = format!("there is no such provider; {}", one_of(name, names));
    findings.refuse(path, message);
}

fn is_usable(known: &ProviderConfig) -> bool {
    known.api_key.is_some() || known.key_optional
}

/// Whether the scripted instance answers only because nothing is configured that could.
pub(super) fn is_fallback(instances: &[ProviderConfig], findings: &Findings<'_>) -> bool {
    let is_set = findings.merged.get(&["providers", SCRIPTED.name]).is_some();
    let mut others = instances.iter().filter(|known| known.id != SCRIPTED.name);
    !is_set && !others.any(is_usable)
}

/// Returns the default instance's name.
pub(super) fn default(instances: &[ProviderConfig], findings: &mut Findings<'_>) -> String {
    let first = instances.iter().find(|known| is_usable(known));
    let name = first.map_or(SCRIPTED.name, |first| first.id.as_str());
    let origin = Origin::Derived("the first provider that is configured");
    findings.derive(&["chat", "provider"], name, origin);
    name.to_owned()
}

fn is_in_environment(preset: &Preset, findings: &Findings<'_>) -> bool {
    let environment = &findings.sources.environment;
    let file = format!("{}_FILE", preset.key_variable);
    environment.get(preset.key_variable).is_some()
        || environment.get(&file).is_some()
        || (preset.kind == ProviderKind::Ollama && keys::base_url(environment, preset).is_some())
}

/// Whether an instance is what the preset would be.
fn is_same(known: &ProviderConfig, preset: &Preset) -> bool {
    known.id == preset.name || (known.preset == preset.name && known.base_url == preset.base_url)
}

fn unnamed(name: &str, findings: &mut Findings<'_>) -> Option<ProviderConfig> {
    instance(name, ProviderSettings::default(), findings)
}

fn instance(
    name: &str,
    settings: ProviderSettings,
    findings: &mut Findings<'_>,
) -> Option<ProviderConfig> {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(word) {
        let message = format!("a name has 1 to {MAX_NAME_BYTES} letters, digits, _ and -");
        findings.refuse(&["providers", name], message);
    }
    let kind = settings.kind.clone().unwrap_or_else(|| name.to_owned());
    if kind == SCRIPTED.name {
        return Some(scripted(name, &settings, findings));
    }
    let Some(preset) = preset_of(name, &kind, settings.base_url.as_deref()) else {
        refuse_kind(name, &settings, &kind, findings);
        return None;
    };
    let path = |key| ["providers", name, key];
    if settings.script.is_some() {
        findings.refuse(&path("script"), "only kind \"scripted\" has a script");
    }
    if settings.num_ctx.is_some() && preset.kind != ProviderKind::Ollama {
        findings.refuse(&path("num_ctx"), "only kind \"ollama\" has a num_ctx");
    }
    remote(name, preset, settings, findings)
}

fn refuse_kind(name: &str, settings: &ProviderSettings, kind: &str, findings: &mut Findings<'_>) {
    let kinds: Vec<&str> = presets::all()
        .iter()
        .map(|preset| preset.name)
        .chain([SCRIPTED.name])
        .collect();
    if settings.kind.is_some() {
        findings.refuse(&["providers", name, "kind"], one_of(kind, kinds));
        return;
    }
    let message = format!("`kind` is missing; {}", one_of(kind, kinds));
    findings.refuse(&["providers", name], message);
}

/// Finds the preset that is meant.
///
/// Kind `openai` stands for every compatible server too, so the host, or the instance's own
/// name, tells the vendor.
fn preset_of(name: &str, kind: &str, base_url: Option<&str>) -> Option<&'static Preset> {
    let compatible = |preset: &&Preset| preset.kind == ProviderKind::Chat;
    if kind == "openai" {
        let given = base_url.and_then(host);
        let by_host = presets::all()
            .iter()
            .filter(compatible)
            .find(|preset| !preset.key_optional && host(preset.base_url) == given);
        let by_name = presets::preset(name).filter(compatible);
        if let Some(preset) = by_host.or(by_name) {
            return Some(preset);
        }
    }
    presets::preset(kind)
}

fn remote(
    name: &str,
    preset: &'static Preset,
    settings: ProviderSettings,
    findings: &mut Findings<'_>,
) -> Option<ProviderConfig> {
    let path = |key| ["providers", name, key];
    let base_url = base_url(name, preset, settings.base_url.as_deref(), findings)?;
    let at_vendor = host(&base_url) == host(preset.base_url);
    let set = settings.api_key.clone().map(|Secret(key)| key);
    let set = set.filter(|key| !key.expose_secret().is_empty());
    let api_key = findings.key(&path("api_key"), set, preset.key_variable);
    if api_key.is_some() && base_url.starts_with("http://") && !is_nearby(&base_url) {
        let warning = format!("provider {name:?} sends its key unencrypted to {base_url}");
        findings.warnings.push(warning);
    }
    let timeout = match is_local(&base_url) {
        true => LOCAL,
        false => preset.timeout(),
    };
    let limited = with_limits(name, preset, &settings, timeout, findings);
    Some(ProviderConfig {
        kind: wire(name, preset, settings.wire, &base_url, findings),
        api_key,
        key_optional: preset.key_optional || !at_vendor,
        model: model(name, preset, settings.model, at_vendor, findings),
        headers: super::mcp::headers(&path("headers"), settings.headers, findings),
        num_ctx: settings.num_ctx.map(Number::get),
        ca_file: ca_file(name, settings.ca_file.as_deref(), findings),
        // A server elsewhere under the same name may want money.
        pricing: limited
            .pricing
            .filter(|_| settings.pricing.is_some() || is_local(&base_url)),
        record: findings.sources.record.clone(),
        base_url,
        ..limited
    })
}

/// The default model of a preset is one of the vendor's own; a server elsewhere that speaks the
/// OpenAI API has models of its own.
fn model(
    name: &str,
    preset: &Preset,
    set: Option<String>,
    at_vendor: bool,
    findings: &mut Findings<'_>,
) -> String {
    if let Some(model) = set.filter(|model| !model.trim().is_empty()) {
        return model.trim().to_owned();
    }
    if !at_vendor && preset.kind != ProviderKind::Anthropic {
        return String::new();
    }
    if !preset.model.is_empty() {
        let origin = Origin::Derived("of the preset");
        findings.derive(&["providers", name, "model"], preset.model, origin);
    }
    preset.model.to_owned()
}

/// Returns the instance of a preset with what limits its answers.
fn with_limits(
    name: &str,
    preset: &Preset,
    settings: &ProviderSettings,
    timeout: Duration,
    findings: &mut Findings<'_>,
) -> ProviderConfig {
    let plain = ProviderConfig::from(preset);
    let (first_byte, idle) = (settings.timeout_first_byte, settings.timeout_idle);
    let (retries, restarts) = (settings.max_retries, settings.restart_after_partial);
    let wait = Value::from(format_duration(timeout));
    let defaults = [
        ("timeout_first_byte", first_byte.is_none(), wait.clone()),
        ("timeout_idle", idle.is_none(), wait),
        ("max_retries", retries.is_none(), plain.max_retries.into()),
        (
            "restart_after_partial",
            restarts.is_none(),
            plain.restart_after_partial.into(),
        ),
    ];
    for (key, _, default) in defaults.into_iter().filter(|(_, is_meant, _)| *is_meant) {
        findings.derive(&["providers", name, key], default, Origin::Default);
    }
    let rates = RateLimits {
        parallel: settings.max_parallel.map(Number::get),
        requests_per_minute: settings.max_requests_per_minute.map(Number::get),
        tokens_per_minute: settings.max_tokens_per_minute.map(Number::get),
    };
    ProviderConfig {
        id: name.to_owned(),
        pricing: settings.pricing.map(pricing).or(plain.pricing),
        rates,
        timeout_first_byte: first_byte.map_or(timeout, |span| span.0),
        timeout_idle: idle.map_or(timeout, |span| span.0),
        max_retries: retries.map_or(plain.max_retries, Number::get),
        restart_after_partial: restarts.map_or(plain.restart_after_partial, Number::get),
        ..plain
    }
}

/// Returns what the operator says that models cost; what is not said costs nothing, or as much as input.
fn pricing(settings: PricingSettings) -> Pricing {
    let price = |money: Money| money.dollars();
    Pricing {
        rates: Rates {
            input: settings.input.map_or(0.0, price),
            output: settings.output.map_or(0.0, price),
            cache_read: settings.cache_read.map(price),
            cache_write: settings.cache_write.map(price),
            cache_write_1h: None,
        },
        long: None,
    }
}

fn ca_file(name: &str, set: Option<&str>, findings: &mut Findings<'_>) -> Option<PathBuf> {
    let path = findings.absolute(set.filter(|text| !text.trim().is_empty())?);
    if !path.is_file() {
        findings.refuse(&["providers", name, "ca_file"], "there is no such file");
    }
    Some(path)
}

fn scripted(
    name: &str,
    settings: &ProviderSettings,
    findings: &mut Findings<'_>,
) -> ProviderConfig {
    let foreign = [
        ("base_url", settings.base_url.is_some()),
        ("api_key", settings.api_key.is_some()),
        ("wire", settings.wire.is_some()),
        ("headers", !settings.headers.is_empty()),
        ("num_ctx", settings.num_ctx.is_some()),
        ("ca_file", settings.ca_file.is_some()),
    ];
    for (key, _) in foreign.iter().filter(|(_, is_set)| *is_set) {
        let message = "kind \"scripted\" reaches no server and has no such key";
        findings.refuse(&["providers", name, *key], message);
    }
    let script = settings
        .script
        .as_deref()
        .filter(|text| !text.trim().is_empty());
    let script = script.map(|text| findings.absolute(text));
    if script.as_ref().is_some_and(|path| !path.exists()) {
        let message = "there is no such file or directory";
        findings.refuse(&["providers", name, "script"], message);
    }
    ProviderConfig {
        script,
        model: settings.model.clone().unwrap_or_default(),
        ..with_limits(name, &SCRIPTED, settings, SCRIPTED.timeout(), findings)
    }
}
