//! Connections out of a pod's network, which the daemon makes for the commands that may have them.
//!
//! That network has no route. Each call of `connect` of such a command is stopped by the kernel, and comes here:
//!
//! ```text
//! command: connect(socket, 203.0.113.7:443)
//!              │ stopped
//! daemon:  may it? ── no ──▶ the call fails
//!              │ yes
//!              ├─ connects to 203.0.113.7:443 itself
//!              └─ connects the command's socket to a relay on the pod's loopback, and joins the two
//! ```
//!
//! No socket of the machine's network ever gets inside. So no check has to win a race against the command: whatever it does
//! to its sockets or its memory meanwhile, they lead nowhere else.
//!
//! Names are looked up by a relay on loopback, too ([`names`]). Neither relay lets anybody out whom this module did not
//! connect to it: other commands of the pod may not have the network.

pub(crate) mod names;
pub(crate) mod rules;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, ipproto, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, copy_bidirectional_with_sizes};
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::command::Host;
use crate::descriptors;
use crate::helper::raw::{self, Answer, StoppedCall};

use names::Names;
use rules::Rules;

/// The port of name servers.
pub(crate) const DNS: u16 = 53;

/// Most connections of a pod at a time; a further one fails.
const MAX_CONNECTIONS: usize = 256;

/// Most names of a pod that are looked up at a time; a further one waits. Each takes a thread, and may take it for long.
const MAX_LOOKUPS: usize = 16;

/// Most bytes of a connection that wait to be passed on, in each direction.
const BUFFER: usize = 64 * 1024;

/// How long a connection may take to be made. Shorter than the system's, for the thread that asked waits for it.
const CONNECT_PATIENCE: Duration = Duration::from_secs(20);

/// How long a connection outside is kept for a socket that was not accepted yet, which takes no time but where the command
/// delays it.
const ACCEPT_PATIENCE: Duration = Duration::from_secs(20);

/// The pause after the system refused to accept a connection, for want of descriptors: they come back.
const PAUSE: Duration = Duration::from_millis(100);

/// The addresses of sockets in the smallest form and the largest, in bytes: IPv4 and IPv6.
const ADDRESS_BYTES: (usize, usize) = (16, 28);

/// The way out of a pod's network.
#[derive(Debug)]
pub(crate) struct Gateway {
    shared: Arc<Shared>,
    _end: DropGuard,
}

#[derive(Debug)]
struct Shared {
    relay: SocketAddr,
    /// On ::1, where the kernel has IPv6.
    relay6: Option<SocketAddr>,
    /// The connections that were made outside, by the address of the socket that is about to be accepted for each.
    awaited: Mutex<HashMap<SocketAddr, Outside>>,
    names: Arc<Names>,
    connections: Arc<Semaphore>,
    lookups: Arc<Semaphore>,
    end: CancellationToken,
}

/// A connection that was made for a command.
#[derive(Debug)]
struct Outside {
    stream: TcpStream,
    made: Instant,
    /// Cancelled when nothing is left of the command.
    end: CancellationToken,
    place: OwnedSemaphorePermit,
}

/// A command whose calls are attended to.
struct Caller {
    shared: Arc<Shared>,
    rules: Rules,
    listener: AsyncFd<OwnedFd>,
    end: CancellationToken,
}

/// A socket that is to be connected, and where to.
struct Wanted {
    socket: OwnedFd,
    to: SocketAddr,
}

impl Gateway {
    /// Takes a UDP socket on port 53 of the pod's loopback, and TCP sockets that listen there. Must be called within a
    /// runtime.
    pub(crate) fn new(names: OwnedFd, relay: OwnedFd, relay6: Option<OwnedFd>) -> io::Result<Self> {
        let listen = |socket: OwnedFd| {
            let socket = std::net::TcpListener::from(socket);
            socket.set_nonblocking(true)?;
            Ok::<_, io::Error>((socket.local_addr()?, TcpListener::from_std(socket)?))
        };
        let (relay, relay6) = (listen(relay)?, relay6.map(listen).transpose()?);
        let names = std::net::UdpSocket::from(names);
        names.set_nonblocking(true)?;
        let names = UdpSocket::from_std(names)?;
        let shared = Arc::new(Shared {
            relay: relay.0,
            relay6: relay6.as_ref().map(|(address, _)| *address),
            awaited: Mutex::default(),
            names: Arc::default(),
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            end: CancellationToken::new(),
        });
        for (_, listener) in [Some(relay), relay6].into_iter().flatten() {
            tokio::spawn(Arc::clone(&shared).relay(listener));
        }
        let serving = Arc::clone(&shared.names).serve(names);
        let end = shared.end.clone();
        tokio::spawn(async move { end.run_until_cancelled(serving).await.unwrap_or(()) });
        Ok(Self {
            _end: shared.end.clone().drop_guard(),
            shared,
        })
    }

