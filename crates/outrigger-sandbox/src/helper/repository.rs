//! Puts back what a command changed in a repository to have git run it later, outside of the sandbox.
//!
//! Landlock knows no exception below a directory that may be written, and a mount cannot cover what is not there yet.
//! So the helper, which is not confined itself, makes what git takes programs and settings from what it was in the
//! baseline ([`crate::repository`]) when all processes of the command are dead: settings, hooks, the files
//! that say where settings are, and `.git` itself. A repository that the command made is kept, with settings that
//! name no program and without hooks. Other commands may run meanwhile, so each step is from an open directory and
//! follows no link; and each step is short, whatever a command has left there: what has to go is moved aside first.

mod cleanse;
mod gitlinks;
mod orders;
mod put_back;
mod root;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use cap_std::fs::Dir;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use self::put_back::Hand;
pub(super) use self::put_back::Junk;
use crate::policy::Notice;
use crate::repository::{Baseline, Kept, MAX_NOTED};

/// What the kernel may take to end the processes of a namespace whose guard was killed; milliseconds usually.
const LAST_THROES: Duration = Duration::from_millis(200);

/// The roots as they were.
#[derive(Default)]
pub(super) struct Repositories(Vec<Repository>);

struct Repository {
    root: Dir,
    baseline: Baseline,
    kept: Kept,
    /// `.git`, wherever it is now.
    git: Option<Dir>,
    /// Held while things are put back: two at a time would trip over each other.
    turn: File,
    /// Held in common by all who write there.
    writers: File,
}

/// What was changed back.
#[derive(Debug, Default)]
pub(super) struct Restored {
    /// Paths below their root.
    pub(super) paths: Vec<String>,
    /// The first of what could not be put back, and why.
    pub(super) failure: Option<String>,
}

impl Repositories {
    /// Takes the baselines from what came with the policy; `noted` says which have a `.git`.
    pub(super) fn receive(
        noted: &[bool],
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> io::Result<Self> {
        let mut repositories = Vec::with_capacity(noted.len().min(MAX_NOTED));
        let mut next = || descriptors.next().ok_or(io::ErrorKind::UnexpectedEof);
        for has_git in noted {
            let (memory, writers, root) = (next()?, next()?, next()?);
            let git = if *has_git { Some(next()?) } else { None };
            let (turn, writers) = (reopened(&memory)?, reopened(&writers)?);
            flock(&writers, FlockOperation::LockShared)?;
            let (baseline, kept) = Kept::receive(memory)?;
            repositories.push(Repository {
                root: Dir::from_std_file(File::from(root)),
                git: git.map(|git| Dir::from_std_file(File::from(git))),
                baseline,
                kept,
                turn,
                writers,
            });
        }
        Ok(Self(repositories))
    }

    /// Makes them what they were; to be called when no process of the command is left. Short: what had to go is
    /// somewhere in the junk, to be removed.
    pub(super) fn put_back(self) -> (Restored, Junk) {
        let mut restored = Restored::default();
        let mut junk = Junk::default();
        self.put_all_back(&mut restored, &mut junk);
        (restored, junk)
    }

    /// The same in the place of a helper that was killed: the kernel may still be ending what it guarded.
    pub(super) fn put_back_twice(self) -> (Restored, Junk) {
        let mut restored = Restored::default();
        let mut junk = Junk::default();
        self.put_all_back(&mut restored, &mut junk);
        if !self.0.is_empty() {
            std::thread::sleep(LAST_THROES);
            self.put_all_back(&mut restored, &mut junk);
        }
        (restored, junk)
    }

    fn put_all_back(&self, restored: &mut Restored, junk: &mut Junk) {
        for repository in &self.0 {
            repository.put_back(restored, junk);
        }
    }
}

impl Repository {
    fn put_back(&self, restored: &mut Restored, junk: &mut Junk) {
        flock(&self.turn, FlockOperation::LockExclusive).unwrap_or_default();
        // Nobody else writes: what was put at missing names to pin them can go.
        let is_last = flock(&self.writers, FlockOperation::NonBlockingLockExclusive).is_ok();
        let mut hand = Hand {
            kept: &self.kept,
            junk,
            restored,
            is_last,
        };
        root::put_back(&self.root, &self.baseline, self.git.as_ref(), &mut hand);
        flock(&self.turn, FlockOperation::Unlock).unwrap_or_default();
    }
}

impl From<Restored> for Notice {
    fn from(restored: Restored) -> Self {
        Self::Restored {
            paths: restored.paths,
            failure: restored.failure,
        }
    }
}

/// The same file once more, to be locked by itself: a lock belongs to whoever opened.
fn reopened(file: &OwnedFd) -> io::Result<File> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    match File::open(&path) {
        Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => {
            Err(io::Error::other("/proc is not mounted"))
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests;
