//! Which server it is, and how it is reached: nothing that is shown of it has the user's name or the password.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod,
};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Error;

/// For how long a connection is waited for, and for how long an answer is when nothing comes.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(15);

/// How a server is reached, and how it is called.
#[derive(Clone)]
pub(super) struct Server {
    config: Config,
    /// None where what is said is not encrypted.
    tls: Option<MakeRustlsConnect>,
    pub(super) shown: Arc<str>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.shown).finish()
    }
}

/// Whether what is said is encrypted, and whether it is sure to whom.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encrypted {
    No,
    /// And the certificate is looked at.
    Yes,
    /// As far as that goes without a word: not on this machine.
    ByHost,
}

impl Server {
    /// Reads `postgres://user:password@host:port/database?sslmode=…`.
    pub(super) fn read(url: &str) -> Result<Self, Error> {
        let wrong = |problem: &str| Error::Open {
            path: "the database of store.url".to_owned(),
            problem: problem.to_owned(),
        };
        let is_postgres = ["postgres://", "postgresql://"]
            .iter()
            .any(|it| url.starts_with(it));
        if !is_postgres {
            return Err(wrong(
                "its address has to be postgres://USER:PASSWORD@HOST:PORT/DATABASE",
            ));
        }
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        if address.matches('@').count() > 1
            || address.contains('#')
            || query.contains('#')
            || address.matches('/').count() > 3
        {
            return Err(wrong(
                "signs of its address that mean something have to be written otherwise: @ as %40, / as %2F, # as %23, ? as %3F",
            ));
        }
        let mut encrypted = Encrypted::ByHost;
        let mut roots = None;
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|it| !it.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", "disable")) => encrypted = Encrypted::No,
                Some(("sslmode", "require" | "verify-full")) => encrypted = Encrypted::Yes,
                Some(("sslmode", _)) => {
                    return Err(wrong(
                        "sslmode is one of verify-full (or require, which is the same here) and disable",
                    ));
                }
                Some(("sslrootcert", file)) => roots = Some(file.to_owned()),
                _ => rest.push(pair),
            }
        }
        let plain = format!("{address}?{}", rest.join("&"));
        let mut config: Config = plain
            .trim_end_matches('?')
            .parse()
            .map_err(|error: tokio_postgres::Error| wrong(&described(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("its address names no host"));
        }
        if config.get_application_name().is_none() {
            config.application_name("outrigger");
        }
        config
            .connect_timeout(CONNECT)
            .tcp_user_timeout(SILENCE)
            .keepalives_idle(SILENCE)
            .keepalives_interval(SILENCE / 3)
            .keepalives_retries(3);
        let is_near = config.get_hosts().iter().all(is_near);
        let is_encrypted = match encrypted {
            Encrypted::No => false,
            Encrypted::Yes => true,
            Encrypted::ByHost => !is_near,
        };
        config.ssl_mode(match is_encrypted {
            true => SslMode::Require,
            false => SslMode::Disable,
        });
        let tls = match is_encrypted {
            true => Some(tls(roots.as_deref()).map_err(|problem| wrong(&problem))?),
            false => None,
        };
        let shown = shown(&config).into();
        Ok(Self { config, tls, shown })
    }

    /// Returns what makes connections.
    pub(super) fn manager(&self) -> Manager {
        let how = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        match &self.tls {
            Some(tls) => Manager::from_config(self.config.clone(), tls.clone(), how),
            None => Manager::from_config(self.config.clone(), NoTls, how),
        }
    }

    /// Makes a connection that is in no pool; the error is for people.
    pub(super) async fn connect(&self) -> Result<ClientWrapper, String> {
        let pool = Pool::builder(self.manager()).max_size(1).build();
        let pool = pool.map_err(|error| error.to_string())?;
        match tokio::time::timeout(CONNECT, pool.get()).await {
            Ok(Ok(client)) => Ok(Object::take(client)),
            Ok(Err(error)) => Err(refused(&error)),
            Err(_) => Err("it does not answer".to_owned()),
        }
    }

    pub(super) fn error(&self, problem: String) -> Error {
        Error::Open {
            path: self.shown.to_string(),
            problem,
        }
    }
}

