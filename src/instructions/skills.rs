//! Skills: folders with a `SKILL.md`, whose first lines say what it is for.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Component, Path};

use serde::Deserialize;

use super::own::of_own;
use super::{Words, below, of_project, read_own};
use crate::sandbox::deny::{self, Access};
use crate::sandbox::paths::{Found, Roots};
use crate::telemetry::Redactor;
use crate::terminal_text::visible;

/// The most skills of the user, and of a project: the model reads a line of each with every request. No further ones are read.
const MAX_SKILLS: usize = 64;

/// The most bytes that are read of them: nobody has said yes to them yet.
const MAX_BYTES: usize = 1 << 20;

/// The most entries of a folder that are looked at. Folders in them are not gone into.
const MAX_ENTRIES: usize = 1_024;

/// The most names, texts and lists at the head of a skill.
const MAX_NODES: usize = 512;

/// The longest name, in characters, as the common format has it.
const MAX_NAME: usize = 64;

/// The longest description, in characters, as the common format has it.
const MAX_DESCRIPTION: usize = 1_024;

/// How much is kept of `allowed-tools`, in characters: it is only shown.
const MAX_ALLOWED: usize = 256;

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";

/// The folder of the user's skills, in that of the configuration.
pub(crate) const USERS: &str = "skills";

/// A skill, as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skill {
    /// Its name, which is its folder's.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) description: String,
    /// What its author lets it use. It is shown, and allows nothing.
    pub(crate) allowed_tools: Option<String>,
    /// Its folder as it is named to people and models: below the project, or absolute where it is the user's own.
    pub(crate) folder: String,
    /// Whether commands are given its folder, where it is the user's own.
    pub(crate) is_given: bool,
    /// Its file.
    pub(crate) words: Words,
}

/// The first lines of the file; what else they say is others' affair.
#[derive(Deserialize)]
struct Front {
    name: String,
    description: String,
    #[serde(default, rename = "allowed-tools")]
    allowed_tools: Option<Allowed>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Allowed {
    Text(String),
    List(Vec<String>),
}

/// Skills as they are read, up to their bounds.
#[derive(Default)]
struct Read {
    found: Vec<Result<Skill, String>>,
    bytes: usize,
}

impl Read {
    /// Takes what a folder has; breaks off, and says so, where that is one too many.
    fn take(&mut self, skill: Result<Skill, String>) -> ControlFlow<()> {
        let bytes = skill.as_ref().map_or(0, |skill| skill.words.bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        let problem = if self.found.len() >= MAX_SKILLS {
            format!("there are more than {MAX_SKILLS} skills, and the rest is left out")
        } else if self.bytes > MAX_BYTES {
            let most = MAX_BYTES / 1024;
            format!("all skills have more than {most} KiB, and the rest is left out")
        } else {
            self.found.push(skill);
            return ControlFlow::Continue(());
        };
        self.found.push(Err(problem));
        ControlFlow::Break(())
    }

    /// Says where a folder has more entries than are looked at.
    fn look(&mut self, folder: &str, listed: Listed) -> Vec<String> {
        if listed.has_more {
            self.found.push(Err(format!(
                "{folder}: it has more than {MAX_ENTRIES} entries, and the rest is left out"
            )));
        }
        listed.names
    }
}

/// Reads the skills of a project, in folders of it. Those that cannot be taken are errors, which say why.
pub(crate) fn of_the_project(
    roots: &Roots,
    folders: &[String],
    redactor: &Redactor,
) -> Vec<Result<Skill, String>> {
    let mut read = Read::default();
    for folder in folders {
        for name in read.look(folder, names_in(roots, folder)) {
            let path = format!("{folder}/{name}/{FILE}");
            let Some(words) = of_project(roots, &path, redactor) else {
                continue;
            };
            let skill = words.and_then(|it| skill(&name, format!("{folder}/{name}"), it, redactor));
            if read.take(skill).is_break() {
                return read.found;
            }
        }
    }
    read.found
}

/// Reads the skills of the user, in the folder of the configuration. What of them lies in the project is the project's.
pub(crate) fn of_the_user(
    folder: &Path,
    roots: Option<&Roots>,
    redactor: &Redactor,
) -> Vec<Result<Skill, String>> {
    let mut read = Read::default();
    let folder = folder.join(USERS);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return Vec::new();
    };
    let entries = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    for name in read.look(&folder.display().to_string(), Listed::of(entries)) {
        let folder = folder.join(&name);
        let Some(words) = of_own(&folder.join(FILE), roots, redactor) else {
            continue;
        };
        let skill = words.and_then(|words| {
            let folder = match (words.is_users, words.path.rsplit_once('/')) {
                (false, Some((folder, _))) => folder.to_owned(),
                _ => folder.display().to_string(),
            };
            // Commands are given what was there when the daemon began.
            let real = crate::sandbox::canonicalize(Path::new(&folder)).ok();
            let is_given = roots
                .zip(real)
                .is_some_and(|(roots, real)| roots.is_in_further(&real));
            let skill = skill(&name, folder, words, redactor)?;
            Ok(Skill { is_given, ..skill })
        });
        if read.take(skill).is_break() {
            break;
        }
    }
    read.found
}

/// Reads a file beside a skill of the user's own, by its path in the folder. Fails with why it cannot.
pub(crate) fn beside(skill: &Skill, path: &str, redactor: &Redactor) -> Result<Words, String> {
    let inside = Path::new(path);
    let is_inside = inside
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_inside || path.is_empty() {
        return Err(format!(
            "{path:?}: name a file by its path in the folder of the skill"
        ));
    }
    let real = |path: &Path| {
        let real = crate::sandbox::canonicalize(path);
        real.map_err(|error| format!("{path:?}: {error}"))
    };
    let folder = real(Path::new(&skill.folder))?;
    let file = real(&folder.join(inside))?;
    let Some(led_to) = below(&file, &folder) else {
        return Err(format!("{path:?} leads out of the folder of the skill"));
    };
    // As for tools for files, by what it is called and by what that leads to. Nobody is asked here.
    for called in [path, led_to.as_str()] {
        let denied = deny::denied(called, Access::Read);
        if let Some(why) = denied.or_else(|| deny::needs_approval(called, Access::Read)) {
            return Err(format!("{path:?} may not be read: {why}"));
        }
    }
    match file.is_file() {
        true => read_own(&file, redactor),
        false => Err(format!("{path:?} is no file")),
    }
}

/// Names in a folder, in order.
#[derive(Default)]
struct Listed {
    names: Vec<String>,
    /// Whether there are more than are looked at.
    has_more: bool,
}

impl Listed {
    fn of(mut entries: impl Iterator<Item = OsString>) -> Self {
        let names = entries.by_ref().take(MAX_ENTRIES);
        let names = names.filter_map(|name| name.into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        Self {
            names,
            has_more: entries.next().is_some(),
        }
    }
}

/// Lists the names in a folder of the project; none where it is not there.
fn names_in(roots: &Roots, folder: &str) -> Listed {
    let Ok(target) = roots.map(&format!("./{folder}"), Access::Look) else {
        return Listed::default();
    };
    let Ok(located) = roots.locate(&target, Access::Look) else {
        return Listed::default();
    };
    let Found::Folder(folder) = located.found() else {
        return Listed::default();
    };
    match folder.entries() {
        Ok(entries) => Listed::of(entries.filter_map(|entry| Some(entry.ok()?.file_name()))),
        Err(_) => Listed::default(),
    }
}

/// How the lines at the head of a skill are read. It has no use for anchors, and a few of them would make a page of 400 bytes
/// take seconds: nobody has said yes to it yet.
fn bounded_yaml() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_anchors: 0,
            max_aliases: 0,
            max_merge_keys: 0,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
        },
    }
}

