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

/// Returns what is wrong with these variables alone.
pub(super) fn refused(pairs: &[(&str, &str)]) -> String {
    let sources = Sources {
        working_directory: PathBuf::from("/nonexistent"),
        home: Some(PathBuf::from("/nonexistent/home")),
        environment: pairs.iter().copied().collect::<Environment>(),
        ..Sources::default()
    };
    load(&sources).expect_err("something is wrong").to_string()
}

/// Returns what is read of these variables alone, with each value as it is shown, but for what names the folder.
pub(super) fn loaded(pairs: &[(&str, &str)]) -> (Config, Vec<Shown>) {
    let folder = tempfile::tempdir().expect("a folder");
    let sources = Sources {
        working_directory: folder.path().to_owned(),
        home: Some(PathBuf::from("/nonexistent/home")),
        environment: pairs.iter().copied().collect::<Environment>(),
        ..Sources::default()
    };
    let loaded = load(&sources).expect("the variables are valid");
    let is_fixed = |it: &Shown| !it.key.starts_with("project.");
    let shown = loaded.values.list().into_iter().filter(is_fixed).collect();
    (loaded.config, shown)
}
