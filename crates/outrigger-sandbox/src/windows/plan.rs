//! What is put around a command on Windows, as data: the limits of its job and the rights that are taken from its token; and in
//! which order it begins. Pure.

use std::io;

use crate::{Limits, Mode};

/// A whole processor, in the hundredths of a percent in which a job counts the processor time of the whole machine.
const WHOLE: u64 = 10_000;

/// What a job object holds all processes of a command to. All of them end with it, whatever else is said here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JobPlan {
    /// Most processes at once.
    pub(crate) processes: Option<u32>,
    /// Most memory that all of them together may commit, in bytes.
    pub(crate) memory: Option<usize>,
    /// Most processor time of each, in units of 100 ns, without what the kernel works for it.
    pub(crate) time: Option<i64>,
    /// Share of the machine's processor time for all together, in hundredths of a percent.
    pub(crate) share: Option<u32>,
    /// Whether they are kept from the desktop of the user: windows of others, the clipboard, the settings of the screen,
    /// the end of the session.
    pub(crate) off_desktop: bool,
}

impl JobPlan {
    /// Returns what a command in this mode is held to, on a machine with so many processors; `is_held` is false where the
    /// configuration switched the sandbox off.
    pub(crate) fn of(
        limits: &Limits,
        memory: u64,
        mode: Mode,
        is_held: bool,
        processors: u64,
    ) -> Self {
        let share = |percent: u64| {
            let share = percent.saturating_mul(WHOLE) / 100 / processors.max(1);
            // Zero is none of them, and more than the whole is refused.
            u32::try_from(share.clamp(1, WHOLE)).unwrap_or_default()
        };
        let time =
            |time: std::time::Duration| i64::try_from(time.as_nanos() / 100).unwrap_or(i64::MAX);
        let held = Some(limits).filter(|_| is_held);
        Self {
            processes: held
                .and_then(|limits| limits.processes)
                .map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
            memory: held.map(|_| usize::try_from(memory).unwrap_or(usize::MAX)),
            time: held.and_then(|limits| limits.cpu).map(time),
            share: held.and_then(|limits| limits.cpu_percent).map(share),
            off_desktop: mode != Mode::None,
        }
    }
}

/// The label of a folder to which programs of low integrity may write, and of all that is made in it: in the language of
/// Windows' security descriptors, a mandatory label (`ML`) that folders and files inherit (`OICI`), against writing from
/// below (`NW`), at the low level (`LW`).
#[cfg_attr(not(windows), expect(dead_code, reason = "carried out on Windows"))]
pub(crate) const LOW_LABEL: &str = "S:(ML;OICI;NW;;;LW)";

/// What is taken from a copy of the daemon's own token, before a command runs by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenPlan {
    /// Nothing: it has the rights of the user.
    Own,
    /// In this order: [`FEWER`] rights, and low integrity: Windows lets it write nothing that is not labelled for that,
    /// which by default is everything of the user's.
    Restricted,
}

impl TokenPlan {
    /// Returns what is taken in a mode.
    pub(crate) fn of(mode: Mode) -> Self {
        match mode {
            Mode::None => Self::Own,
            _ => Self::Restricted,
        }
    }
}

impl TokenPlan {
    /// Makes the token by which a command runs; `None` is the daemon's own. Without each of the steps there is none, and so no
    /// command.
    pub(crate) fn token<S: Source>(
        self,
        source: impl FnOnce() -> io::Result<S>,
    ) -> io::Result<Option<<S::Fewer as Lowered>::Token>> {
        match self {
            Self::Own => Ok(None),
            Self::Restricted => {
                let token = source()?.restricted(FEWER)?.lowered(Level::Low)?;
                Ok(Some(token))
            }
        }
    }
}

/// What a copy of a token loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fewer {
    /// `DISABLE_MAX_PRIVILEGE`: all privileges but the one to pass through folders.
    pub(crate) privileges: bool,
    /// `LUA_TOKEN`: that the group of administrators counts for more than refusals; it is left what it is to a user who was
    /// not asked yet.
    pub(crate) administrators: bool,
}

/// What each copy loses.
const FEWER: Fewer = Fewer {
    privileges: true,
    administrators: true,
};

/// How far a program is trusted with what it may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// `WinLowLabelSid`
    Low,
}

/// A token that copies are made of. The types are the order: what a program runs by is made of a copy with fewer rights alone,
/// by its last step.
pub(crate) trait Source {
    type Fewer: Lowered;
    /// `CreateRestrictedToken`
    fn restricted(&self, fewer: Fewer) -> io::Result<Self::Fewer>;
}

/// A copy with fewer rights, which does not run anything yet.
pub(crate) trait Lowered {
    type Token;
    /// `SetTokenInformation`, of its integrity.
    fn lowered(self, level: Level) -> io::Result<Self::Token>;
}

/// A process that was made and has not run yet. Each is one call of the system.
pub(crate) trait Suspended {
    /// `AssignProcessToJobObject`
    fn join_job(&self) -> io::Result<()>;
    /// `ResumeThread`, of its only thread.
    fn resume(&self) -> io::Result<()>;
    /// `TerminateProcess`. Where this fails, too, it still never runs.
    fn terminate(&self);
}

