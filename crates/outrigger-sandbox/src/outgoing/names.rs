//! Names, looked up for the commands of a pod by a relay on port 53 of its loopback.
//!
//! No question leaves the machine: it could carry what it asks for to a server of the asker's choice. Each name has a
//! placeholder, an address that leads nowhere. What connects to it is connected to the name, where the command may connect
//! to it, and the daemon looks the name up at that moment.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::str;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use simple_dns::rdata::{A, RData};
use simple_dns::{CLASS, Name, OPCODE, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};
use tokio::net::UdpSocket;
use tokio::time::sleep;

use crate::command::Host;
use crate::destinations::PAUSE;

/// Most names of a pod that have a placeholder; a further one has no address.
const MAX_PLACEHOLDERS: usize = 10_000;

/// The first placeholder. The network 198.18.0.0/15 is for measurements (RFC 2544), and nobody is there.
const FIRST_PLACEHOLDER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// How long a resolver may keep a placeholder, in seconds: it stays what it is as long as the pod.
const LIFETIME: u32 = 60;

/// Most bytes of a question for a name, or an answer: of any datagram.
const MAX_DATAGRAM: usize = 65_535;

/// The names of a pod.
#[derive(Debug, Default)]
pub(super) struct Names {
    placeholders: Mutex<Placeholders>,
    /// How many commands with the network there are.
    pub(super) callers: AtomicUsize,
}

#[derive(Debug, Default)]
struct Placeholders {
    /// By the distance from the first placeholder.
    names: Vec<Arc<str>>,
    distances: HashMap<Arc<str>, usize>,
}

impl Names {
    /// Returns the name that an address stands for.
    pub(super) fn behind(&self, address: IpAddr) -> Option<Arc<str>> {
        let IpAddr::V4(address) = address else {
            return None;
        };
        let distance = u32::from(address).checked_sub(u32::from(FIRST_PLACEHOLDER))?;
        let placeholders = self.placeholders.lock();
        placeholders
            .names
            .get(usize::try_from(distance).ok()?)
            .cloned()
    }

    fn placeholder(&self, name: &str) -> Option<Ipv4Addr> {
        let mut placeholders = self.placeholders.lock();
        let Placeholders { names, distances } = &mut *placeholders;
        let distance = match distances.get(name) {
            Some(distance) => *distance,
            None if names.len() >= MAX_PLACEHOLDERS => return None,
            None => {
                let name: Arc<str> = name.into();
                names.push(Arc::clone(&name));
                distances.insert(name, names.len() - 1);
                names.len() - 1
            }
        };
        let distance = u32::try_from(distance).ok()?;
        Some(Ipv4Addr::from(u32::from(FIRST_PLACEHOLDER) + distance))
    }

    /// Answers what comes in on the relay's socket, while there are commands with the network.
    pub(super) async fn serve(self: Arc<Self>, socket: UdpSocket) {
        let mut question = vec![0; MAX_DATAGRAM];
        loop {
            let Ok((length, from)) = socket.recv_from(&mut question).await else {
                sleep(PAUSE).await;
                continue;
            };
            let question = question.get(..length).unwrap_or_default();
            if self.callers.load(Ordering::Relaxed) > 0
                && let Some(answer) = self.answer(question)
            {
                socket.send_to(&answer, from).await.map_or_else(drop, drop);
            }
        }
    }

    /// Answers with a placeholder; `None` where it is no question.
    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let packet = Packet::parse(question).ok()?;
        let is_question = !packet.has_flags(PacketFlag::RESPONSE)
            && packet.opcode() == OPCODE::StandardQuery
            && packet.questions.len() == 1;
        if !is_question {
            return None;
        }
        let mut reply = packet.into_reply();
        reply.set_flags(PacketFlag::RECURSION_AVAILABLE);
        *reply.opt_mut() = None;
        reply.additional_records.clear();
        let asked = reply.questions.first()?;
        let name = asked.qname.clone();
        let is_address = asked.qtype == QTYPE::TYPE(TYPE::A);
        match (normalized(&name), is_address) {
            (None, _) => *reply.rcode_mut() = RCODE::NameError,
            (Some(_), false) => {}
            (Some(text), true) => match self.placeholder(&text) {
                None => *reply.rcode_mut() = RCODE::ServerFailure,
                Some(address) => {
                    let record = RData::A(A::from(address));
                    let record = ResourceRecord::new(name, CLASS::IN, LIFETIME, record);
                    reply.answers.push(record);
                }
            },
        }
        reply.build_bytes_vec().ok()
    }
}

/// Returns a name as it is compared: in lower case, without a dot at the end. `None` for one that no host has.
fn normalized(name: &Name<'_>) -> Option<String> {
    let labels: Option<Vec<&str>> = name
        .as_bytes()
        .map(|label| str::from_utf8(label).ok())
        .collect();
    match Host::parse(&labels?.join("."))? {
        Host::Name(name) => Some(name),
        // An address is no name: what asks for it gets around what is said of addresses.
        Host::Address(_) => None,
    }
}

/// The file that says who looks names up.
pub(crate) const RESOLVER: &str = "/etc/resolv.conf";

/// Returns what the resolver's file says to a command: the relay, and else what it says to everybody. No name is completed,
/// for the first try would be taken. Does file I/O.
pub(crate) fn resolver() -> String {
    resolver_of(&fs::read_to_string(RESOLVER).unwrap_or_default())
}

