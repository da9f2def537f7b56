//! Paths that matter, by their text alone: protected trees, devices, secrets, files that are run later.

use std::borrow::Cow;
use std::path::{Component, Path};

use super::expand::{Arg, UNKNOWN};
use super::scope::Scope;
use super::table::{TABLE, has, wildcard};

/// Longest chain of `..` that is not taken for a climb to the root.
const MAX_CLIMB: usize = 2;

pub(super) fn parts(path: &Path) -> impl Iterator<Item = Cow<'_, str>> {
    path.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.to_string_lossy()),
        _ => None,
    })
}

/// Whether the component is nothing but wildcards: everything in its directory.
fn is_everything(part: &str) -> bool {
    part.contains(['*', '?']) && part.chars().all(|c| "*?.[]!^".contains(c))
}

pub(super) fn names_everything(path: &str) -> bool {
    is_everything(path.rsplit('/').next().unwrap_or_default())
}

/// Whether the argument names the root, a system directory, a home, or everything in one of them.
pub(super) fn protected(arg: &Arg, scope: &Scope) -> bool {
    let climb = arg.text.split('/');
    let mut climb = climb.filter(|part| !matches!(*part, "" | ".") && !is_everything(part));
    if climb.clone().count() > MAX_CLIMB && climb.all(|part| part == "..") {
        return true;
    }
    if arg.text.starts_with(UNKNOWN) {
        return false;
    }
    let Some(path) = scope.resolve(&arg.text) else {
        return false;
    };
    let mut parts: Vec<Cow<'_, str>> = parts(&path).collect();
    while parts.last().is_some_and(|part| is_everything(part)) {
        parts.pop();
    }
    let stripped = parts.join("/");
    let home = scope.home.trim_start_matches('/');
    let is = |names: &[String], part: &str| names.iter().any(|name| glob_matches(part, name, arg));
    let table = &TABLE.paths;
    match parts.as_slice() {
        [] => true,
        _ if !home.is_empty()
            && (stripped == home || home.starts_with(&format!("{stripped}/"))) =>
        {
            true
        }
        _ if scope.is_own(&path) => false,
        [first, second, ..] if first == "dev" && second == "shm" => parts.len() < 3,
        [first, rest @ ..] => {
            is(&table.system_trees, first)
                || (rest.is_empty() && is(&table.system_roots, first))
                || (rest.len() < 2 && is(&table.shared_parents, first))
        }
    }
}

fn glob_matches(part: &str, name: &str, arg: &Arg) -> bool {
    part == name || (arg.glob && wildcard(&plain_glob(part), name))
}

pub(super) fn plain_glob(part: &str) -> String {
    let mut plain = String::new();
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        plain.push('?');
        rest = after.split_once(']').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    plain
}

/// Whether the path is a device that holds data, or memory.
pub(super) fn data_device(arg: &Arg, scope: &Scope) -> bool {
    let Some(path) = scope.resolve(&arg.text) else {
        return false;
    };
    let mut parts = parts(&path);
    let is_data = |name: Cow<'_, str>| !has(&TABLE.paths.harmless_devices, &name);
    parts.next().is_some_and(|dev| dev == "dev") && parts.next().is_some_and(is_data)
}

/// Whether a program that is given the path reads what it would read without it.
pub(super) fn is_input(path: &str) -> bool {
    path.starts_with("/dev/") || path == "/proc/self/fd/0"
}

pub(super) fn network_path(arg: &Arg) -> bool {
    arg.text.contains("/dev/tcp/") || arg.text.contains("/dev/udp/")
}

/// Why writing what another program runs later is more than changing a file.
pub(super) const RUNS_LATER: &str = "writes where another program will run or trust it later";

/// Returns the parts of the path, resolved as far as the line tells, folded.
fn folded_parts(arg: &Arg, scope: &Scope) -> Vec<String> {
    let path = scope.resolve(&arg.text);
    let path = path.as_deref().unwrap_or(Path::new(&arg.text));
    let folded = parts(path).map(|part| scope.secrets.fold(&part));
    folded.collect()
}

/// Whether another program will run or trust later what is written there.
pub(super) fn runs_later(arg: &Arg, scope: &Scope) -> bool {
    let parts = folded_parts(arg, scope);
    let mut below = TABLE.paths.run_later_below.iter();
    parts.iter().any(|part| has(&TABLE.paths.run_later, part))
        || below.any(|pair| parts.windows(2).any(|parts| parts == pair))
}

