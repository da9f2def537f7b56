//! Which user of the system a command is.

use std::path::PathBuf;

use super::super::probe;
use super::{Purpose, SpawnError, pod};
use crate::ids::Table;
use crate::layers::Step;
use crate::policy::Outside;
use crate::{Command, GitAccess, Mode, Shared};

/// Returns which user of the system the command is to be: where there is a range, one of its own for each user of the daemon.
/// Without that it does not run.
pub(super) fn outside(
    shared: &Shared,
    command: &Command,
    mode: Mode,
    purpose: Purpose,
) -> Result<Option<Outside>, SpawnError> {
    let refused = |reason: &str| Err(SpawnError::refused(Step::Identity, reason));
    let pod = command.pod.as_ref();
    if pod.is_some_and(|pod| pod.user() != command.user.as_deref()) {
        return refused("what the conversation has is another user's");
    }
    let Some(ids) = &shared.state.ids else {
        return Ok(None);
    };
    let range = ids.range();
    let id = match (&command.user, purpose) {
        (None, Purpose::Run) => return Ok(None),
        (Some(_), _) if mode != Mode::Full => {
            return refused("sandbox.user_ids takes the sandbox mode full");
        }
        (Some(user), _) => ids.of(user),
        (None, Purpose::Probe) if mode != Mode::Full => return Ok(None),
        (None, Purpose::Probe) => return Ok(on_trial(shared)),
    };
    match id {
        Some(id) => Ok(Some(Outside { id, range })),
        None => refused(
            "other users have all numbers of sandbox.user_ids; the operator has to give more of them",
        ),
    }
}

/// Returns that of what is only tried: the first of the range. It runs a shell that does nothing, so that it may be somebody's too.
pub(super) fn on_trial(shared: &Shared) -> Option<Outside> {
    let range = shared.state.ids.as_ref().map(Table::range)?;
    let id = range.first();
    Some(Outside { id, range })
}

/// Tries whether a command that is a user of its own can be given these folders.
pub(crate) async fn try_users(
    shared: &Shared,
    mode: Mode,
    folders: &[PathBuf],
) -> Result<(), SpawnError> {
    if mode != Mode::Full {
        let reason = format_args!("sandbox.user_ids takes the sandbox mode full, not {mode}");
        return Err(SpawnError::refused(Step::Identity, reason));
    }
    let command = Command {
        args: vec!["-c".to_owned(), "exit 0".to_owned()],
        read_write: folders.to_vec(),
        // Takes no names in them.
        git: GitAccess::ExistingReadOnly,
        pod: Some(pod(shared, None)),
        ..Command::new("/bin/sh", "/")
    };
    let mut process = probe(shared, &command, mode).await?;
    process.wait().await;
    Ok(())
}