fn skill(name: &str, folder: String, words: Words, redactor: &Redactor) -> Result<Skill, String> {
    let wrong = |why: &str| {
        Err(format!(
            "{}: {}",
            words.path,
            visible(&redactor.redact(why))
        ))
    };
    let Some(front) = front_of(&words.text) else {
        return wrong("a skill begins with its name and description between two lines of ---");
    };
    let front: Front = match serde_saphyr::from_str_with_options(front, bounded_yaml()) {
        Ok(front) => front,
        // Where in the lines it is says more than what the parser calls it.
        Err(error) => {
            let error = error.to_string();
            let line = error.lines().next().unwrap_or("it cannot be read");
            let line = line.strip_prefix("error: ").unwrap_or(line);
            let quotes = match line.contains("mapping values are not allowed") {
                true => "; put a text that has a colon in quotes",
                false => "",
            };
            return wrong(&format!("{line}{quotes}"));
        }
    };
    let is_name =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if front.name.is_empty() || front.name.len() > MAX_NAME || !front.name.chars().all(is_name) {
        return wrong("the name of a skill has at most 64 small letters, digits and hyphens");
    }
    if front.name != name {
        return wrong("the name of a skill has to be that of its folder");
    }
    // YAML has escapes of its own: what it makes of them is neither hidden nor a secret.
    let clean = |text: &str| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        visible(&redactor.redact(&line))
    };
    let description = clean(&front.description);
    if description.is_empty() || description.chars().count() > MAX_DESCRIPTION {
        return wrong("a skill needs a description, of at most 1024 characters");
    }
    let allowed = front.allowed_tools.map(|allowed| match allowed {
        Allowed::Text(text) => text,
        Allowed::List(list) => list.join(", "),
    });
    Ok(Skill {
        name: front.name,
        description,
        allowed_tools: allowed.map(|text| clean(&text).chars().take(MAX_ALLOWED).collect()),
        folder,
        is_given: false,
        words,
    })
}

/// Returns the lines between the first two of `---`.
fn front_of(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("---\n")?;
    let end = rest.match_indices("\n---").find(|(at, mark)| {
        let after = rest.get(at + mark.len()..).unwrap_or_default();
        after.is_empty() || after.starts_with('\n')
    });
    end.and_then(|(at, _)| rest.get(..at))
}

#[cfg(test)]
mod tests;
