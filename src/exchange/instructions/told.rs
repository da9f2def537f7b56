//! What is read of the files that may speak for the user, and what of them the model is told.

use std::collections::BTreeSet;
use std::path::Path;

use crate::config::{self, InstructionsTrust};
use crate::instructions::skills::{self, Skill};
use crate::instructions::{Words, of_folder, of_user};
use crate::message::Part;
use crate::protocol::trust::{InstructionFile, InstructionSource};
use crate::telemetry::Redactor;
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
pub(super) struct Found {
    /// The user's own first.
    pub(super) words: Vec<Result<Words, String>>,
    /// The user's own first.
    pub(super) skills: Vec<Result<Skill, String>>,
}

/// Reads the user's own file, and those of the project and of these folders of it. Looks at files.
///
/// The user's own are the operator's, where the daemon has several users: their models are told what they say, and nobody but
/// the user without a name is told where they are.
pub(crate) fn find_words(
    settings: &config::Instructions,
    trust: InstructionsTrust,
    workspace: &Workspace,
    (user, folders): (&User, &BTreeSet<String>),
    redactor: &Redactor,
) -> Vec<Result<Words, String>> {
    let roots = workspace.exec().ok().map(|exec| &**exec.roots());
    let own = settings.user.as_deref();
    let own = own.and_then(|folder| {
        let words = of_user(folder, &settings.names, roots, redactor)?;
        Some(named(allowed(words, trust), user, folder))
    });
    let mut found: Vec<_> = own.into_iter().collect();
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
    user: &User,
    redactor: &Redactor,
) -> Vec<Result<Skill, String>> {
    let roots = workspace.exec().ok().map(|exec| &**exec.roots());
    let own = settings.user.as_deref().map(|folder| {
        let skills = skills::of_the_user(folder, roots, redactor).into_iter();
        skills.map(|skill| {
            let words = skill.as_ref().map(|skill| skill.words.clone());
            let words = named(allowed(words.map_err(Clone::clone), trust), user, folder)?;
            skill.map(|skill| Skill { words, ..skill })
        })
    });
    let mut found: Vec<_> = own.into_iter().flatten().collect();
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

/// Returns a file of this folder as a user is told of it: one with a name is told where it is in the folder, and not what is
/// wrong with it.
fn named(words: Result<Words, String>, user: &User, folder: &Path) -> Result<Words, String> {
    if *user == User::default() {
        return words;
    }
    let mut words = words.map_err(|_| UNTOLD.to_owned())?;
    if let Ok(path) = Path::new(&words.absolute).strip_prefix(folder) {
        words.path = path.display().to_string();
    }
    Ok(words)
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
            is_given: true,
            words: words("skills/pdf/SKILL.md"),
        };
        let problem = || format!("{}: it is no UTF-8 text", folder.display());
        let anna = User::new("anna");
        let told = vec![named(Ok(words("AGENTS.md")), &anna, folder).unwrap()];
        let words_of_skill = named(Ok(skill.words.clone()), &anna, folder).unwrap();
        let skills = vec![Skill {
            words: words_of_skill,
            ..skill
        }];
        assert_eq!(shown(&told[0], true).path, "AGENTS.md");
        assert_eq!(skills[0].words.folder(), "skills/pdf");
        let said = named(Err(problem()), &anna, folder).unwrap_err();
        assert!(!said.is_empty() && !said.contains("olga"), "{said}");
        // Who has no name is the operator.
        let nobody = User::default();
        assert_eq!(named(Err(problem()), &nobody, folder), Err(problem()));
        let front = format!("{:?}", front(&told, &skills));
        assert!(
            front.contains("Prefer tabs.") && !front.contains("olga"),
            "{front}"
        );
    }
}