/// Returns whether a host is this machine.
fn is_near(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            name == "localhost" || address.is_ok_and(|it| it.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn shown(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => "its address".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().unwrap_or("the user's");
    format!("the database {database} at {host}:{port}")
}

/// Returns how a server's certificate is looked at: by the authorities that the machine trusts, or those in a file.
fn tls(roots: Option<&str>) -> Result<MakeRustlsConnect, String> {
    use rustls::pki_types::{CertificateDer, pem::PemObject as _};
    let mut store = RootCertStore::empty();
    match roots {
        Some(file) => {
            let wrong = |error: &dyn fmt::Display| format!("sslrootcert {file}: {error}");
            let found = CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                store.add(certificate).map_err(|error| wrong(&error))?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
        }
    }
    if store.is_empty() {
        return Err(
            "no authority is known that its certificate could be looked at by; name a file by sslrootcert=".to_owned(),
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Returns why there is no connection, for people.
pub(super) fn refused(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) => described(error),
        error => error.to_string(),
    }
}

/// Returns an error for people: what the server says, or else what the machine does. Not its details, which may have what
/// was written.
pub(super) fn described(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("{} ({})", said.message(), said.code().code());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Returns whether what was sent is wrong, so that trying again does not help; else the server is not as it should be.
pub(super) fn is_refusal(error: &tokio_postgres::Error) -> bool {
    let Some(said) = error.as_db_error() else {
        // A parameter that is not what the statement takes.
        return error.to_string().contains("serializing parameter");
    };
    let code = said.code().code();
    // Data, constraints, limits of the server; and statements that are wrong, but for what is missing or not allowed.
    let is_wrong = ["22", "23", "54", "42"]
        .iter()
        .any(|it| code.starts_with(it));
    is_wrong && !["42501", "42P01", "42704"].contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_user_and_password() {
        for (url, expected) in [
            (
                "postgres://me:secret@127.0.0.1/db",
                "the database db at 127.0.0.1:5432",
            ),
            (
                "postgresql://me:s%40cret@db.example:6432/db?sslmode=disable",
                "the database db at db.example:6432",
            ),
            (
                "postgres://me:secret@%2Frun%2Fpostgresql/db",
                "the database db at /run/postgresql:5432",
            ),
        ] {
            let server = Server::read(url).unwrap();
            assert_eq!(&*server.shown, expected);
            assert!(!format!("{server:?}").contains("me"), "{server:?}");
        }
    }

    #[test]
    fn a_wrong_address_is_refused_and_not_shown() {
        for url in [
            "",
            "mysql://me:secret@host/db",
            "host=x password=secret",
            "postgres://me:secret@",
            "postgres://me:sec@ret@host/db",
            "postgres://me:sec/ret@host/db",
            "postgres://me:secret@host:port/db",
            "postgres://me:secret@host/db?sslmode=prefer",
            "postgres://me:secret@host/db?secret=1",
            "postgres://me:secret@host/db?sslmode=require&sslrootcert=/none",
            "postgres://me:sec#ret@host/db",
        ] {
            let problem = Server::read(url).unwrap_err().to_string();
            assert!(!problem.contains("ret@"), "{problem}");
            assert!(!problem.contains("me:"), "{problem}");
        }
    }

    #[test]
    fn what_leaves_the_machine_is_encrypted_unless_said_otherwise() {
        for (url, expected) in [
            ("postgres://me@localhost/db", SslMode::Disable),
            ("postgres://me@[::1]/db", SslMode::Disable),
            ("postgres://me@db.example/db", SslMode::Require),
            (
                "postgres://me@db.example/db?sslmode=disable",
                SslMode::Disable,
            ),
            (
                "postgres://me@localhost/db?sslmode=verify-full",
                SslMode::Require,
            ),
        ] {
            let server = Server::read(url).unwrap();
            assert_eq!(server.config.get_ssl_mode(), expected, "{url}");
        }
    }
}
