//! How a server over stdio is started: its command, what it may reach, and its environment.
//!
//! A server is confined like a command, with a policy of its own. It reads the project, works and keeps its files in a
//! directory of its own, and reaches besides what the operator's configuration names:
//! a directory among its arguments may be changed, a file may be read. Nothing that the model says
//! gets in here.

use std::path::{Path, PathBuf};

use secrecy::ExposeSecret;

use crate::config::{MCP_STATES, SandboxPolicy, StdioServer};
use crate::sandbox::paths::RootName;
use crate::sandbox::python;
use crate::sandbox::{
    Command, DEFAULT_PORTS, GitAccess, Network, Ports, Process, Sandbox, SpawnError, Stdin,
};
use crate::tool::exec::Exec;

/// Directories that are read-only to everybody; naming one in an argument changes nothing.
const SYSTEM: [&str; 8] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/sys",
];

/// The variables by which well-known servers learn in which file to keep their data: the server's name as it stands
/// in its package, the variable, the file. Without it they write beside their own package, which is read-only.
const STORES: [(&str, &str, &str); 1] = [("server-memory", "MEMORY_FILE_PATH", "memory.jsonl")];

/// What marks the directory that a program's own files lie in.
const PACKAGE_MARKS: [&str; 4] = ["package.json", "pyproject.toml", "pyvenv.cfg", ".git"];

/// Starts servers.
#[derive(Clone)]
pub struct Launcher {
    exec: Exec,
    /// For servers that the operator took out of the sandbox.
    unconfined: Sandbox,
    home: Option<PathBuf>,
    /// Where servers have a directory each; `None` where there is no good place.
    states: Option<PathBuf>,
}

impl Launcher {
    /// Prepares to start servers.
    pub fn new(exec: Exec, unconfined: Sandbox, home: Option<PathBuf>) -> Self {
        let project = exec.roots().path(RootName::Project);
        let central = exec.roots().path(RootName::Central);
        // Beside the central storage, out of reach of the model's own tools.
        let states = central
            .parent()
            .map(|parent| parent.join(MCP_STATES))
            .filter(|states| !states.starts_with(project) && !states.starts_with(central));
        Self {
            exec,
            unconfined,
            home,
            states,
        }
    }

    /// Returns the folders that the operator names for a server and that it may change.
    pub(super) fn named(&self, server: &StdioServer) -> Vec<PathBuf> {
        let mut command = Command::new(String::new(), self.project().to_owned());
        command.read_write = self.existing(&server.read_write);
        self.add_named(server, &mut command);
        command.read_write.retain(|path| path.is_dir());
        command.read_write.dedup();
        command.read_write
    }

    /// Returns the folder that servers run for.
    pub(super) fn project(&self) -> &Path {
        self.exec.roots().path(RootName::Project)
    }

    /// Returns one for another project.
    pub(super) fn within(&self, exec: Exec) -> Self {
        Self::new(exec, self.unconfined.clone(), self.home.clone())
    }

    /// Starts a server with its standard input open.
    pub(super) async fn start(
        &self,
        name: &str,
        server: &StdioServer,
    ) -> Result<Process, SpawnError> {
        let mut command = self.command(name, server);
        let sandbox = match server.sandbox {
            SandboxPolicy::Auto | SandboxPolicy::Unverified => self.exec.sandbox(),
            SandboxPolicy::Off => &self.unconfined,
        };
        let mode = sandbox.report().await.mode;
        let covered = self.exec.cover(&mut command, mode).await;
        covered.map_err(SpawnError::Command)?;
        sandbox.spawn(&command).await
    }

    fn command(&self, name: &str, server: &StdioServer) -> Command {
        let project = self.exec.roots().path(RootName::Project).to_owned();
        let state = self.state_directory(name);
        let mut env = self.exec.environment().clone();
        if let Some(state) = &state {
            // What `npx` and `uvx` download is found again at the next start.
            env.insert("HOME".to_owned(), state.display().to_string());
            env.extend(stores(server, state));
        }
        for (name, value) in &server.env {
            env.insert(name.clone(), value.expose_secret().to_owned());
        }
        // The directory that the operator chose, without links where it is one that the server may be given.
        let chosen = server.cwd.as_deref();
        let chosen = chosen.map(|cwd| self.resolved(cwd).unwrap_or_else(|| cwd.to_owned()));
        let directory = chosen.or(state.clone()).unwrap_or(project.clone());
        let mut command = Command {
            args: server.args.clone(),
            env,
            network: if server.network {
                let ports = DEFAULT_PORTS.iter().chain(&server.ports);
                Network::Host(Ports::Only(ports.copied().collect()))
            } else {
                Network::Off
            },
            stdin: Stdin::Piped,
            git: GitAccess::ExistingReadOnly,
            read_write: self.existing(&server.read_write),
            read_only: self.existing(&server.read_only),
            held: self.exec.roots().held(),
            ..Command::new(server.command.clone(), directory)
        };
        self.add_named(server, &mut command);
        command.read_write.extend(state);
        command.read_only.push(project);
        command
    }

