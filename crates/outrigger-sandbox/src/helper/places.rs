//! Which parts of the system a command gets to see: one list for the mounts and for Landlock.

use std::path::{Path, PathBuf};

use crate::policy::{PRIVATE, Policy};

/// What any program needs to run at all, for reading and executing. `/proc` comes on top.
pub(crate) const SYSTEM: [&str; 11] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/sys/devices/system/cpu",
];

/// The devices without state of their own.
pub(crate) const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// The home, unless it is no place of a user's own: accounts of services have system directories or the root there.
pub(super) fn home(policy: &Policy) -> Option<&Path> {
    policy
        .home
        .as_deref()
        .filter(|home| home.is_absolute() && home.parent().is_some() && !is_in_system(home))
}

pub(super) fn is_in_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

pub(super) fn private(policy: &Policy) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = PRIVATE.iter().map(PathBuf::from).collect();
    places.extend(home(policy).map(Path::to_owned));
    places
}

/// What a pod's folders are seen as in full mode.
pub(super) fn shared(policy: &Policy) -> Vec<(&Path, &Path)> {
    let Some(pod) = &policy.pod else {
        return Vec::new();
    };
    let [tmp, var_tmp, _] = PRIVATE.map(Path::new);
    let home = home(policy).map(|home| (home, pod.home.as_path()));
    let temporary = [(tmp, pod.tmp.as_path()), (var_tmp, &pod.var_tmp)];
    home.into_iter().chain(temporary).collect()
}
