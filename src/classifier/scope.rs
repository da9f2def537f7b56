//! What a line has set so far: variables, the directory, files it downloaded.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::{Surroundings, home_of};

/// Where text came from that may end up being run or sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taint {
    /// Downloaded.
    pub(super) fetched: bool,
    /// Decoded, decompressed or rearranged.
    pub(super) decoded: bool,
    /// Read from a file of the deny list.
    pub(super) secret: bool,
}

impl Taint {
    pub(super) fn join(self, other: Self) -> Self {
        Self {
            fetched: self.fetched || other.fetched,
            decoded: self.decoded || other.decoded,
            secret: self.secret || other.secret,
        }
    }

    /// Whether running such text is refused.
    pub(super) fn hidden(self) -> bool {
        self.fetched || self.decoded
    }
}

/// What a variable may hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Value {
    /// Every known value; none if it is not known.
    pub(super) choices: Vec<String>,
    pub(super) taint: Taint,
    /// It stands for many files, as `{}` of `find` does.
    pub(super) spread: bool,
}

/// What the line has set so far.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    variables: HashMap<String, Rc<Value>>,
    /// Where the shell is; `None` once that is not known.
    pub(super) directory: Option<PathBuf>,
    /// Files that hold what was downloaded or decoded in this line.
    pub(super) downloads: Vec<String>,
    /// Functions whose body is being read.
    pub(super) functions: Vec<String>,
    pub(super) in_loop: bool,
    pub(super) home: String,
}

impl Scope {
    pub(super) fn new(surroundings: &Surroundings<'_>) -> Self {
        let root = surroundings.project_root.to_path_buf();
        let home = home_of(surroundings);
        let mut scope = Self {
            variables: HashMap::new(),
            directory: Some(root.clone()),
            downloads: Vec::new(),
            functions: Vec::new(),
            in_loop: false,
            home: home.clone(),
        };
        scope.set("HOME", home);
        scope.set("PWD", root.to_string_lossy().into_owned());
        scope.set("IFS", " \t\n".to_owned());
        scope
    }

    pub(super) fn set(&mut self, name: &str, value: String) {
        let value = Value {
            choices: vec![value],
            ..Value::default()
        };
        self.bind(name, value);
    }

    /// Lets a variable hold what may be any of several values.
    pub(super) fn bind(&mut self, name: &str, value: Value) {
        self.variables.insert(name.to_owned(), Rc::new(value));
    }

    /// Returns what the variable may hold, if it is set.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.variables.get(name).map(Rc::as_ref)
    }

    /// Whether the variable may hold one of several values.
    pub(super) fn is_choice(&self, name: &str) -> bool {
        self.variables
            .get(name)
            .is_some_and(|value| value.choices.len() > 1)
    }

    /// Makes a path absolute and drops `.` and `..` without looking at any file.
    pub(super) fn resolve(&self, path: &str) -> Option<PathBuf> {
        let base = if path.starts_with('/') {
            Path::new("/")
        } else {
            self.directory.as_deref()?
        };
        Some(normalise(&base.join(path)))
    }

    pub(super) fn change_directory(&mut self, path: Option<&str>) {
        self.directory = path.and_then(|path| self.resolve(path));
        match &self.directory {
            Some(directory) => {
                let directory = directory.to_string_lossy().into_owned();
                self.set("PWD", directory);
            }
            None => {
                self.bind("PWD", Value::default());
            }
        }
    }
}

/// Drops `.` and `..` from an absolute path, by its text alone.
pub(super) fn normalise(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(part) => clean.push(part),
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    clean
}
