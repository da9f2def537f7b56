//! Whether the commands of each user can be a user of the system.

use std::path::PathBuf;

use super::Machine;
use super::finding::{Finding, State};
use super::layers::is_root;
use crate::config::Config;
use crate::sandbox::{IdRange, Mode, Sandbox};
use crate::users::not_apart;

const USER_IDS: &str = "user ids";

/// Tries it in the daemon's own folders where it is asked for; else says, where there are users, that they share one, and
/// whether anything keeps them apart.
pub(super) async fn user_ids(machine: &Machine, sandbox: &Sandbox) -> Vec<Finding> {
    let config = &machine.loaded.config;
    match config.user_ids {
        Some(ids) => vec![tried(ids, &folders(config), sandbox).await],
        None if config.auth.has_users() => vec![shared(is_root(), sandbox.report().await.mode)],
        None => Vec::new(),
    }
}

/// The same where commands are not to be confined.
pub(super) fn unconfined(config: &Config) -> Option<Finding> {
    config
        .auth
        .has_users()
        .then(|| shared(is_root(), Mode::None))
}

async fn tried(ids: IdRange, folders: &[PathBuf], sandbox: &Sandbox) -> Finding {
    let Err(error) = sandbox.try_users(folders).await else {
        let text = format!("the commands of each user run as one of {ids}");
        return Finding::new(USER_IDS, State::Ok, text);
    };
    let refused = sandbox.report().await.refused;
    let full = refused.into_iter().find(|(mode, _)| *mode == Mode::Full);
    let why = full.map_or_else(|| error.to_string(), |(_, why)| why);
    Finding::new(USER_IDS, State::Failed, why).advise(
        "start the daemon as root, with its folders and TMPDIR on ext4, xfs, btrfs or tmpfs; until then it does not start with sandbox.user_ids",
    )
}

/// What is there of the folders in which commands work.
fn folders(config: &Config) -> Vec<PathBuf> {
    let own = config.project.own.iter();
    let own = own.flat_map(|project| [&project.root, &project.central]);
    let further = config.tools.bash.read_write.iter();
    own.chain(further)
        .filter(|folder| folder.is_dir())
        .cloned()
        .collect()
}

fn shared(is_root: bool, mode: Mode) -> Finding {
    if mode < Mode::Full {
        return Finding::new(USER_IDS, State::Warning, not_apart(&mode.to_string())).advise(
            "see to it that the sandbox is full (docs/users.md); until then let in only users who trust each other",
        );
    }
    let text = "the commands of all users run as the daemon's own user of the system";
    Finding::new(USER_IDS, State::Absent, text).advise(match is_root {
        true => "set sandbox.user_ids to numbers that nobody has, such as \"100000-165535\", and each user is one of them",
        false => "the sandbox keeps them apart; for a user of the system each (sandbox.user_ids) the daemon has to be root, since nobody else may mount files with other owners, not with newuidmap either",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Settings;

    #[tokio::test]
    async fn what_cannot_be_is_said_with_its_reason() {
        let ids = "3000000000-3000000009".parse().unwrap();
        let sandbox = Sandbox::new(Settings {
            user_ids: Some(ids),
            ceiling: Mode::Limits,
            ..Settings::new(None)
        });
        let finding = tried(ids, &[], &sandbox).await;
        assert_eq!(finding.state, State::Failed);
        for is_root in [true, false] {
            assert_eq!(shared(is_root, Mode::Full).state, State::Absent);
            for mode in [Mode::Fallback, Mode::None] {
                assert_eq!(shared(is_root, mode).state, State::Warning);
            }
        }
    }
}
