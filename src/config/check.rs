//! From settings to configuration: ranges, paths, references. Finds everything that is wrong.
//!
//! Looks at the file system (paths that must exist) and at the environment that was handed in;
//! opens no socket and creates nothing.

mod auth;
mod cluster;
mod custom;
mod endpoint;
mod findings;
mod folders;
mod hooks;
mod mcp;
mod project;
mod providers;
mod sandbox;
mod server;
mod telemetry;
mod webhooks;
mod workflows;

pub(super) use self::findings::Findings;
use std::collections::BTreeMap;
use std::path::Path;

use outrigger_store::Limits;
use outrigger_store::postgres::Postgres;
use secrecy::ExposeSecret as _;

use super::error::one_of;
use super::hosts::HostEntry;
use super::keys::{self, BRAVE_VARIABLE};
use super::origin::Origin;
use super::sections::StoreSettings;
use super::settings::{Settings, ToolsSettings};
use super::{
    AuditConfig, ChatConfig, CompactionConfig, Config, ProviderConfig, SandboxPolicy,
    SessionConfig, StoreConfig, StorePlace, TasksConfig, ToolsConfig, WebFetchConfig,
    WebSearchConfig,
};
use crate::message::{SKILL, TASK};
use crate::permission::{NetworkPolicy, Workflow};
use crate::units::format_duration;

