//! Secrets and addresses that vendors' own environment variables hold, and the daemon's token.
//!
//! Each variable that holds a secret has a variant with `_FILE` behind its name, which names a file
//! that holds it, as Docker and Kubernetes mount secrets.

use std::path::Path;

use secrecy::SecretString;

use super::error::ConfigError;
use super::file::read_bounded;
use super::load::{Environment, Sources};
use super::origin::Origin;
use super::presets::{self, Preset};

/// Largest file with a secret, in bytes; no key comes near it.
const MAX_SECRET_BYTES: u64 = 16 << 10;
pub(crate) const TOKEN_VARIABLE: &str = "OUTRIGGER_TOKEN";
pub(crate) const BRAVE_VARIABLE: &str = "BRAVE_API_KEY";
/// Where programs find their collector of OpenTelemetry, and what it asks for.
pub(crate) const OTLP_ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
pub(crate) const OTLP_HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// What a secret may consist of, for error messages.
pub(crate) const SECRET_FORM: &str = "a key or token is printable ASCII without spaces";

pub(crate) struct Found {
    pub(crate) secret: SecretString,
    pub(crate) origin: Origin,
}

/// Looks for a secret in a variable, then in the file that its `_FILE` variant names.
pub(crate) fn secret(
    environment: &Environment,
    variable: &str,
) -> Result<Option<Found>, ConfigError> {
    let file_variable = format!("{variable}_FILE");
    let (name, text) = if let Some(text) = environment.get(variable) {
        (variable, text.to_owned())
    } else if let Some(path) = environment.get(&file_variable) {
        (
            file_variable.as_str(),
            read_secret_file(&file_variable, path)?,
        )
    } else {
        return Ok(None);
    };
    if !is_secret_text(&text) {
        return Err(ConfigError::at(name, SECRET_FORM));
    }
    Ok(Some(Found {
        secret: SecretString::from(text),
        origin: Origin::Variable(name.to_owned()),
    }))
}

/// Lists the secrets in the environment, used or not, also those in files that `_FILE` variables of ours name.
pub(crate) fn in_environment(environment: &Environment) -> Vec<SecretString> {
    let variables = environment
        .starting_with("")
        .flat_map(|(name, value)| crate::secret::in_variable(name, value));
    let ours = presets::all().iter().map(|preset| preset.key_variable);
    let files = ours
        .chain([TOKEN_VARIABLE, BRAVE_VARIABLE])
        .filter_map(|variable| {
            let name = format!("{variable}_FILE");
            // One that is not used may be broken.
            read_secret_file(&name, environment.get(&name)?).ok()
        });
    variables.chain(files).map(SecretString::from).collect()
}

/// Whether a text can be sent in a header and written in a URL's query.
pub(crate) fn is_secret_text(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads the secret in a file, trimmed; `named_by` is the variable or flag that names the file.
pub(crate) fn read_secret_file(named_by: &str, path: &str) -> Result<String, ConfigError> {
    let failed = |reason: String| ConfigError::at(named_by, format!("the file {path} {reason}"));
    let read = read_bounded(Path::new(path.trim()), MAX_SECRET_BYTES, "16 KiB");
    match read.map_err(failed)?.trim() {
        "" => Err(failed("is empty".to_owned())),
        text => Ok(text.to_owned()),
    }
}

/// Reads the token that was given: `--token-file`, then `OUTRIGGER_TOKEN`, then its `_FILE`.
pub(crate) fn token(sources: &Sources) -> Result<Option<SecretString>, ConfigError> {
    let Some(path) = &sources.token_file else {
        let found = secret(&sources.environment, TOKEN_VARIABLE)?;
        return Ok(found.map(|found| found.secret));
    };
    let path = sources.working_directory.join(path);
    let text = read_secret_file("--token-file", &path.to_string_lossy())?;
    if is_secret_text(&text) {
        return Ok(Some(SecretString::from(text)));
    }
    Err(ConfigError::at("--token-file", SECRET_FORM))
}

/// Looks for the base URL of a preset in its vendor's own variable.
pub(crate) fn base_url(environment: &Environment, preset: &Preset) -> Option<(String, Origin)> {
    let variable = base_url_variable(preset)?;
    let text = environment.get(variable)?;
    let url = match preset.name {
        "ollama" => ollama_host(text),
        _ => text.to_owned(),
    };
    Some((url, Origin::Variable(variable.to_owned())))
}

/// The variable in which a vendor's own programs look for the base URL.
pub(crate) fn base_url_variable(preset: &Preset) -> Option<&'static str> {
    match preset.name {
        "anthropic" => Some("ANTHROPIC_BASE_URL"),
        "openai" => Some("OPENAI_BASE_URL"),
        "ollama" => Some("OLLAMA_HOST"),
        _ => None,
    }
}

/// Turns `OLLAMA_HOST` into a base URL as Ollama's own client does (`envconfig.Host`, 2026-11-20).
///
/// Scheme and port may be absent. The address to listen on, `0.0.0.0`, is no address to connect
/// to; it becomes loopback.
pub(crate) fn ollama_host(text: &str) -> String {
    let text = text.trim().trim_matches(['"', '\'']);
    let (scheme, rest, default_port) = match text.split_once("://") {
        Some(("https", rest)) => ("https", rest, "443"),
        Some((_, rest)) => ("http", rest, "80"),
        None if text == "ollama.com" => ("https", text, "443"),
        None => ("http", text, "11434"),
    };
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, path.trim_end_matches('/')),
        None => (rest, ""),
    };
    let (host, port) = host_and_port(authority, default_port);
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{host}:{port}{slash}{path}")
}

/// Splits `host:port`, either of which may be absent; an IPv6 address gets its brackets.
fn host_and_port<'a>(authority: &'a str, default_port: &'a str) -> (String, &'a str) {
    let bare_v6 = authority.parse::<std::net::Ipv6Addr>().is_ok();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !bare_v6 && !port.ends_with(']') => (host, port),
        _ => (authority, default_port),
    };
    let port = if port.parse::<u16>().is_ok() {
        port
    } else {
        default_port
    };
    match host.trim_start_matches('[').trim_end_matches(']') {
        "" | "0.0.0.0" => ("127.0.0.1".to_owned(), port),
        "::" => ("[::1]".to_owned(), port),
        host if host.contains(':') => (format!("[{host}]"), port),
        host => (host.to_owned(), port),
    }
}

#[cfg(test)]
mod tests;
