//! Landlock: which files the worker may read and change, which TCP ports it may reach, whom it may signal.
//!
//! Landlock has no exceptions: a right on a directory holds for all below it. So there is a list of what may be
//! read, and the home is not on it; files to hide *inside* a root are hidden by mounts, in full mode only.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::FileType;

use super::{During, SetupError, places};
use crate::sandbox::Mode;
use crate::sandbox::layers::Step;
use crate::sandbox::policy::Policy;

/// The newest rights the rules were written for; an older kernel enforces those it knows, and what it lacks is
/// reported by the version it has.
const RIGHTS: ABI = ABI::V9;

/// Applies the rules to this process and all it will start. Returns the version (ABI) of what is enforced.
///
/// # Errors
/// When the kernel enforces none of it, or a writable root cannot be opened.
pub(super) fn restrict(policy: &Policy) -> Result<u8, SetupError> {
    let rights = rights(policy.landlock);
    let rules = rules(policy, rights).during(Step::Landlock, "building the rules")?;
    let status = rules
        .restrict_self()
        .during(Step::Landlock, "applying the rules")?;
    match (status.ruleset, status.landlock) {
        (
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
            LandlockStatus::Available { effective_abi, .. },
        ) => Ok(version(effective_abi.min(rights))),
        _ => Err(SetupError::new(
            Step::Landlock,
            "applying the rules",
            "the kernel does not support Landlock",
        )),
    }
}

/// The rights that are asked for: all that are known, or those of an older version that is to be tried.
fn rights(newest: u8) -> ABI {
    let known = [
        ABI::V1,
        ABI::V2,
        ABI::V3,
        ABI::V4,
        ABI::V5,
        ABI::V6,
        ABI::V7,
        ABI::V8,
    ];
    known
        .into_iter()
        .find(|abi| version(*abi) == newest)
        .unwrap_or(RIGHTS)
}

fn version(abi: ABI) -> u8 {
    u8::try_from(abi as i32).unwrap_or_default()
}

fn rules(policy: &Policy, rights: ABI) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(rights))?;
    // An empty set is an error, and the oldest versions know none of these.
    let (ports, scopes) = (AccessNet::from_all(rights), Scope::from_all(rights));
    if !ports.is_empty() {
        rules = rules.handle_access(ports)?;
    }
    if !scopes.is_empty() {
        rules = rules.scope(scopes)?;
    }
    let mut rules = rules.create()?;
    let read = AccessFs::from_read(rights);
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
        rules = allow(rules, &path, change(rights))?;
    }
    for port in policy.ports.iter().flatten().filter(|_| !ports.is_empty()) {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(rules)
}

/// All rights but making devices and talking to them.
fn change(rights: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_all(rights) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
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
    // Of what was opened: the path may name something else by now.
    let is_folder = rustix::fs::fstat(&opened)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
    let rights = if is_folder {
        rights
    } else {
        rights & AccessFs::from_file(RIGHTS)
    };
    rules.add_rule(PathBeneath::new(opened, rights))
}
