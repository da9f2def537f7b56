//! Which names are those of files for secrets; the list comes from the caller, who keeps it for other uses as well.

use std::fmt;
use std::sync::Arc;

use super::characters::is_invisible;
use super::table::TABLE;

/// The names of files for secrets; a clone is the same list.
#[derive(Clone)]
pub struct Secrets(Arc<Names>);

struct Names {
    names: Vec<String>,
    directories: Vec<String>,
    below: Vec<[String; 2]>,
    is_shared: fn(&str) -> bool,
    fold: fn(&str) -> String,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Secrets({} names)", self.0.names.len())
    }
}

impl Default for Secrets {
    /// Returns the names that are secret everywhere: histories, key rings, password files of the system.
    fn default() -> Self {
        Self::new([], |_| false, str::to_lowercase)
    }
}

impl Secrets {
    /// Returns a list of the names that are secret everywhere and of the caller's globs.
    ///
    /// A glob is `**/NAME`, `**/FOLDER/**` or `**/FOLDER/NAME`, and `*` in a name is any text. `is_shared` is asked about a
    /// folded name that a glob matches and that is no secret all the same (`.env.example`). `fold` brings a name into the
    /// form in which the globs are written: lower case, full-width letters as plain ones.
    pub fn new<'g>(
        globs: impl IntoIterator<Item = &'g str>,
        is_shared: fn(&str) -> bool,
        fold: fn(&str) -> String,
    ) -> Self {
        let more = &TABLE.paths;
        let mut names = Names {
            names: more.secret_names.clone(),
            directories: more.secret_directories.clone(),
            below: more.secret_below.clone(),
            is_shared,
            fold,
        };
        for glob in globs {
            let path = glob.trim_start_matches("**/");
            match path.split_once('/') {
                None => names.names.push(path.to_owned()),
                Some((directory, "**")) => names.directories.push(directory.to_owned()),
                Some((directory, name)) => {
                    let name = name.strip_suffix("/**").unwrap_or(name);
                    names.below.push([directory.to_owned(), name.to_owned()]);
                }
            }
        }
        Self(Arc::new(names))
    }

    pub(super) fn names(&self) -> &[String] {
        &self.0.names
    }

    pub(super) fn directories(&self) -> &[String] {
        &self.0.directories
    }

    pub(super) fn below(&self) -> &[[String; 2]] {
        &self.0.below
    }

    pub(super) fn is_shared(&self, name: &str) -> bool {
        (self.0.is_shared)(name)
    }

    /// Folds a name as the list is written, and takes out what a terminal does not show.
    pub(super) fn fold(&self, name: &str) -> String {
        (self.0.fold)(name)
            .chars()
            .filter(|c| !is_invisible(*c))
            .collect()
    }
}