    /// Attends to the calls of one command, told by the descriptor that its helper sends on `socket`, until what is
    /// returned is dropped. Its connections end then, too.
    pub(crate) fn attend(&self, socket: BlockingStream, rules: Rules) -> DropGuard {
        let shared = Arc::clone(&self.shared);
        let end = shared.end.child_token();
        let guard = end.clone().drop_guard();
        shared.names.callers.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let kept = Arc::clone(&shared);
            let attending = async {
                let listener = receive(socket).await?;
                let caller = Caller {
                    shared,
                    rules,
                    listener: raw::readable(listener)?,
                    end: end.clone(),
                };
                Arc::new(caller).attend().await
            };
            if let Some(Err(error)) = end.run_until_cancelled(attending).await {
                tracing::warn!(%error, "connections of a command are no longer made");
            }
            // What it left half connected goes with it.
            end.cancelled().await;
            kept.names.callers.fetch_sub(1, Ordering::Relaxed);
            kept.sweep();
        });
        guard
    }
}

/// Receives the descriptor that tells of calls.
async fn receive(socket: BlockingStream) -> io::Result<OwnedFd> {
    socket.set_nonblocking(true)?;
    let socket = UnixStream::from_std(socket)?;
    let receive = || descriptors::receive(&socket, &mut [0]);
    let (_, given) = socket.async_io(Interest::READABLE, receive).await?;
    given
        .into_iter()
        .next()
        .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

impl Shared {
    /// Joins what is accepted on loopback to the connection outside that was made for it.
    async fn relay(self: Arc<Self>, listener: TcpListener) {
        let accepting = async {
            loop {
                let Ok((mut inside, from)) = listener.accept().await else {
                    sleep(PAUSE).await;
                    continue;
                };
                let outside = self.awaited.lock().remove(&canonical(from));
                let Some(outside) = outside else { continue };
                tokio::spawn(async move {
                    let Outside {
                        mut stream,
                        end,
                        place,
                        ..
                    } = outside;
                    let joined =
                        copy_bidirectional_with_sizes(&mut inside, &mut stream, BUFFER, BUFFER);
                    // Either end may break off: that closes the other one.
                    drop(end.run_until_cancelled(joined).await);
                    drop(place);
                });
            }
        };
        self.end.run_until_cancelled(accepting).await.unwrap_or(());
    }

    /// Connects a socket of the command to the relay, which joins it to the connection outside. Blocks for a moment.
    fn join(&self, socket: &OwnedFd, outside: Outside) -> io::Result<()> {
        let relay = match (sockopt::socket_domain(socket)?, self.relay6, self.relay) {
            (AddressFamily::INET6, Some(relay6), _) => relay6,
            (AddressFamily::INET6, None, SocketAddr::V4(relay)) => {
                (relay.ip().to_ipv6_mapped(), relay.port()).into()
            }
            (_, _, relay) => relay,
        };
        // Its address has to be known before it is accepted. Connecting may take a moment, for which no lock is held.
        let from = bind(socket, relay)?;
        self.awaited.lock().insert(from, outside);
        connect_soon(socket, relay).inspect_err(|_| drop(self.awaited.lock().remove(&from)))
    }

    /// Closes connections outside that nobody took up: a command may say that its first bytes come with the connection,
    /// and send none.
    fn sweep(&self) {
        let may_come = |outside: &Outside| {
            !outside.end.is_cancelled() && outside.made.elapsed() < ACCEPT_PATIENCE
        };
        self.awaited.lock().retain(|_, outside| may_come(outside));
    }
}

/// Connects a socket to one on loopback, which takes no time, also where it does not wait for it.
fn connect_soon(socket: &OwnedFd, to: SocketAddr) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(socket)?;
    // Its owner waits for this call meanwhile.
    rustix::fs::fcntl_setfl(socket, flags | OFlags::NONBLOCK)?;
    let connected = match rustix::net::connect(socket, &to) {
        Err(Errno::INPROGRESS) => {
            let mut events = [PollFd::new(socket, PollFlags::OUT)];
            let patience = Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            match poll(&mut events, Some(&patience)) {
                Ok(0) => Err(Errno::TIMEDOUT),
                Ok(_) => sockopt::socket_error(socket).and_then(|it| it),
                Err(error) => Err(error),
            }
        }
        connected => connected,
    };
    rustix::fs::fcntl_setfl(socket, flags)?;
    Ok(connected?)
}

/// Gives a socket an address of its own on loopback, where the command gave it none, and returns it as the relay sees it.
fn bind(socket: &OwnedFd, relay: SocketAddr) -> io::Result<SocketAddr> {
    match rustix::net::bind(socket, &SocketAddr::new(relay.ip(), 0)) {
        // It has one.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(error.into()),
    }
    let address = SocketAddr::try_from(rustix::net::getsockname(socket)?)?;
    let ip = match address.ip().to_canonical() {
        ip if ip.is_unspecified() => relay.ip().to_canonical(),
        ip => ip,
    };
    Ok(SocketAddr::new(ip, address.port()))
}

/// The same address, an IPv4 one where it is written as IPv6.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

