//! The system calls for which no safe wrapper exists. Nothing else in the crate is `unsafe`.

#![expect(
    unsafe_code,
    reason = "fork, unshare, mount_setattr, close_range, wait4, waitid, sigprocmask, signal, signalfd, the flags of an interface and seccomp have no safe wrapper in rustix"
)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, RawPid};
use rustix::thread::UnshareFlags;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::Exit;
use crate::policy::Stop;

pub(super) enum Fork {
    Child,
    Parent(Pid),
}

pub(super) fn fork() -> io::Result<Fork> {
    if std::fs::read_dir("/proc/self/task")?.count() > 1 + usize::from(is_emulated()) {
        return Err(io::Error::other("the helper has more than one thread"));
    }
    // SAFETY: the program has one thread, as was just counted, and no other thread exists that could start one. So no
    // lock is held by a thread that the child lacks, and the child may run any code, not only async-signal-safe calls.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        pid => process(pid)
            .map(Fork::Parent)
            .ok_or_else(io::Error::last_os_error),
    }
}

/// Whether another processor is played for this program, by qemu-user. That has a thread of its own in the process, for
/// which it cares at a fork, and does not know all that the kernel can.
pub(super) fn is_emulated() -> bool {
    // It says of everything else that the processor is the one that it plays (Linux 6.1).
    let processor = std::fs::read_to_string("/proc/sys/kernel/arch").unwrap_or_default();
    !processor.is_empty() && processor.trim() != std::env::consts::ARCH
}

pub(super) fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    if namespaces.contains(UnshareFlags::FILES) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the call is unsafe only for `CLONE_FILES`, which makes descriptors of one thread invalid in another; it
    // was just ruled out.
    Ok(unsafe { rustix::thread::unshare_unsafe(namespaces) }?)
}

/// Closes every descriptor from `first` up.
///
/// To be called before the helper owns any descriptor above the standard ones.
pub(super) fn close_from(first: u32) -> io::Result<()> {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if IS_DONE.swap(true, Ordering::Relaxed) {
        return Err(io::Error::other("descriptors were closed already"));
    }
    // musl has no function for it, so it is called by its number.
    //
    // SAFETY: `close_range` takes no pointer. It is called once, first thing in the helper, when no Rust object owns a
    // descriptor at or above `first`; what it closes was leaked to us by whoever started the daemon.
    done(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) })
}

/// Blocks or unblocks every signal that can be blocked. The program inherits it, so the worker unblocks.
pub(super) fn set_signals_blocked(blocked: bool) -> io::Result<()> {
    let how = match blocked {
        true => libc::SIG_BLOCK,
        false => libc::SIG_UNBLOCK,
    };
    // SAFETY: `set` is a plain C structure for which zeroes are valid; `sigfillset` initialises it, `sigprocmask` only
    // reads it, and a null third argument is allowed.
    let result = unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut set);
        libc::sigprocmask(how, &raw const set, std::ptr::null_mut())
    };
    done(result)
}

/// Sets whether children that have ended are kept until they are waited for, as they are where nothing else was said, or
/// are nobody's concern.
pub(super) fn set_children_kept(kept: bool) -> io::Result<()> {
    let action = match kept {
        true => libc::SIG_DFL,
        false => libc::SIG_IGN,
    };
    // SAFETY: the call takes no pointer to memory; of both actions the kernel sees to itself, and no code of this process
    // runs for the signal.
    match unsafe { libc::signal(libc::SIGCHLD, action) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Sets attributes (`MOUNT_ATTR_*`) of the mount behind `mount`, and of those below it when `recursive`.
pub(super) fn set_mount_attributes(
    mount: BorrowedFd<'_>,
    attributes: u64,
    recursive: bool,
) -> io::Result<()> {
    set_mount(mount, attributes, None, recursive)
}

/// Sets attributes of a mount that is not attached yet, and of those below it, and has it show owners as the user
/// namespace maps them.
pub(super) fn map_owners(
    mount: BorrowedFd<'_>,
    owners: BorrowedFd<'_>,
    attributes: u64,
) -> io::Result<()> {
    set_mount(
        mount,
        attributes | libc::MOUNT_ATTR_IDMAP,
        Some(owners),
        true,
    )
}

fn set_mount(
    mount: BorrowedFd<'_>,
    attributes: u64,
    owners: Option<BorrowedFd<'_>>,
    recursive: bool,
) -> io::Result<()> {
    let owners = owners.map(|owners| u64::try_from(owners.as_raw_fd()));
    let request = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: owners.transpose().map_err(io::Error::other)?.unwrap_or(0),
    };
    let recursion = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both descriptors are open for the length of the call, the path is an empty string with its final zero, and
    // the structure is passed with its own size; the kernel reads both and keeps neither.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursion,
            &raw const request,
            size_of::<libc::mount_attr>(),
        )
    };
    done(result)
}

