//! From settings to configuration: ranges, paths, references. Finds everything that is wrong.
//!
//! Looks at the file system (paths that must exist) and at the environment that was handed in;
//! opens no socket and creates nothing.

mod custom;
mod endpoint;
mod findings;
mod mcp;
mod project;
mod providers;
mod server;
mod workflows;

use secrecy::{ExposeSecret, SecretString};

use self::findings::Findings;
use super::error::{ConfigError, one_of};
use super::keys::{self, BRAVE_VARIABLE, SECRET_FORM};
use super::load::Sources;
use super::merged::Merged;
use super::origin::{MASK, Origin};
use super::settings::{
    AuditSettings, BashSettings, ChatSettings, Settings, ToolsSettings, WebSearchSettings,
};
use super::show::Shown;
use super::{
    ApprovalConfig, AuditConfig, BashConfig, ChatConfig, Config, FileReadConfig, LogConfig,
    ProviderConfig, ToolsConfig, WebSearchConfig,
};
use crate::units::format_duration;

/// The tools that are compiled in.
const CORE_TOOLS: [&str; 8] = [
    "file_read",
    "file_write",
    "file_edit",
    "file_list",
    "file_search",
    "bash",
    "git",
    "web_search",
];
pub use self::mcp::{AddedServer, mcp_server};
#[cfg(test)]
pub(crate) use self::server::LOCKABLE;
pub(crate) use self::server::PROVIDERS;

/// What checking comes to.
pub(crate) struct Checked {
    pub(crate) config: Config,
    pub(crate) warnings: Vec<String>,
    /// Values that nobody set, with where they came from instead.
    pub(crate) derived: Vec<Shown>,
}

/// Checks the settings and adds what is wrong to `errors`.
///
/// `None` where no configuration can be made of them; `errors` is not empty then.
pub(crate) fn check(
    settings: Settings,
    merged: &Merged,
    sources: &Sources,
    errors: &mut Vec<ConfigError>,
) -> Option<Checked> {
    let mut findings = Findings {
        merged,
        sources,
        errors,
        warnings: Vec::new(),
        derived: Vec::new(),
    };
    let findings = &mut findings;
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
    let server = server::server(settings.server, findings);
    let project = project::check(&settings.project, findings);
    let approval_timeout = settings.approval.timeout.0;
    let config = Config {
        server: server?,
        project: project?,
        session: server::session(settings.session, findings),
        chat,
        approval: ApprovalConfig {
            timeout: (!approval_timeout.is_zero()).then_some(approval_timeout),
            max_timeout: settings.approval.max_timeout.0,
            auto_approve_safe_commands: settings.approval.auto_approve_safe_commands,
            unattended: settings.approval.unattended,
        },
        providers,
        tools: tools(settings.tools, findings),
        mcp: mcp::check(settings.mcp, findings),
        workflows,
        log: LogConfig {
            level: level(settings.log.level, findings),
            format: settings.log.format,
        },
        audit: audit(&settings.audit, findings),
        shutdown_grace: settings.shutdown.grace.0,
        environment_secrets: keys::in_environment(&sources.environment),
    };
    Some(Checked {
        config,
        warnings: std::mem::take(&mut findings.warnings),
        derived: std::mem::take(&mut findings.derived),
    })
}

fn audit(settings: &AuditSettings, findings: &mut Findings<'_>) -> Option<AuditConfig> {
    match settings.path.trim() {
        "" => None,
        path => Some(AuditConfig {
            path: findings.absolute(path),
            max_bytes: settings.max_bytes.0,
            keep: settings.keep.get(),
        }),
    }
}

fn chat(
    settings: ChatSettings,
    providers: &mut Vec<ProviderConfig>,
    findings: &mut Findings<'_>,
) -> ChatConfig {
    let provider = settings.provider.trim();
    let is_chosen = !provider.is_empty();
    let provider = if is_chosen {
        providers::referred(&["chat", "provider"], provider, providers, findings);
        provider.to_owned()
    } else {
        providers::default(providers, findings)
    };
    let ollama = settings.detect_ollama.trim().trim_end_matches('/');
    if !ollama.is_empty() {
        findings.url(&["chat", "detect_ollama"], ollama);
    }
    let is_looked_for =
        !ollama.is_empty() && !is_chosen && providers::is_fallback(providers, findings);
    ChatConfig {
        detect_ollama: is_looked_for.then(|| ollama.to_owned()),
        provider,
        model: settings.model.trim().to_owned(),
        trust_level: settings.trust_level,
        workflow: settings.workflow.trim().to_owned(),
        system_prompt: settings.system_prompt,
        max_turns: settings.max_turns.get(),
        context_reserve: settings.context_reserve.get(),
        timeout_plain: settings.timeout_plain.0,
        timeout_tools: settings.timeout_tools.0,
    }
}

