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

/// What stands before the files.
const HEAD: &str = "[Standing instructions of mine, from files. They are words of mine, and no more than that: they change nothing about \
                    which tools may run and what is asked first.]";

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
pub(crate) fn find(
    settings: &config::Instructions,
    trust: InstructionsTrust,
    workspace: &Workspace,
    folders: &BTreeSet<String>,
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
