//! Landlock: which files the worker may read and change, which TCP ports it may reach, whom it may signal.
//!
//! Landlock has no exceptions: a right on a directory holds for all below it. So there is a list of what may be
//! read, and the home is not on it; files to hide *inside* a root are hidden by mounts, in full mode only.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus,
    Scope,
};

use super::{During, SetupError, places};
use crate::sandbox::Mode;
use crate::sandbox::layers::Step;
use crate::sandbox::policy::Policy;

/// The newest rights the rules were written for; an older kernel enforces those it knows.
const RIGHTS: ABI = ABI::V9;

/// Applies the rules to this process and all it will start.
///
/// # Errors
/// When the kernel enforces none of it, or a writable root cannot be opened.
pub(super) fn restrict(policy: &Policy) -> Result<(), SetupError> {
    let rules = rules(policy).during(Step::Landlock, "building the rules")?;
    let status = rules
        .restrict_self()
        .during(Step::Landlock, "applying the rules")?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(SetupError::new(
            Step::Landlock,
            "applying the rules",
            "the kernel does not support Landlock",
        )),
    }
}

fn rules(policy: &Policy) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(RIGHTS))?
        .handle_access(AccessNet::from_all(RIGHTS))?
        .scope(Scope::from_all(RIGHTS))?
        .create()?;
    let read = AccessFs::from_read(RIGHTS);
    for path in places::SYSTEM.iter().chain(&["/proc"]).map(Path::new) {
        rules = allow(rules, path, read)?;
    }
    for path in &policy.read_only {
        rules = allow(rules, path, read)?;
    }
    for path in places::DEVICES.iter().map(Path::new) {
        rules = allow(rules, path, AccessFs::ReadFile | AccessFs::WriteFile)?;
    }
    for path in writable(policy) {
        rules = allow(rules, &path, change())?;
    }
    for port in policy.ports.iter().flatten() {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(rules)
}

/// All rights but making devices and talking to them.
fn change() -> BitFlags<AccessFs> {
    AccessFs::from_all(RIGHTS) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn writable(policy: &Policy) -> Vec<PathBuf> {
    let mut paths = policy.read_write.clone();
    paths.extend(policy.private_tmp.clone());
    if policy.mode == Mode::Full {
        // Empty file systems of the command's own by now, see `mounts`.
        paths.extend(places::private(policy));
    }
    paths
}

/// Adds a rule for what is at the path now. What does not exist needs none: nobody can make it there.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(opened) = PathFd::new(path) else {
        return Ok(rules);
    };
    let rights = if path.is_dir() {
        rights
    } else {
        rights & AccessFs::from_file(RIGHTS)
    };
    rules.add_rule(PathBeneath::new(opened, rights))
}
