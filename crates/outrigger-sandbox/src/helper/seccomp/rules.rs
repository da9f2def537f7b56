//! Which system calls are refused, and with which arguments.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition, SeccompRule,
};

use crate::policy::Policy;
use crate::{Mode, Network};

/// The rules of each call; no rule means whatever its arguments.
pub(in crate::helper) type Calls = BTreeMap<i64, Vec<SeccompRule>>;

// Newer than some C libraries' headers. Calls since Linux 5.2 have one number on every processor.
const QUOTACTL_FD: i64 = 443;
const MEMFD_SECRET: i64 = 447;
const FCHMODAT2: i64 = 452;
const OPEN_TREE_ATTR: i64 = 467;
// musl has no name for it on this processor.
const KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") {
    320
} else {
    294
};

/// What nobody needs: reading and changing other processes, large parts of the kernel with a history of holes, namespaces
/// and mounts (the means to undo the sandbox), the machine's own settings.
const NEVER: [i64; 51] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // It would also open sockets past this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_syslog,
    MEMFD_SECRET,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    QUOTACTL_FD,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

/// Shared memory and queues between processes of a user, where there is no namespace of the command's own. Not only
/// the calls that look one up: numbers are small and can be guessed.
const SHARED_BETWEEN_PROCESSES: [i64; 13] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Scheduling and limits; the first argument is the process they change.
const ON_OTHER_PROCESSES: [i64; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setaffinity,
];

/// Calls whose first argument says whether the second is a process, a group or a user; with the number for a process.
const BY_KIND_OF_WHOM: [(i64, u64); 2] = [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)];

/// Calls that give a file its mode, with the argument that holds it.
const MODE_GIVING: [(i64, u8); 4] = [
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_mknodat, 2),
    (FCHMODAT2, 2),
];

/// Calls that create a file when their flags say so: the number, the flags' argument, the mode's.
const OPENING: (i64, u8, u8) = (libc::SYS_openat, 2, 3);

/// The same of older calls, which newer processors never had.
#[cfg(target_arch = "x86_64")]
const OLDER_MODE_GIVING: &[(i64, u8)] = &[
    (libc::SYS_chmod, 1),
    (libc::SYS_creat, 1),
    (libc::SYS_mknod, 1),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_MODE_GIVING: &[(i64, u8)] = &[];
#[cfg(target_arch = "x86_64")]
const OLDER_OPENING: Option<(i64, u8, u8)> = Some((libc::SYS_open, 1, 2));
#[cfg(not(target_arch = "x86_64"))]
const OLDER_OPENING: Option<(i64, u8, u8)> = None;

const SET_USER_ID: u64 = 0o4000;
const SET_GROUP_ID: u64 = 0o2000;

/// The flags of `clone` that make a namespace: mount, cgroup, uts, ipc, user, pid, net.
const NEW_NAMESPACE_FLAGS: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The version of Landlock since which truncating a file is a right of its own.
const TRUNCATES: u8 = 3;

/// The version of Landlock since which it keeps signals and sockets by abstract name to the command.
pub(super) const SCOPES: u8 = 6;

/// The bits of a socket's type that are its kind; the others are flags.
const SOCKET_KIND: u64 = 0xf;

/// Kinds of sockets that are neither streams nor datagrams over IP: raw, SCTP, DCCP, and the old name of packet sockets.
const RAW_KINDS: [i32; 4] = [libc::SOCK_RAW, libc::SOCK_SEQPACKET, libc::SOCK_DCCP, 10];

/// What may be spoken over IP: the default of the kind, TCP, UDP, ping, and TCP over several paths, which some servers
/// ask for first.
const PROTOCOLS: [i32; 6] = [
    0,
    libc::IPPROTO_TCP,
    libc::IPPROTO_UDP,
    libc::IPPROTO_ICMP,
    libc::IPPROTO_ICMPV6,
    libc::IPPROTO_MPTCP,
];

const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541C];

/// Calls that shall look as if the kernel did not know them.
pub(super) fn absent() -> Calls {
    whatever([libc::SYS_clone3, libc::SYS_openat2])
}

/// Calls that are not permitted under this policy.
///
/// `landlock` is the version of Landlock in force, 0 for none: what an older one does not see is refused here.
pub(super) fn denied(policy: &Policy, landlock: u8) -> Result<Calls, BackendError> {
    let mut calls = whatever(NEVER);
    #[cfg(target_arch = "x86_64")]
    calls.extend(whatever([libc::SYS_iopl, libc::SYS_ioperm]));
    calls.extend(setuid_planting()?);
    calls.extend(by_argument()?);
    calls.extend(sockets(policy, landlock)?);
    if policy.mode == Mode::Fallback && landlock < TRUNCATES {
        add(&mut calls, truncating()?);
    }
    if policy.mode < Mode::Full {
        calls.extend(whatever(SHARED_BETWEEN_PROCESSES));
        for call in ON_OTHER_PROCESSES {
            calls.insert(call, vec![all([is_not(0, 0)?])?]);
        }
        // With "the user" for whom, nobody at 0 is oneself and all the user's processes, the daemon among them.
        for (call, one_process) in BY_KIND_OF_WHOM {
            let rules = vec![all([is_not(1, 0)?])?, all([is_not(0, one_process)?])?];
            calls.insert(call, rules);
        }
    }
    Ok(calls)
}

/// Refuses more: a call that was refused whatever its arguments stays so.
pub(super) fn add(calls: &mut Calls, more: Calls) {
    for (call, rules) in more {
        let known = calls.contains_key(&call);
        let present = calls.entry(call).or_default();
        if rules.is_empty() {
            present.clear();
        } else if !known || !present.is_empty() {
            present.extend(rules);
        }
    }
}

