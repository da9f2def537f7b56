//! `[server]` and `[session]`: address, origins, hosts, limits of frames and buffers.

use secrecy::ExposeSecret as _;

use super::super::error::one_of;
use super::super::keys::is_secret_text;
use super::super::origin::Origin;
use super::super::{ServerConfig, SessionConfig};
use super::findings::Findings;

/// The least characters of a token for a role.
const TOKEN_CHARACTERS: usize = 20;

/// Locks keys, addresses and the choice of a provider at once.
pub(crate) const PROVIDERS: &str = "providers";

/// What a client can change, and an operator can forbid to loosen.
pub(crate) const LOCKABLE: [&str; 15] = [
    PROVIDERS,
    "approval.policy",
    "tools.web_search",
    "chat.provider",
    "chat.model",
    "chat.trust_level",
    "chat.workflow",
    "chat.system_prompt",
    "chat.max_turns",
    "chat.context_reserve",
    "chat.timeout_plain",
    "chat.timeout_tools",
    "budget.exchange",
    "budget.conversation",
    "budget.session",
];

/// Checks `[server]`.
pub(super) fn server(mut settings: ServerConfig, findings: &mut Findings<'_>) -> ServerConfig {
    for origin in &settings.allowed_origins {
        if let Some(problem) = origin_problem(origin) {
            findings.refuse(
                &["server", "allowed_origins"],
                format!("{origin:?} {problem}"),
            );
        }
    }
    let tokens = [
        ("approver_token", &settings.approver_token),
        ("observer_token", &settings.observer_token),
    ];
    for (key, token) in tokens {
        let text = token.as_ref().map_or("", |token| token.expose_secret());
        if !text.is_empty() && (text.len() < TOKEN_CHARACTERS || !is_secret_text(text)) {
            let message = format!(
                "must have {TOKEN_CHARACTERS} characters at least, printable ASCII without spaces; make one with: openssl rand -hex 32"
            );
            findings.refuse(&["server", key], message);
        }
    }
    for host in &settings.allowed_hosts {
        if host.is_empty() || host.contains(['/', '*', ' ']) || has_port(host) {
            let message = format!("{host:?} is not a host name without scheme, port and *");
            findings.refuse(&["server", "allowed_hosts"], message);
        }
    }
    // A page for whoever reaches the port is for this machine alone, unless somebody wanted it.
    let is_wanted = findings.merged.origin(&["server", "console"]) != Origin::Default;
    settings.console &= settings.host.is_loopback() || is_wanted;
    settings
}

/// Says why a text can never be equal to what a browser sends as `Origin`.
fn origin_problem(origin: &str) -> Option<&'static str> {
    match origin.split_once("://") {
        _ if origin == "null" => None,
        _ if origin.contains('*') => Some("has a *; name each origin in full"),
        None => Some("is no origin; expected scheme://host[:port] or null"),
        Some((scheme, rest)) if scheme.is_empty() || rest.contains('/') => {
            Some("is no origin; it has no path and no / at its end")
        }
        Some(_) => None,
    }
}

fn has_port(host: &str) -> bool {
    let is_v6 = host.parse::<std::net::Ipv6Addr>().is_ok() || host.ends_with(']');
    !is_v6 && host.contains(':')
}

/// Checks which keys `[session]` locks.
pub(super) fn locked(settings: &SessionConfig, findings: &mut Findings<'_>) {
    for key in &settings.locked {
        if !LOCKABLE.contains(&key.as_str()) {
            let message = format!("{key:?} cannot be locked; {}", one_of(key, LOCKABLE));
            findings.refuse(&["session", "locked"], message);
        }
    }
}
