//! Provider instances: those of the configuration, those that the environment has keys for, and
//! the scripted one, which is always there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use super::super::error::{nearest, one_of};
use super::super::keys::{self, Found, SECRET_FORM};
use super::super::origin::{MASK, Origin};
use super::super::presets::{self, Preset};
use super::super::settings::{ProviderSettings, Secret};
use super::super::{ProviderConfig, ProviderKind};
use super::endpoint::{base_url, host, is_local, is_nearby, wire};
use super::findings::Findings;
use crate::units::{Number, Span, format_duration};

/// The name and kind of the instance that needs no network.
const SCRIPTED: &str = "scripted";
/// Longest wait for headers, and longest silence, where nothing is set and the server is on this machine: it loads its
/// model first.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(600);
/// Longest name of an instance, in bytes.
const MAX_NAME_BYTES: usize = 64;

const MAX_RETRIES: u32 = 4;
const RESTART_AFTER_PARTIAL: u32 = 1;

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
    if !instances.iter().any(|known| known.id == SCRIPTED) {
        instances.extend(unnamed(SCRIPTED, findings));
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
    let is_set = findings.merged.get(&["providers", SCRIPTED]).is_some();
    let mut others = instances.iter().filter(|known| known.id != SCRIPTED);
    !is_set && !others.any(is_usable)
}

/// Returns the default instance's name.
pub(super) fn default(instances: &[ProviderConfig], findings: &mut Findings<'_>) -> String {
    let first = instances.iter().find(|known| is_usable(known));
    let name = first.map_or(SCRIPTED, |first| first.id.as_str());
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
    if kind == SCRIPTED {
        return Some(scripted(name, &settings, findings));
    }
    let Some(preset) = preset_of(name, &kind, settings.base_url.as_deref()) else {
        refuse_kind(name, &settings, &kind, findings);
        return None;
    };
    if settings.script.is_some() {
        findings.refuse(
            &["providers", name, "script"],
            "only kind \"scripted\" has a script",
        );
    }
    if settings.num_ctx.is_some() && preset.kind != ProviderKind::Ollama {
        findings.refuse(
            &["providers", name, "num_ctx"],
            "only kind \"ollama\" has a num_ctx",
        );
    }
    remote(name, preset, settings, findings)
}

fn refuse_kind(name: &str, settings: &ProviderSettings, kind: &str, findings: &mut Findings<'_>) {
    let kinds: Vec<&str> = presets::all()
        .iter()
        .map(|preset| preset.name)
        .chain([SCRIPTED])
        .collect();
    if settings.kind.is_some() {
        findings.refuse(&["providers", name, "kind"], one_of(kind, kinds));
        return;
    }
    let near = match nearest(kind, kinds.iter().copied()) {
        Some(near) => format!("; did you mean {near:?}?"),
        None => String::new(),
    };
    let message = format!("`kind` is missing; allowed: {}{near}", kinds.join(", "));
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
    let base_url = base_url(name, preset, settings.base_url.as_deref(), findings)?;
    let at_vendor = host(&base_url) == host(preset.base_url);
    let api_key = api_key(name, preset, settings.api_key.as_ref(), findings);
    if api_key.is_some() && base_url.starts_with("http://") && !is_nearby(&base_url) {
        let warning = format!("provider {name:?} sends its key unencrypted to {base_url}");
        findings.warnings.push(warning);
    }
    let default_timeout = |preset: Duration| match is_local(&base_url) {
        true => LOCAL_TIMEOUT,
        false => preset,
    };
    let first_byte = default_timeout(preset.timeout_first_byte);
    let idle = default_timeout(preset.timeout_idle);
    Some(ProviderConfig {
        id: name.to_owned(),
        kind: wire(name, preset, settings.wire, &base_url, findings),
        preset: preset.name.to_owned(),
        api_key,
        key_optional: preset.key_optional || !at_vendor,
        model: model(name, preset, settings.model, at_vendor, findings),
        headers: super::mcp::headers(&["providers", name, "headers"], settings.headers, findings),
        timeout_first_byte: timeout(
            &["providers", name, "timeout_first_byte"],
            settings.timeout_first_byte,
            first_byte,
            findings,
        ),
        timeout_idle: timeout(
            &["providers", name, "timeout_idle"],
            settings.timeout_idle,
            idle,
            findings,
        ),
        max_retries: retries(
            &["providers", name, "max_retries"],
            settings.max_retries,
            MAX_RETRIES,
            findings,
        ),
        restart_after_partial: retries(
            &["providers", name, "restart_after_partial"],
            settings.restart_after_partial,
            RESTART_AFTER_PARTIAL,
            findings,
        ),
        num_ctx: settings.num_ctx.map(Number::get),
        script: None,
        ca_file: ca_file(name, settings.ca_file.as_deref(), findings),
        record: findings.sources.record.clone(),
        base_url,
    })
}

