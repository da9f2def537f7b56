//! Landlock: which files the worker may read and change, which TCP ports it may reach, whom it may signal.
//!
//! It has no exceptions, a right on a directory holds for all below it: so there is a list of what may be read, and files
//! to hide *inside* a root are hidden by mounts, in full mode only.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::FileType;

use super::opened::Opened;
use super::{During, SetupError, places};
use crate::layers::Step;
use crate::policy::Policy;
use crate::real;
use crate::{LANDLOCK, Mode, Network, Ports};

/// What will be at a path of the command's view, where it is not there yet.
pub(super) type ToCome<'a> = [(&'a Path, &'a OwnedFd)];

/// Applies the rules to this process and all it will start. Returns the version (ABI) of what is enforced.
pub(super) fn restrict(
    policy: &Policy,
    opened: &Opened,
    to_come: &ToCome<'_>,
) -> Result<u8, SetupError> {
    // An older kernel enforces those that it knows, and what it lacks is reported by the version it has.
    let rights = ABI::from(i32::from(policy.landlock.min(LANDLOCK)));
    let writable =
        writable(policy, opened, to_come).during(Step::Landlock, "opening what may be changed")?;
    let rules = rules(policy, opened, to_come, writable, rights)
        .during(Step::Landlock, "building the rules")?;
    let status = rules
        .restrict_self()
        .during(Step::Landlock, "applying the rules")?;
    let (
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
        LandlockStatus::Available { effective_abi, .. },
    ) = (status.ruleset, status.landlock)
    else {
        let reason = "the kernel does not support Landlock";
        return Err(SetupError::new(
            Step::Landlock,
            "applying the rules",
            reason,
        ));
    };
    Ok(u8::try_from(effective_abi.min(rights) as i32).unwrap_or_default())
}

fn rules(
    policy: &Policy,
    opened: &Opened,
    to_come: &ToCome<'_>,
    writable: Vec<OwnedFd>,
    rights: ABI,
) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(rights))?;
    // An empty set is an error, and the oldest versions know none of these.
    let (mut ports, mut scopes) = (AccessNet::from_all(rights), Scope::from_all(rights));
    if let Network::Host(Ports::Any) = policy.command.network {
        ports.remove(AccessNet::ConnectTcp);
    }
    if policy.has_own_network() {
        // There is nothing in it but what its commands listen on, and nothing leads out.
        ports = BitFlags::empty();
        scopes.remove(Scope::AbstractUnixSocket);
    }
    if !ports.is_empty() {
        rules = rules.handle_access(ports)?;
    }
    if !scopes.is_empty() {
        rules = rules.scope(scopes)?;
    }
    let mut rules = rules.create()?;
    let read = AccessFs::from_read(rights);
    for path in places::SYSTEM.iter().chain(&["/proc"]).map(Path::new) {
        rules = allow_at(rules, path, read)?;
    }
    for path in &policy.command.read_only {
        rules = match (opened.get(path), coming(to_come, path)) {
            (Some(place), _) if policy.mode < Mode::Full => allow(rules, place, read)?,
            (_, Some(place)) => allow(rules, place, read)?,
            (_, None) => allow_at(rules, path, read)?,
        };
    }
    for path in places::DEVICES.iter().map(Path::new) {
        rules = allow_at(rules, path, AccessFs::ReadFile | AccessFs::WriteFile)?;
    }
    for opened in writable {
        rules = allow(rules, opened, change(rights))?;
    }
    if let Network::Host(Ports::Only(wanted)) = &policy.command.network
        && !ports.is_empty()
    {
        for port in wanted {
            rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    Ok(rules)
}

fn change(rights: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_all(rights) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn coming<'a>(to_come: &ToCome<'a>, path: &Path) -> Option<&'a OwnedFd> {
    let (_, place) = to_come.iter().find(|(place, _)| *place == path)?;
    Some(place)
}

fn writable(policy: &Policy, opened: &Opened, to_come: &ToCome<'_>) -> io::Result<Vec<OwnedFd>> {
    let mut paths: Vec<PathBuf> = policy.command.read_write.clone();
    if policy.mode == Mode::Full {
        // Empty file systems of the command's own by now, see `mounts`, as everything is what it has to be.
        paths.extend(places::private(policy));
        let open = |path: &PathBuf| match coming(to_come, path) {
            Some(place) => place.try_clone(),
            None => real::open(path),
        };
        return paths.iter().map(open).collect();
    }
    paths.extend(policy.private_tmp.clone());
    paths.iter().map(|path| opened.open(path)).collect()
}

/// Adds a rule for what is at the path now. What does not exist needs none: nobody can make it there.
fn allow_at(
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(opened) => allow(rules, opened, rights),
        Err(_) => Ok(rules),
    }
}

fn allow(
    rules: RulesetCreated,
    opened: impl AsFd,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    // Of what was opened: the path may name something else by now.
    let is_folder = rustix::fs::fstat(&opened)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
    let rights = match is_folder {
        true => rights,
        false => rights & AccessFs::from_file(ABI::from(i32::from(LANDLOCK))),
    };
    rules.add_rule(PathBeneath::new(opened, rights))
}
