//! The daemon's own process: nothing of it is to be read by others, dumped to disk or preloaded.

/// Keeps other processes of the same user out of this one's memory and environment, and core dumps off.
///
/// The first thing in `main`, before any thread. What the system refuses is left as it is: the
/// daemon works without.
#[cfg(target_os = "linux")]
pub fn harden() {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // Refused only to a process that is confined already.
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Does nothing on this system.
#[cfg(not(target_os = "linux"))]
pub fn harden() {}
