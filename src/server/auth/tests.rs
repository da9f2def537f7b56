//! Tokens × origins × hosts, look-alikes included: only the cells that are meant to open do.

use axum::http::HeaderValue;
use futures::FutureExt as _;

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const OBSERVER: &str = "fedcba9876543210fedcba9876543210";

fn gate() -> Gate {
    Gate::new(
        vec![
            (SocketRole::Driver, SecretString::from(TOKEN)),
            (SocketRole::Observer, SecretString::from(OBSERVER)),
        ],
        vec!["app://frontend".to_owned(), "file://".to_owned()],
        vec!["daemon.lan".to_owned()],
    )
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

/// Returns what somebody is granted who comes from this address; what is none is not known.
fn granted(gate: &Gate, uri: &str, headers: &HeaderMap, from: &str) -> Option<Arc<Grant>> {
    let (uri, from) = (uri.parse().unwrap(), from.parse().ok());
    // Nothing is waited for where no key has to be read.
    let checked = gate.check(&uri, headers, from).now_or_never();
    checked.unwrap().ok()
}

fn source(pairs: &[(&'static str, &str)]) -> &'static str {
    match gate().check_source(&Uri::from_static("/ws"), &headers(pairs)) {
        Ok(()) => "ok",
        Err(denied) => denied.code,
    }
}

#[test]
fn hosts() {
    for host in [
        "localhost",
        "LOCALHOST:4517",
        "127.0.0.1",
        "127.0.0.1:1",
        "[::1]:4517",
        "daemon.lan",
        "Daemon.LAN:80",
    ] {
        assert_eq!(source(&[("host", host)]), "ok", "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:4517",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil-localhost",
        "localhost:4517@evil.example",
        "localhost:x",
        "localhost:65536",
        "localhost:80:80",
        "127.0.0.2",
        "0.0.0.0",
        "[::1",
        "[::1]evil",
        "::1",
        "",
        "daemon.lan.evil",
        " localhost",
    ] {
        assert_eq!(source(&[("host", host)]), "host_not_allowed", "{host}");
    }
    assert_eq!(source(&[]), "host_not_allowed");
    assert_eq!(
        source(&[("host", "localhost"), ("host", "evil.example")]),
        "host_not_allowed"
    );
    let absolute = Uri::from_static("http://evil.example/ws");
    assert!(
        gate()
            .check_source(&absolute, &headers(&[("host", "localhost")]))
            .is_err()
    );
}

#[test]
fn origins() {
    for origin in [
        "http://localhost",
        "https://localhost:3000",
        "http://127.0.0.1:5173",
        "http://[::1]:8080",
        "app://frontend",
        "file://",
    ] {
        assert_eq!(
            source(&[("host", "localhost"), ("origin", origin)]),
            "ok",
            "{origin}"
        );
    }
    for origin in [
        "null",
        "",
        "http://evil.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example/http://localhost",
        "http://localhost/",
        "http://localhost#",
        "http://127.0.0.1.evil.example",
        "http://evil.example:80#@localhost",
        "ws://localhost",
        "ftp://localhost",
        "HTTP://localhost.",
        "app://frontend.evil",
        "app://Frontend",
        "app://other",
        "file:///etc",
        "chrome-extension://localhost",
        "http://daemon.lan",
    ] {
        assert_eq!(
            source(&[("host", "localhost"), ("origin", origin)]),
            "origin_not_allowed",
            "{origin}"
        );
    }
    assert_eq!(
        source(&[
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("origin", "http://evil.example"),
        ]),
        "origin_not_allowed"
    );
}

#[test]
fn a_token_is_for_its_role() {
    let role = |token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = headers(&[("authorization", &bearer)]);
        granted(&gate(), "/ws", &headers, "127.0.0.1").map(|grant| grant.role)
    };
    assert_eq!(role(TOKEN), Some(SocketRole::Driver));
    assert_eq!(role(OBSERVER), Some(SocketRole::Observer));
    assert_eq!(role(""), None);
    assert_eq!(role(TOKEN.get(1..).unwrap()), None);
}

#[test]
fn tokens() {
    let bearer = format!("Bearer {TOKEN}");
    let protocol = format!("outrigger.v1, bearer.{TOKEN}");
    let query = format!("/ws?token={TOKEN}");
    let check = |uri: &str, pairs: &[(&'static str, &str)]| {
        granted(&gate(), uri, &headers(pairs), "127.0.0.1").is_some()
    };
    assert!(check("/ws", &[("authorization", &bearer)]));
    assert!(check(
        "/ws",
        &[("authorization", &bearer.replace("Bearer", "bearer"))]
    ));
    assert!(check("/ws", &[("sec-websocket-protocol", &protocol)]));
    assert!(check(&query, &[]));

    assert!(!check("/ws", &[]));
    assert!(!check("/ws?token=", &[]));
    assert!(!check(&query, &[("origin", "http://localhost:3000")]));
    assert!(!check("/ws", &[("authorization", "Bearer ")]));
    assert!(!check("/ws", &[("authorization", TOKEN)]));
    assert!(!check(
        "/ws",
        &[("authorization", &format!("Basic {TOKEN}"))]
    ));
    assert!(!check("/ws", &[("authorization", &format!("{bearer}x"))]));
    assert!(!check("/ws", &[("sec-websocket-protocol", "bearer.wrong")]));
    // A wrong header is not made good by a right query.
    assert!(!check(&query, &[("authorization", "Bearer wrong")]));
}

#[test]
fn a_proxy_names_the_user_and_nobody_else_does() {
    let gate = gate().for_users(
        None,
        Some(HeaderConfig {
            name: "x-auth-user".to_owned(),
            from: vec![("10.0.0.5".parse().unwrap(), 32)],
            operators: ["olga".to_owned()].into(),
        }),
    );
    let bearer = format!("Bearer {TOKEN}");
    let long = "x".repeat(MAX_NAME + 1);
    let proxy = "10.0.0.5";
    for (from, pairs, expected) in [
        (proxy, vec![("x-auth-user", "anna")], Some(("anna", false))),
        (proxy, vec![("X-Auth-User", "olga")], Some(("olga", true))),
        ("10.0.0.6", vec![("x-auth-user", "anna")], None),
        ("127.0.0.1", vec![("x-auth-user", "anna")], None),
        ("not known", vec![("x-auth-user", "anna")], None),
        (
            proxy,
            vec![("x-auth-user", "anna"), ("x-auth-user", "ben")],
            None,
        ),
        (proxy, vec![("x-auth-user", "")], None),
        (proxy, vec![("x-auth-user", " ")], None),
        (proxy, vec![("x-auth-user", long.as_str())], None),
        (proxy, vec![], None),
        // What the proxy says counts; where it says nothing, and from elsewhere, the token does.
        (
            proxy,
            vec![("x-auth-user", "anna"), ("authorization", bearer.as_str())],
            Some(("anna", false)),
        ),
        (
            proxy,
            vec![("authorization", bearer.as_str())],
            Some(("", true)),
        ),
        (
            "10.0.0.6",
            vec![("x-auth-user", "anna"), ("authorization", bearer.as_str())],
            Some(("", true)),
        ),
    ] {
        let pairs: Vec<(&'static str, &str)> = pairs
            .into_iter()
            .map(|(name, value)| {
                if name == "authorization" {
                    (name, value)
                } else {
                    ("x-auth-user", value)
                }
            })
            .collect();
        let grant = granted(&gate, "/ws", &headers(&pairs), from);
        let found = grant.as_ref().map(|it| (it.user.as_str(), it.is_operator));
        assert_eq!(found, expected, "{from} {pairs:?}");
    }
}

#[test]
fn a_pass_is_good_for_what_it_names_alone() {
    let secret = SecretString::from("a secret of the cluster, of 32 characters");
    let address = "http://10.0.0.5:4517".to_owned();
    let gate = gate().for_cluster(Some(&secret), Some(address.clone()));
    let key = "dGhlIHNhbXBsZSBub25jZQ==";
    let pass = |path: &str, session: Option<&str>| {
        let asked = Asked {
            address: address.clone(),
            path: path.to_owned(),
            socket: session.map(|session| AskedSocket {
                session: session.to_owned(),
                key: key.to_owned(),
            }),
        };
        let passes = gate.passes().unwrap();
        passes.write(asked, &Grant::default()).unwrap()
    };
    for (path, session, uri, is_good) in [
        ("/ws", Some("s"), "/ws?session=s", true),
        ("/ws", Some("s"), "/ws?session=t", false),
        ("/ws", Some("s"), "/ws", false),
        ("/ws", None, "/ws?session=s", false),
        ("/acp", Some("s"), "/acp?session=s", false),
        ("/ws", Some("s"), "/admin/sessions?session=s", false),
        ("/admin/nodes", None, "/admin/nodes", true),
        ("/admin/nodes", None, "/admin/nodes?here=1", true),
        ("/admin/nodes", None, "/admin/sessions", false),
        ("/admin/nodes", Some("s"), "/admin/nodes", false),
        ("/admin/sessions", None, "/admin/sessions", true),
        ("/admin/nodes", None, "/ws?session=/admin/nodes", false),
        ("/admin/drain", None, "/admin/drain", false),
        ("/metrics", None, "/metrics", false),
        ("/ws", Some(""), "/ws?session=", true),
    ] {
        let given = headers(&[
            ("x-outrigger-pass", &pass(path, session)),
            ("sec-websocket-key", key),
            ("host", "10.0.0.5:4517"),
        ]);
        let granted = granted(&gate, uri, &given, "10.0.0.6");
        assert_eq!(granted.is_some(), is_good, "{path} {session:?} {uri}");
        let source = gate.check_source(&uri.parse().unwrap(), &given);
        assert_eq!(source.is_ok(), is_good, "{path} {session:?} {uri}");
    }
    // Of another socket, and of none.
    let pass = pass("/ws", Some("s"));
    for other in [Some("AAAAAAAAAAAAAAAAAAAAAA=="), None] {
        let other = other.map(|key| ("sec-websocket-key", key));
        let pairs: Vec<_> = [("x-outrigger-pass", pass.as_str())]
            .into_iter()
            .chain(other)
            .collect();
        assert!(granted(&gate, "/ws?session=s", &headers(&pairs), "10.0.0.6").is_none());
    }
}
