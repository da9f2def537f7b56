//! What a line has set so far: variables, the directory, functions.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::expand::Arg;
use super::flow::taint_of;
use super::functions::Running;
use super::secrets::Secrets;
use super::stored::Files;
use super::types::Script;
use super::{Surroundings, home_of};

/// Most elements of an array that are told apart.
const MAX_ELEMENTS: usize = 64;

/// Where text came from that may end up being run or sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taint {
    /// Downloaded.
    pub(super) fetched: bool,
    /// Decoded, decompressed or rearranged.
    pub(super) decoded: bool,
    /// Read from a file of the deny list.
    pub(super) secret: bool,
    /// Read from a file that the line writes.
    pub(super) written: bool,
}

impl Taint {
    pub(super) fn join(self, other: Self) -> Self {
        Self {
            fetched: self.fetched || other.fetched,
            decoded: self.decoded || other.decoded,
            secret: self.secret || other.secret,
            written: self.written || other.written,
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

impl Value {
    /// Returns a value that the line does not tell.
    pub(super) fn unknown(taint: Taint) -> Self {
        Self {
            taint,
            ..Self::default()
        }
    }

    /// Returns what a variable holds that is set to these words.
    pub(super) fn of(args: &[Arg]) -> Self {
        let known = args.iter().all(|arg| !arg.unknown);
        let choices = args.iter().filter(|_| known).map(|arg| arg.text.clone());
        Self {
            choices: choices.collect(),
            taint: taint_of(args),
            spread: args.iter().any(|arg| arg.glob),
        }
    }
}

/// What the line has set so far.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    variables: HashMap<String, Rc<Value>>,
    /// Where the shell is; `None` once that is not known.
    pub(super) directory: Option<PathBuf>,
    pub(super) files: Files,
    /// What the descriptors hold that `exec` opened.
    pub(super) opened: Taint,
    /// What the commands read that are walked, and with them the substitutions in their words.
    pub(super) input: Taint,
    /// Functions that are defined.
    pub(super) bodies: HashMap<String, Rc<Script>>,
    /// Functions whose body is being read, the outermost first.
    pub(super) running: Vec<Running>,
    /// Calls of functions whose output was followed in this line, whatever the scope.
    pub(super) outputs: Rc<Cell<usize>>,
    pub(super) in_loop: bool,
    pub(super) home: String,
    pub(super) secrets: Secrets,
    /// The project and its central storage, where these are no top-level folders.
    roots: Rc<[PathBuf]>,
}

/// The roots that may lie in a system directory and are none: `/srv/app` and `/var/www/app`, but neither `/` nor `/etc`.
fn own_roots(surroundings: &Surroundings<'_>) -> Rc<[PathBuf]> {
    const SHORTEST: usize = 2;
    let is_below = |root: &&Path| {
        let names = root.components();
        names
            .filter(|part| matches!(part, Component::Normal(_)))
            .count()
            >= SHORTEST
    };
    [surroundings.project_root, surroundings.central_root]
        .into_iter()
        .filter(is_below)
        .map(Path::to_owned)
        .collect()
}

impl Scope {
    pub(super) fn new(surroundings: &Surroundings<'_>) -> Self {
        let root = surroundings.project_root.to_path_buf();
        let home = home_of(surroundings);
        let mut scope = Self {
            variables: HashMap::new(),
            directory: Some(root.clone()),
            files: Files::default(),
            opened: Taint::default(),
            input: Taint::default(),
            bodies: HashMap::new(),
            running: Vec::new(),
            outputs: Rc::default(),
            in_loop: false,
            home: home.clone(),
            secrets: surroundings.secrets.clone(),
            roots: own_roots(surroundings),
        };
        scope.set("HOME", home);
        scope.set("PWD", root.to_string_lossy().into_owned());
        scope.set("IFS", " \t\n".to_owned());
        for shell in ["SHELL", "BASH", "0"] {
            scope.set(shell, "/bin/bash".to_owned());
        }
        scope
    }

    /// Whether a path lies in the project or its central storage, or is one of them: that is no system directory,
    /// wherever it is.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
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

    /// Returns what the variable may hold, if it is set; `name[]` is any element of an array.
    pub(super) fn value(&self, name: &str) -> Option<Rc<Value>> {
        let Some(array) = name.strip_suffix("[]") else {
            return self.variables.get(name).map(Rc::clone);
        };
        let mut value = Value::clone(self.variables.get(array)?);
        let elements = value.choices.iter().flat_map(|text| text.split(' '));
        let elements: Vec<String> = elements.map(str::to_owned).collect();
        let known = elements.len() <= MAX_ELEMENTS;
        value.choices = elements.into_iter().filter(|_| known).collect();
        Some(Rc::new(value))
    }

    /// Whether the variable may hold one of several values.
    pub(super) fn is_choice(&self, name: &str) -> bool {
        self.value(name)
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

    /// Takes over what a function did: variables and the directory, but not its parameters.
    pub(super) fn keep(&mut self, inner: Self) {
        let named =
            |name: &str| !name.starts_with(|c: char| c.is_ascii_digit() || "@*".contains(c));
        let variables = inner.variables.into_iter();
        self.variables
            .extend(variables.filter(|(name, _)| named(name)));
        self.bodies = inner.bodies;
        self.directory = inner.directory;
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
