//! Skills: folders with a `SKILL.md`, whose first lines say what it is for.

use std::io;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::{Words, of_project, of_users_file};
use crate::sandbox::deny::Access;
use crate::sandbox::paths::{Found, Roots};
use crate::telemetry::Redactor;

/// The most skills of the user, and of a project: the model reads a line of each with every request.
pub(crate) const MAX_SKILLS: usize = 64;

/// The most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 1_024;

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

/// Reads the skills of a project, in folders of it. Those that cannot be taken are errors, which say why.
pub(crate) fn of_the_project(
    roots: &Roots,
    folders: &[String],
    redactor: &Redactor,
) -> Vec<Result<Skill, String>> {
    let mut found = Vec::new();
    for folder in folders {
        for name in names_in(roots, folder) {
            let path = format!("{folder}/{name}/{FILE}");
            let read = of_project(roots, &path, redactor);
            let skill = read.map(|words| skill(&name, format!("{folder}/{name}"), words?));
            found.extend(skill);
        }
    }
    bounded(found)
}

/// Reads the skills of the user, in the folder of the configuration.
pub(crate) fn of_the_user(folder: &Path, redactor: &Redactor) -> Vec<Result<Skill, String>> {
    let folder = folder.join(USERS);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return Vec::new();
    };
    let names = entries.take(MAX_ENTRIES).filter_map(|entry| {
        let name = entry.ok()?.file_name();
        Some(name.to_str()?.to_owned())
    });
    let found = sorted(names.collect()).into_iter().filter_map(|name| {
        let folder = folder.join(&name);
        let words = of_users_file(&folder.join(FILE), redactor)?;
        Some(words.and_then(|words| skill(&name, folder.display().to_string(), words)))
    });
    bounded(found.collect())
}

/// Reads a file beside a skill of the user's own, by its path in the folder. Fails with why it cannot.
pub(crate) fn beside(skill: &Skill, path: &str, redactor: &Redactor) -> Result<Words, String> {
    let inside = Path::new(path);
    let is_inside = inside
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let real = |path: &Path| crate::sandbox::canonicalize(path);
    let found = || -> io::Result<Option<PathBuf>> {
        let folder = real(Path::new(&skill.folder))?;
        let file = real(&folder.join(inside))?;
        Ok(file.starts_with(&folder).then_some(file))
    };
    if !is_inside || path.is_empty() {
        return Err(format!(
            "{path:?}: name a file by its path in the folder of the skill"
        ));
    }
    let file = found().map_err(|error| format!("{path:?}: {error}"))?;
    let file = file.ok_or_else(|| format!("{path:?} leads out of the folder of the skill"))?;
    let words = of_users_file(&file, redactor);
    words.unwrap_or_else(|| Err(format!("{path:?} is no file")))
}

/// Lists the names in a folder of the project; none where it is not there.
fn names_in(roots: &Roots, folder: &str) -> Vec<String> {
    let Ok(target) = roots.map(&format!("./{folder}"), Access::Look) else {
        return Vec::new();
    };
    let Ok(located) = roots.locate(&target, Access::Look) else {
        return Vec::new();
    };
    let Found::Folder(folder) = located.found() else {
        return Vec::new();
    };
    let Ok(entries) = folder.entries() else {
        return Vec::new();
    };
    let names = entries.take(MAX_ENTRIES).filter_map(|entry| {
        let name = entry.ok()?.file_name();
        Some(name.to_str()?.to_owned())
    });
    sorted(names.collect())
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

/// Returns no more skills than there may be, and says of the rest.
fn bounded(mut found: Vec<Result<Skill, String>>) -> Vec<Result<Skill, String>> {
    if found.len() > MAX_SKILLS {
        found.truncate(MAX_SKILLS);
        found.push(Err(format!(
            "there are more than {MAX_SKILLS} skills, and the rest is left out"
        )));
    }
    found
}

fn skill(name: &str, folder: String, words: Words) -> Result<Skill, String> {
    let wrong = |why: &str| Err(format!("{}: {why}", words.path));
    let Some(front) = front_of(&words.text) else {
        return wrong("a skill begins with its name and description between two lines of ---");
    };
    let front: Front = match serde_saphyr::from_str(front) {
        Ok(front) => front,
        // Where in the lines it is says more than what the parser calls it.
        Err(error) => {
            let error = error.to_string();
            return wrong(error.lines().next().unwrap_or("it cannot be read"));
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
    let description = front
        .description
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
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
        allowed_tools: allowed.map(|text| text.chars().take(MAX_ALLOWED).collect()),
        folder,
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
