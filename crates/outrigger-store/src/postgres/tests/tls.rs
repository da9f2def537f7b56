//! Servers that encrypt, and what is said of those whose certificate does not do.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::*;

/// A certificate and its key, as files have them.
struct Pair {
    certificate: String,
    key: String,
}

/// Returns an authority, and what it signed for the name `localhost`.
fn authority() -> (Pair, Pair) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pair = |certificate: &rcgen::Certificate, key: &KeyPair| Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    };
    let own = pair(&params.self_signed(&key).unwrap(), &key);
    let issuer = Issuer::new(params, key);
    let signed = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let signed_key = KeyPair::generate().unwrap();
    let certificate = signed.signed_by(&signed_key, &issuer).unwrap();
    (own, pair(&certificate, &signed_key))
}

/// Sets something of a server, and waits until new connections have it.
fn set(server: &servers::Server, name: &str, value: &str) {
    server.sql("postgres", &format!("ALTER SYSTEM SET {name} = '{value}'"));
    server.sql("postgres", "SELECT pg_reload_conf()");
    wait_until(|| server.sql("postgres", &format!("SHOW {name}")) == value);
}

#[test]
fn a_server_is_spoken_to_only_where_its_certificate_does() {
    let ((own, signed), (other, _)) = (authority(), authority());
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let settings = "listen_addresses = '127.0.0.1'\nssl = on\nssl_cert_file = 'signed.pem'\nssl_key_file = 'signed.key'\n";
    let files = [
        ("signed.pem", signed.certificate),
        ("signed.key", signed.key),
        ("own.pem", own.certificate.clone()),
        ("own.key", own.key),
    ];
    let access = "host all all 127.0.0.1/32 trust\n";
    let Some(server) = servers::Server::start_with(port, settings, access, &files) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    // A name that has to be written otherwise in an address.
    let right = file("our own.pem", &own.certificate).replace(' ', "%20");
    let wrong = file("other.pem", &other.certificate);
    let database = server.database();
    let url = |host: &str, roots: &str| {
        format!(
            "postgres://tester@{host}:{port}/{database}?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={roots}"
        )
    };
    let store = Postgres::start(&url("localhost", &right), &Node::default()).unwrap();
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE application_name = 'outrigger'";
    assert_eq!(server.sql(&database, encrypted), "t");
    drop(store);
    let refused = |url: &str| {
        Postgres::start(url, &Node::default())
            .unwrap_err()
            .to_string()
    };
    for (url, expected) in [
        (
            url("localhost", &wrong),
            "an authority that is not known here",
        ),
        (url("db.example", &right), "for other names than the host"),
    ] {
        let said = refused(&url);
        assert!(said.contains(expected), "{said}");
    }
    set(&server, "ssl_key_file", "own.key");
    set(&server, "ssl_cert_file", "own.pem");
    let said = refused(&url("localhost", &right));
    assert!(said.contains("that of an authority (CA:TRUE)"), "{said}");
    set(&server, "ssl", "off");
    let said = refused(&url("localhost", &right));
    assert!(said.contains("set `ssl = on` there"), "{said}");
}