/// Brings the loopback interface of this process's network namespace up: 127.0.0.1, and ::1 where the kernel has it.
pub(super) fn bring_loopback_up() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    // SAFETY: zeroes are a valid `ifreq`, a structure of plain integers; the name and the flags that are written into it
    // are its own fields, the name ends with one of those zeroes. The kernel reads it and keeps nothing.
    let result = unsafe {
        let mut request: libc::ifreq = zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = from.cast_signed() as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        // A number of another type for each C library.
        let what = libc::SIOCSIFFLAGS as libc::Ioctl;
        libc::ioctl(socket.as_raw_fd(), what, &raw const request)
    };
    done(result)
}

/// Opens a descriptor that becomes readable when a child has ended. SIGCHLD has to be blocked.
pub(super) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: `set` is a plain C structure for which zeroes are valid and that the two calls initialise; `signalfd`
    // only reads it. What it returns, unless it is an error, is a new descriptor that nobody else owns.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Waits for any child, for one only if `pid` says so; returns how it ended, and what it and its waited-for children
/// used. `None` when there is no child left, or none that has ended yet and the caller does not want to block.
pub(crate) fn wait(pid: Option<Pid>, block: bool) -> io::Result<Option<(Pid, Exit)>> {
    let wanted: RawPid = pid.map_or(-1, Pid::as_raw_pid);
    let options = if block { 0 } else { libc::WNOHANG };
    let mut status = 0;
    loop {
        // SAFETY: zeroes are a valid `rusage`, a structure of plain integers; both pointers are to live locals of the
        // types the call writes.
        let (result, usage) = unsafe {
            let mut usage: libc::rusage = zeroed();
            (
                libc::wait4(wanted, &raw mut status, options, &raw mut usage),
                usage,
            )
        };
        if let Some(pid) = process(result) {
            let status = ExitStatus::from_raw(status);
            let exit = Exit {
                code: status.code(),
                signal: status.signal(),
                cpu_ms: milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime),
                max_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
            };
            return Ok(Some((pid, exit)));
        }
        if result == 0 {
            return Ok(None);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return Ok(None),
            _ => return Err(error),
        }
    }
}

/// A child that has ended and is not waited for yet, without taking it in. `None` where there is none.
pub(crate) fn ended_child() -> io::Result<Option<Pid>> {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: zeroes are a valid `siginfo_t`, a structure of plain integers and pointers that nobody follows; the call
    // writes to a live local of that type. Where it returns 0 for no child, the number in it is the zero from before;
    // `si_pid` is what the kernel wrote for SIGCHLD, and a plain integer in every case.
    let (result, number) = unsafe {
        let mut information: libc::siginfo_t = zeroed();
        let result = libc::waitid(libc::P_ALL, 0, &raw mut information, options);
        (result, information.si_pid())
    };
    done(result).map(|()| process(number))
}

/// Whether this process has no child, not even one that has ended and was not waited for.
pub(super) fn is_childless() -> bool {
    ended_child().is_err_and(|error| error.raw_os_error() == Some(libc::ECHILD))
}