fn api_key(
    name: &str,
    preset: &Preset,
    set: Option<&Secret>,
    findings: &mut Findings<'_>,
) -> Option<SecretString> {
    let path = ["providers", name, "api_key"];
    let text = set.map(|secret| secret.0.expose_secret().trim());
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        if !keys::is_secret_text(text) {
            findings.refuse(&path, SECRET_FORM);
        }
        return Some(SecretString::from(text));
    }
    match keys::secret(&findings.sources.environment, preset.key_variable) {
        Ok(Some(Found { secret, origin })) => {
            findings.derive(&path, MASK, origin);
            Some(secret)
        }
        Ok(None) => None,
        Err(error) => {
            findings.error(error);
            None
        }
    }
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

fn timeout<const MOST: u64>(
    path: &[&str],
    set: Option<Span<1, MOST>>,
    default: Duration,
    findings: &mut Findings<'_>,
) -> Duration {
    if let Some(span) = set {
        return span.0;
    }
    findings.derive(path, format_duration(default), Origin::Default);
    default
}

fn retries<const MOST: u64>(
    path: &[&str],
    set: Option<Number<0, MOST>>,
    default: u32,
    findings: &mut Findings<'_>,
) -> u32 {
    if let Some(number) = set {
        return number.get();
    }
    findings.derive(path, default, Origin::Default);
    default
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
        let path = ["providers", name, *key];
        findings.refuse(
            &path,
            "kind \"scripted\" reaches no server and has no such key",
        );
    }
    let script = settings
        .script
        .as_deref()
        .filter(|text| !text.trim().is_empty());
    let script = script.map(|text| findings.absolute(text));
    if script.as_ref().is_some_and(|path| !path.exists()) {
        findings.refuse(
            &["providers", name, "script"],
            "there is no such file or directory",
        );
    }
    let first_byte = ["providers", name, "timeout_first_byte"];
    let idle = ["providers", name, "timeout_idle"];
    ProviderConfig {
        id: name.to_owned(),
        kind: ProviderKind::Scripted,
        preset: SCRIPTED.to_owned(),
        base_url: String::new(),
        api_key: None,
        key_optional: true,
        model: settings.model.clone().unwrap_or_default(),
        headers: BTreeMap::new(),
        timeout_first_byte: timeout(
            &first_byte,
            settings.timeout_first_byte,
            LOCAL_TIMEOUT,
            findings,
        ),
        timeout_idle: timeout(&idle, settings.timeout_idle, LOCAL_TIMEOUT, findings),
        max_retries: retries(
            &["providers", name, "max_retries"],
            settings.max_retries,
            MAX_RETRIES,
            findings,
        ),
        restart_after_partial: retries(
            &["providers", name, "restart_after_partial"],
            settings.restart_after_partial,
            RESTART_AFTER_PARTIAL,
            findings,
        ),
        num_ctx: None,
        script,
        ca_file: None,
        record: None,
    }
}
