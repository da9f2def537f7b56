//! Which names are those of files for secrets; the list comes from the caller, who keeps it for other uses as well.

use std::sync::Arc;

use super::characters::is_invisible;
use super::table::TABLE;

/// The names of files for secrets; a clone is the same list.
#[derive(Clone, Debug)]
pub struct Secrets(Arc<List>);

#[derive(Debug)]
pub(super) struct List {
    pub(super) names: Vec<String>,
    pub(super) directories: Vec<String>,
    pub(super) below: Vec<[String; 2]>,
    pub(super) is_shared: fn(&str) -> bool,
    fold: fn(&str) -> String,
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
        let mut list = List {
            names: TABLE.paths.secret_names.clone(),
            directories: TABLE.paths.secret_directories.clone(),
            below: TABLE.paths.secret_below.clone(),
            is_shared,
            fold,
        };
        for glob in globs {
            let path = glob.trim_start_matches("**/");
            match path.split_once('/') {
                None => list.names.push(path.to_owned()),
                Some((directory, "**")) => list.directories.push(directory.to_owned()),
                Some((directory, name)) => {
                    let name = name.strip_suffix("/**").unwrap_or(name);
                    list.below.push([directory.to_owned(), name.to_owned()]);
                }
            }
        }
        Self(Arc::new(list))
    }

    pub(super) fn list(&self) -> &List {
        &self.0
    }

    /// Folds a name as the list is written, and takes out what a terminal does not show.
    pub(super) fn fold(&self, name: &str) -> String {
        let folded = (self.0.fold)(name);
        folded.chars().filter(|c| !is_invisible(*c)).collect()
    }
}
