//! The names of files for secrets, as the classifier gets them: those that the deny list of the sandbox names.

use std::sync::LazyLock;

use crate::classifier::Secrets;
use crate::sandbox::deny;

/// Made once: each command line is held against it.
pub(super) static SECRETS: LazyLock<Secrets> =
    LazyLock::new(|| Secrets::new(deny::names_of_secrets(), deny::is_shared, deny::fold));

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::classifier::{Surroundings, classify};
    use crate::message::DangerLevel;

    /// Each glob of the deny list makes a path secret in a command line too.
    #[test]
    fn what_file_tools_do_not_read_is_secret_in_a_line() {
        let surroundings = Surroundings {
            project_root: Path::new("/p"),
            central_root: Path::new("/c"),
            home: Some(Path::new("/h")),
            trusted_program: &|_| true,
            unhidden: None,
            secrets: &SECRETS,
        };
        let is_safe =
            |path: &str| classify(&format!("cat {path}"), &surroundings).level == DangerLevel::Safe;
        for glob in deny::names_of_secrets() {
            let path = glob.replace("**", "x").replace('*', "x");
            assert!(!is_safe(&path), "{glob} {path}");
        }
        assert!(is_safe(".env.example"));
        assert!(!is_safe("\u{17f}ecret.txt"));
    }
}