/// A tool's name, and the setting that switches it off.
type Switch = (&'static str, fn(&ToolsSettings) -> bool);

/// The daemon's own tools.
const CORE_TOOLS: [Switch; 9] = [
    ("file_read", |tools| tools.file_read.enabled),
    ("file_write", |tools| tools.file_write.enabled),
    ("file_edit", |tools| tools.file_edit.enabled),
    ("file_list", |tools| tools.file_list.enabled),
    ("file_search", |tools| tools.file_search.enabled),
    ("bash", |tools| tools.bash.enabled),
    ("git", |tools| tools.git.enabled),
    ("web_search", |tools| tools.web_search.enabled),
    ("web_fetch", |tools| tools.web_fetch.enabled),
];

pub use self::mcp::added_server;
#[cfg(test)]
pub(crate) use self::server::LOCKABLE;
pub(crate) use self::server::PROVIDERS;
pub(crate) use self::workflows::{unknown_tool, workflow_name_problem};

fn core_tools() -> [&'static str; 11] {
    let [a, b, c, d, e, f, g, h, i] = CORE_TOOLS.map(|(name, _)| name);
    [a, b, c, d, e, f, g, h, i, TASK, SKILL]
}

/// Checks the settings and adds what is found. Where there are errors, the configuration is not to be used.
pub(super) fn check(settings: Settings, findings: &mut Findings<'_>) -> Config {
    let mut providers = providers::check(settings.providers, findings);
    let workflows = workflows::check(settings.workflows, &mut providers, findings);
    let chat = chat(settings.chat, &mut providers, findings);
    if !chat.workflow.is_empty() && !workflows.contains_key(&chat.workflow) {
        let names = workflows.keys().map(String::as_str);
        let message = format!(
            "there is no such workflow; {}",
            one_of(&chat.workflow, names)
        );
        findings.refuse(&["chat", "workflow"], message);
    }
    let compaction = compaction(settings.compaction, &mut providers, findings);
    let tasks = tasks(settings.tasks, &workflows, &mut providers, findings);
    for name in settings.budget.provider.keys() {
        providers::referred(
            &["budget", "provider", name],
            name,
            &mut providers,
            findings,
        );
    }
    let server = server::server(settings.server, findings);
    let auth = auth::check(settings.auth, findings);
    let audit_path = settings.audit.path.to_string_lossy().trim().to_owned();
    let audit = (!audit_path.is_empty()).then(|| AuditConfig {
        path: findings.absolute(audit_path),
        ..settings.audit
    });
    let store = store(&settings.store, findings);
    level(&settings.log.level, findings);
    let session = session(settings.session, &mut providers, findings);
    let project = project::check(&settings.project, findings);
    let mut tools = tools(settings.tools, findings);
    let kept = store.as_ref().and_then(|it| it.place.file());
    let mcp = mcp::check(settings.mcp, kept.and_then(Path::parent), findings);
    let own = [
        (mcp.tokens_folder.clone(), "the sign-ins at MCP servers"),
        (
            audit.as_ref().map(|audit| audit.path.clone()),
            "the audit log",
        ),
        (
            store
                .as_ref()
                .and_then(|it| it.place.file().map(Path::to_owned)),
            "the store of sessions",
        ),
    ];
    folders::check(&mut tools.bash, &project, own, findings);
    Config {
        user_ids: sandbox::check(&settings.sandbox, tools.bash.sandbox, findings),
        server,
        auth,
        project,
        session,
        chat,
        compaction,
        tasks,
        approval: settings.approval,
        budget: settings.budget,
        providers,
        tools,
        mcp,
        workflows,
        log: settings.log,
        audit,
        webhooks: webhooks::check(settings.webhooks, findings),
        hooks: hooks::check(settings.hooks, findings),
        cluster: cluster::check(settings.cluster, store.as_ref(), findings),
        store,
        otlp: telemetry::check(settings.telemetry.otlp, findings),
        shutdown_grace: settings.shutdown.grace.0,
        environment_secrets: keys::in_environment(&findings.sources.environment),
    }
}

/// Returns where sessions are kept; nowhere where there is no folder for it.
fn store(settings: &StoreSettings, findings: &mut Findings<'_>) -> Option<StoreConfig> {
    let path = settings.path.to_string_lossy().trim().to_owned();
    let is_named = !path.is_empty() || settings.url.is_some();
    let place = match &settings.url {
        Some(url) => {
            if !path.is_empty() {
                findings
                    .warnings
                    .push("store.path is not used, since store.url names a database".to_owned());
            }
            if let Err(problem) = Postgres::check(url.expose_secret()) {
                findings.refuse(&["store", "url"], problem.to_string());
            }
            StorePlace::Database(url.clone())
        }
        None if is_named => StorePlace::File(findings.absolute(path)),
        None => StorePlace::File(findings.sources.state.as_ref()?.join("outrigger.db")),
    };
    settings.enabled.then_some(StoreConfig {
        place,
        sync: settings.sync,
        resume_queue: settings.resume_queue,
        limits: Limits {
            keep: settings.keep,
            max_bytes: settings.max_bytes,
        },
        is_named,
    })
}

fn session(
    mut settings: SessionConfig,
    providers: &mut Vec<ProviderConfig>,
    findings: &mut Findings<'_>,
) -> SessionConfig {
    server::locked(&settings, findings);
    let path = ["session", "title_model"];
    settings.title_model = model(
        &path,
        &settings.title_model,
        "the first words",
        providers,
        findings,
    );
    settings
}

fn compaction(
    mut settings: CompactionConfig,
    providers: &mut Vec<ProviderConfig>,
    findings: &mut Findings<'_>,
) -> CompactionConfig {
    let path = ["compaction", "model"];
    settings.model = model(
        &path,
        &settings.model,
        "the conversation's own",
        providers,
        findings,
    );
    settings
}

fn tasks(
    mut settings: TasksConfig,
    workflows: &BTreeMap<String, Workflow>,
    providers: &mut Vec<ProviderConfig>,
    findings: &mut Findings<'_>,
) -> TasksConfig {
    let nothing = "that of the exchange around it";
    let path = ["tasks", "model"];
    settings.model = model(&path, &settings.model, nothing, providers, findings);
    for name in &settings.profiles {
        if !workflows.contains_key(name) {
            let names = workflows.keys().map(String::as_str);
            let message = format!("there is no such workflow; {}", one_of(name, names));
            findings.refuse(&["tasks", "profiles"], message);
        }
    }
    settings
}

/// Checks what names a model of a provider, or nothing.
fn model(
    path: &[&str],
    text: &str,
    nothing: &str,
    providers: &mut Vec<ProviderConfig>,
    findings: &mut Findings<'_>,
) -> String {
    let text = text.trim();
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
            providers::referred(path, provider, providers, findings);
        }
        None if text.is_empty() => {}
        _ => findings.refuse(
            path,
            format!("expected PROVIDER/MODEL, e.g. \"anthropic/claude-haiku-4-5\", or \"\" for {nothing}"),
        ),
    }
    text.to_owned()
}

fn chat(
    settings: ChatConfig,
    providers: &mut Vec<ProviderConfig>,
    findings: &mut Findings<'_>,
) -> ChatConfig {
    let mut provider = settings.provider.trim().to_owned();
    let mut detect_ollama = settings.detect_ollama;
    if let Some(url) = &detect_ollama {
        findings.url(&["chat", "detect_ollama"], url);
    }
    if !provider.is_empty() {
        providers::referred(&["chat", "provider"], &provider, providers, findings);
        detect_ollama = None;
    } else {
        provider = providers::default(providers, findings);
        detect_ollama = detect_ollama.filter(|_| providers::is_fallback(providers, findings));
    }
    ChatConfig {
        provider,
        model: settings.model.trim().to_owned(),
        workflow: settings.workflow.trim().to_owned(),
        detect_ollama,
        ..settings
    }
}

