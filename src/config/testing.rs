//! A configuration for tests of other modules.

use super::*;

/// A configuration of defaults for tests of other modules, in a project folder that is gone again.
pub(crate) fn for_tests() -> Config {
    let folder = tempfile::tempdir().expect("a folder");
    let sources = Sources {
        working_directory: folder.path().to_owned(),
        home: Some(PathBuf::from("/nonexistent/home")),
        ..Sources::default()
    };
    load(&sources).expect("defaults are valid").config
}