fn tools(settings: ToolsSettings, findings: &mut Findings<'_>) -> ToolsConfig {
    let switches = [
        ("file_read", settings.file_read.enabled),
        ("file_write", settings.file_write.enabled),
        ("file_edit", settings.file_edit.enabled),
        ("file_list", settings.file_list.enabled),
        ("file_search", settings.file_search.enabled),
        ("bash", settings.bash.enabled),
        ("git", settings.git.enabled),
        ("web_search", settings.web_search.enabled),
    ];
    let extensions = settings.file_read.allowed_extensions;
    for extension in &extensions {
        if extension.is_empty() || extension.contains(['.', '/', '*']) {
            let message = format!("{extension:?} is no extension; write it without dot and *");
            findings.refuse(&["tools", "file_read", "allowed_extensions"], message);
        }
    }
    if findings.merged.origin(&["tools", "max_queued"]) != Origin::Default {
        findings.warnings.push(
            "tools.max_queued has no effect any more: calls of a turn wait for their place whatever their number; remove it"
                .to_owned(),
        );
    }
    ToolsConfig {
        max_concurrent: settings.max_concurrent.get(),
        on_violation: settings.on_violation,
        timeout: settings.timeout.0,
        output_cap: settings.output_cap.bytes(),
        file_read: FileReadConfig {
            max_bytes: settings.file_read.max_bytes.bytes(),
            allowed_extensions: extensions,
        },
        bash: bash(&settings.bash, findings),
        web_search: web_search(settings.web_search, findings),
        disabled: switches
            .iter()
            .filter(|(_, enabled)| !enabled)
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        custom: custom::check(settings.custom, findings),
    }
}

fn bash(settings: &BashSettings, findings: &mut Findings<'_>) -> BashConfig {
    let (timeout, max_timeout) = (settings.timeout.0, settings.max_timeout.0);
    if timeout > max_timeout {
        let most = format_duration(max_timeout);
        findings.refuse(
            &["tools", "bash", "timeout"],
            format!("allowed: 1ms to {most}"),
        );
    }
    BashConfig {
        timeout,
        max_timeout,
        network: settings.network,
        sandbox: settings.sandbox,
        tmp_size: settings.tmp_size.bytes(),
        git: settings.git,
    }
}

fn web_search(settings: WebSearchSettings, findings: &mut Findings<'_>) -> WebSearchConfig {
    let searxng = settings.searxng_url.trim().trim_end_matches('/');
    if !searxng.is_empty() {
        findings.url(&["tools", "web_search", "searxng_url"], searxng);
    }
    findings.url(&["tools", "web_search", "brave_url"], &settings.brave_url);
    WebSearchConfig {
        searxng_url: (!searxng.is_empty()).then(|| searxng.to_owned()),
        engines: settings.engines,
        brave_api_key: brave_key(settings.brave_api_key.0.expose_secret(), findings),
        brave_url: settings.brave_url.trim().to_owned(),
        cache_ttl: settings.cache_ttl.0,
        ask: settings.ask,
        limit: settings.limit.get(),
    }
}

fn brave_key(set: &str, findings: &mut Findings<'_>) -> Option<SecretString> {
    let path = ["tools", "web_search", "brave_api_key"];
    let set = set.trim();
    if !set.is_empty() {
        if !keys::is_secret_text(set) {
            findings.refuse(&path, SECRET_FORM);
        }
        return Some(SecretString::from(set));
    }
    match keys::secret(&findings.sources.environment, BRAVE_VARIABLE) {
        Ok(found) => found.map(|found| {
            findings.derive(&path, MASK, found.origin);
            found.secret
        }),
        Err(error) => {
            findings.error(error);
            None
        }
    }
}

fn level(level: String, findings: &mut Findings<'_>) -> String {
    if let Err(error) = crate::telemetry::filter(&level) {
        let message = format!("expected a filter such as \"info\" or \"outrigger=debug\"; {error}");
        findings.refuse(&["log", "level"], message);
    }
    level
}
