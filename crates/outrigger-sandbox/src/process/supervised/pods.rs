//! The pods of a sandbox, from their making to the removal of their folders.

use std::sync::Arc;

use crate::pod::{self, PodSettings};
use crate::{Pod, Shared};

/// Returns a new pod of a user's, or of the daemon's own.
pub(crate) fn pod(shared: &Shared, user: Option<String>) -> Pod {
    let settings = PodSettings {
        temporary: shared.settings.temporary.clone(),
        bytes: shared.settings.pod_bytes,
        caches: shared.settings.caches.clone(),
        user,
    };
    let alive = shared.state.pods.token();
    Pod::new(Arc::clone(&shared.state.helpers), settings, alive)
}

/// Waits until the folders of all pods are removed. Must be called when no more are made.
pub(crate) async fn pods_removed(shared: &Shared) {
    shared.state.pods.close();
    shared.state.pods.wait().await;
}

/// Removes the folders of pods that a killed daemon left. Whoever waits for what was tried goes first.
pub(crate) async fn sweep(shared: &Shared) {
    crate::probe::others_first().await;
    pod::sweep(&shared.state.helpers, shared.settings.temporary.clone()).await;
}
