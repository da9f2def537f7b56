//! Files of sessions that are being imported: so many at once, of which one that nobody goes on with makes room.

use std::fs::File;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Most sessions that are being imported at once: each is a file of up to 256 MiB.
const MAX_IMPORTS: usize = 4;

/// After which time without a further piece an import makes room for another one.
const IDLE: Duration = Duration::from_secs(30);

/// The imports of a daemon.
#[derive(Debug, Default)]
pub(crate) struct Imports(Mutex<Vec<Weak<Place>>>);

/// The place of an import, which it has until this is dropped.
#[derive(Debug)]
pub(super) struct Place(Mutex<State>);

#[derive(Debug)]
enum State {
    /// It waits for a piece since then.
    Waits(Incoming, Instant),
    /// A piece is being written, or the session is being made.
    Busy,
    /// Another import has its place.
    Gone,
}

/// What came so far of a file.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) file: File,
    /// The piece that comes next.
    pub(super) next: u64,
    pub(super) bytes: u64,
}

impl Imports {
    /// Returns a place; `None` where there are too many that somebody goes on with.
    pub(super) fn begin(&self) -> Option<Arc<Place>> {
        let mut places = self.0.lock();
        places.retain(|place| place.strong_count() > 0);
        if places.len() >= MAX_IMPORTS {
            let all = places.iter().filter_map(Weak::upgrade);
            let idle = all.filter_map(|place| Some((place.waits_since()?, place)));
            let (since, longest) = idle.min_by_key(|(since, _)| *since)?;
            if since.elapsed() < IDLE || !longest.give_up() {
                return None;
            }
            places.retain(|place| !place.ptr_eq(&Arc::downgrade(&longest)));
        }
        let place = Arc::new(Place(Mutex::new(State::Busy)));
        places.push(Arc::downgrade(&place));
        Some(place)
    }
}

impl Place {
    /// Takes what came so far, to go on with it; `None` where another import has its place, or it was taken already.
    pub(super) fn take(&self) -> Option<Incoming> {
        let mut state = self.0.lock();
        match std::mem::replace(&mut *state, State::Busy) {
            State::Waits(incoming, _) => Some(incoming),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Has it wait for the next piece.
    pub(super) fn wait(&self, incoming: Incoming) {
        *self.0.lock() = State::Waits(incoming, Instant::now());
    }

    fn waits_since(&self) -> Option<Instant> {
        match &*self.0.lock() {
            State::Waits(_, since) => Some(*since),
            State::Busy | State::Gone => None,
        }
    }

    /// Gives its file up; false where it is at work by now.
    fn give_up(&self) -> bool {
        let mut state = self.0.lock();
        let waits = matches!(*state, State::Waits(..));
        if waits {
            *state = State::Gone;
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incoming() -> Incoming {
        Incoming {
            file: tempfile::tempfile().unwrap(),
            next: 1,
            bytes: 1,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_import_that_nobody_goes_on_with_makes_room() {
        let imports = Imports::default();
        let begun: Vec<_> = (0..MAX_IMPORTS).map(|_| imports.begin().unwrap()).collect();
        let [first, second, busy, _] = begun.as_slice() else {
            panic!("{begun:?}");
        };
        first.wait(incoming());
        tokio::time::advance(IDLE / 2).await;
        second.wait(incoming());
        assert!(imports.begin().is_none());
        tokio::time::advance(IDLE / 2).await;
        let third = imports.begin().unwrap();
        assert!(first.take().is_none() && second.take().is_some());
        // Those that are at work keep theirs, however long that takes.
        tokio::time::advance(IDLE * 10).await;
        assert!(imports.begin().is_none());
        busy.wait(incoming());
        assert!(busy.take().is_some());
        drop(third);
        assert!(imports.begin().is_some());
    }
}
