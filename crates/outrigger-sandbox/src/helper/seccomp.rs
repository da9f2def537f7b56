//! The system call filter: all is allowed but what a build or a script has no use for and an attack has.
//!
//! Two filters with different answers. Calls that hide their arguments behind a pointer (`clone3`, `openat2`)
//! "do not exist", so that libraries fall back to the older ones, which can be judged; the rest is "not permitted".
//! What is judged by its arguments is said where it is listed, in `rules` and `signals`.

mod rules;
mod signals;

use std::collections::BTreeMap;

use seccompiler::{SeccompAction, SeccompFilter, SeccompRule, TargetArch, sock_filter};

use super::{During, SetupError};
use crate::Mode;
use crate::layers::Step;
use crate::policy::Policy;

pub(super) use self::signals::Spared;

/// Applies both filters. `landlock` is the version of it that is in force by now, `spared` whom signals must not reach
/// where it does not keep them. `false` on a processor for which there are none.
pub(super) fn restrict(
    policy: &Policy,
    landlock: Option<u8>,
    spared: &Spared,
) -> Result<bool, SetupError> {
    let Ok(processor) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(false);
    };
    let landlock = landlock.unwrap_or_default();
    let mut absent = rules::absent();
    let mut denied =
        rules::denied(policy, landlock).during(Step::Seccomp, "building the filter")?;
    if policy.mode < Mode::Full && landlock < rules::SCOPES {
        absent.extend(signals::absent());
        let signals = signals::denied(spared).during(Step::Seccomp, "building the filter")?;
        rules::add(&mut denied, signals);
    }
    apply_both(absent, denied, processor)?;
    Ok(true)
}

/// Applies what keeps signals from `spared`, and nothing else. `false` on a processor for which there are no filters.
pub(super) fn restrict_signals(spared: &Spared) -> Result<bool, SetupError> {
    let Ok(processor) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(false);
    };
    let absent = signals::absent().into_iter().collect();
    let denied = signals::denied(spared).during(Step::Seccomp, "building the filter")?;
    apply_both(absent, denied, processor)?;
    Ok(true)
}

fn apply_both(
    absent: BTreeMap<i64, Vec<SeccompRule>>,
    denied: BTreeMap<i64, Vec<SeccompRule>>,
    processor: TargetArch,
) -> Result<(), SetupError> {
    apply(absent, libc::ENOSYS, processor)?;
    apply(denied, libc::EPERM, processor)?;
    if processor == TargetArch::x86_64 {
        seccompiler::apply_filter(&deny_second_numbering())
            .during(Step::Seccomp, "applying the filter for x32")?;
    }
    Ok(())
}

fn apply(
    calls: BTreeMap<i64, Vec<SeccompRule>>,
    error: i32,
    processor: TargetArch,
) -> Result<(), SetupError> {
    let answer = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, answer, processor)
        .during(Step::Seccomp, "building the filter")?;
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
