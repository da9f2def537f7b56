//! Answers a command's stopped calls: what they are about is looked at and opened once, and that alone is used.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketType, ipproto, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Outside, Shared};
use crate::command::Host;
use crate::destinations::{Destinations, connect};
use crate::helper::raw::{self, Answer, StoppedCall};
use crate::policy::Stop;

/// The addresses of sockets in the smallest form and the largest, in bytes: IPv4 and IPv6.
const ADDRESS_BYTES: (usize, usize) = (16, 28);

/// Opens a thread in the place of its process; from `linux/pidfd.h`.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());

/// What the daemon answers for a command.
#[derive(Debug, Default)]
pub(crate) struct Attended {
    /// What it may connect to.
    pub(crate) connects: Option<Destinations>,
    /// Who is told of ports on which it begins to listen.
    pub(crate) listening: Option<mpsc::Sender<u16>>,
}

impl Attended {
    /// Returns the calls at which the command is stopped for that.
    pub(crate) fn stops(&self) -> Vec<Stop> {
        let connect = self.connects.as_ref().map(|_| Stop::Connect);
        let listen = self.listening.as_ref().map(|_| Stop::Listen);
        connect.into_iter().chain(listen).collect()
    }
}

/// A command whose calls are attended to.
pub(super) struct Caller {
    pub(super) shared: Arc<Shared>,
    pub(super) attended: Attended,
    pub(super) listener: AsyncFd<OwnedFd>,
    pub(super) end: CancellationToken,
}

/// A socket that is to be connected, and where to.
struct Wanted {
    socket: OwnedFd,
    to: SocketAddr,
}

impl Caller {
    /// Takes in call after call, until no process is left that could make one.
    pub(super) async fn attend(self: Arc<Self>) -> io::Result<()> {
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
        let handling = async {
            match call.what {
                Some(Stop::Connect) => self.connect(call).await,
                Some(Stop::Listen) => self.listen(call).await,
                None => Ok(None),
            }
        };
        let answer = match self.end.run_until_cancelled(handling).await {
            // Left to the kernel: it stays inside the pod, or leads nowhere.
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
        let Some(destinations) = &self.attended.connects else {
            return Ok(None);
        };
        let Some(wanted) = blocking(move || Ok(caller.look(call))).await? else {
            return Ok(None);
        };
        if rustix::net::getpeername(&wanted.socket).is_ok_and(|peer| peer.is_some()) {
            return Err(Errno::ISCONN.into());
        }
        let host = self.host(wanted.to.ip());
        let port = wanted.to.port();
        let targets = destinations
            .targets(host, port, &self.shared.lookups)
            .await?;
        self.shared.sweep();
        let place = Arc::clone(&self.shared.connections).try_acquire_owned();
        let place = place.map_err(|_| Errno::NOBUFS)?;
        let stream = connect(&targets).await?;
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

    /// Has a socket listen as the call wants it, and tells of its port; `None` where it is left to the kernel. What is done
    /// with the socket is what the call would do, in the command's own network.
    async fn listen(self: &Arc<Self>, call: StoppedCall) -> io::Result<Option<()>> {
        let caller = Arc::clone(self);
        let listening = move || {
            let [_, backlog, ..] = call.arguments;
            let Some(socket) = caller.socket(call) else {
                return Ok(None);
            };
            // The argument is a C int: its upper half means nothing.
            let backlog = u32::try_from(backlog & u64::from(u32::MAX)).unwrap_or_default();
            rustix::net::listen(&socket, backlog.cast_signed())?;
            SocketAddr::try_from(rustix::net::getsockname(&socket)?)
                .map(|address| Some(address.port()))
                .map_err(io::Error::from)
        };
        let port = blocking(listening).await?;
        if let (Some(port), Some(listening)) = (port, &self.attended.listening) {
            // Whoever is told may be slow; the command is not held up for it.
            listening.try_send(port).unwrap_or_default();
        }
        Ok(port.map(|_| ()))
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
        let [_, place, length, ..] = call.arguments;
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
        let socket = self.socket(call)?;
        Some(Wanted { socket, to })
    }

    /// Opens the TCP socket that a call is about; nothing where it is about something else.
    fn socket(&self, call: StoppedCall) -> Option<OwnedFd> {
        let thread = Pid::from_raw(i32::try_from(call.thread).ok()?)?;
        // Before Linux 6.9 only a process can be opened: its first thread, which may have ended.
        let opened = pidfd_open(thread, PIDFD_THREAD).or_else(|_| {
            let process = process_of(call.thread).and_then(Pid::from_raw);
            pidfd_open(process.ok_or(Errno::SRCH)?, PidfdFlags::empty())
        });
        let process = opened.ok()?;
        let [number, ..] = call.arguments;
        let number = i32::try_from(number).ok()?;
        let socket = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()?;
        if !raw::is_stopped(self.listener.get_ref(), call) {
            return None;
        }
        let kind = sockopt::socket_type(&socket).ok()?;
        let protocol = sockopt::socket_protocol(&socket).ok()?;
        let is_tcp = [ipproto::TCP, ipproto::MPTCP].map(Some).contains(&protocol);
        (kind == SocketType::STREAM && is_tcp).then_some(socket)
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
