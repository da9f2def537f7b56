//! MCP servers: a program or an endpoint each.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;

use super::super::sections::{Secret, SignInSettings};
use super::super::settings::{McpServerSettings, McpSettings};
use super::super::{
    HttpServer, McpConfig, McpLogPolicy, McpServerConfig, McpTransport, NamedValue, SamplingPolicy,
    SignInConfig, StdioServer,
};
use super::findings::Findings;
use crate::sandbox::is_metadata;

/// Longest run of one call where the server has no limit of its own.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest name of a server, in bytes: it is a part of its tools' names.
const MAX_NAME_BYTES: usize = 64;

/// The folder for sign-ins, beside the store of sessions.
const TOKENS: &str = "mcp-sign-ins";

/// Checks `[mcp]`; servers that are switched off are left out unchecked.
/// `store` is the folder of what else is kept.
pub(super) fn check(
    settings: McpSettings,
    store: Option<&Path>,
    findings: &mut Findings<'_>,
) -> McpConfig {
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
        tokens: settings.tokens,
        tokens_folder: store
            .or(findings.sources.state.as_deref())
            .map(|folder| folder.join(TOKENS)),
    }
}

fn check_server(
    name: &str,
    settings: McpServerSettings,
    findings: &mut Findings<'_>,
) -> Option<McpServerConfig> {
    let path = ["mcp", "servers", name];
    if !is_name(name) {
        let message = format!("a server's name has 1 to {MAX_NAME_BYTES} bytes");
        findings.refuse(&path, message);
    }
    let timeout = settings.timeout.map_or(CALL_TIMEOUT, |timeout| timeout.0);
    let safe_tools = settings.safe_tools.clone();
    let (log, sampling) = (settings.log_level, settings.sampling);
    let transport = transport(name, settings, findings)?;
    Some(McpServerConfig {
        transport,
        safe_tools,
        timeout,
        log,
        sampling,
    })
}

fn transport(
    name: &str,
    settings: McpServerSettings,
    findings: &mut Findings<'_>,
) -> Option<McpTransport> {
    let path = ["mcp", "servers", name];
    let is_stdio = !settings.args.is_empty()
        || !settings.env.is_empty()
        || settings.cwd.is_some()
        || settings.network.is_some()
        || !settings.ports.is_empty()
        || !settings.read_write.is_empty()
        || !settings.read_only.is_empty();
    let problem = match (&settings.command, &settings.url) {
        (Some(command), None) if settings.headers.is_empty() && !has_auth(&settings.auth) => {
            if command.trim().is_empty() {
                findings.refuse(&["mcp", "servers", name, "command"], "must not be empty");
            }
            let server = stdio(name, settings, findings);
            if has_nul(&server) {
                findings.refuse(&path, "no NUL characters in `command`, `args` and `env`");
            }
            return Some(McpTransport::Stdio(server));
        }
        (None, Some(url)) if !is_stdio => {
            let path = ["mcp", "servers", name, "url"];
            let parsed = findings.url(&path, url)?;
            if let Err(why) = check_endpoint(&parsed) {
                findings.refuse(&path, why);
            }
            return Some(McpTransport::Http(HttpServer {
                url: url.trim().to_owned(),
                headers: headers(
                    &["mcp", "servers", name, "headers"],
                    settings.headers,
                    findings,
                ),
                auth: sign_in(name, settings.auth, findings),
            }));
        }
        (None, None) => "needs `command` (a program) or `url` (an endpoint)",
        (Some(_), Some(_)) => "has `command` and `url`; only one of them is allowed",
        (Some(_), None) => "`headers` go with `url`, not with `command`, and so does `auth`",
        (None, Some(_)) => {
            "`args`, `env`, `cwd` and what a program may reach go with `command`, not with `url`"
        }
    };
    findings.refuse(&path, problem);
    None
}

fn has_auth(auth: &SignInSettings) -> bool {
    auth.client_id.is_some()
        || auth.client_secret.is_some()
        || auth.client_metadata_url.is_some()
        || auth.redirect.is_some()
        || !auth.scopes.is_empty()
        || !auth.hosts.is_empty()
}

/// Checks `[mcp.servers.NAME.auth]`.
fn sign_in(name: &str, settings: SignInSettings, findings: &mut Findings<'_>) -> SignInConfig {
    let path = |key: &'static str| ["mcp", "servers", name, "auth", key];
    if settings.client_secret.is_some() && settings.client_id.is_none() {
        findings.refuse(
            &path("client_secret"),
            "needs `client_id`, whose secret it is",
        );
    }
    if let Some(url) = &settings.client_metadata_url
        && let Some(parsed) = findings.url(&path("client_metadata_url"), url)
        && (parsed.scheme() != "https" || parsed.path() == "/")
    {
        let message = "has to be https, with a path: authorization servers read it";
        findings.refuse(&path("client_metadata_url"), message);
    }
    if let Some(redirect) = &settings.redirect
        && let Some(parsed) = findings.url(&path("redirect"), redirect)
        && parsed.scheme() != "https"
        && !crate::http::is_loopback(&parsed)
    {
        let message = "has to be https, or http on this machine";
        findings.refuse(&path("redirect"), message);
    }
    let is_scope = |scope: &String| {
        let is_letter = |letter: char| letter.is_ascii_graphic() && !matches!(letter, '"' | '\\');
        !scope.is_empty() && scope.chars().all(is_letter)
    };
    if !settings.scopes.iter().all(is_scope) {
        findings.refuse(
            &path("scopes"),
            "each is one word of ASCII letters and signs",
        );
    }
    if settings
        .hosts
        .iter()
        .any(|host| host.contains(['/', '@']) || host.is_empty())
    {
        findings.refuse(&path("hosts"), "hosts alone, such as sso.example.org");
    }
    SignInConfig {
        client_id: settings.client_id,
        client_secret: settings.client_secret.map(|Secret(secret)| secret),
        client_metadata_url: settings.client_metadata_url,
        scopes: settings.scopes,
        redirect: settings.redirect,
        hosts: settings.hosts,
    }
}