/// Says why writing there is more than changing a file of the project.
pub(super) fn sensitive_write(arg: &Arg, scope: &Scope) -> Option<&'static str> {
    if runs_later(arg, scope) {
        return Some(RUNS_LATER);
    }
    if scope.is_own(&scope.resolve(&arg.text)?) {
        return None;
    }
    let mut trees = TABLE.paths.system_trees.iter();
    let mut is_tree = |part: &String| trees.any(|name| name.eq_ignore_ascii_case(part));
    let system = "writes to a system directory";
    match folded_parts(arg, scope).as_slice() {
        [dev, ..] if dev == "dev" => None,
        [first, ..] if is_tree(first) => Some(system),
        [first, second, ..] if first == "var" && second != "tmp" => Some(system),
        [first, ..] if first == "root" && !scope.home.starts_with("/root") => {
            Some("writes to the home of root")
        }
        _ => None,
    }
}

pub(super) fn outside(arg: &Arg, scope: &Scope, roots: &[&Path]) -> bool {
    let path = scope.resolve(&arg.text);
    let outside = path.is_some_and(|path| !roots.iter().any(|root| path.starts_with(root)));
    outside && !arg.text.starts_with(UNKNOWN)
}

/// Says why the file should not be read, if it is on the deny list or a glob may match such a file.
pub(super) fn denied(arg: &Arg, scope: &Scope) -> Option<&'static str> {
    // What is not known is folded to nothing: `${X}.env` counts as `.env`.
    let folded = folded_parts(arg, scope);
    if let [proc, process, ..] = folded.as_slice()
        && glob_matches(proc, "proc", arg)
        && (process.starts_with(|c: char| c.is_ascii_digit() || "*?[".contains(c))
            || process.is_empty()
            || matches!(process.as_str(), "self" | "thread-self" | "kcore" | "kmem"))
    {
        return Some("reads the memory or environment of a process");
    }
    // A file name that is `repo:path`, as git has it, counts by its path.
    let last = folded.last()?;
    let file = last.rsplit(':').next().unwrap_or(last);
    let covers = |part: &String, name: &String| glob_covers(part, name, arg.glob);
    let secrets = scope.secrets.list();
    let in_directory = |part| secrets.directories.iter().any(|name| covers(part, name));
    let is_below = |pair: &[String]| {
        let [directory, file] = pair else {
            return false;
        };
        let directory = directory.rsplit(':').next();
        secrets.below.iter().any(|[folder, name]| {
            directory == Some(folder) && (wildcard(name, file) || covers(file, name))
        })
    };
    let denied = is_denied_name(file, arg.glob, scope)
        || folded.iter().any(in_directory)
        || folded.windows(2).any(is_below);
    denied.then_some("reads a file that may hold secrets")
}

fn is_denied_name(name: &str, glob: bool, scope: &Scope) -> bool {
    let list = scope.secrets.list();
    let is = |pattern: &String| wildcard(pattern, name) || glob && glob_covers(name, pattern, true);
    !(list.is_shared)(name) && list.names.iter().any(is)
}

/// Whether a glob may match a name of the deny list.
///
/// `*` and `*.txt` match nearly any name, which tells nothing; a glob counts that spells a part of one out.
fn glob_covers(part: &str, pattern: &str, glob: bool) -> bool {
    if !glob || !part.contains(['*', '?', '[']) {
        return part == pattern;
    }
    let part = plain_glob(part);
    // Hidden names are matched only by globs that begin with the dot.
    if pattern.starts_with('.') && !part.starts_with('.') {
        return false;
    }
    let spelled = part.trim_start_matches(['*', '?']);
    let tells = if part.starts_with(['*', '?']) && spelled.starts_with('.') {
        pattern.starts_with("*.")
    } else {
        !spelled.is_empty()
    };
    let sample = pattern.trim_matches('*');
    let samples = [
        sample.to_owned(),
        format!("{sample}s"),
        format!("{sample}.json"),
        pattern.replace('*', "x"),
    ];
    tells && samples.iter().any(|sample| wildcard(&part, sample))
}