/// The file that has addresses of names.
pub(crate) const HOSTS: &str = "/etc/hosts";

/// Returns what that file says to a command: the names of loopback. For the others, too, it asks the relay, so that they are
/// decided about by name. Does file I/O.
pub(crate) fn hosts() -> String {
    hosts_of(&fs::read_to_string(HOSTS).unwrap_or_default())
}

fn hosts_of(text: &str) -> String {
    let is_loopback = |line: &&str| {
        let word = line.split_whitespace().next().unwrap_or_default();
        word.parse().is_ok_and(|it: IpAddr| it.is_loopback())
    };
    let lines = text.lines().filter(is_loopback);
    lines.map(|line| format!("{line}\n")).collect()
}

fn resolver_of(text: &str) -> String {
    let replaced = ["nameserver", "search", "domain"];
    let others = text.lines().filter(|line| {
        let word = line.split_whitespace().next().unwrap_or_default();
        !replaced.contains(&word)
    });
    let relay = format!("nameserver {}", Ipv4Addr::LOCALHOST);
    let lines: Vec<&str> = others.chain([relay.as_str()]).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use simple_dns::Question;

    use super::*;

    fn question(name: &str, of: TYPE) -> Vec<u8> {
        let mut packet = Packet::new_query(7);
        let name = Name::new_unchecked(name);
        let question = Question::new(name, of.into(), CLASS::IN.into(), false);
        packet.questions.push(question);
        packet.build_bytes_vec().unwrap()
    }

    fn answer(names: &Names, name: &str, of: TYPE) -> (RCODE, Vec<String>) {
        let answer = names.answer(&question(name, of)).unwrap();
        let packet = Packet::parse(&answer).unwrap();
        assert_eq!((packet.id(), packet.questions.len()), (7, 1));
        let address = |record: &ResourceRecord<'_>| match &record.rdata {
            RData::A(a) => Ipv4Addr::from(a.address).to_string(),
            other => format!("{other:?}"),
        };
        (packet.rcode(), packet.answers.iter().map(address).collect())
    }

    #[test]
    fn each_name_has_a_placeholder_of_its_own() {
        let names = Names::default();
        for (name, of, code, expected) in [
            ("example.org", TYPE::A, RCODE::NoError, Some("198.18.0.1")),
            (
                "Other.Example.org",
                TYPE::A,
                RCODE::NoError,
                Some("198.18.0.2"),
            ),
            ("EXAMPLE.org", TYPE::A, RCODE::NoError, Some("198.18.0.1")),
            ("example.org", TYPE::AAAA, RCODE::NoError, None),
            ("example.org", TYPE::TXT, RCODE::NoError, None),
            ("127.0.0.1", TYPE::A, RCODE::NameError, None),
            ("a b.example.org", TYPE::A, RCODE::NameError, None),
            (
                "_srv.example.org",
                TYPE::A,
                RCODE::NoError,
                Some("198.18.0.3"),
            ),
        ] {
            let expected = Vec::from_iter(expected.map(str::to_owned));
            assert_eq!(answer(&names, name, of), (code, expected), "{name}");
        }
        let behind = |address: &str| names.behind(address.parse().unwrap());
        assert_eq!(behind("198.18.0.2").as_deref(), Some("other.example.org"));
        for other in [
            "198.18.0.0",
            "198.18.0.4",
            "203.0.113.7",
            "::1",
            "0.0.0.0",
            "255.255.255.255",
        ] {
            assert_eq!(behind(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_no_question_gets_no_answer() {
        let names = Names::default();
        let mut reply = question("example.org", TYPE::A);
        reply[2] |= 0x80;
        let mut none = question("example.org", TYPE::A);
        none[5] = 0;
        none.truncate(12);
        let mut update = question("example.org", TYPE::A);
        update[2] |= 5 << 3;
        for bad in [
            &[][..],
            b"nonsense",
            &[0; 12],
            &[0xff; 600],
            &reply,
            &none,
            &update,
        ] {
            assert_eq!(names.answer(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn placeholders_are_bounded() {
        let names = Names::default();
        for number in 0..MAX_PLACEHOLDERS {
            assert!(names.placeholder(&number.to_string()).is_some());
        }
        assert_eq!(answer(&names, "one-more", TYPE::A).0, RCODE::ServerFailure);
        let known = names.placeholder("9999");
        assert_eq!(known, Some(Ipv4Addr::new(198, 18, 39, 16)));
    }

    #[test]
    fn the_file_of_hosts_has_the_names_of_loopback() {
        let text = "# made by hand\n127.0.0.1\tlocalhost\n127.0.1.1 box.example box\n203.0.113.9 shop.example\n::1 localhost ip6-localhost # six\nfe00::0 ip6-localnet\nnonsense\n";
        assert_eq!(
            hosts_of(text),
            "127.0.0.1\tlocalhost\n127.0.1.1 box.example box\n::1 localhost ip6-localhost # six\n"
        );
    }

    #[test]
    fn the_resolver_is_told_of_the_relay_alone() {
        let text = "# made by hand\nsearch example.org\nnameserver 10.0.0.1\nnameserver ::1 # two\nnameserver x\noptions rotate\n";
        let told = "# made by hand\noptions rotate\nnameserver 127.0.0.1\n";
        assert_eq!(resolver_of(text), told);
    }
}
