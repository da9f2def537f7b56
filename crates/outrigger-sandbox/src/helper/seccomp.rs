//! The system call filter: all is allowed but what a build or a script has no use for and an attack has.
//!
//! Two filters with different answers. Calls that hide their arguments behind a pointer (`clone3`, `openat2`)
//! "do not exist", so that libraries fall back to the older ones, which can be judged; the rest is "not permitted".

mod rules;
mod signals;

use std::os::fd::{AsFd, OwnedFd};

use seccompiler::{SeccompAction, SeccompFilter, TargetArch, sock_filter};

use super::{During, SetupError, raw};
use crate::layers::Step;
use crate::policy::{Policy, Stop};
use crate::{Mode, descriptors};

use self::rules::Calls;
pub(super) use self::signals::Spared;

const BUILDING: &str = "building the filter";

/// Applies both filters. `landlock` is the version of it that is in force by now, `spared` whom signals must not reach
/// where it does not keep them; without a sandbox that is all. `false` on a processor for which there are none.
pub(super) fn restrict(
    policy: &Policy,
    landlock: Option<u8>,
    spared: &Spared,
) -> Result<bool, SetupError> {
    let Ok(processor) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(false);
    };
    let landlock = landlock.unwrap_or_default();
    let (mut absent, mut denied) = (Calls::new(), Calls::new());
    if policy.mode > Mode::None {
        absent = rules::absent();
        denied = rules::denied(policy, landlock).during(Step::Seccomp, BUILDING)?;
    }
    if policy.mode < Mode::Full && landlock < rules::SCOPES {
        absent.extend(signals::absent());
        let signals = signals::denied(spared).during(Step::Seccomp, BUILDING)?;
        rules::add(&mut denied, signals);
    }
    apply(absent, libc::ENOSYS, processor)?;
    apply(denied, libc::EPERM, processor)?;
    if processor == TargetArch::x86_64 {
        seccompiler::apply_filter(&deny_second_numbering())
            .during(Step::Seccomp, "applying the filter for x32")?;
    }
    Ok(true)
}

/// Has the kernel stop this process, and all that it starts, at each of these calls, until the daemon has answered,
/// which gets the descriptor for that on a socket. What the filters after this one refuse stays refused.
pub(super) fn stop_at(calls: &[Stop], daemon: &OwnedFd) -> Result<(), SetupError> {
    let listener = raw::stop_at(calls).during(Step::Seccomp, "stopping at calls for sockets")?;
    descriptors::send(daemon, &[listener.as_fd()])
        .during(Step::Seccomp, "handing over what tells of stopped calls")
}

fn apply(calls: Calls, error: i32, processor: TargetArch) -> Result<(), SetupError> {
    let answer = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, answer, processor)
        .during(Step::Seccomp, BUILDING)?;
    let program: Vec<sock_filter> = filter
        .try_into()
        .during(Step::Seccomp, "compiling the filter")?;
    seccompiler::apply_filter(&program).during(Step::Seccomp, "applying the filter")
}

/// x86_64 kernels may know every call a second time, as number + 2^30 (x32): a list of numbers does not cover those.
fn deny_second_numbering() -> [sock_filter; 4] {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const CALL_NUMBER_OFFSET: u32 = 0;
    const SECOND_NUMBERING: u32 = 0x4000_0000;
    let statement = |code, k| sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    };
    [
        statement(LOAD_WORD, CALL_NUMBER_OFFSET),
        sock_filter {
            code: JUMP_IF_AT_LEAST,
            jt: 0,
            jf: 1,
            k: SECOND_NUMBERING,
        },
        statement(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()),
        statement(RETURN, libc::SECCOMP_RET_ALLOW),
    ]
}
