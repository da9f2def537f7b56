//! Where a command may connect to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::addresses::{is_elsewhere, is_public};
use crate::command::{Host, HostAnswer, HostQuestion, Ports, RefusedPorts};

/// Most connections at a time of a pod or, where there is none, of a command. A further one fails in a pod, and else waits.
pub(crate) const MAX_CONNECTIONS: usize = 256;

/// Most names that are looked up at a time, likewise; a further one waits. Each takes a thread, and may take it for long.
pub(crate) const MAX_LOOKUPS: usize = 16;

/// Most bytes of a connection that wait to be passed on, in each direction.
pub(crate) const BUFFER: usize = 64 * 1024;

/// The pause after the system refused to accept a connection, for want of descriptors: they come back.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// How long a connection may take to be made. Shorter than the system's, for the thread that asked waits for it.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// What one command may connect to: ports, and hosts where somebody decides about them.
#[derive(Debug)]
pub(crate) struct Destinations {
    ports: Ports,
    own_port: Option<u16>,
    hosts: Option<mpsc::Sender<HostQuestion>>,
    refused_ports: RefusedPorts,
}

impl Destinations {
    pub(crate) fn new(
        ports: Ports,
        own_port: Option<u16>,
        hosts: Option<mpsc::Sender<HostQuestion>>,
        refused_ports: RefusedPorts,
    ) -> Self {
        Self {
            ports,
            own_port,
            hosts,
            refused_ports,
        }
    }

    /// Returns the addresses that may be connected to; `host` is what the command named, and a name takes one of the places
    /// of `lookups`. An error says why there are none.
    pub(crate) async fn targets(
        &self,
        host: Host,
        port: u16,
        lookups: &Arc<Semaphore>,
    ) -> io::Result<Vec<SocketAddr>> {
        if !self.allow_port(&host, port) {
            return Err(Errno::ACCESS.into());
        }
        let allowed = self.ask(host.clone(), port).await?;
        let (found, may_be_private): (Vec<SocketAddr>, _) = match host {
            Host::Address(address) => (vec![(address, port).into()], &Private::All),
            Host::Name(name) => match look_up(name, port, Arc::clone(lookups)).await {
                Ok(found) => (found, &allowed.private),
                Err(error) => {
                    allowed.say(error.to_string());
                    return Err(Errno::HOSTUNREACH.into());
                }
            },
        };
        let mut targets = Vec::new();
        let mut why_not = None;
        for to in found {
            let ip = to.ip();
            let why = if !is_elsewhere(to) {
                "to which no command connects"
            } else if !is_public(ip) && !may_be_private.have(ip) {
                "an address of a private network, which `tools.bash.hosts` does not list"
            } else {
                targets.push(to);
                continue;
            };
            why_not.get_or_insert_with(|| format!("it leads to {ip}, {why}"));
        }
        if targets.is_empty() {
            allowed.say(why_not.unwrap_or_else(|| "it has no address".to_owned()));
            return Err(Errno::ACCESS.into());
        }
        Ok(targets)
    }

    fn allow_port(&self, host: &Host, port: u16) -> bool {
        let is_listed = match &self.ports {
            Ports::Any => true,
            Ports::Only(ports) => ports.contains(&port),
        };
        if !is_listed {
            self.refused_ports.note(host, port);
        }
        is_listed && Some(port) != self.own_port
    }

    /// Waits for the answer of whoever decides about hosts, where somebody does.
    async fn ask(&self, host: Host, port: u16) -> io::Result<Allowed> {
        let Some(hosts) = &self.hosts else {
            return Ok(Allowed {
                private: Private::All,
                no_address: None,
            });
        };
        let (answer, answered) = oneshot::channel();
        let (tell, no_address) = oneshot::channel();
        let question = HostQuestion {
            host,
            port,
            answer,
            no_address,
        };
        let asked = hosts.send(question).await.is_ok();
        match asked.then_some(answered.await) {
            Some(Ok(HostAnswer::Allowed { private })) => Ok(Allowed {
                private: Private::These(private),
                no_address: Some(tell),
            }),
            Some(Ok(HostAnswer::Refused) | Err(_)) | None => Err(Errno::ACCESS.into()),
        }
    }
}

