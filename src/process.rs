//! The daemon's own process: nothing of it is to be read by others, dumped to disk or preloaded; what it may write and open.

use std::path::Path;

/// How many files the daemon may have open, where its user may have as many: sockets of clients, providers and commands, and
/// folders of projects. Many systems begin with 1,024. Commands have a limit of their own.
#[cfg(target_os = "linux")]
const OPEN_FILES: u64 = 65_536;

/// Keeps other processes of the same user out of this one's memory and environment, and core dumps off.
///
/// The first thing in `main`, before any thread. What the system refuses is left as it is: the
/// daemon works without.
#[cfg(target_os = "linux")]
pub fn harden() -> EnvironmentBlock {
    use rustix::process::{
        DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
    };

    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // Before it is closed to this process's own user too.
    let block = EnvironmentBlock::open();
    // Refused only to a process that is confined already.
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let files = getrlimit(Resource::Nofile);
    let wanted = files
        .maximum
        .map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    if files.current.is_some_and(|current| current < wanted) {
        let more = Rlimit {
            current: Some(wanted),
            ..files
        };
        let _ = setrlimit(Resource::Nofile, more);
    }
    block
}

/// Does nothing on this system.
#[cfg(not(target_os = "linux"))]
pub fn harden() -> EnvironmentBlock {
    EnvironmentBlock {}
}

/// The place in memory in which the system put the environment, and from which `/proc/PID/environ` shows it for as long
/// as the process lives.
#[derive(Debug)]
pub struct EnvironmentBlock {
    #[cfg(target_os = "linux")]
    place: Option<(std::fs::File, Places)>,
}

/// Where in memory the arguments and, right behind them on every kernel that is known, the environment are.
#[cfg(target_os = "linux")]
#[derive(Debug, PartialEq, Eq)]
struct Places {
    arguments: std::ops::Range<u64>,
    environment: std::ops::Range<u64>,
}

#[cfg(target_os = "linux")]
impl EnvironmentBlock {
    fn open() -> Self {
        let memory = || {
            let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
            let place = places_of(&stat)?;
            let memory = std::fs::File::options()
                .read(true)
                .write(true)
                .open("/proc/self/mem")
                .ok()?;
            Some((memory, place))
        };
        Self { place: memory() }
    }

    /// Overwrites the values of variables that are secrets, once everything was read that is needed of them: whoever
    /// may look into any process, root with all its capabilities, finds nothing here. They are empty afterwards.
    ///
    /// To be called before other threads read the environment.
    pub fn forget(self, is_secret: impl Fn(&str, &str) -> bool) {
        use std::os::unix::fs::FileExt;
        let Some((memory, places)) = self.place else {
            return;
        };
        let place = places.environment;
        let mut block = vec![0; length(&place)];
        if memory.read_exact_at(&mut block, place.start).is_err() {
            return;
        }
        for value in secret_values(&block, is_secret) {
            let zeros = vec![0; value.len()];
            let at = place.start + value.start as u64;
            memory.write_all_at(&zeros, at).unwrap_or_default();
        }
    }

    /// Whether the arguments can be overwritten together with the environment: not where the program may be executed but not
    /// read, or has capabilities of its own.
    pub fn can_be_erased(&self) -> bool {
        self.all().is_some()
    }

    /// Where all of it is.
    fn all(&self) -> Option<(&std::fs::File, std::ops::Range<u64>)> {
        let (memory, places) = self.place.as_ref()?;
        let all = places.arguments.start..places.environment.end;
        let adjoin = places.arguments.end == places.environment.start;
        (adjoin && length(&all) < MAX_BLOCK_BYTES).then_some((memory, all))
    }

    /// Overwrites the whole environment and all arguments, and puts a name for lists of processes in their place. Returns
    /// whether it could.
    fn erase(&self, name: &str) -> bool {
        use std::os::unix::fs::FileExt;
        let Some((memory, all)) = self.all() else {
            return false;
        };
        let mut text = vec![0; length(&all)];
        // The last byte stays zero: it ends the name.
        let most = text.len().saturating_sub(1);
        let name = name.as_bytes();
        let name = name.get(..most).unwrap_or(name);
        text.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        memory.write_all_at(&text, all.start).is_ok()
    }
}

/// Overwrites the arguments and the environment of this process, a fork of one that was [hardened](harden), and gives it a name
/// for lists of processes. Returns whether it could. The dynamic loader keeps what it copied of its own variables, such as
/// `LD_LIBRARY_PATH`.
#[cfg(target_os = "linux")]
#[must_use]
pub fn erase_arguments(name: &str) -> bool {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    // A process that is not dumpable may not open its own memory either.
    let opened =
        set_dumpable_behavior(DumpableBehavior::Dumpable).map(|()| EnvironmentBlock::open());
    let closed = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    opened.is_ok_and(|block| block.erase(name)) && closed.is_ok()
}

