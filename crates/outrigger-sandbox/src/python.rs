//! Where the Python of a virtual environment is installed. Reads, and decides nothing.

use std::path::{Path, PathBuf};

/// The directories of the Python that a virtual environment was made of, by its settings and by its links; `None`
/// where it is none.
pub fn homes_of(environment: &Path) -> Option<Vec<PathBuf>> {
    let settings = std::fs::read_to_string(environment.join("pyvenv.cfg")).ok()?;
    let named = settings.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "home").then(|| PathBuf::from(value.trim()))
    });
    let linked = ["python", "python3"].into_iter().filter_map(|name| {
        let program = crate::canonicalize(&environment.join("bin").join(name)).ok()?;
        program.parent().map(Path::to_owned)
    });
    let programs = named.chain(linked);
    Some(
        programs
            .filter_map(|directory| directory.parent().map(Path::to_owned))
            .collect(),
    )
}

/// Whether a directory holds an installed Python: its library is there.
pub fn is_installed(directory: &Path) -> bool {
    std::fs::read_dir(directory.join("lib")).is_ok_and(|entries| {
        let mut entries = entries.flatten();
        entries.any(|entry| {
            entry.file_name().to_string_lossy().starts_with("python")
                && entry.path().join("os.py").is_file()
        })
    })
}
