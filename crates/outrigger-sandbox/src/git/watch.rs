//! The snapshot of a repository that no mount protects, taken before the first of the commands that run in it and compared
//! after the last, so that of two at a time neither takes the other's changes for the user's.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use tokio::sync::Mutex;

use super::snapshot::Snapshot;
use crate::Held;
use crate::process::Restored;

/// The snapshots of roots in which commands run. Locked while one is taken or restored.
#[derive(Debug, Default)]
pub(crate) struct Watches(Arc<Mutex<Taken>>);

type Taken = HashMap<PathBuf, Weak<Snapshot>>;

/// One command's part in them, to be ended when its processes are dead.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Watch {
    taken: Arc<Mutex<Taken>>,
    snapshots: Vec<Arc<Snapshot>>,
}

impl Watches {
    /// Takes the snapshots of the roots in which no command runs yet.
    pub(crate) async fn begin(&self, roots: &[PathBuf], held: &[Held]) -> Watch {
        let mut taken = self.0.lock().await;
        taken.retain(|_, snapshot| snapshot.strong_count() > 0);
        let mut watch = Watch {
            taken: Arc::clone(&self.0),
            snapshots: Vec::new(),
        };
        for root in roots {
            if let Some(snapshot) = taken.get(root).and_then(Weak::upgrade) {
                watch.snapshots.push(snapshot);
                continue;
            }
            let (of, held) = (root.clone(), held.to_vec());
            let snapshot = tokio::task::spawn_blocking(move || Snapshot::take(&of, &held)).await;
            if let Some(snapshot) = snapshot.unwrap_or_default().map(Arc::new) {
                taken.insert(root.clone(), Arc::downgrade(&snapshot));
                watch.snapshots.push(snapshot);
            }
        }
        watch
    }
}

impl Watch {
    /// Restores what was changed in the roots where this was the last command; says what that was. To be awaited to its
    /// end.
    pub(crate) async fn end(self) -> Restored {
        let mut all = Restored::default();
        if self.snapshots.is_empty() {
            return all;
        }
        // A command that begins meanwhile takes its snapshot of what was restored.
        let taken = self.taken.lock().await;
        for snapshot in self.snapshots.into_iter().filter_map(Arc::into_inner) {
            let restored = tokio::task::spawn_blocking(move || snapshot.restore()).await;
            let restored = restored.unwrap_or_else(|error| Restored {
                paths: Vec::new(),
                failure: Some(error.to_string()),
            });
            all.paths.extend(restored.paths);
            all.failure = all.failure.or(restored.failure);
        }
        drop(taken);
        all
    }
}
