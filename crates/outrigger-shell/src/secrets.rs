//! Which names are those of files for secrets; the list comes from the caller, who keeps it for other uses as well.

use std::fmt;
use std::sync::Arc;

use super::characters::is_invisible;

/// What is secret in a home or in the system, beside what the caller names; `*` is any text.
const MORE_NAMES: [&str; 24] = [
    "_netrc",
    ".bash_history",
    ".zsh_history",
    ".psql_history",
    ".mysql_history",
    ".python_history",
    ".node_repl_history",
    ".rediscli_history",
    ".sqlite_history",
    ".password-store",
    ".vault-token",
    ".boto",
    ".s3cfg",
    ".mylogin.cnf",
    "shadow",
    "gshadow",
    "sudoers",
    "shadow-",
    "master.passwd",
    "*.asc",
    ".gem",
    "*.ovpn",
    "authorized_keys",
    "opasswd",
];

/// The same of directories in which every file is one.
const MORE_DIRECTORIES: [&str; 5] = [
    ".password-store",
    ".azure",
    ".gcloud",
    "keyrings",
    ".mozilla",
];

/// The same of files that are secret in one directory only. Git's own settings can hold credentials.
const MORE_BELOW: [(&str, &str); 6] = [
    (".config", "gh"),
    (".git", "config"),
    (".m2", "settings.xml"),
    (".config", "op"),
    (".config", "hub"),
    (".local", "share/keyrings"),
];

/// The names of files for secrets; a clone is the same list.
#[derive(Clone)]
pub struct Secrets(Arc<Names>);

struct Names {
    names: Vec<String>,
    directories: Vec<String>,
    below: Vec<(String, String)>,
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
        let pair = |(folder, name): (&str, &str)| (folder.to_owned(), name.to_owned());
        let mut names = Names {
            names: MORE_NAMES.map(str::to_owned).to_vec(),
            directories: MORE_DIRECTORIES.map(str::to_owned).to_vec(),
            below: MORE_BELOW.map(pair).to_vec(),
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
                    names.below.push(pair((directory, name)));
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

    pub(super) fn below(&self) -> &[(String, String)] {
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
