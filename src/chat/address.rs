//! Where a daemon is: its WebSocket, also by the address that a browser has. Pure.

use reqwest::Url;
use secrecy::SecretString;

/// Where the daemon is.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// The WebSocket, e.g. `ws://127.0.0.1:4517/ws`.
    pub(super) url: String,
    /// The token, where there is one.
    pub(super) token: Option<SecretString>,
    /// Whether a daemon that goes away is waited for.
    pub(super) outlives_daemon: bool,
}

impl Address {
    /// Reads the address of a running daemon: its WebSocket's, or that of its page, with the token in it or without.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "--url {}: {why}; expected ws://HOST:PORT/ws, wss://HOST/ws, or the page's address http://HOST:PORT",
                without_secret(text)
            )
        };
        let mut url = parse(text).map_err(|why| wrong(&why))?;
        let scheme = match url.scheme() {
            "ws" | "http" => "ws",
            "wss" | "https" => "wss",
            _ => return Err(wrong("it has another scheme")),
        };
        let is_changed = url.set_scheme(scheme).is_ok();
        if !is_changed || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong("it names no host"));
        }
        if matches!(url.path(), "" | "/") {
            url.set_path("/ws");
        }
        // The page has it in the fragment, a socket in the query; both are written alike.
        let fragment = url.fragment().map(str::to_owned);
        let token = token_in(&url).or_else(|| {
            let mut other = url.clone();
            other.set_query(fragment.as_deref());
            token_in(&other)
        });
        url.set_fragment(None);
        url.set_query(None);
        Ok(Self {
            url: url.to_string(),
            token: token.map(SecretString::from),
            outlives_daemon: false,
        })
    }
}

/// Parses an address; the error says what is wrong with it.
fn parse(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| match text.contains("://") {
        true => error.to_string(),
        false => "it is no whole address".to_owned(),
    })
}

fn token_in(url: &Url) -> Option<String> {
    let mut pairs = url.query_pairs();
    let (_, token) = pairs.find(|(name, value)| name == "token" && !value.is_empty())?;
    Some(token.into_owned())
}

/// The part of an address that may be shown.
fn without_secret(text: &str) -> &str {
    text.split(['#', '?']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn addresses_of_pages_and_sockets_are_read() {
        for (text, url, token) in [
            ("ws://127.0.0.1:4517/ws", "ws://127.0.0.1:4517/ws", None),
            ("ws://127.0.0.1:4517", "ws://127.0.0.1:4517/ws", None),
            ("http://127.0.0.1:4517", "ws://127.0.0.1:4517/ws", None),
            ("http://127.0.0.1:4517/", "ws://127.0.0.1:4517/ws", None),
            (
                "http://127.0.0.1:4517/#token=a-b_c",
                "ws://127.0.0.1:4517/ws",
                Some("a-b_c"),
            ),
            (
                "ws://[::1]:4517/ws?token=x%2By",
                "ws://[::1]:4517/ws",
                Some("x+y"),
            ),
            ("https://example.org", "wss://example.org/ws", None),
            ("wss://example.org/out/ws", "wss://example.org/out/ws", None),
        ] {
            let address = Address::parse(text).unwrap();
            let read = address.token.as_ref().map(ExposeSecret::expose_secret);
            assert_eq!((address.url.as_str(), read), (url, token), "{text}");
        }
        for text in [
            "foo",
            "127.0.0.1:4517",
            "ftp://x",
            "",
            "http://",
            "/tmp/x#token=secret",
        ] {
            let problem = Address::parse(text).unwrap_err();
            assert!(problem.contains("expected ws://"), "{text}: {problem}");
            assert!(!problem.contains("secret"), "{problem}");
            assert!(!problem.contains("relative"), "{problem}");
        }
    }
}