fn tools(mut settings: ToolsSettings, findings: &mut Findings<'_>) -> ToolsConfig {
    let disabled = CORE_TOOLS.iter().filter(|(_, enabled)| !enabled(&settings));
    let disabled = disabled.map(|(name, _)| (*name).to_owned()).collect();
    for extension in &settings.file_read.allowed_extensions {
        if extension.is_empty() || extension.contains(['.', '/', '*']) {
            let message = format!("{extension:?} is no extension; write it without dot and *");
            findings.refuse(&["tools", "file_read", "allowed_extensions"], message);
        }
    }
    let bash = &mut settings.bash;
    if bash.timeout > bash.max_timeout {
        let most = format_duration(bash.max_timeout);
        let path = ["tools", "bash", "timeout"];
        match findings.merged.origin(&path) {
            Origin::Default => {
                bash.timeout = bash.max_timeout;
                findings.derive(&path, most, Origin::Derived("tools.bash.max_timeout"));
            }
            _ => {
                let message = format!("allowed: 1ms to {most} (tools.bash.max_timeout)");
                findings.refuse(&path, message);
            }
        }
    }
    if findings.merged.origin(&["tools", "max_queued"]) != Origin::Default {
        findings.warnings.push(
            "tools.max_queued has no effect any more: calls of a turn wait for their place whatever their number; remove it"
                .to_owned(),
        );
    }
    let why = match (bash.sandbox, bash.network) {
        (SandboxPolicy::Off, _) => Some("sandbox = \"off\""),
        (_, NetworkPolicy::On) => Some("network = \"on\""),
        (_, NetworkPolicy::Off) => Some("network = \"off\""),
        (SandboxPolicy::Auto | SandboxPolicy::Unverified, NetworkPolicy::Ask) => None,
    };
    if let Some(why) = why.filter(|_| !bash.hosts.is_empty()) {
        findings.warnings.push(format!(
            "tools.bash.hosts has no effect with tools.bash.{why}; it takes sandbox = \"auto\" and network = \"ask\""
        ));
    }
    ToolsConfig {
        max_concurrent: settings.max_concurrent,
        on_violation: settings.on_violation,
        timeout: settings.timeout,
        output_cap: settings.output_cap,
        file_read: settings.file_read,
        bash: settings.bash,
        web_search: web_search(settings.web_search, findings),
        web_fetch: web_fetch(settings.web_fetch, findings),
        client: settings.client,
        disabled,
        custom: custom::check(settings.custom, findings),
    }
}

fn web_search(mut settings: WebSearchConfig, findings: &mut Findings<'_>) -> WebSearchConfig {
    if let Some(url) = &settings.searxng_url {
        findings.url(&["tools", "web_search", "searxng_url"], url);
    }
    findings.url(&["tools", "web_search", "brave_url"], &settings.brave_url);
    settings.brave_url = settings.brave_url.trim().to_owned();
    let path = ["tools", "web_search", "brave_api_key"];
    settings.brave_api_key = findings.key(&path, settings.brave_api_key, BRAVE_VARIABLE);
    settings
}

fn web_fetch(mut settings: WebFetchConfig, findings: &mut Findings<'_>) -> WebFetchConfig {
    for entry in &settings.hosts {
        if let HostEntry::Manager(_) = entry {
            let message = format!(
                "\"{entry}\" is a package manager, which is for tools.bash.hosts; name the hosts themselves"
            );
            findings.refuse(&["tools", "web_fetch", "hosts"], message);
        }
    }
    settings.user_agent = settings.user_agent.trim().to_owned();
    if settings.user_agent.is_empty() {
        settings.user_agent = concat!("outrigger/", env!("CARGO_PKG_VERSION")).to_owned();
    }
    let is_visible = |c: char| c.is_ascii_graphic() || c == ' ';
    if !settings.user_agent.chars().all(is_visible) {
        let message =
            "it may have letters, digits, blanks and signs of ASCII alone, as a header of HTTP has";
        findings.refuse(&["tools", "web_fetch", "user_agent"], message);
    }
    settings
}

fn level(level: &str, findings: &mut Findings<'_>) {
    if let Err(error) = crate::telemetry::filter(level) {
        let message = format!("expected a filter such as \"info\" or \"outrigger=debug\"; {error}");
        findings.refuse(&["log", "level"], message);
    }
}