#[cfg(not(target_os = "linux"))]
impl EnvironmentBlock {
    /// Does nothing on this system.
    pub fn forget(self, _is_secret: impl Fn(&str, &str) -> bool) {}
}

/// Most of arguments or environment that is looked at, in bytes: the kernel takes 6 MiB of both together.
#[cfg(target_os = "linux")]
const MAX_BLOCK_BYTES: usize = 8 << 20;

#[cfg(target_os = "linux")]
fn length(place: &std::ops::Range<u64>) -> usize {
    let length = usize::try_from(place.end.saturating_sub(place.start)).unwrap_or_default();
    length.min(MAX_BLOCK_BYTES)
}

/// Where arguments and environment are, from `/proc/self/stat`: its fields 48 to 51, the name being the second.
#[cfg(target_os = "linux")]
fn places_of(stat: &str) -> Option<Places> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(45);
    let mut place = || Some(fields.next()?.parse().ok()?..fields.next()?.parse().ok()?);
    let (arguments, environment) = (place()?, place()?);
    let is_place = |it: &std::ops::Range<u64>| 0 < it.start && it.start <= it.end;
    (is_place(&arguments) && is_place(&environment)).then_some(Places {
        arguments,
        environment,
    })
}

/// Which parts of `NAME=VALUE` entries, each ended by a zero, are values of secrets.
#[cfg(target_os = "linux")]
fn secret_values(
    block: &[u8],
    is_secret: impl Fn(&str, &str) -> bool,
) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for entry in block.split(|byte| *byte == 0) {
        let end = start + entry.len();
        if let Some(equals) = entry.iter().position(|byte| *byte == b'=') {
            let (name, value) = entry.split_at(equals);
            let (name, value) = (
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(value),
            );
            if is_secret(&name, value.trim_start_matches('=')) {
                found.push(start + equals + 1..end);
            }
        }
        start = end + 1;
    }
    found
}

/// What to do where temporary files cannot be made.
pub const SET_TMPDIR: &str = "set TMPDIR to a folder that is there and that the daemon may write";

/// Why this process cannot make files in a folder; `None` where it can.
///
/// The system is asked, nothing is tried: no file is to be left behind in somebody's project.
#[cfg(unix)]
#[must_use]
pub fn unwritable(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;

    use rustix::fs::{Access, access};

    let error = access(folder, Access::WRITE_OK | Access::EXEC_OK).err()?;
    let own = rustix::process::getuid().as_raw();
    Some(match folder.metadata() {
        Ok(metadata) => format!(
            "{error}; it belongs to uid {}, the daemon runs as uid {own}",
            metadata.uid()
        ),
        Err(_) => format!("{error}; the daemon runs as uid {own}"),
    })
}

/// Why this process cannot make files in a folder; `None` where it can, as far as is known here.
#[cfg(not(unix))]
#[must_use]
pub fn unwritable(folder: &Path) -> Option<String> {
    match folder.metadata() {
        Ok(metadata) if metadata.permissions().readonly() => Some("it is read-only".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_written_is_said_with_the_reason() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(unwritable(place.path()), None);
        let missing = unwritable(&place.path().join("missing")).unwrap();
        assert!(missing.starts_with("No such file"), "{missing}");
        // Nobody makes files there, root neither.
        #[cfg(target_os = "linux")]
        if let Some(why) = unwritable(Path::new("/proc/self/fdinfo")) {
            assert!(why.contains("belongs to uid"), "{why}");
        }
    }

    #[test]
    fn the_values_of_secrets_are_found_in_the_block() {
        let block = b"A=1\0TOKEN=abc\0EMPTY=\0odd\0KEY==x\0\0";
        let is_secret = |name: &str, _: &str| ["TOKEN", "KEY"].contains(&name);
        let found = secret_values(block, is_secret);
        let values: Vec<&[u8]> = found.into_iter().map(|place| &block[place]).collect();
        assert_eq!(values, [b"abc".as_slice(), b"=x"]);
    }

    #[test]
    fn the_kernel_says_where_arguments_and_environment_are() {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let places = places_of(&stat).unwrap();
        assert!(length(&places.arguments) > 1, "{stat}");
        assert_eq!(places_of("1 (a) b) S 0"), None);
        assert_eq!(places_of(""), None);
    }
}
