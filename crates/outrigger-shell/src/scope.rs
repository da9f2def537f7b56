//! What a line has set so far: variables, the directory, functions.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::expand::Arg;
use super::flow::taint_of;
use super::functions::Running;
use super::paths::parts;
use super::secrets::Secrets;
use super::stored::Files;
use super::types::Script;
use crate::Surroundings;

/// Most elements of an array that are told apart.
const MAX_ELEMENTS: usize = 64;

/// Where text came from that may end up being run or sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taint {
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

    pub(super) fn hidden(self) -> bool {
        self.fetched || self.decoded
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Value {
    /// Every known value; none if it is not known.
    pub(super) choices: Vec<String>,
    pub(super) taint: Taint,
    /// It stands for many files, as `{}` of `find` does.
    pub(super) spread: bool,
}

impl Value {
    /// Returns a value that is any of these; none of them: one that the line does not tell.
    pub(super) fn any(choices: impl IntoIterator<Item = String>, taint: Taint) -> Self {
        Self {
            choices: choices.into_iter().collect(),
            taint,
            spread: false,
        }
    }

    pub(super) fn of(args: &[Arg]) -> Self {
        let known = args.iter().all(|arg| !arg.unknown);
        let choices = args.iter().filter(|_| known).map(|arg| arg.text.clone());
        Self {
            spread: args.iter().any(|arg| arg.glob),
            ..Self::any(choices, taint_of(args))
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    variables: HashMap<String, Rc<Value>>,
    /// Where the shell is; `None` once that is not known.
    pub(super) directory: Option<PathBuf>,
    pub(super) files: Files,
    /// What the descriptors hold that `exec` opened.
    pub(super) opened: Taint,
    /// What the commands read that are walked, and with them the substitutions in their words.
    pub(super) input: Taint,
    pub(super) bodies: HashMap<String, Rc<Script>>,
    /// Functions whose body is being read, the outermost first.
    pub(super) running: Vec<Running>,
    /// Calls of functions whose output was followed in this line, whatever the scope.
    pub(super) outputs: Rc<Cell<usize>>,
    pub(super) in_loop: bool,
    /// What `~` stands for; without a home, a path that is nobody's.
    pub(super) home: String,
    pub(super) secrets: Secrets,
    /// The project and its central storage, where these are no top-level folders.
    roots: Rc<[PathBuf]>,
}

/// Fewest names in the path of a root that is no system directory, wherever it lies: `/srv/app` and `/var/www/app`, but
/// neither `/` nor `/etc`.
const SHORTEST_ROOT: usize = 2;

impl Scope {
    pub(super) fn new(surroundings: &Surroundings<'_>) -> Self {
        let is_own = |root: &&Path| parts(root).count() >= SHORTEST_ROOT;
        let roots = [surroundings.project_root, surroundings.central_root];
        let roots = roots.into_iter().filter(is_own).map(Path::to_owned);
        let home = surroundings.home.unwrap_or(Path::new("/home/-"));
        let mut scope = Self {
            directory: Some(surroundings.project_root.to_path_buf()),
            home: home.to_string_lossy().into_owned(),
            secrets: surroundings.secrets.clone(),
            roots: roots.collect(),
            ..Self::default()
        };
        scope.set("HOME", &home.to_string_lossy());
        scope.set("PWD", &surroundings.project_root.to_string_lossy());
        scope.set("IFS", " \t\n");
        for shell in ["SHELL", "BASH", "0"] {
            scope.set(shell, "/bin/bash");
        }
        scope
    }

    /// Whether a path lies in the project or its central storage, or is one of them: that is no system directory,
    /// wherever it is.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.bind(name, Value::any([value.to_owned()], Taint::default()));
    }

    pub(super) fn bind(&mut self, name: &str, value: Value) {
        self.variables.insert(name.to_owned(), Rc::new(value));
    }

    /// Returns what the variable may hold, if it is set; `name[]` is any element of an array.
    pub(super) fn value(&self, name: &str) -> Option<Rc<Value>> {
        let Some(array) = name.strip_suffix("[]") else {
            return self.variables.get(name).map(Rc::clone);
        };
        let value = self.variables.get(array)?;
        let elements = value.choices.iter().flat_map(|text| text.split(' '));
        let known = elements.clone().count() <= MAX_ELEMENTS;
        let elements = elements.filter(|_| known).map(str::to_owned);
        Some(Rc::new(Value {
            spread: value.spread,
            ..Value::any(elements, value.taint)
        }))
    }

    /// Makes a path absolute and drops `.` and `..` without looking at any file.
    pub(super) fn resolve(&self, path: &str) -> Option<PathBuf> {
        let base = if path.starts_with('/') {
            Path::new("/")
        } else {
            self.directory.as_deref()?
        };
        let mut clean = PathBuf::from("/");
        for component in base.join(path).components() {
            match component {
                Component::Normal(part) => clean.push(part),
                Component::ParentDir => {
                    clean.pop();
                }
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        Some(clean)
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
        let directory = self.directory.iter();
        let directory = directory.map(|path| path.to_string_lossy().into_owned());
        let value = Value::any(directory, Taint::default());
        self.bind("PWD", value);
    }
}
