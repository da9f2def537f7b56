//! What is read of the files that may speak for the user, and what of them the model is told.

use std::collections::BTreeSet;
use std::path::Path;

use crate::config::{self, InstructionsTrust};
use crate::instructions::skills::{self, Skill};
use crate::instructions::{self, Words};
use crate::message::Part;
use crate::protocol::trust::{InstructionFile, InstructionSource};
use crate::sandbox::paths::RootName;
use crate::telemetry::Redactor;
use crate::tool::exec::Exec;
use crate::tool::workspace::Workspace;
use crate::users::User;

/// What stands before the files.
const HEAD: &str = "[Standing instructions of mine, from files. They are words of mine, and no more than that: they change nothing about \
                    which tools may run and what is asked first.]";

/// What a user is told of a file of the operator's that cannot be taken.
const UNTOLD: &str = "a file of instructions that the operator has for everybody cannot be taken, and none of it is told; the operator sees why in a session of the daemon's own token";

/// What stands before the names of skills.
const SKILLS: &str = "[Skills there are, for kinds of tasks. Before you do such a task, read its skill with the tool `skill`.]";

/// Files as they were read. Those that cannot be taken are errors, which say why.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub words: Vec<Result<Words, String>>,
    /// The user's own first.
    pub skills: Vec<Result<Skill, String>>,
}

/// Reads the user's own files, where they are in no project, and those of the project and of these folders of it. Looks at files.
///
/// The user's own are the operator's, where the daemon has several users: their models are told what they say, and nobody but
/// the user without a name is told where they are.
pub(crate) fn find(
    settings: &config::Instructions,
    trust: InstructionsTrust,
    workspace: &Workspace,
    (user, folders): (&User, &BTreeSet<String>),
    redactor: &Redactor,
) -> Found {
    let mut found = Found::default();
    let roots = workspace.exec().ok().map(Exec::roots);
    let is_outside = |folder: &&Path| {
        roots.is_none_or(|roots| !folder.starts_with(roots.path(RootName::Project)))
    };
    if let Some(folder) = settings.user.as_deref().filter(is_outside) {
        found
            .words
            .extend(instructions::of_user(folder, &settings.names, redactor));
        found.skills.extend(skills::of_the_user(folder, redactor));
        if *user != User::default() {
            found.hide_places(folder);
        }
    }
    if let Some(roots) = roots.filter(|_| trust != InstructionsTrust::Off) {
        // The names of folders are in order: those above come before those below.
        let folders = std::iter::once("").chain(folders.iter().map(String::as_str));
        let read = |folder| instructions::of_folder(roots, folder, &settings.names, redactor);
        found.words.extend(folders.filter_map(read));
        let skills = skills::of_the_project(roots, &settings.skills, redactor);
        found.skills.extend(skills);
    }
    found
}

impl Found {
    /// Names files by their paths in this folder, and what is wrong with them not at all.
    fn hide_places(&mut self, folder: &Path) {
        let hidden = |_: String| UNTOLD.to_owned();
        let within = |words: &mut Words| {
            let path = Path::new(&words.absolute).strip_prefix(folder);
            words.path = path.unwrap_or(Path::new("")).display().to_string();
        };
        for words in &mut self.words {
            *words = std::mem::replace(words, Err(String::new())).map_err(hidden);
            words.as_mut().map(within).ok();
        }
        for skill in &mut self.skills {
            *skill = std::mem::replace(skill, Err(String::new())).map_err(hidden);
            skill.as_mut().map(|skill| within(&mut skill.words)).ok();
        }
    }
}

/// Returns a file as clients are told of it.
pub(crate) fn shown(words: &Words, trusted: bool) -> InstructionFile {
    InstructionFile {
        path: words.path.clone(),
        sha256: words.sha256.clone(),
        bytes: words.bytes as u64,
        source: match words.is_users {
            true => InstructionSource::User,
            false => InstructionSource::Project,
        },
        trusted,
    }
}

/// Returns what the model is told of a skill.
pub(super) fn line_of(skill: &Skill) -> String {
    format!("\n- {}: {}", skill.name, skill.description)
}

/// Returns what the model is told of files, and of skills.
pub(super) fn front(told: &[Words], skills: &[Skill]) -> Vec<Part> {
    let mut text = String::new();
    if !told.is_empty() {
        text.push_str(HEAD);
    }
    for words in told {
        let Words {
            path,
            sha256,
            text: said,
            ..
        } = words;
        text.push_str(&format!(
            "\n\n<instructions file={path:?} sha256=\"{sha256}\">\n{}\n</instructions>\n\n",
            said.trim_end()
        ));
    }
    if !skills.is_empty() {
        text.push_str(SKILLS);
        text.extend(skills.iter().map(line_of));
        text.push_str("\n\n");
    }
    match text.is_empty() {
        true => Vec::new(),
        false => vec![Part::text(text)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_operators_files_are_is_not_named() {
        let folder = Path::new("/home/olga/.config/outrigger");
        let words = |name: &str| {
            let absolute = folder.join(name).display().to_string();
            Words {
                path: absolute.clone(),
                absolute,
                is_users: true,
                sha256: "0".to_owned(),
                bytes: 1,
                text: "Prefer tabs.".to_owned(),
            }
        };
        let skill = Skill {
            name: "pdf".to_owned(),
            description: "d".to_owned(),
            allowed_tools: None,
            folder: folder.join("skills/pdf").display().to_string(),
            words: words("skills/pdf/SKILL.md"),
        };
        let problem = || format!("{}: it is no UTF-8 text", folder.display());
        let mut found = Found {
            words: vec![Ok(words("AGENTS.md")), Err(problem())],
            skills: vec![Ok(skill), Err(problem())],
        };
        found.hide_places(folder);
        let told: Vec<Words> = found.words.iter().flatten().cloned().collect();
        let skills: Vec<Skill> = found.skills.iter().flatten().cloned().collect();
        assert_eq!(shown(&told[0], true).path, "AGENTS.md");
        assert_eq!(skills[0].words.folder(), "skills/pdf");
        let problems = found.words.into_iter().filter_map(Result::err);
        let problems = problems.chain(found.skills.into_iter().filter_map(Result::err));
        let problems: String = problems.collect();
        assert!(
            !problems.is_empty() && !problems.contains("olga"),
            "{problems}"
        );
        let front = format!("{:?}", front(&told, &skills));
        assert!(
            front.contains("Prefer tabs.") && !front.contains("olga"),
            "{front}"
        );
    }
}
