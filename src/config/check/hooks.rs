//! `[hooks.NAME]`: what is asked, when, and what becomes of it where it fails.

use std::collections::BTreeMap;
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::super::settings::HookSettings;
use super::super::{HookConfig, HookPoint, HookTarget, OnFailure};
use super::findings::Findings;
use super::workflows::doubtful_tool;

/// How long a hook may take where nobody says.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Checks all of them, in the order of their names, which is the one in which they are asked.
pub(super) fn check(
    settings: BTreeMap<String, HookSettings>,
    findings: &mut Findings<'_>,
) -> Vec<HookConfig> {
    settings
        .into_iter()
        .filter(|(_, hook)| hook.enabled.unwrap_or(true))
        .filter_map(|(name, hook)| check_hook(name, hook, findings))
        .collect()
}

fn check_hook(
    name: String,
    settings: HookSettings,
    findings: &mut Findings<'_>,
) -> Option<HookConfig> {
    let key = |key| ["hooks", name.as_str(), key];
    let Some(on) = settings.on else {
        // One that is no point has its error.
        if findings.merged.was_wrong(&key("on")) {
            return None;
        }
        let message = "`on` is missing: before_send, before_tool, after_tool, stop or compact";
        findings.refuse(&["hooks", &name], message);
        return None;
    };
    let is_of_tools = matches!(on, HookPoint::BeforeTool | HookPoint::AfterTool);
    if !is_of_tools && !settings.tools.is_empty() {
        findings.refuse(&key("tools"), "goes with before_tool and after_tool alone");
    }
    for tool in &settings.tools {
        if let Some(doubt) = doubtful_tool(tool, findings) {
            findings
                .warnings
                .push(format!("{}: {doubt}", key("tools").join(".")));
        }
    }
    let tools = globs(&settings.tools)
        .map_err(|problem| findings.refuse(&key("tools"), problem))
        .ok()?;
    if let Some(command) = settings.command.as_deref().filter(|it| is_of_folder(it)) {
        let message = format!(
            "{command:?} would be a file of each project: give the absolute path, or a name without `/` for a program in PATH"
        );
        findings.refuse(&key("command"), message);
    }
    let target = match (settings.command, settings.url) {
        (Some(command), None) if !command.trim().is_empty() => HookTarget::Program {
            command,
            args: settings.args,
            sandbox: settings.sandbox,
            network: settings.network,
        },
        (None, Some(url)) if settings.args.is_empty() => {
            let parsed = findings.url(&key("url"), &url)?;
            if parsed.scheme() == "http" && !crate::http::is_loopback(&parsed) {
                let message = "must be https; http is for this machine alone";
                findings.refuse(&key("url"), message);
            }
            HookTarget::Endpoint(url.trim().to_owned())
        }
        _ => {
            let message = "needs `command`, a program with `args`, or `url`, an endpoint; not both";
            findings.refuse(&["hooks", &name], message);
            return None;
        }
    };
    Some(HookConfig {
        on,
        tools,
        target,
        timeout: settings.timeout.map_or(TIMEOUT, |timeout| timeout.0),
        on_failure: settings.on_failure.unwrap_or(OnFailure::Refuse),
        name,
    })
}

/// Whether a program is looked for in the folder that it runs in, which is the project's: nothing of a project is a hook.
fn is_of_folder(command: &str) -> bool {
    let has_folders = command.contains(std::path::is_separator);
    has_folders && !std::path::Path::new(command).is_absolute()
}

/// Returns what the patterns match; `None` for all tools.
fn globs(patterns: &[String]) -> Result<Option<GlobSet>, String> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = Glob::new(pattern)
            .map_err(|error| format!("the pattern {pattern:?} cannot be used: {}", error.kind()))?;
        set.add(glob);
    }
    set.build().map(Some).map_err(|error| error.to_string())
}
