//! Full mode: the command lives in namespaces of its own, or some of them are a pod's, which several commands share.
//!
//! The guard stays outside of them; its child is process 1 and supervises the program. When that ends, for whatever
//! reason, the kernel kills every process in there.

use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use rustix::process::{Pid, Signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::control::Control;
use super::identity::Identity;
use super::raw::{self, Fork};
use super::{During, Launch, SetupError, as_dumpable, limits, mounts, overlays, supervisor};
use crate::descriptors;
use crate::layers::Step;
use crate::outgoing::DNS;
use crate::policy::{Loopback, Notice, Outside, Overlay, SOCKETS};

/// How much is said of an overlay that there is not.
const MAX_REASON_CHARS: usize = 200;

/// The namespaces that the commands of a pod share. No process has to live in them: descriptors keep them.
pub(super) struct Pod {
    user: OwnedFd,
    network: OwnedFd,
    /// What a command's own mounts begin as, where there are overlays.
    mounts: Option<OwnedFd>,
}

impl Pod {
    pub(super) fn receive(
        descriptors: &mut impl Iterator<Item = OwnedFd>,
        has_mounts: bool,
    ) -> io::Result<Self> {
        let mut next = || {
            let descriptor = descriptors.next();
            descriptor.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
        };
        Ok(Self {
            user: next()?,
            network: next()?,
            mounts: has_mounts.then(next).transpose()?,
        })
    }

    /// Makes sockets in the network and sends them to the daemon. No process of a command is near: this one was just
    /// started, and ends.
    pub(super) fn send_sockets(
        &self,
        loopback: Loopback,
        control: &Control,
    ) -> Result<(), SetupError> {
        for (namespace, kind) in [
            (&self.user, LinkNameSpaceType::User),
            (&self.network, LinkNameSpaceType::Network),
        ] {
            move_into_link_name_space(namespace.as_fd(), Some(kind))
                .during(Step::Namespaces, "entering the pod")?;
        }
        let family = match loopback {
            Loopback::V4 => AddressFamily::INET,
            Loopback::V6 => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let make = |_| socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP));
        let sockets: Result<Vec<_>, _> = (0..SOCKETS).map(make).collect();
        let sockets = sockets.during(Step::Namespaces, "making sockets in the pod")?;
        let sockets: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
        descriptors::send(control, &sockets).during(Step::Namespaces, "sending the sockets")
    }

    /// Makes them and sends them to the daemon.
    pub(super) fn make(
        control: &Control,
        overlays: &[Overlay],
        outside: Option<Outside>,
    ) -> Result<(), SetupError> {
        let Some(outside) = outside else {
            Self::begin(control)?;
            return Self::add_overlays(control, overlays);
        };
        let identity = Identity::prepare(outside)?;
        let others = match overlays {
            [] => UnshareFlags::NEWNET,
            _ => UnshareFlags::NEWNET | UnshareFlags::NEWNS,
        };
        let mounted = overlays::mount_as(overlays, &identity, || identity.enter(others))?;
        Self::send_first(control)?;
        Self::send_mounts(control, mounted)
    }

    /// Makes and sends those that are the same for every pod without a user of its own.
    pub(super) fn begin(control: &Control) -> Result<(), SetupError> {
        own_user_namespace(UnshareFlags::NEWNET)?;
        Self::send_first(control)
    }

    /// Makes the mount namespace of such a pod where there are overlays, and sends it.
    pub(super) fn add_overlays(control: &Control, overlays: &[Overlay]) -> Result<(), SetupError> {
        if overlays.is_empty() {
            return Ok(());
        }
        raw::unshare(UnshareFlags::NEWNS).during(Step::Namespaces, "unshare")?;
        Self::send_mounts(control, overlays.iter().map(overlays::mount).collect())
    }

    fn send_first(control: &Control) -> Result<(), SetupError> {
        bring_network_up()?;
        let opened = own("user").and_then(|user| Ok((user, own("net")?)));
        let (user, network) = opened.during(Step::Namespaces, "opening the namespaces")?;
        let names = UdpSocket::bind((Ipv4Addr::LOCALHOST, DNS));
        let relay =
            names.and_then(|names| Ok((names, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?)));
        let (names, relay) = relay.during(Step::Namespaces, "listening in the network")?;
        // Not where the kernel has no IPv6.
        let relay6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok();
        let mut given = vec![user.as_fd(), network.as_fd(), names.as_fd(), relay.as_fd()];
        given.extend(relay6.as_ref().map(AsFd::as_fd));
        descriptors::send(control, &given).during(Step::Namespaces, "sending the namespaces")
    }

    fn send_mounts(control: &Control, mounted: Vec<io::Result<()>>) -> Result<(), SetupError> {
        if mounted.is_empty() {
            return Ok(());
        }
        let why_not: Vec<_> = mounted.into_iter().map(why_not).collect();
        own("mnt")
            .and_then(|mounts| control.send_mounts(&why_not, mounts.as_fd()))
            .during(Step::Namespaces, "sending the mount namespace")
    }
}

/// Opens a namespace of this process.
fn own(name: &str) -> io::Result<File> {
    File::open(format!("/proc/self/ns/{name}"))
}

fn why_not(mounted: io::Result<()>) -> String {
    let reason = mounted.err().map(|error| error.to_string());
    // Short: it is not the only one in the message.
    let reason = reason.unwrap_or_default();
    reason.chars().take(MAX_REASON_CHARS).collect()
}