impl Caller {
    /// Takes in call after call, until no process is left that could make one.
    async fn attend(self: Arc<Self>) -> io::Result<()> {
        loop {
            let mut ready = self.listener.readable().await?;
            let mut events = [PollFd::new(self.listener.get_ref(), PollFlags::IN)];
            poll(&mut events, Some(&Timespec::default()))?;
            let events = events[0].revents();
            if events.contains(PollFlags::IN) {
                match raw::stopped_call(self.listener.get_ref()) {
                    Ok(call) => drop(tokio::spawn(Arc::clone(&self).handle(call))),
                    // Its thread was killed meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            } else if events.is_empty() {
                ready.clear_ready();
            } else {
                return Ok(());
            }
        }
    }

    async fn handle(self: Arc<Self>, call: StoppedCall) {
        let answer = match self.end.run_until_cancelled(self.connect(call)).await {
            // What is not for us to connect leads nowhere.
            Some(Ok(None)) => Answer::GoOn,
            Some(Ok(Some(()))) => Answer::Done,
            Some(Err(error)) => {
                let number = error.raw_os_error();
                Answer::Failed(number.unwrap_or(Errno::CONNREFUSED.raw_os_error()))
            }
            None => return,
        };
        // Fails where the thread has ended.
        raw::answer(self.listener.get_ref(), call, answer).unwrap_or_default();
    }

    /// Connects a socket as the call wants it; `None` where it is left to the kernel.
    async fn connect(self: &Arc<Self>, call: StoppedCall) -> io::Result<Option<()>> {
        let caller = Arc::clone(self);
        let Some(wanted) = blocking(move || Ok(caller.look(call))).await? else {
            return Ok(None);
        };
        let host = self.host(wanted.to.ip());
        let port = wanted.to.port();
        let targets = self.rules.targets(host, port, &self.shared.lookups).await?;
        self.shared.sweep();
        let place = Arc::clone(&self.shared.connections).try_acquire_owned();
        let place = place.map_err(|_| Errno::NOBUFS)?;
        let made = timeout(CONNECT_PATIENCE, TcpStream::connect(targets.as_slice())).await;
        let stream = made.map_err(|_| Errno::TIMEDOUT)??;
        let outside = Outside {
            stream,
            made: Instant::now(),
            end: self.end.clone(),
            place,
        };
        let shared = Arc::clone(&self.shared);
        let joined = blocking(move || shared.join(&wanted.socket, outside));
        joined.await.map(Some)
    }

    /// Returns what the command means by an address.
    fn host(&self, address: IpAddr) -> Host {
        match self.shared.names.behind(address) {
            Some(name) => Host::Name(name.to_string()),
            None => Host::Address(address),
        }
    }

    /// Looks at the thread's memory and its socket; nothing where the call is to be left to the kernel. Whatever they come
    /// to be afterwards, what was copied and opened here is used.
    fn look(&self, call: StoppedCall) -> Option<Wanted> {
        let [number, place, length, ..] = call.arguments;
        let (least, most) = ADDRESS_BYTES;
        let length = usize::try_from(length).ok()?.min(most);
        let mut address = vec![0; length];
        let memory = File::open(format!("/proc/{}/mem", call.thread)).ok()?;
        memory.read_exact_at(&mut address, place).ok()?;
        let to = (length >= least).then(|| parse(&address)).flatten()?;
        // The relays of names among it.
        if to.ip().is_loopback() || to.ip().is_unspecified() {
            return None;
        }
        let process = Pid::from_raw(process_of(call.thread)?)?;
        let process = pidfd_open(process, PidfdFlags::empty()).ok()?;
        let number = i32::try_from(number).ok()?;
        let socket = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()?;
        if !raw::is_stopped(self.listener.get_ref(), call) {
            return None;
        }
        let kind = sockopt::socket_type(&socket).ok()?;
        let protocol = sockopt::socket_protocol(&socket).ok()?;
        let is_tcp = [ipproto::TCP, ipproto::MPTCP].map(Some).contains(&protocol);
        (kind == SocketType::STREAM && is_tcp).then_some(Wanted { socket, to })
    }
}

/// Does what may wait for the kernel on a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Reads the address of a socket as the kernel has it in memory.
fn parse(address: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = address.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let port = u16::from_be_bytes(*port);
    let ip: IpAddr = match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => Ipv4Addr::from(*rest.first_chunk::<4>()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// Returns the process that a thread belongs to.
fn process_of(thread: u32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_memory() {
        let v4 = [2, 0, 1, 187, 203, 0, 113, 7, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(parse(&v4), Some("203.0.113.7:443".parse().unwrap()));
        let mut v6 = [0; 28];
        v6[0] = 10;
        v6[2..4].copy_from_slice(&[0, 80]);
        v6[8..24].copy_from_slice(&"2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(parse(&v6), Some("[2001:db8::1]:80".parse().unwrap()));
        v6[8..24].copy_from_slice(&"::ffff:127.0.0.1".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(parse(&v6), Some("127.0.0.1:80".parse().unwrap()));
        for (length, family) in [(16, 10), (28, 0), (28, 1), (28, 16), (3, 2), (0, 2)] {
            let mut other = vec![0; length];
            if let Some(first) = other.first_mut() {
                *first = family;
            }
            assert_eq!(parse(&other), None, "{length} {family}");
        }
    }
}
