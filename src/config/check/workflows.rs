//! Workflows: limits, permissions, and references to providers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::error::nearest;
use super::super::settings::{LimitSettings, PermissionSettings, WorkflowSettings};
use super::super::{ProviderConfig, ToolsConfig};
use super::findings::Findings;
use super::{core_tools, providers};
use crate::message::WITH_BASH;
use crate::permission::{Limits, Permission, Permissions, Workflow};
use crate::units::{Number, Timeout, millis};

/// Longest name of a workflow, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Checks `[workflows]`; a preset that one of them names becomes an instance.
pub(super) fn check(
    settings: BTreeMap<String, WorkflowSettings>,
    instances: &mut Vec<ProviderConfig>,
    findings: &mut Findings<'_>,
) -> BTreeMap<String, Workflow> {
    settings
        .into_iter()
        .map(|(name, settings)| {
            let workflow = workflow(&name, settings, instances, findings);
            (name, workflow)
        })
        .collect()
}

/// Returns what is wrong with the name of a workflow; `None` where nothing is.
pub(crate) fn workflow_name_problem(name: &str) -> Option<String> {
    let fits = (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control);
    (!fits).then(|| {
        format!("a workflow's name has 1 to {MAX_NAME_BYTES} bytes and no control characters")
    })
}

fn workflow(
    name: &str,
    settings: WorkflowSettings,
    instances: &mut Vec<ProviderConfig>,
    findings: &mut Findings<'_>,
) -> Workflow {
    if let Some(problem) = workflow_name_problem(name) {
        findings.refuse(&["workflows", name], problem);
    }
    let some = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let provider = some(settings.provider);
    if let Some(provider) = &provider {
        providers::referred(
            &["workflows", name, "provider"],
            provider,
            instances,
            findings,
        );
    }
    Workflow {
        system_prompt: some(settings.system_prompt),
        trust_level: settings.trust_level,
        on_violation: settings.on_violation,
        provider,
        model: some(settings.model),
        limits: limits(&settings.limits),
        permissions: Arc::new(permissions(name, settings.tool_permissions, findings)),
    }
}

fn limits(settings: &LimitSettings) -> Limits {
    Limits {
        max_turns: settings.max_turns.map(Number::get),
        timeout_ms: settings.timeout.map(|timeout| millis(timeout.0)),
        context_reserve: settings.context_reserve.map(Number::get),
        compact_at: settings.compact_at,
        max_cost_usd: settings.max_cost,
        max_fresh_tokens: settings.max_fresh_tokens.map(Number::get),
    }
}

/// Compiles permissions: what a send would be refused for is refused here.
fn permissions(
    workflow: &str,
    settings: BTreeMap<String, PermissionSettings>,
    findings: &mut Findings<'_>,
) -> Permissions {
    let mut permissions = Permissions::default();
    for (tool, settings) in settings {
        check_tool(workflow, &tool, findings);
        let path = ["workflows", workflow, "tool_permissions", &tool];
        let key = |key| [path.as_slice(), &[key]].concat();
        for glob in settings.paths.iter().flatten() {
            check_glob(&key("paths"), glob, findings);
        }
        let permission = Permission {
            allowed: settings.allowed,
            paths: settings.paths,
            timeout: settings.timeout.map(|timeout| Timeout(timeout.0)),
            allow: settings.allow,
            deny: settings.deny,
            allow_dangerous: settings.allow_dangerous,
            allow_network: settings.allow_network,
        };
        if let Err(error) = permissions.add(&tool, &permission) {
            let path = error.key.map_or(path.to_vec(), key);
            findings.refuse(&path, error.message);
        }
    }
    permissions
}

/// A tool that nobody knows would silently be one that is never offered.
fn check_tool(workflow: &str, tool: &str, findings: &mut Findings<'_>) {
    let is_custom = findings.merged.get(&["tools", "custom", tool]).is_some();
    if core_tools().contains(&tool) || is_custom || tool.starts_with("mcp__") || tool == "*" {
        return;
    }
    let path = ["workflows", workflow, "tool_permissions", tool];
    if WITH_BASH.contains(&tool) {
        let message = "it goes with `bash`, and is allowed where that is; name `bash`";
        return findings.refuse(&path, message);
    }
    findings.refuse(&path, no_such_tool(tool));
}

/// Says that a client's permissions name a tool that there cannot be; `None` where there may be one. Tools of MCP servers
/// come and go, so any name of theirs may be one.
pub(crate) fn unknown_tool(tool: &str, config: &ToolsConfig) -> Option<String> {
    let is_known = core_tools().contains(&tool)
        || WITH_BASH.contains(&tool)
        || config.custom.iter().any(|custom| custom.name == tool)
        || tool.starts_with("mcp__")
        || tool.contains('*');
    (!is_known).then(|| no_such_tool(tool))
}

fn no_such_tool(tool: &str) -> String {
    format!(
        "there is no such tool; {}allowed: {}, and mcp__SERVER__TOOL, in which * stands for any text",
        did_you_mean(tool),
        core_tools().join(", ")
    )
}

/// Says that a pattern of a hook matches no tool. Tools of a server and of clients come and go, so any name of theirs may be one.
/// `None` where it may match one, or is no name.
pub(super) fn doubtful_tool(pattern: &str, findings: &Findings<'_>) -> Option<String> {
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let is_custom = findings.merged.get(&["tools", "custom", pattern]).is_some();
    let is_known = core_tools().contains(&pattern) || WITH_BASH.contains(&pattern) || is_custom;
    if let Some(rest) = pattern.strip_prefix("mcp__") {
        let server = rest.split("__").next().unwrap_or_default();
        let servers = findings.merged.names(&["mcp", "servers"]);
        let may_add = findings.merged.get(&["mcp", "allow_runtime_add"]);
        let comes_later = may_add == Some(&Value::Bool(true));
        let is_there = servers.iter().any(|known| known == server);
        let is_whole = server.chars().all(is_name);
        return (is_whole && !is_there && !comes_later)
            .then(|| format!("no MCP server is named {server:?}, so {pattern:?} is no tool"));
    }
    if is_known || pattern.starts_with("client__") || !pattern.chars().all(is_name) {
        return None;
    }
    let near = did_you_mean(pattern);
    Some(format!(
        "no tool is named {pattern:?}; {near}those of MCP servers are named mcp__SERVER__TOOL, those of clients client__NAME"
    ))
}

fn did_you_mean(tool: &str) -> String {
    match nearest(tool, core_tools()) {
        Some(near) => format!("did you mean {near:?}? "),
        None => String::new(),
    }
}

fn check_glob(path: &[&str], glob: &str, findings: &mut Findings<'_>) {
    let absolute = glob.starts_with(['/', '~']);
    if absolute || glob.split('/').any(|part| part == "..") {
        let message = format!(
            "{glob:?} must be relative to the project's folder and its central storage, without .."
        );
        findings.refuse(path, message);
    }
}
