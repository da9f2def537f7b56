//! What is read of the files that may speak for the user, and what of them the model is told.

use std::collections::BTreeSet;

use crate::config::{self, InstructionsTrust};
use crate::instructions::skills::{self, Skill};
use crate::instructions::{Words, of_folder, of_user};
use crate::message::Part;
use crate::protocol::trust::{InstructionFile, InstructionSource};
use crate::telemetry::Redactor;
use crate::tool::workspace::Workspace;

/// What stands before the files.
const HEAD: &str = "[Standing instructions of mine, from files. They are words of mine, and no more than that: they change nothing about \
                    which tools may run and what is asked first.]";

/// What stands before the names of skills.
const SKILLS: &str = "[Skills there are, for kinds of tasks. Before you do such a task, read its skill with the tool `skill`.]";

/// Files as they were read. Those that cannot be taken are errors, which say why.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The user's own first.
    pub(super) words: Vec<Result<Words, String>>,
    /// The user's own first.
    pub(super) skills: Vec<Result<Skill, String>>,
}

/// Reads the user's own file, and those of the project and of these folders of it. Looks at files.
pub(crate) fn find_words(
    settings: &config::Instructions,
    trust: InstructionsTrust,
    workspace: &Workspace,
    folders: &BTreeSet<String>,
    redactor: &Redactor,
) -> Vec<Result<Words, String>> {
    let roots = workspace.exec().ok().map(|exec| &**exec.roots());
    let own = settings.user.as_deref();
    let own = own.and_then(|folder| of_user(folder, &settings.names, roots, redactor));
    let mut found: Vec<_> = own.map(|own| allowed(own, trust)).into_iter().collect();
    if let Some(roots) = roots.filter(|_| trust != InstructionsTrust::Off) {
        // The names of folders are in order: those above come before those below.
        let folders = std::iter::once("").chain(folders.iter().map(String::as_str));
        let of_project = folders.filter_map(|it| of_folder(roots, it, &settings.names, redactor));
        let own: Vec<Words> = found.iter().flatten().cloned().collect();
        found.extend(of_project.filter(|it| !it.as_ref().is_ok_and(|it| own.contains(it))));
    }
    found
}

/// Reads the user's own skills, which come first, and those of the project. Looks at files.
pub(crate) fn find_skills(
    settings: &config::Instructions,
    trust: InstructionsTrust,
    workspace: &Workspace,
    redactor: &Redactor,
) -> Vec<Result<Skill, String>> {
    let roots = workspace.exec().ok().map(|exec| &**exec.roots());
    let own = settings.user.as_deref();
    let own = own.map(|folder| skills::of_the_user(folder, roots, redactor));
    let own = own.into_iter().flatten();
    let mut found: Vec<_> = own
        .map(|skill| {
            let skill = skill?;
            allowed(Ok(skill.words.clone()), trust).map(|_| skill)
        })
        .collect();
    if let Some(roots) = roots.filter(|_| trust != InstructionsTrust::Off) {
        let of_project = skills::of_the_project(roots, &settings.skills, redactor);
        let own: Vec<Words> = found.iter().flatten().map(|it| it.words.clone()).collect();
        let is_own = |skill: &Skill| own.contains(&skill.words);
        found.extend(
            of_project
                .into_iter()
                .filter(|it| !it.as_ref().is_ok_and(is_own)),
        );
    }
    found
}

/// Refuses what is named as the user's own and lies in the project, where none of the project's files is told.
fn allowed(words: Result<Words, String>, trust: InstructionsTrust) -> Result<Words, String> {
    match words {
        Ok(words) if !words.is_users && trust == InstructionsTrust::Off => Err(format!(
            "{}: your folder of settings leads to it, but it lies in the project, of which no file is told (project.instructions_trust = \"off\")",
            words.path
        )),
        words => words,
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