/// Has the kernel stop this process, and all that it starts, at each of these calls. Returns what tells of them.
pub(super) fn stop_at(calls: &[Stop]) -> io::Result<OwnedFd> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let step = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let mut steps = vec![step(LOAD_WORD, 0, 0)];
    for call in calls {
        let number = u32::try_from(call.number()).map_err(io::Error::other)?;
        steps.push(step(JUMP_IF_EQUAL, 1, number));
        steps.push(step(RETURN, 0, libc::SECCOMP_RET_USER_NOTIF));
    }
    steps.push(step(RETURN, 0, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog {
        len: u16::try_from(steps.len()).map_err(io::Error::other)?,
        filter: steps.as_mut_ptr(),
    };
    // Since Linux 5.19 a call that the daemon has seen is not begun anew by a signal.
    for flag in [libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0] {
        // SAFETY: the program is as many steps in a live local as it says; the kernel copies it. What the call returns,
        // unless it is an error, is a new descriptor that nobody else owns.
        let opened = unsafe {
            let result = libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | flag,
                &raw const program,
            );
            i32::try_from(result)
                .ok()
                .filter(|descriptor| *descriptor >= 0)
                .map(|descriptor| OwnedFd::from_raw_fd(descriptor))
        };
        let error = io::Error::last_os_error();
        match opened {
            Some(opened) => return Ok(opened),
            None if error.raw_os_error() == Some(libc::EINVAL) => {}
            None => return Err(error),
        }
    }
    Err(io::ErrorKind::Unsupported.into())
}

/// Has the runtime say when a descriptor can be read. Must be called within a runtime.
pub(crate) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    watched(descriptor, Interest::READABLE)
}

/// The same of something else that can happen to it.
pub(crate) fn watched(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, owned by what it is put into here, and has one number as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, interest) }?)
}

impl Stop {
    fn number(self) -> libc::c_long {
        match self {
            Self::Connect => libc::SYS_connect,
            Self::Listen => libc::SYS_listen,
        }
    }
}

/// A call that the kernel has stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoppedCall {
    id: u64,
    /// Which one; `None` for another than was asked for.
    pub(crate) what: Option<Stop>,
    /// The thread.
    pub(crate) thread: u32,
    pub(crate) arguments: [u64; 6],
}

/// What becomes of a stopped call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// The kernel does it.
    GoOn,
    /// It was done.
    Done,
    /// It failed, with this error of the system.
    Failed(i32),
}

/// Returns the next stopped call. Blocks where there is none: to be called once the descriptor is readable.
pub(crate) fn stopped_call(listener: impl AsFd) -> io::Result<StoppedCall> {
    let descriptor = listener.as_fd().as_raw_fd();
    // SAFETY: zeroes are a valid `seccomp_notif`, a structure of plain integers, and what the kernel asks for; it writes
    // to a live local of that type.
    let (result, call) = unsafe {
        let mut call: libc::seccomp_notif = zeroed();
        let result = libc::ioctl(descriptor, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call);
        (result, call)
    };
    done(result)?;
    let calls = [Stop::Connect, Stop::Listen];
    let is_it = |it: &Stop| it.number() == libc::c_long::from(call.data.nr);
    Ok(StoppedCall {
        id: call.id,
        what: calls.into_iter().find(is_it),
        thread: call.pid,
        arguments: call.data.args,
    })
}

/// Whether the call is still stopped, and its thread the one that the number meant.
pub(crate) fn is_stopped(listener: impl AsFd, call: StoppedCall) -> bool {
    let descriptor = listener.as_fd().as_raw_fd();
    let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
    // SAFETY: the kernel reads a number from a live local.
    unsafe { libc::ioctl(descriptor, request, &raw const call.id) == 0 }
}

/// Answers a stopped call; an error says that its thread has ended.
pub(crate) fn answer(listener: impl AsFd, call: StoppedCall, answer: Answer) -> io::Result<()> {
    let (error, flags) = match answer {
        Answer::GoOn => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE),
        Answer::Done => (0, 0),
        Answer::Failed(error) => (-error, 0),
    };
    let response = libc::seccomp_notif_resp {
        id: call.id,
        val: 0,
        error,
        flags: u32::try_from(flags).map_err(io::Error::other)?,
    };
    let descriptor = listener.as_fd().as_raw_fd();
    // SAFETY: the kernel reads a structure of plain integers from a live local.
    done(unsafe {
        libc::ioctl(
            descriptor,
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            &raw const response,
        )
    })
}

/// The answer of a call that returns 0 when it was done.
fn done(result: impl Into<i64>) -> io::Result<()> {
    match result.into() {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn process(result: RawPid) -> Option<Pid> {
    (result > 0).then(|| Pid::from_raw(result)).flatten()
}

fn milliseconds(time: libc::timeval) -> u64 {
    let whole = u64::try_from(time.tv_sec).unwrap_or(0) * 1000;
    whole + u64::try_from(time.tv_usec).unwrap_or(0) / 1000
}