/// Lets a process run once it is in its job, and ends it where it does not get there.
pub(crate) fn begin(process: &impl Suspended) -> io::Result<()> {
    let begun = process.join_job().and_then(|()| process.resume());
    begun.inspect_err(|_| process.terminate())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_job_holds_what_the_limits_say() {
        let limits = Limits {
            cpu: Some(Duration::from_secs(2)),
            cpu_percent: Some(150),
            processes: Some(7),
            ..Limits::default()
        };
        let plan = JobPlan::of(&limits, 1 << 30, Mode::None, true, 4);
        let expected = JobPlan {
            processes: Some(7),
            memory: Some(1 << 30),
            time: Some(20_000_000),
            share: Some(3_750),
            off_desktop: false,
        };
        assert_eq!(plan, expected);
        let off = JobPlan::of(&limits, 1 << 30, Mode::None, false, 4);
        assert_eq!(off, JobPlan::default());
        for (percent, processors, share) in [
            (100, 1, 10_000),
            (800, 4, 10_000),
            (1, 128, 1),
            (50, 0, 5_000),
        ] {
            let limits = Limits {
                cpu_percent: Some(percent),
                ..Limits::default()
            };
            let plan = JobPlan::of(&limits, 0, Mode::None, true, processors);
            assert_eq!(plan.share, Some(share), "{percent} {processors}");
        }
    }

    /// Notes the calls, of which one fails.
    struct Recorder {
        calls: RefCell<Vec<&'static str>>,
        fails: &'static str,
    }

    impl Recorder {
        fn call(&self, name: &'static str) -> io::Result<()> {
            self.calls.borrow_mut().push(name);
            match name == self.fails {
                true => Err(io::Error::other(name)),
                false => Ok(()),
            }
        }
    }

    impl Suspended for Recorder {
        fn join_job(&self) -> io::Result<()> {
            self.call("join")
        }

        fn resume(&self) -> io::Result<()> {
            self.call("resume")
        }

        fn terminate(&self) {
            self.call("terminate").unwrap_or_default();
        }
    }

    #[test]
    fn nothing_runs_outside_of_its_job() {
        for (fails, calls) in [
            ("", &["join", "resume"][..]),
            ("join", &["join", "terminate"]),
            ("resume", &["join", "resume", "terminate"]),
        ] {
            let recorder = Recorder {
                calls: RefCell::default(),
                fails,
            };
            let begun = begin(&recorder);
            assert_eq!(
                begun
                    .map_err(|error| error.to_string())
                    .err()
                    .unwrap_or_default(),
                fails
            );
            assert_eq!(*recorder.calls.borrow(), calls, "{fails}");
        }
    }

    /// Notes the steps to a token, of which one fails.
    struct Steps<'a> {
        calls: &'a RefCell<Vec<String>>,
        fails: &'static str,
    }

    impl Steps<'_> {
        fn step(self, step: &str, with: &str) -> io::Result<Self> {
            self.calls.borrow_mut().push(format!("{step}{with}"));
            match step == self.fails {
                true => Err(io::Error::other(step.to_owned())),
                false => Ok(self),
            }
        }
    }

    impl Source for Steps<'_> {
        type Fewer = Self;

        fn restricted(&self, fewer: Fewer) -> io::Result<Self> {
            Self { ..*self }.step("restricted", &format!(" {fewer:?}"))
        }
    }

    impl Lowered for Steps<'_> {
        type Token = Self;

        fn lowered(self, level: Level) -> io::Result<Self> {
            self.step("lowered", &format!(" {level:?}"))
        }
    }

    #[test]
    fn there_is_no_token_without_each_of_its_steps() {
        let restricted = "restricted Fewer { privileges: true, administrators: true }";
        for (fails, expected) in [
            ("", &["opened", restricted, "lowered Low"][..]),
            ("opened", &["opened"]),
            ("restricted", &["opened", restricted]),
            ("lowered", &["opened", restricted, "lowered Low"]),
        ] {
            let calls = RefCell::default();
            let steps = Steps {
                calls: &calls,
                fails,
            };
            let token = TokenPlan::Restricted.token(|| steps.step("opened", ""));
            match fails {
                // Never the daemon's own in its place.
                "" => assert!(token.unwrap().is_some()),
                _ => assert_eq!(
                    token.err().map(|error| error.to_string()).as_deref(),
                    Some(fails)
                ),
            }
            assert_eq!(*calls.borrow(), expected, "{fails}");
        }
        let calls = RefCell::default();
        let steps = Steps {
            calls: &calls,
            fails: "",
        };
        let own = TokenPlan::Own.token(|| steps.step("opened", ""));
        assert!(own.unwrap().is_none() && calls.borrow().is_empty());
    }

    #[test]
    fn rights_are_taken_in_every_mode_but_none() {
        assert_eq!(TokenPlan::of(Mode::None), TokenPlan::Own);
        assert_eq!(TokenPlan::of(Mode::Full), TokenPlan::Restricted);
        let plan = JobPlan::of(&Limits::default(), 0, Mode::Full, true, 1);
        assert!(plan.off_desktop);
    }
}
