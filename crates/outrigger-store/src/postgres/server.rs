//! Which server it is, and how it is reached: nothing that is shown of it has the user's name or the password.

mod tls;
mod words;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Manager, ManagerConfig, Object, Pool, RecyclingMethod};
use percent_encoding::percent_decode_str;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::schema::NAME;
use crate::Error;
pub(super) use words::{described, gives_way, is_refusal, refused};

/// For how long a connection is waited for, and for how long an answer is when nothing comes.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(15);

/// What each connection says first, before anything else: names are looked up in the store's own schema alone, whatever
/// others made elsewhere, and nothing takes for ever.
const OPTIONS: &str = "-c statement_timeout=60s -c lock_timeout=10s";

/// The same for one that writes, of all users: a transaction whose connection was lost must not be waited for long.
const OPTIONS_OF_WRITER: &str =
    "-c outrigger.everyone=on -c idle_in_transaction_session_timeout=10s";

/// What may stand behind the `?` of an address beside `sslmode` and `sslrootcert`.
const KNOWN: [&str; 11] = [
    "host",
    "hostaddr",
    "port",
    "user",
    "password",
    "dbname",
    "application_name",
    "options",
    "target_session_attrs",
    "load_balance_hosts",
    "channel_binding",
];

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
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (decoded(key), decoded(value));
            let (Some(key), Some(value)) = (key, value) else {
                return Err(wrong("what stands behind its ? is no UTF-8"));
            };
            match (&*key, &*value) {
                ("sslmode", "disable") => encrypted = Encrypted::No,
                ("sslmode", "require" | "verify-full") => encrypted = Encrypted::Yes,
                ("sslmode", _) => {
                    return Err(wrong(
                        "sslmode is one of verify-full (or require, which is the same here) and disable",
                    ));
                }
                ("sslrootcert", _) => roots = Some(value),
                (known, _) if KNOWN.contains(&known) => rest.push(pair),
                _ => {
                    let known = KNOWN.join(", ");
                    return Err(wrong(&format!(
                        "behind its ? stands what is not known here; known are sslmode, sslrootcert, {known}"
                    )));
                }
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
        let theirs = config.get_options().unwrap_or_default().to_owned();
        config
            .options(format!("{theirs} {OPTIONS} -c search_path={NAME},pg_temp"))
            .connect_timeout(CONNECT)
            .tcp_user_timeout(SILENCE)
            .keepalives_idle(SILENCE)
            .keepalives_interval(SILENCE / 3)
            .keepalives_retries(3);
        let is_encrypted = match encrypted {
            Encrypted::No => false,
            Encrypted::Yes => true,
            Encrypted::ByHost => !is_near(&config),
        };
        config.ssl_mode(match is_encrypted {
            true => SslMode::Require,
            false => SslMode::Disable,
        });
        let tls = match is_encrypted {
            true => Some(tls::connector(roots.as_deref()).map_err(|problem| wrong(&problem))?),
            false => None,
        };
        let shown = shown(&config).into();
        Ok(Self { config, tls, shown })
    }

    /// Returns what makes connections.
    pub(super) fn manager(&self) -> Manager {
        self.manager_of(self.config.clone())
    }

    fn manager_of(&self, config: Config) -> Manager {
        let how = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        match &self.tls {
            Some(tls) => Manager::from_config(config, tls.clone(), how),
            None => Manager::from_config(config, NoTls, how),
        }
    }

    /// Makes a connection that is in no pool; the error is for people.
    pub(super) async fn connect(&self) -> Result<ClientWrapper, String> {
        self.connect_by(self.config.clone()).await
    }

    /// Makes the connection of who writes.
    pub(super) async fn connect_to_write(&self) -> Result<ClientWrapper, String> {
        let mut config = self.config.clone();
        let options = config.get_options().unwrap_or_default();
        let options = format!("{options} {OPTIONS_OF_WRITER}");
        config.options(options);
        self.connect_by(config).await
    }

    async fn connect_by(&self, config: Config) -> Result<ClientWrapper, String> {
        let pool = Pool::builder(self.manager_of(config)).max_size(1).build();
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

fn decoded(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.ok().map(std::borrow::Cow::into_owned)
}

/// Returns whether all that may be connected to is this machine: the addresses, where they are named beside the hosts.
fn is_near(config: &Config) -> bool {
    let is_here = |host: &Host| match host {
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            name == "localhost" || address.is_ok_and(|it| it.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    let addresses = config.get_hostaddrs();
    config.get_hosts().iter().all(is_here) && addresses.iter().all(std::net::IpAddr::is_loopback)
}

fn shown(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(folder) => folder.display().to_string(),
    });
    let mut hosts: Vec<String> = hosts.collect();
    if hosts.is_empty() {
        let addresses = config.get_hostaddrs().iter();
        hosts = addresses.map(ToString::to_string).collect();
    }
    let ports = config.get_ports();
    let places = hosts.iter().enumerate().map(|(at, host)| {
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        }
    });
    let places = places.collect::<Vec<_>>().join(" or ");
    let database = config.get_dbname().unwrap_or("of its user's name");
    format!("the database {database} at {places}")
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
            (
                "postgres://me:secret@one.example:1,two.example:2/db?sslmode=disable",
                "the database db at one.example:1 or two.example:2",
            ),
            (
                "postgres://me@/db?hostaddr=::1&sslmode=disable",
                "the database db at [::1]:5432",
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
            "postgres://me:secret@host/db?ret@=1",
            "postgres://me:secret@host/db?sslmode=require&sslrootcert=/ret@",
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
            (
                "postgres://me@localhost/db?hostaddr=8.8.8.8",
                SslMode::Require,
            ),
            (
                "postgres://me@localhost/db?host%61ddr=8.8.8.8",
                SslMode::Require,
            ),
            ("postgres://me@/db?hostaddr=8.8.8.8", SslMode::Require),
            ("postgres://me@/db?hostaddr=127.0.0.1", SslMode::Disable),
            ("postgres://me@localhost,db.example/db", SslMode::Require),
            (
                "postgres://me@localhost/db?sslm%6Fde=verify-full",
                SslMode::Require,
            ),
        ] {
            let server = Server::read(url).unwrap();
            assert_eq!(server.config.get_ssl_mode(), expected, "{url}");
        }
    }
}
