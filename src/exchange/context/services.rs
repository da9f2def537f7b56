//! What all exchanges of the daemon share.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use crate::audit::Audit;
use crate::config::Config;
use crate::exchange::first_model::FirstModels;
use crate::exchange::history::Room;
use crate::sandbox::spill::Spill;
use crate::telemetry::Redactor;
use crate::tool::Registry;
use crate::tool::locks::Locks;

/// The daemon's services.
#[derive(Clone)]
pub struct Services {
    /// The configuration.
    pub config: Arc<Config>,
    /// The tools there are.
    pub registry: Arc<Registry>,
    /// Who reads and writes which file.
    pub locks: Arc<Locks>,
    /// The exchanges that run, for a shutdown to wait for.
    pub exchanges: TaskTracker,
    /// Takes secrets out of what tools return.
    pub redactor: Redactor,
    /// The models of instances for which nobody names one.
    pub first_models: Arc<FirstModels>,
    /// Where whole outputs are kept.
    pub spill: Spill,
    /// Where each call is recorded.
    pub audit: Audit,
    /// How much conversations may remember.
    pub room: Room,
}