/// What is allowed of a host.
struct Allowed {
    private: Private,
    /// Where whoever decided hears why there is no address to connect to.
    no_address: Option<oneshot::Sender<String>>,
}

impl Allowed {
    fn say(self, why_not: String) {
        if let Some(no_address) = self.no_address {
            // Whoever decided may have gone meanwhile.
            no_address.send(why_not).unwrap_or_default();
        }
    }
}

/// Which addresses of private networks a name may lead to.
enum Private {
    All,
    These(Vec<IpAddr>),
}

impl Private {
    fn have(&self, address: IpAddr) -> bool {
        let is_it = |other: &IpAddr| other.to_canonical() == address.to_canonical();
        match self {
            Self::All => true,
            Self::These(addresses) => addresses.iter().any(is_it),
        }
    }
}

/// Connects to the first of several addresses that answers.
pub(crate) async fn connect(targets: &[SocketAddr]) -> io::Result<TcpStream> {
    let made = timeout(CONNECT_PATIENCE, TcpStream::connect(targets)).await;
    made.map_err(|_| Errno::TIMEDOUT)?
}

/// Looks a name up. Its place is taken until the system's resolver is done, also when nobody waits any more: no thread can
/// be taken from that.
async fn look_up(name: String, port: u16, lookups: Arc<Semaphore>) -> io::Result<Vec<SocketAddr>> {
    let place = lookups.acquire_owned().await.map_err(io::Error::other)?;
    let looking = tokio::spawn(async move {
        let found = lookup_host((name, port)).await;
        drop(place);
        found.map(Vec::from_iter)
    });
    looking.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody is asked for it: it has a blank.
    const NO_HOST: &str = "no host";

    fn host(text: &str) -> Host {
        text.parse()
            .map_or_else(|_| Host::Name(text.to_owned()), Host::Address)
    }

    fn lookups() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(1))
    }

    #[tokio::test]
    async fn only_ports_of_other_machines_are_allowed() {
        let destinations = Destinations::new(
            Ports::Only(vec![443, 4517]),
            Some(4517),
            None,
            RefusedPorts::default(),
        );
        for (to, allowed) in [
            ("203.0.113.7:443", true),
            ("10.0.0.7:443", true),
            ("[2001:db8::1]:443", true),
            ("203.0.113.7:444", false),
            ("203.0.113.7:4517", false),
            ("127.0.0.1:443", false),
            ("127.9.9.9:443", false),
            ("0.0.0.0:443", false),
            ("0.1.2.3:443", false),
            ("169.254.169.254:443", false),
            ("224.0.0.1:443", false),
            ("255.255.255.255:443", false),
            ("[::1]:443", false),
            ("[::]:443", false),
            ("[fe80::1]:443", false),
            ("[ff02::1]:443", false),
            ("[::ffff:127.0.0.1]:443", false),
            ("[::ffff:169.254.169.254]:443", false),
            ("[64:ff9b::169.254.169.254]:443", false),
            ("[64:ff9b::127.0.0.1]:443", false),
            ("100.100.100.200:443", false),
            ("100.100.100.201:443", true),
            ("168.63.129.16:443", false),
            ("192.0.0.192:443", false),
            ("[fd00:ec2::254]:443", false),
            ("[fd20:ce::254]:443", false),
            ("[fd00:ec2::23]:443", false),
            ("[fd00:c1::a9fe:a9fe]:443", false),
            ("[fd00:42::42]:443", false),
            ("[fd00:43::42]:443", true),
            ("[::169.254.169.254]:443", false),
            ("[::ffff:0:127.0.0.1]:443", false),
            ("[2002:c000:c0::1]:443", false),
        ] {
            let to: SocketAddr = to.parse().unwrap();
            let host = Host::Address(to.ip());
            let targets = destinations.targets(host, to.port(), &lookups()).await;
            assert_eq!(targets.ok(), allowed.then(|| vec![to]), "{to}");
        }
        for (own_port, allowed) in [(None, true), (Some(9), false)] {
            let destinations =
                Destinations::new(Ports::Any, own_port, None, RefusedPorts::default());
            let targets = destinations
                .targets(host("203.0.113.7"), 9, &lookups())
                .await;
            assert_eq!(targets.is_ok(), allowed);
        }
    }

    #[tokio::test]
    async fn a_port_that_is_not_listed_is_noted_once_for_each_host() {
        let refused = RefusedPorts::default();
        let ports = Ports::Only(vec![443]);
        let destinations = Destinations::new(ports, Some(443), None, refused.clone());
        let mut tried = vec![("example.org", 80), ("203.0.113.7", 80)];
        // The daemon's own is refused for another reason.
        tried.push(("203.0.113.7", 443));
        tried.extend((1..100).map(|port| ("example.org", port)));
        for (to, port) in [tried.clone(), tried].concat() {
            let targets = destinations.targets(host(to), port, &lookups()).await;
            assert!(targets.is_err(), "{to} {port}");
        }
        let mut expected = vec![(host("example.org"), 80), (host("203.0.113.7"), 80)];
        expected.extend((1..9).map(|port| (host("example.org"), port)));
        assert_eq!(refused.list(), expected);
    }

    #[tokio::test]
    async fn whoever_decides_about_hosts_is_asked_first() {
        let (hosts, mut questions) = mpsc::channel::<HostQuestion>(1);
        let asking = tokio::spawn(async move {
            let mut asked = Vec::new();
            while let Some(question) = questions.recv().await {
                let (host, port) = (question.host.to_string(), question.port);
                let answer = match host.as_str() {
                    "203.0.113.8" => HostAnswer::Refused,
                    _ => HostAnswer::Allowed {
                        private: Vec::new(),
                    },
                };
                question.answer.send(answer).unwrap();
                asked.push(format!("{host} {port}"));
                let why = question.no_address.await.ok();
                match host.as_str() {
                    NO_HOST => assert!(why.is_some()),
                    "localhost" => assert!(why.unwrap().contains("to which no command connects")),
                    _ => assert_eq!(why, None, "{host}"),
                }
            }
            asked
        });
        let destinations = Destinations::new(
            Ports::Only(vec![443]),
            None,
            Some(hosts),
            RefusedPorts::default(),
        );
        for (to, port, allowed) in [
            ("203.0.113.7", 443, true),
            ("203.0.113.8", 443, false),
            ("203.0.113.7", 80, false),
            // Leads to this machine, whoever allowed it.
            ("localhost", 443, false),
            (NO_HOST, 443, false),
        ] {
            let targets = destinations.targets(host(to), port, &lookups()).await;
            assert_eq!(targets.is_ok(), allowed, "{to} {targets:?}");
        }
        drop(destinations);
        let asked = asking.await.unwrap();
        assert_eq!(
            asked,
            [
                "203.0.113.7 443",
                "203.0.113.8 443",
                "localhost 443",
                "no host 443"
            ]
        );
        // Nobody decides any more.
        let (hosts, questions) = mpsc::channel(1);
        drop(questions);
        let destinations =
            Destinations::new(Ports::Any, None, Some(hosts), RefusedPorts::default());
        let targets = destinations
            .targets(host("203.0.113.7"), 443, &lookups())
            .await;
        assert!(targets.is_err());
    }

    #[tokio::test]
    async fn a_name_waits_until_others_are_looked_up() {
        let destinations = Destinations::new(Ports::Any, None, None, RefusedPorts::default());
        let lookups = lookups();
        let place = Arc::clone(&lookups).try_acquire_owned().unwrap();
        let mut looking = std::pin::pin!(destinations.targets(host("localhost"), 443, &lookups));
        assert!(futures::poll!(looking.as_mut()).is_pending());
        drop(place);
        // It leads here, but it was looked up.
        let error = looking.await.unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::ACCESS));
        assert_eq!(lookups.available_permits(), 1);
    }
}
