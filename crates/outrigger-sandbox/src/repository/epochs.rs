//! Who writes in which root, and the baseline that holds for all of them.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::future::try_join_all;
use rustix::fs::MemfdFlags;
use tokio::sync::Mutex as AsyncMutex;

use super::look::{Seen, look};
use super::memory::hand_over;
use super::{Baseline, MAX_NOTED, pins};
use crate::policy::Pin;
use crate::{Held, held};

/// Most roots that are remembered; a daemon has two, and a linked worktree a third.
const MAX_PLACES: usize = 64;

/// The roots that are or were written in.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    places: Mutex<BTreeMap<PathBuf, Arc<AsyncMutex<Place>>>>,
}

/// One root: what was seen there last, and whether somebody still relies on it.
#[derive(Debug, Default)]
struct Place {
    epoch: Option<Arc<Epoch>>,
    writers: Weak<()>,
}

#[derive(Debug)]
struct Epoch {
    baseline: Baseline,
    contents: Vec<u8>,
    memory: OwnedFd,
    /// Locked by each helper, so that the last one is known.
    writers: OwnedFd,
    root: OwnedFd,
    git: Option<OwnedFd>,
}

/// Keeps a baseline in force until whatever it put back is.
#[derive(Debug)]
pub(crate) struct Writer {
    epoch: Arc<Epoch>,
    _alive: Arc<()>,
}

/// What a command starts with.
#[derive(Debug, Default)]
pub(crate) struct Started {
    pub(crate) writers: Vec<Writer>,
    /// Repositories of linked worktrees, outside of the roots.
    pub(crate) outside: Vec<PathBuf>,
    pub(crate) pins: Vec<Pin>,
}

impl Started {
    /// What is pinned for a program whose changes stay. Looks at the roots; for a thread that may block.
    pub(crate) fn read_only(roots: &[PathBuf], held: &[Held], home: Option<&Path>) -> Self {
        let mut started = Self::default();
        for root in roots {
            let (pins, outside) = pins::servers(root, held, home);
            started.pins.extend(pins);
            started.outside.extend(outside);
        }
        started
    }
}

impl Epochs {
    /// Takes the baselines of the roots where nobody writes, and shares those that hold.
    ///
    /// `outside` has the repositories of linked worktrees noted too, for they can be written to then.
    ///
    /// # Errors
    ///
    /// In the words of the system; the command must not start.
    pub(crate) async fn begin(
        &self,
        roots: &[PathBuf],
        held: &[Held],
        outside: bool,
        home: Option<&Path>,
    ) -> io::Result<Started> {
        let mut started = Started::default();
        let looks = roots
            .iter()
            .map(|root| self.begin_in(root, held, false, home));
        for writer in try_join_all(looks).await? {
            if let (true, Some(directory)) = (outside, writer.as_ref().and_then(Writer::outside))
                && !roots.iter().any(|root| directory.starts_with(root))
                && !started.outside.contains(&directory)
            {
                started
                    .writers
                    .extend(self.begin_in(&directory, held, true, home).await?);
                started.outside.push(directory);
            }
            started.writers.extend(writer);
        }
        if started.writers.len() > MAX_NOTED {
            return Err(io::Error::other(format!(
                "a command may change {MAX_NOTED} directories at most"
            )));
        }
        let pins = started.writers.iter();
        started.pins = pins
            .flat_map(|writer| pins::of(&writer.epoch.baseline))
            .collect();
        Ok(started)
    }

    async fn begin_in(
        &self,
        root: &Path,
        held: &[Held],
        itself: bool,
        home: Option<&Path>,
    ) -> io::Result<Option<Writer>> {
        let place = self.place(root);
        // Held while it is looked at: who comes second waits and shares.
        let mut place = place.lock_owned().await;
        if let (Some(alive), Some(epoch)) = (place.writers.upgrade(), &place.epoch) {
            return Ok(Some(Writer {
                epoch: Arc::clone(epoch),
                _alive: alive,
            }));
        }
        let before = place.epoch.clone();
        let (root, held) = (root.to_owned(), held.to_owned());
        let home = home.map(Path::to_owned);
        let looked = tokio::task::spawn_blocking(move || {
            let known = before
                .as_deref()
                .map(|epoch| (&epoch.baseline, epoch.contents.as_slice()));
            // What cannot be opened, a command cannot write in either.
            let opened = held::open_dir(&root, &held).ok()?;
            let seen = look(opened, &root, itself, home.as_deref(), known);
            Some(Epoch::new(seen, before))
        });
        let Some(epoch) = looked.await.map_err(io::Error::other)? else {
            return Ok(None);
        };
        let epoch = epoch?;
        let alive = Arc::new(());
        place.epoch = Some(Arc::clone(&epoch));
        place.writers = Arc::downgrade(&alive);
        Ok(Some(Writer {
            epoch,
            _alive: alive,
        }))
    }

    fn place(&self, root: &Path) -> Arc<AsyncMutex<Place>> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MAX_PLACES {
            // Somebody has one in use as long as he holds it or relies on it.
            places.retain(|_, place| {
                Arc::strong_count(place) > 1
                    || place
                        .try_lock()
                        .is_ok_and(|place| place.writers.strong_count() > 0)
            });
        }
        Arc::clone(places.entry(root.to_owned()).or_default())
    }
}

impl Epoch {
    /// What was seen, or the one before where nothing is other than it was.
    fn new(seen: Seen, before: Option<Arc<Self>>) -> io::Result<Arc<Self>> {
        if let Some(before) = before
            && before.baseline == seen.baseline
            && before.contents == seen.contents
            && held::is_same(&before.root, &seen.root)?
        {
            return Ok(before);
        }
        let writers = rustix::fs::memfd_create("outrigger-writers", MemfdFlags::CLOEXEC)?;
        Ok(Arc::new(Self {
            memory: hand_over(&seen.baseline, &seen.contents)?,
            writers,
            root: seen.root.into_std_file().into(),
            git: seen.git.map(|git| OwnedFd::from(git.into_std_file())),
            baseline: seen.baseline,
            contents: seen.contents,
        }))
    }
}

impl Writer {
    fn outside(&self) -> Option<PathBuf> {
        self.epoch.baseline.outside.clone()
    }

    /// Whether the fourth descriptor goes with it.
    pub(crate) fn has_git(&self) -> bool {
        self.epoch.git.is_some()
    }

    /// What a helper needs to put things back, in this order.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let epoch = &self.epoch;
        [&epoch.memory, &epoch.writers, &epoch.root]
            .map(AsFd::as_fd)
            .into_iter()
            .chain(self.epoch.git.as_ref().map(AsFd::as_fd))
    }
}
