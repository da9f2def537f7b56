//! Whether what an authorization server says of itself may be used. Pure.

use reqwest::Url;
use rmcp::transport::auth::AuthorizationMetadata;
use serde_json::Value;

use super::web::Web;

/// How clients prove that they are the one that began; the only way that is taken.
const S256: &str = "S256";

/// What of a server's metadata the daemon works with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Issuer {
    /// Its name; its token endpoint's origin where it has none, which only servers before 2025-06 may.
    pub(super) name: String,
    /// Where people sign in.
    pub(super) page: Url,
    /// Where codes become tokens.
    pub(super) token: Url,
    /// Where tokens are taken back.
    pub(super) revocation: Option<Url>,
    /// Whether a client's secret goes into the body instead of a header.
    pub(super) secret_in_body: bool,
    /// Whether it reads what a client is at the address that is the client's id.
    pub(super) reads_client_ids: bool,
}

/// Returns what is used of what was found; an error says why none of it is. `is_published` where it is the server's own word,
/// and not a guess in its place.
pub(super) fn checked(
    metadata: &AuthorizationMetadata,
    is_published: bool,
    web: &Web,
) -> Result<Issuer, String> {
    let page = endpoint(
        web,
        "authorization_endpoint",
        &metadata.authorization_endpoint,
    )?;
    let token = endpoint(web, "token_endpoint", &metadata.token_endpoint)?;
    if let Some(registration) = &metadata.registration_endpoint {
        endpoint(web, "registration_endpoint", registration)?;
    }
    let revocation = metadata.additional_fields.get("revocation_endpoint");
    let revocation = revocation.and_then(Value::as_str);
    let revocation = revocation
        .map(|url| endpoint(web, "revocation_endpoint", url))
        .transpose()?;
    let name = match &metadata.issuer {
        Some(issuer) => issuer.clone(),
        None => token.origin().ascii_serialization(),
    };
    let host = |url: &Url| url.host_str().unwrap_or_default().to_owned();
    let methods = metadata.code_challenge_methods_supported.as_deref();
    // One that publishes nothing cannot say so either; it is the MCP server itself.
    let is_safe = methods.map_or(!is_published, |methods| {
        methods.iter().any(|method| method == S256)
    });
    if !is_safe {
        return Err(format!(
            "the authorization server {name} does not say that it knows PKCE with S256 (code_challenge_methods_supported), without which a code can be stolen; its operator has to switch that on"
        ));
    }
    let flows = metadata.response_types_supported.as_deref();
    if flows.is_some_and(|flows| !flows.iter().any(|flow| flow == "code")) {
        return Err(format!(
            "the authorization server {name} gives out no codes (response_types_supported)"
        ));
    }
    // Otherwise one could send people to somebody else's page, and have what that answers sent to itself.
    let is_one = page.origin() == token.origin() || web.is_listed(&host(&token));
    if !is_one && !flag(metadata, "authorization_response_iss_parameter_supported") {
        let (page, takes) = (shown_origin(&page), shown_origin(&token));
        return Err(format!(
            "the authorization server {name} has its page at {page} and takes codes at {takes}, and does not name itself in its answers (RFC 9207); if that is how it is, add {:?} to `auth.hosts` of the server",
            host(&token),
        ));
    }
    Ok(Issuer {
        name,
        page,
        token,
        revocation,
        secret_in_body: secret_in_body(metadata),
        reads_client_ids: flag(metadata, "client_id_metadata_document_supported"),
    })
}

fn shown_origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn endpoint(web: &Web, what: &str, text: &str) -> Result<Url, String> {
    let text = crate::mcp::connection::bounded(text);
    let url = Url::parse(&text).map_err(|error| {
        format!("the authorization server's {what} {text:?} is no URL: {error}")
    })?;
    match web.problem(&url) {
        None => Ok(url),
        Some(why) => Err(format!(
            "the authorization server's {what} {text:?} is not used: it {why}"
        )),
    }
}

fn flag(metadata: &AuthorizationMetadata, name: &str) -> bool {
    let value = metadata.additional_fields.get(name);
    value.and_then(Value::as_bool).unwrap_or_default()
}

/// As the SDK has it, which sends codes.
fn secret_in_body(metadata: &AuthorizationMetadata) -> bool {
    let methods = metadata
        .additional_fields
        .get("token_endpoint_auth_methods_supported");
    let Some(methods) = methods.and_then(Value::as_array) else {
        return false;
    };
    let has = |name: &str| methods.iter().any(|method| method.as_str() == Some(name));
    has("client_secret_post") && !has("client_secret_basic")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::Clients;

    fn found(changes: &Value) -> AuthorizationMetadata {
        let mut metadata = json!({
            "issuer": "https://login.example",
            "authorization_endpoint": "https://login.example/authorize",
            "token_endpoint": "https://login.example/token",
            "code_challenge_methods_supported": ["plain", "S256"],
        });
        for (key, value) in changes.as_object().unwrap() {
            metadata[key] = value.clone();
        }
        serde_json::from_value(metadata).unwrap()
    }

    #[test]
    fn a_server_that_could_be_misused_is_refused() {
        let server = Url::parse("https://mcp.example/").unwrap();
        let web = Web::new(Clients::guarded(), server, &["codes.example".to_owned()]);
        let iss = "authorization_response_iss_parameter_supported";
        for (changes, expected) in [
            (json!({}), None),
            (
                json!({"code_challenge_methods_supported": null}),
                Some("PKCE"),
            ),
            (
                json!({"code_challenge_methods_supported": ["plain"]}),
                Some("PKCE"),
            ),
            (
                json!({"response_types_supported": ["token"]}),
                Some("no codes"),
            ),
            (
                json!({"authorization_endpoint": "javascript:alert(1)"}),
                Some("javascript"),
            ),
            (
                json!({"authorization_endpoint": "file:///etc/passwd"}),
                Some("file"),
            ),
            (
                json!({"authorization_endpoint": "http://login.example/"}),
                Some("not https"),
            ),
            (
                json!({"token_endpoint": "http://login.example/"}),
                Some("not https"),
            ),
            (
                json!({"token_endpoint": "https://10.1.2.3/"}),
                Some("private network"),
            ),
            (
                json!({"registration_endpoint": "http://127.0.0.1/"}),
                Some("this machine"),
            ),
            (
                json!({"token_endpoint": "https://other.example/"}),
                Some("RFC 9207"),
            ),
            (
                json!({"token_endpoint": "https://other.example/", iss: true}),
                None,
            ),
            (json!({"token_endpoint": "https://codes.example/"}), None),
            // The server's own host is not the operator's word for this.
            (
                json!({"token_endpoint": "https://mcp.example/"}),
                Some("RFC 9207"),
            ),
            (
                json!({"token_endpoint": "https://login.example:444/"}),
                Some("RFC 9207"),
            ),
        ] {
            let metadata = found(&changes);
            let outcome = checked(&metadata, true, &web);
            match (&outcome, expected) {
                (Ok(_), None) => {}
                (Err(why), Some(expected)) => assert!(why.contains(expected), "{why}"),
                _ => panic!("{changes}: {outcome:?}"),
            }
        }
    }
}