fn stdio(name: &str, settings: McpServerSettings, findings: &mut Findings<'_>) -> StdioServer {
    let absolute = |paths: Vec<String>, findings: &Findings<'_>| {
        paths.iter().map(|path| findings.absolute(path)).collect()
    };
    StdioServer {
        command: settings.command.unwrap_or_default(),
        args: settings.args,
        env: variables(name, settings.env, findings),
        cwd: settings.cwd.map(|cwd| findings.absolute(&cwd)),
        network: settings.network.unwrap_or(true),
        ports: settings.ports,
        read_write: absolute(settings.read_write, findings),
        read_only: absolute(settings.read_only, findings),
        sandbox: settings.sandbox,
    }
}

/// Refuses what a token in a header must not cross in the clear, and addresses of clouds' metadata.
fn check_endpoint(url: &reqwest::Url) -> Result<(), String> {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>().ok();
    if address.is_some_and(is_metadata) {
        return Err(
            "an address that is link-local, or hands out keys of a cloud, is not connected to"
                .to_owned(),
        );
    }
    let is_here = match address {
        Some(address) => address.is_loopback(),
        None => bare == "localhost" || bare.ends_with(".localhost"),
    };
    if url.scheme() == "http" && !is_here {
        return Err(
            "http:// is allowed to this machine only; use https:// for any other".to_owned(),
        );
    }
    Ok(())
}

/// Checks a server that a client asks for, as one of the configuration is checked; an error says which field does not
/// fit.
pub fn added_server(name: &str, mut transport: McpTransport) -> Result<McpServerConfig, String> {
    if !is_name(name) {
        return Err(format!(
            "field `name`: a server's name has 1 to {MAX_NAME_BYTES} bytes and no control characters"
        ));
    }
    match &mut transport {
        McpTransport::Stdio(server) => {
            if has_nul(server) || server.env.keys().any(|key| !is_variable(key)) {
                return Err("fields `command`, `args`, `env`: no NUL characters, and no = in the name of a variable".to_owned());
            }
        }
        McpTransport::Http(server) => {
            let parsed = reqwest::Url::parse(server.url.trim())
                .ok()
                .filter(|url| matches!(url.scheme(), "http" | "https"))
                .filter(|url| url.username().is_empty() && url.password().is_none())
                .ok_or("field `url`: expected a URL such as https://host/path without user and password")?;
            check_endpoint(&parsed).map_err(|why| format!("field `url`: {why}"))?;
            let mut headers = server.headers.iter();
            if headers.any(|(name, value)| header_problem(name, value.expose_secret()).is_some()) {
                return Err("field `headers`: not all of them are headers".to_owned());
            }
            server.url = parsed.into();
        }
    }
    Ok(McpServerConfig {
        transport,
        safe_tools: Vec::new(),
        timeout: CALL_TIMEOUT,
        log: McpLogPolicy::default(),
        sampling: SamplingPolicy::default(),
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(char::is_control)
}

/// Returns whether some text of a program's cannot be handed to the system.
fn has_nul(server: &StdioServer) -> bool {
    let values = server.env.values().map(|value| value.expose_secret());
    let args = server.args.iter().map(String::as_str);
    let mut texts = args.chain(values).chain([server.command.as_str()]);
    texts.any(|text| text.contains('\0'))
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn variables(
    server: &str,
    variables: BTreeMap<String, NamedValue>,
    findings: &mut Findings<'_>,
) -> BTreeMap<String, NamedValue> {
    for name in variables.keys() {
        if !is_variable(name) {
            findings.refuse(
                &["mcp", "servers", server, "env", name],
                "the name of a variable is not empty and has no =",
            );
        }
    }
    variables
}

/// Checks names and values of headers.
pub(super) fn headers(
    path: &[&str],
    headers: BTreeMap<String, NamedValue>,
    findings: &mut Findings<'_>,
) -> BTreeMap<String, NamedValue> {
    for (name, value) in &headers {
        if let Some(problem) = header_problem(name, value.expose_secret()) {
            let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
            findings.refuse(&path, problem);
        }
    }
    headers
}

fn header_problem(name: &str, value: &str) -> Option<&'static str> {
    if name.parse::<HeaderName>().is_err() {
        return Some("this is no name of an HTTP header");
    }
    let is_wrong = HeaderValue::from_str(value).is_err();
    is_wrong.then_some("a header's value is printable ASCII on one line")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_no_address_that_hands_out_keys() {
        for (url, refused) in [
            ("https://mcp.example.org/", None),
            ("https://203.0.113.7/mcp", None),
            ("http://127.0.0.1:8080/mcp", None),
            ("http://203.0.113.7/mcp", Some("this machine only")),
            ("https://169.254.169.254/", Some("link-local")),
            ("https://[fe80::1]/", Some("link-local")),
            ("https://[::ffff:169.254.169.254]/", Some("link-local")),
            ("https://[64:ff9b::a9fe:a9fe]/", Some("hands out keys")),
            ("https://[fd00:ec2::254]/", Some("hands out keys")),
            ("https://100.100.100.200/", Some("hands out keys")),
            ("https://168.63.129.16/", Some("hands out keys")),
        ] {
            let why = check_endpoint(&reqwest::Url::parse(url).unwrap()).err();
            match (&why, refused) {
                (None, None) => {}
                (Some(why), Some(expected)) => assert!(why.contains(expected), "{url}: {why}"),
                _ => panic!("{url}: {why:?}"),
            }
        }
    }
}