/// Runs the program in new namespaces. Returns when none of its processes is left; the first process of the namespaces may
/// be about to end, and the kernel to take them apart, which takes longer than many a program.
pub(super) fn guard(launch: Launch<'_>) -> Result<(), SetupError> {
    become_guard(launch)?;
    let (left, alone) = io::pipe().during(Step::Prepare, "making a pipe")?;
    match raw::fork().during(Step::Namespaces, "starting the first process")? {
        Fork::Child => {
            drop(left);
            if let Err(error) = init(launch, alone) {
                launch.control.send(&Notice::Failed(error));
            }
            // Not a return: the child must not go on as a second guard.
            std::process::exit(0);
        }
        Fork::Parent(init) => {
            drop(alone);
            let aside = super::step_aside().during(Step::Prepare, "stepping aside");
            if aside.is_err() {
                rustix::process::kill_process(init, Signal::KILL).unwrap_or_default();
            }
            until_nothing_is_left(init, left)?;
            aside
        }
    }
}

/// Has the next child of this process be the first one of a namespace.
pub(super) fn become_guard(launch: Launch<'_>) -> Result<(), SetupError> {
    let Some(pod) = launch.pod else {
        let Some(identity) = launch.identity else {
            return own_user_namespace(UnshareFlags::NEWPID);
        };
        limits::give_way().during(Step::Namespaces, "giving way")?;
        return identity.enter(UnshareFlags::NEWPID);
    };
    limits::give_way().during(Step::Namespaces, "giving way")?;
    move_into_link_name_space(pod.user.as_fd(), Some(LinkNameSpaceType::User))
        .during(Step::Namespaces, "entering the pod")?;
    raw::unshare(UnshareFlags::NEWPID).during(Step::Namespaces, "unshare")
}

/// Waits until no process of the namespace is left but its first, which says so through a pipe where it can.
pub(super) fn until_nothing_is_left(init: Pid, mut left: PipeReader) -> Result<(), SetupError> {
    if left.read_exact(&mut [0]).is_err() {
        // Others were left: this ends after the kernel has killed and reaped the whole namespace, not before.
        raw::wait(Some(init), true).during(Step::Namespaces, "waiting for the first process")?;
    }
    Ok(())
}

/// Makes a user namespace and others, with the user mapped to itself, so that files keep their owner, and nobody else.
fn own_user_namespace(others: UnshareFlags) -> Result<(), SetupError> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    raw::unshare(UnshareFlags::NEWUSER | others).during(Step::Namespaces, "unshare")?;
    let map = || {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        Ok(())
    };
    as_dumpable(map)
        .and_then(|()| limits::give_way())
        .during(Step::Namespaces, "mapping the user into its namespace")
}

/// Supervises the program, and says through `alone` that there is no other process in the namespace, where that is so.
fn init(launch: Launch<'_>, alone: PipeWriter) -> Result<(), SetupError> {
    become_init(launch)?;
    mounts::build(launch.policy, launch.opened, launch.identity)?;
    if launch.identity.is_some() {
        // That was forgotten with the user that this was before.
        end_with_guard()?;
        if is_broken(&alone) {
            let reason = "it has ended already";
            return Err(SetupError::new(Step::Namespaces, "the guard", reason));
        }
    }
    supervisor::run(launch)?;
    say_if_alone(alone);
    Ok(())
}

/// To be done when nothing that was started here is waited for any more.
pub(super) fn say_if_alone(mut alone: PipeWriter) {
    // Whoever loses his parent in here is a child of this process.
    if raw::is_childless() {
        // Read by nobody who has failed.
        alone.write_all(&[0]).unwrap_or_default();
    }
}

/// Puts the first process of a namespace into the other namespaces.
pub(super) fn become_init(launch: Launch<'_>) -> Result<(), SetupError> {
    end_with_guard()?;
    let mut namespaces =
        UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS | UnshareFlags::NEWCGROUP;
    let has_own_network = launch.policy.has_own_network();
    match launch.pod {
        Some(pod) if has_own_network => {
            move_into_link_name_space(pod.network.as_fd(), Some(LinkNameSpaceType::Network))
                .during(Step::Namespaces, "entering the pod's network")?;
        }
        _ if has_own_network => namespaces |= UnshareFlags::NEWNET,
        _ => {}
    }
    if let Some(mounts) = launch.pod.and_then(|pod| pod.mounts.as_ref()) {
        move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))
            .during(Step::Namespaces, "entering the pod's mounts")?;
    }
    raw::unshare(namespaces).during(Step::Namespaces, "unshare")?;
    if namespaces.contains(UnshareFlags::NEWNET) {
        bring_network_up()?;
    }
    Ok(())
}

/// Makes a new network of this process's one in which commands listen on any port.
fn bring_network_up() -> Result<(), SetupError> {
    raw::bring_loopback_up().during(Step::Namespaces, "bringing loopback up")?;
    // Where it may not be written, as in many a container, commands listen from port 1024 on.
    fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0").unwrap_or_default();
    Ok(())
}

/// The guard's death is that of this process, and so everybody's.
fn end_with_guard() -> Result<(), SetupError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .during(Step::Namespaces, "tying the namespace to its guard")
}

/// Whether nobody reads any more what is written to a pipe.
fn is_broken(pipe: &PipeWriter) -> bool {
    let mut polled = [PollFd::new(pipe, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let asked = rustix::event::poll(&mut polled, Some(&at_once));
    let [polled] = polled;
    asked.is_err() || polled.revents().contains(PollFlags::ERR)
}