    /// A directory of the server's own that outlives it; `None` where none can be made.
    fn state_directory(&self, name: &str) -> Option<PathBuf> {
        let path = self.states.as_ref()?.join(super::names::server_part(name));
        crate::sandbox::private_directory(&path)
            .inspect_err(|error| {
                tracing::warn!(server = name, %error, "no directory of its own for an MCP server");
            })
            .ok()
    }

    /// Lets a server reach what else the operator's configuration names.
    fn add_named(&self, server: &StdioServer, command: &mut Command) {
        let chosen = self.existing(server.cwd.as_slice());
        command.read_only.extend(chosen);
        let values = server.env.values().map(ExposeSecret::expose_secret);
        let named = std::iter::once(server.command.as_str())
            .chain(server.args.iter().map(String::as_str))
            .chain(values);
        // A new state of the file is put beside it first, and it may not be there yet.
        let stores = STORES.iter().filter_map(|(_, variable, _)| {
            Path::new(server.env.get(*variable)?.expose_secret()).parent()
        });
        for folder in stores.filter(|folder| folder.is_absolute()) {
            let real = self.resolved(folder).filter(|real| real.is_dir());
            if let Some(real) = real {
                self.add(&real, command);
            }
        }
        for path in named.filter_map(named_path) {
            self.add_interpreter(path, command);
            if let Some(real) = self.resolved(path) {
                self.add(&real, command);
            }
        }
    }

    /// The Python of a virtual environment that a path lies in, wherever its links lead: pyenv and uv keep
    /// theirs in the home.
    fn add_interpreter(&self, path: &Path, command: &mut Command) {
        let mut above = path
            .ancestors()
            .skip(1)
            .take_while(|path| self.is_bounded(path));
        let Some((environment, homes)) =
            above.find_map(|path| Some((path, python::homes_of(path)?)))
        else {
            return;
        };
        command.read_only.extend(self.resolved(environment));
        for named in homes {
            // By both names: the environment's own links go by the first. The model may have written
            // what names it, so anything but a Python is not believed.
            let real = crate::sandbox::canonicalize(&named).ok();
            if real.as_deref().is_some_and(|real| self.may_be_shown(real)) {
                command.read_only.push(named);
                command.read_only.extend(real);
            }
        }
    }

    fn may_be_shown(&self, python: &Path) -> bool {
        let is_system = SYSTEM.iter().any(|system| python.starts_with(system));
        !is_system && self.is_bounded(python) && python::is_installed(python)
    }

    fn existing(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let resolved = paths.iter().filter_map(|path| self.resolved(path));
        resolved.collect()
    }

    /// Where a path really leads; `None` where nothing is there, or where a link that the model may
    /// have made leads out of its own storage.
    fn resolved(&self, path: &Path) -> Option<PathBuf> {
        let real = crate::sandbox::canonicalize(path).ok()?;
        let roots = [RootName::Project, RootName::Central].map(|root| self.exec.roots().path(root));
        let is_inside = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        let mut above = path.ancestors().skip(1);
        let goes_through =
            above.any(|part| crate::sandbox::canonicalize(part).is_ok_and(|part| is_inside(&part)));
        if goes_through && !is_inside(&real) {
            tracing::warn!(
                path = %path.display(),
                "a link in the project leads out of it; the MCP server is not given what is there"
            );
            return None;
        }
        Some(real)
    }

    fn add(&self, path: &Path, command: &mut Command) {
        let is_system = SYSTEM.iter().any(|system| path.starts_with(system));
        if is_system || !self.is_bounded(path) {
            return;
        }
        if path.is_dir() {
            command.read_write.push(path.to_owned());
        } else {
            command.read_only.push(path.to_owned());
            command.read_only.extend(self.package(path));
        }
    }

    /// The directory of the package that a program belongs to: what it loads lies there.
    fn package(&self, program: &Path) -> Option<PathBuf> {
        let modules = program
            .ancestors()
            .filter(|path| path.file_name().is_some_and(|name| name == "node_modules"))
            .last();
        let marked = || {
            program
                .ancestors()
                .skip(1)
                .take_while(|path| self.is_bounded(path))
                .find(|path| PACKAGE_MARKS.iter().any(|mark| path.join(mark).exists()))
        };
        modules.or_else(marked).map(Path::to_owned)
    }

    /// Whether a path is no whole file system and holds neither the home nor the model's storage.
    fn is_bounded(&self, path: &Path) -> bool {
        let central = self.exec.roots().path(RootName::Central);
        let holds = |inner: &Path| inner.starts_with(path);
        path.parent().is_some()
            && !holds(central)
            && !self.home.as_deref().is_some_and(holds)
            && !self.states.as_deref().is_some_and(holds)
    }
}

/// Where a well-known server keeps its data, unless a setting says otherwise.
fn stores(server: &StdioServer, state: &Path) -> impl Iterator<Item = (String, String)> {
    let words = || std::iter::once(&server.command).chain(&server.args);
    STORES.iter().filter_map(move |(name, variable, file)| {
        let is_meant = words().any(|word| word.contains(name));
        let value = state.join(file).display().to_string();
        is_meant.then(|| ((*variable).to_owned(), value))
    })
}

/// The absolute path that an argument is, or holds after `=`.
fn named_path(argument: &str) -> Option<&Path> {
    let text = match argument.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value,
        _ => argument,
    };
    let path = Path::new(text);
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests;
