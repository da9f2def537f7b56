//! What a call is given in tests.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::quota::WriteQuota;
use super::seen::SeenFiles;
use super::undo::Keep;
use super::{Run, Visible};
use crate::sandbox::Pod;
use crate::telemetry::Redactor;

/// A conversation that has seen nothing, and what else a call borrows.
pub(crate) struct Surroundings {
    pub(crate) seen: Arc<SeenFiles>,
    pub(crate) redactor: Redactor,
    quota: Arc<WriteQuota>,
    keep: Arc<dyn Keep>,
    pod: OnceLock<Pod>,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            seen: Arc::default(),
            redactor: Redactor::default(),
            quota: Arc::default(),
            keep: Arc::new(()),
            pod: OnceLock::new(),
        }
    }
}

impl Surroundings {
    /// Returns a call that nobody follows, with ten minutes and everything in sight.
    pub(crate) fn run(&self) -> Run<'_> {
        let visible: Visible = Arc::new(|_| true);
        Run {
            emit: &|_, _| {},
            cancel: CancellationToken::new(),
            timeout: Duration::from_secs(600),
            known: &(),
            seen: &self.seen,
            redactor: &self.redactor,
            quota: &self.quota,
            keep: &self.keep,
            owner: "",
            pod: &self.pod,
            background: None,
            visible,
            user: None,
            tasks: None,
        }
    }
}
