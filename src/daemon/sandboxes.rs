//! What the daemon's commands are run by.

use std::path::{Path, PathBuf};

use crate::config::{Config, SandboxPolicy};
use crate::sandbox::{self, Mode, Sandbox};

/// What commands are run by, and what runs those that are not to be confined.
pub(super) struct Sandboxes {
    pub(super) confined: Sandbox,
    pub(super) unconfined: Sandbox,
}

impl Sandboxes {
    pub(super) fn new(config: &Config, home: Option<&Path>) -> Self {
        let bash = &config.tools.bash;
        let settings = sandbox::Settings {
            private_bytes: bash.tmp_size,
            pod_bytes: bash.limits.disk,
            caches: found_caches(&bash.caches, home),
            unverified: bash.sandbox == SandboxPolicy::Unverified,
            ..sandbox::Settings::new(home.map(Path::to_owned))
        }
        .off_memory();
        let unconfined = Sandbox::new(sandbox::Settings {
            ceiling: Mode::None,
            ..settings.clone()
        });
        let confined = match bash.sandbox {
            SandboxPolicy::Auto | SandboxPolicy::Unverified => {
                let sandbox = Sandbox::new(settings);
                // What it is tried with starts beside what follows.
                sandbox.expect_command();
                sandbox
            }
            SandboxPolicy::Off => unconfined.clone(),
        };
        Self {
            confined,
            unconfined,
        }
    }
}

/// Looks for the caches that commands are given, and says of which there is nothing.
fn found_caches(names: &[String], home: Option<&Path>) -> Vec<PathBuf> {
    let found = sandbox::caches::find(home, names);
    if !found.missing.is_empty() {
        tracing::warn!(
            "tools.bash.caches: there is nothing of {} in the home; commands begin with an empty one",
            found.missing.join(", ")
        );
    }
    found.folders
}
