//! MCP servers: a program or an endpoint each.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

use super::super::settings::{McpServerSettings, McpSettings, Secret};
use super::super::units::Span;
use super::super::{McpConfig, McpServerConfig, McpTransport};
use super::findings::{DAY, Findings};

/// Longest run of one call where the server has no limit of its own.
const CALL_TIMEOUT: Span = Span(Duration::from_secs(60));
/// Longest name of a server, in bytes: it is a part of its tools' names.
const MAX_NAME_BYTES: usize = 64;

/// Checks `[mcp]`; servers that are switched off are left out unchecked.
pub(super) fn check(settings: McpSettings, findings: &mut Findings<'_>) -> McpConfig {
    let servers = settings
        .servers
        .into_iter()
        .filter(|(_, server)| server.enabled.unwrap_or(true))
        .filter_map(|(name, server)| {
            let server = check_server(&name, server, findings)?;
            Some((name, server))
        })
        .collect();
    McpConfig {
        servers,
        allow_runtime_add: settings.allow_runtime_add,
    }
}

fn check_server(
    name: &str,
    settings: McpServerSettings,
    findings: &mut Findings<'_>,
) -> Option<McpServerConfig> {
    let path = ["mcp", "servers", name];
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
        let message = format!("a server's name has 1 to {MAX_NAME_BYTES} bytes");
        findings.refuse(&path, message);
    }
    let timeout = settings.timeout.unwrap_or(CALL_TIMEOUT);
    let timeout = findings.duration(&["mcp", "servers", name, "timeout"], timeout, DAY);
    let safe_tools = settings.safe_tools.clone();
    let transport = transport(name, settings, findings)?;
    Some(McpServerConfig {
        transport,
        safe_tools,
        timeout,
    })
}

fn transport(
    name: &str,
    settings: McpServerSettings,
    findings: &mut Findings<'_>,
) -> Option<McpTransport> {
    let path = ["mcp", "servers", name];
    let is_stdio = !settings.args.is_empty() || !settings.env.is_empty() || settings.cwd.is_some();
    match (settings.command, settings.url) {
        (Some(command), None) if settings.headers.is_empty() => {
            if command.trim().is_empty() {
                findings.refuse(&["mcp", "servers", name, "command"], "must not be empty");
            }
            Some(McpTransport::Stdio {
                command,
                args: settings.args,
                env: variables(name, settings.env, findings),
                cwd: settings.cwd.map(|cwd| findings.absolute(&cwd)),
            })
        }
        (None, Some(url)) if !is_stdio => {
            findings.url(&["mcp", "servers", name, "url"], &url)?;
            Some(McpTransport::Http {
                url: url.trim().to_owned(),
                headers: headers(
                    &["mcp", "servers", name, "headers"],
                    settings.headers,
                    findings,
                ),
            })
        }
        (None, None) => {
            findings.refuse(&path, "needs `command` (a program) or `url` (an endpoint)");
            None
        }
        (Some(_), Some(_)) => {
            findings.refuse(
                &path,
                "has `command` and `url`; only one of them is allowed",
            );
            None
        }
        (Some(_), None) => {
            findings.refuse(&path, "`headers` go with `url`, not with `command`");
            None
        }
        (None, Some(_)) => {
            findings.refuse(
                &path,
                "`args`, `env` and `cwd` go with `command`, not with `url`",
            );
            None
        }
    }
}

fn variables(
    server: &str,
    variables: BTreeMap<String, Secret>,
    findings: &mut Findings<'_>,
) -> BTreeMap<String, SecretString> {
    for name in variables.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            findings.refuse(
                &["mcp", "servers", server, "env", name],
                "the name of a variable is not empty and has no =",
            );
        }
    }
    into_secrets(variables)
}

/// Checks names and values of headers.
pub(super) fn headers(
    path: &[&str],
    headers: BTreeMap<String, Secret>,
    findings: &mut Findings<'_>,
) -> BTreeMap<String, SecretString> {
    use reqwest::header::{HeaderName, HeaderValue};
    use secrecy::ExposeSecret;
    for (name, value) in &headers {
        let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
        if name.parse::<HeaderName>().is_err() {
            findings.refuse(&path, "this is no name of an HTTP header");
        } else if HeaderValue::from_str(value.0.expose_secret()).is_err() {
            findings.refuse(&path, "a header's value is printable ASCII on one line");
        }
    }
    into_secrets(headers)
}

fn into_secrets(secrets: BTreeMap<String, Secret>) -> BTreeMap<String, SecretString> {
    secrets
        .into_iter()
        .map(|(name, secret)| (name, secret.0))
        .collect()
}