pub(super) fn whatever(calls: impl IntoIterator<Item = i64>) -> Calls {
    calls.into_iter().map(|call| (call, Vec::new())).collect()
}

pub(super) fn all(
    conditions: impl Into<Vec<SeccompCondition>>,
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into())
}

pub(super) fn is(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, Dword, SeccompCmpOp::Ne, value)
}

fn has(argument: u8, bits: u64) -> Result<SeccompCondition, BackendError> {
    masked(argument, bits, bits)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, Dword, SeccompCmpOp::MaskedEq(mask), value)
}

/// A file with a set-user-id bit would keep the daemon's rights for whoever runs it later, outside.
fn setuid_planting() -> Result<Calls, BackendError> {
    let giving = MODE_GIVING.iter().chain(OLDER_MODE_GIVING).copied();
    let opening = [OPENING].into_iter().chain(OLDER_OPENING);
    let mut calls = Calls::new();
    for (call, mode) in giving {
        let (user, group) = (has(mode, SET_USER_ID)?, has(mode, SET_GROUP_ID)?);
        calls.insert(call, vec![all([user])?, all([group])?]);
    }
    for (call, flags, mode) in opening {
        let mut rules = Vec::new();
        // Without one of these flags the mode is not an argument, and its register may hold anything.
        for creating in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
            for bit in [SET_USER_ID, SET_GROUP_ID] {
                let creates = has(flags, u64::from(creating.unsigned_abs()))?;
                rules.push(all([creates, has(mode, bit)?])?);
            }
        }
        calls.insert(call, rules);
    }
    Ok(calls)
}

/// The bits of the flags that say whether a file is opened to be read or written, as the kernel has them. musl's `O_ACCMODE` has
/// `O_PATH` too, and what asks for neither would pass.
const ACCESS: i32 = 3;

/// Emptying a file without opening it for writing, which is all that an older Landlock looks at.
fn truncating() -> Result<Calls, BackendError> {
    let bits = |flags: i32| u64::from(flags.unsigned_abs());
    let opening = [OPENING].into_iter().chain(OLDER_OPENING);
    let mut calls = whatever([libc::SYS_truncate]);
    for (call, flags, _) in opening {
        let mask = bits(ACCESS | libc::O_TRUNC);
        // The third way to open, for neither, is for device drivers and asks for no right at all.
        let unwritable = [libc::O_RDONLY, ACCESS].map(|mode| {
            let wanted = bits(mode | libc::O_TRUNC);
            all([masked(flags, mask, wanted)?])
        });
        calls.insert(call, unwritable.into_iter().collect::<Result<_, _>>()?);
    }
    Ok(calls)
}

fn by_argument() -> Result<Calls, BackendError> {
    let mut clone = Vec::new();
    for flag in NEW_NAMESPACE_FLAGS {
        clone.push(all([has(0, u64::from(flag.unsigned_abs()))?])?);
    }
    let mut ioctl = Vec::new();
    for request in TERMINAL_INPUT {
        ioctl.push(all([is(1, request)?])?);
    }
    // 0 is the usual execution domain, all ones asks for the present one.
    let personality = all([is_not(0, 0)?, is_not(0, u64::from(u32::MAX))?])?;
    Ok(Calls::from([
        (libc::SYS_clone, clone),
        (libc::SYS_ioctl, ioctl),
        (libc::SYS_personality, vec![personality]),
    ]))
}

/// Socket families are allowed by list: what is not on it (vsock reaches the host of a virtual machine) is refused.
fn sockets(policy: &Policy, landlock: u8) -> Result<Calls, BackendError> {
    let local = unsigned(libc::AF_UNIX);
    let [ip, ip6, netlink] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(unsigned);
    let has_own_network = policy.has_own_network();
    // Local sockets by name reach the services of the user's session, which would run anything for us; only in full
    // mode are their names hidden. Those without a path belong to the network, which is the machine's where it is on.
    let local_by_name = policy.mode == Mode::Full && (has_own_network || landlock >= SCOPES);
    let mut socket = Vec::new();
    if has_own_network || policy.command.network != Network::Off {
        let mut other = vec![is_not(0, ip)?, is_not(0, ip6)?, is_not(0, netlink)?];
        if local_by_name {
            other.push(is_not(0, local)?);
        }
        // Routes and addresses may be asked for: resolvers do.
        socket.extend([all(other)?, all([is(0, netlink)?, is_not(2, 0)?])?]);
        for family in [ip, ip6] {
            for kind in RAW_KINDS {
                let kind = masked(1, SOCKET_KIND, unsigned(kind))?;
                socket.push(all([is(0, family)?, kind])?);
            }
            let mut unknown = vec![is(0, family)?];
            for protocol in PROTOCOLS {
                unknown.push(is_not(2, unsigned(protocol))?);
            }
            socket.push(all(unknown)?);
        }
    }
    let mut pair = vec![all([is_not(0, local)?])?];
    if !local_by_name {
        // A datagram socket sends to any name, whomever it was paired with; the kernel takes "raw" for the same.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            pair.push(all([masked(1, SOCKET_KIND, unsigned(kind))?])?);
        }
    }
    Ok(Calls::from([
        (libc::SYS_socket, socket),
        (libc::SYS_socketpair, pair),
    ]))
}

fn unsigned(number: i32) -> u64 {
    u64::from(number.unsigned_abs())
}
