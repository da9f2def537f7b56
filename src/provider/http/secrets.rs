//! What an instance is trusted with, taken out of what its server says: errors and recordings.
//!
//! A server may repeat the key it was given. Here the key is known, so that it goes whatever it looks
//! like; what only looks like one goes by `error::redact`.

use secrecy::ExposeSecret;

use crate::config::ProviderConfig;
use crate::provider::ProviderError;
use crate::provider::error::REDACTED;

/// Shortest text taken for a secret, in bytes: a shorter one occurs by chance.
const MIN_BYTES: usize = 8;

/// The secrets of one instance in the forms in which servers repeat them.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// The key, and what is secret in the extra headers.
    pub(crate) fn of(config: &ProviderConfig) -> Self {
        let key = config
            .api_key
            .iter()
            .map(|key| key.expose_secret().trim().to_owned());
        let headers = config.headers.iter();
        let values = headers.flat_map(|(name, value)| value.secrets(name));
        let mut forms = Vec::new();
        for secret in key.chain(values.map(|value| value.expose_secret().to_owned())) {
            // As some write it in JSON.
            forms.push(secret.replace('/', "\\/"));
            forms.push(secret);
        }
        forms.retain(|form| form.len() >= MIN_BYTES);
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        Self(forms)
    }

    /// Returns an error without them, also where its message was cut within one.
    pub(crate) fn clean(&self, mut error: ProviderError) -> ProviderError {
        let others = [&mut error.error_type, &mut error.code];
        for field in others.into_iter().flatten().chain([&mut error.message]) {
            for secret in &self.0 {
                *field = field.replace(secret, REDACTED);
                cut_tail(field, secret);
            }
        }
        error
    }

    /// Overwrites them in bytes that keep their length.
    pub(crate) fn mask(&self, bytes: &mut [u8]) {
        for secret in &self.0 {
            let found: Vec<usize> = memchr::memmem::find_iter(bytes, secret).collect();
            for start in found {
                if let Some(place) = bytes.get_mut(start..start + secret.len()) {
                    place.fill(b'*');
                }
            }
        }
    }

    /// Overwrites them in text.
    pub(crate) fn mask_text(&self, text: &str) -> String {
        let secrets = self.0.iter();
        secrets.fold(text.to_owned(), |text, secret| {
            text.replace(secret, REDACTED)
        })
    }
}

/// Drops the beginning of a secret that a message was cut in.
fn cut_tail(message: &mut String, secret: &str) {
    let Some(cut) = message.strip_suffix('…') else {
        return;
    };
    let longest = (MIN_BYTES..secret.len())
        .rev()
        .filter_map(|bytes| secret.get(..bytes))
        .find(|beginning| cut.ends_with(beginning));
    if let Some(beginning) = longest {
        let end = cut.len() - beginning.len();
        message.truncate(end);
        message.push('…');
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::config::ProviderKind;
    use crate::provider::ErrorKind;
    use crate::provider::testing;

    fn secrets() -> Secrets {
        let mut config = testing::config(ProviderKind::Chat, "generic", "http://host");
        config.api_key = Some(SecretString::from("hunter2/hunter2 \n".to_owned()));
        config
            .headers
            .insert("x-token".to_owned(), "Basic abcdefgh".into());
        config
            .headers
            .insert("x-team".to_owned(), "production".into());
        Secrets::of(&config)
    }

    #[test]
    fn errors_lose_what_the_server_repeats() {
        let cases = [
            ("no hunter2/hunter2!", "no [redacted]!"),
            (r#"{"key":"hunter2\/hunter2"}"#, r#"{"key":"[redacted]"}"#),
            ("Basic abcdefgh", "[redacted]"),
            ("x abcdefgh", "x [redacted]"),
            ("no production here", "no production here"),
            ("a long page: hunter2/hun…", "a long page: …"),
            ("a long page: hunter…", "a long page: hunter…"),
        ];
        for (message, expected) in cases {
            let mut error = ProviderError::new(ErrorKind::Unknown, message);
            error.code = Some("hunter2/hunter2".to_owned());
            let error = secrets().clean(error);
            assert_eq!(error.message, expected);
            assert_eq!(error.code.as_deref(), Some("[redacted]"));
        }
    }

    #[test]
    fn recordings_keep_their_length() {
        let mut bytes = b"a hunter2/hunter2hunter2/hunter2 abcdefgh".to_vec();
        secrets().mask(&mut bytes);
        assert_eq!(
            bytes,
            b"a ****************************** ********".as_slice()
        );
        assert_eq!(secrets().mask_text("to hunter2/hunter2"), "to [redacted]");
    }
}
