//! `[webhooks]`: an address that may be sent to, and a secret that can sign.

use secrecy::ExposeSecret as _;
use standardwebhooks::Webhook;

use super::super::WebhooksConfig;
use super::findings::Findings;

/// The bytes that a secret may have, by the scheme.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// What a secret has to be, for error messages.
const SECRET: &str = "must be 24 to 64 bytes in base64, with or without `whsec_` before them; make one with: openssl rand -base64 32";

/// Checks the section; `None` where nobody is to be told anything.
pub(super) fn check(
    mut settings: WebhooksConfig,
    findings: &mut Findings<'_>,
) -> Option<WebhooksConfig> {
    settings.url = settings.url.trim().to_owned();
    if settings.url.is_empty() {
        return None;
    }
    let path = ["webhooks", "url"];
    findings.url(&path, &settings.url);
    let is_plain = settings.url.starts_with("http:");
    if is_plain && !settings.allow_private {
        findings.refuse(
            &path,
            "must be https; http is for this machine and its network alone, with webhooks.allow_private = true",
        );
    }
    let secret = settings.secret.as_ref();
    match secret.map(|secret| is_good(secret.expose_secret())) {
        Some(true) => {}
        Some(false) => findings.refuse(&["webhooks", "secret"], SECRET),
        None => findings.refuse(
            &["webhooks", "secret"],
            format!("is missing, and events are signed: it {SECRET}"),
        ),
    }
    Some(settings)
}

fn is_good(secret: &str) -> bool {
    use base64::Engine as _;

    let bytes = secret.strip_prefix("whsec_").unwrap_or(secret);
    let bytes = base64::engine::general_purpose::STANDARD.decode(bytes);
    bytes.is_ok_and(|bytes| SECRET_BYTES.contains(&bytes.len())) && Webhook::new(secret).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_its_form() {
        for (secret, expected) in [
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", true),
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", true),
            ("whsec_MfKQ9r8GKYqr", false),
            ("whsec_not base64 at all, though long enough", false),
            ("", false),
        ] {
            assert_eq!(is_good(secret), expected, "{secret}");
        }
    }
}
