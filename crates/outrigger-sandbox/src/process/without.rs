//! What only Linux has, where there is none of it: the same answers on all other systems.

use std::path::PathBuf;

use super::{Process, Reached, Restored, SpawnError};
use crate::{Mode, Overfull, Pod, Settings, Shared};

/// The way to what helpers are forks of, which there is on Linux alone.
#[derive(Debug)]
pub enum Zygote {}

#[derive(Debug)]
pub(crate) struct State {
    /// What ends commands where the daemon is killed. Windows does so by itself.
    #[cfg(unix)]
    pub(crate) lifeline: std::sync::Arc<super::lifeline::Lifeline>,
}

impl State {
    #[cfg_attr(windows, expect(unused_variables, reason = "nothing is kept there"))]
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            #[cfg(unix)]
            lifeline: super::lifeline::Lifeline::new(settings.helper.clone(), Vec::new()).into(),
        }
    }
}

impl Process {
    /// Returns what was changed back in a repository: nothing, on this system.
    pub fn restored(&self) -> Option<Restored> {
        None
    }

    /// Returns which limits it ran into: none are known, on this system.
    pub fn reached(&self) -> Reached {
        Reached::default()
    }

    /// Returns whether the folders of its pod hold too much: there are none, on this system.
    pub fn overfull(&self) -> Option<Overfull> {
        None
    }
}

pub(crate) fn pod(_shared: &Shared, _user: Option<String>) -> Pod {
    Pod::default()
}

pub(crate) async fn try_users(
    _shared: &Shared,
    _mode: Mode,
    _folders: &[PathBuf],
) -> Result<(), SpawnError> {
    let reason = "sandbox.user_ids is for Linux".to_owned();
    Err(SpawnError::Refused(reason))
}

pub(crate) async fn pods_removed(_shared: &Shared) {}

pub(crate) async fn sweep(_shared: &Shared) {}

pub(crate) fn prepare_helper(_shared: &Shared, _zygote: Option<Zygote>) {}
