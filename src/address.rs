//! Where a daemon is that runs already: by the address of its page, of its WebSocket, or of what it is below. Pure.

use reqwest::Url;
use secrecy::SecretString;

/// What an address looks like.
const EXPECTED: &str =
    "expected an address such as http://127.0.0.1:4517, ws://HOST:PORT/ws or wss://HOST/ws";

/// The address of a daemon, and the token that was in it.
#[derive(Debug)]
pub(crate) struct Address {
    /// Its WebSocket.
    socket: Url,
    /// The token, where there was one.
    pub(crate) token: Option<SecretString>,
}

impl Address {
    /// Reads what `--url` says. An error does not repeat it: a token or a password may be in it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("--url: {why}; {EXPECTED}");
        let mut url = Url::parse(text).map_err(|error| match text.contains("://") {
            true => wrong(&error.to_string()),
            false => wrong("it is no whole address"),
        })?;
        let (scheme, is_socket) = match url.scheme() {
            "ws" => ("ws", true),
            "wss" => ("wss", true),
            "http" => ("ws", false),
            "https" => ("wss", false),
            _ => return Err(wrong("it has another scheme")),
        };
        if url.set_scheme(scheme).is_err() || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong("it names no host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(
                "it has a user or a password, and a daemon takes a token alone",
            ));
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
        let path = url.path().trim_end_matches('/');
        // A socket may be anywhere; below a page it is where the daemon has it.
        if path.is_empty() || !is_socket {
            let path = format!("{}/ws", path.strip_suffix("/ws").unwrap_or(path));
            url.set_path(&path);
        }
        Ok(Self {
            socket: url,
            token: token.map(SecretString::from),
        })
    }

    /// Returns its WebSocket, e.g. `ws://127.0.0.1:4517/ws`.
    pub(crate) fn socket(&self) -> &str {
        self.socket.as_str()
    }

    /// Returns what its routes over HTTP are below, with a slash at the end.
    pub(crate) fn base(&self) -> Url {
        let mut url = self.socket.clone();
        let path = url.path().trim_end_matches('/');
        let path = format!("{}/", path.strip_suffix("/ws").unwrap_or(path));
        url.set_path(&path);
        // From `ws` to `http` is always possible.
        let is_plain = url.scheme() == "ws";
        url.set_scheme(if is_plain { "http" } else { "https" })
            .unwrap_or_default();
        url
    }
}

fn token_in(url: &Url) -> Option<String> {
    let mut pairs = url.query_pairs();
    let (_, token) = pairs.find(|(name, value)| name == "token" && !value.is_empty())?;
    Some(token.into_owned())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_daemon_is_named_by_its_page_or_its_socket() {
        let local = ("ws://127.0.0.1:4517/ws", "http://127.0.0.1:4517/");
        for (text, (socket, base), token) in [
            ("ws://127.0.0.1:4517/ws", local, None),
            ("ws://127.0.0.1:4517", local, None),
            ("http://127.0.0.1:4517", local, None),
            ("http://127.0.0.1:4517/", local, None),
            ("http://127.0.0.1:4517/ws/", local, None),
            ("http://127.0.0.1:4517/#token=a-b_c", local, Some("a-b_c")),
            ("ws://127.0.0.1:4517/ws?token=x%2By", local, Some("x+y")),
            (
                "ws://[::1]:4517/ws",
                ("ws://[::1]:4517/ws", "http://[::1]:4517/"),
                None,
            ),
            (
                "https://example.org",
                ("wss://example.org/ws", "https://example.org/"),
                None,
            ),
            (
                "wss://example.org/out/ws",
                ("wss://example.org/out/ws", "https://example.org/out/"),
                None,
            ),
            (
                "https://example.org/out",
                ("wss://example.org/out/ws", "https://example.org/out/"),
                None,
            ),
            (
                "wss://example.org/chat",
                ("wss://example.org/chat", "https://example.org/chat/"),
                None,
            ),
        ] {
            let address = Address::parse(text).unwrap();
            let base_found = address.base();
            assert_eq!(
                (address.socket(), base_found.as_str()),
                (socket, base),
                "{text}"
            );
            let found = address.token.as_ref().map(|it| it.expose_secret());
            assert_eq!(found, token, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_and_not_repeated() {
        for text in [
            "foo",
            "127.0.0.1:4517",
            "ftp://x",
            "",
            "http://",
            "/tmp/x#token=secret",
            "http://me:secret@127.0.0.1:4517",
            "ws://secret@127.0.0.1:4517/ws",
            "http://me:secret@:4517",
            "http://me:a?secret@host",
            "http://host:secret/",
        ] {
            let problem = Address::parse(text).unwrap_err();
            assert!(problem.contains("expected an address"), "{text}: {problem}");
            assert!(!problem.contains("secret"), "{problem}");
            assert!(!problem.contains("relative"), "{problem}");
        }
    }
}
