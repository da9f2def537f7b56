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
//! A call of `listen` is stopped likewise, where somebody wants to know of it: the daemon does on the socket what the call
//! would do, and tells of the port.
//!
//! No socket of the machine's network ever gets inside. So no check has to win a race against the command: whatever it does
//! to its sockets or its memory meanwhile, they lead nowhere else.
//!
//! Names are looked up by a relay on loopback, too ([`names`]). Neither relay lets anybody out whom this module did not
//! connect to it: other commands of the pod may not have the network.

mod calls;
pub(crate) mod names;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as BlockingStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, sockopt};
use tokio::io::{Interest, copy_bidirectional_with_sizes};
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::descriptors;
use crate::destinations::{BUFFER, MAX_CONNECTIONS, MAX_LOOKUPS, PAUSE};
use crate::helper::raw;

pub(crate) use calls::Attended;
use calls::Caller;
use names::Names;

/// The port of name servers.
pub(crate) const DNS: u16 = 53;

/// How long a connection outside is kept for a socket that was not accepted yet, which takes no time but where the command
/// delays it.
const ACCEPT_PATIENCE: Duration = Duration::from_secs(20);

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
    pub(crate) fn attend(&self, socket: BlockingStream, attended: Attended) -> DropGuard {
        let shared = Arc::clone(&self.shared);
        let end = shared.end.child_token();
        let guard = end.clone().drop_guard();
        let callers = usize::from(attended.connects.is_some());
        shared.names.callers.fetch_add(callers, Ordering::Relaxed);
        tokio::spawn(async move {
            let kept = Arc::clone(&shared);
            let attending = async {
                let listener = receive(socket).await?;
                let caller = Caller {
                    shared,
                    attended,
                    listener: raw::readable(listener)?,
                    end: end.clone(),
                };
                Arc::new(caller).attend().await
            };
            if let Some(Err(error)) = end.run_until_cancelled(attending).await {
                tracing::warn!(%error, "calls of a command for sockets are no longer answered");
            }
            // What it left half connected goes with it.
            end.cancelled().await;
            kept.names.callers.fetch_sub(callers, Ordering::Relaxed);
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
        // In the place of one whose socket is closed by now.
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
