//! Standing instructions and skills of a conversation: which files' words its model is told as the user's.
//!
//! They stand before what the user says, in the user's name and in no system prompt, and are no part of the history: no
//! compaction loses them. Before each exchange, and before a turn once a tool worked in a folder that nobody has looked into,
//! the files are read (`learn`). What the operator does not let be read at once, the user is asked about, with all that it
//! says (`answers`); what was read then is what is told (`told`).

mod answers;
mod learn;
mod told;

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::instructions::Words;
use crate::instructions::skills::Skill;
use crate::message::Part;
use crate::permission::rule::File;
use crate::protocol::context::ContextKind;
use crate::protocol::trust::InstructionFile;

pub(crate) use answers::{Answers, key_of};
pub(crate) use learn::{Cancelled, Learner};
use told::line_of;
pub(crate) use told::{find_skills, find_words, shown};

/// The most folders of a project that are looked into for one conversation, besides the project's own.
const MAX_FOLDERS: usize = 64;

/// What a conversation is told; changed by its own task alone.
#[derive(Debug, Default)]
pub(crate) struct Instructions {
    known: Mutex<Known>,
    answers: Answers,
}

#[derive(Debug, Default)]
struct Known {
    /// Folders of the project in which a tool worked, and those above them, less the project's own.
    folders: BTreeSet<String>,
    /// Whether there is one that nobody has looked into.
    has_new: bool,
    /// Whether there was one more than are looked into.
    has_too_many: bool,
    told: Vec<Words>,
    /// Skills whose names and descriptions the model is told.
    skills: Arc<Vec<Skill>>,
    front: Arc<Vec<Part>>,
}

impl Instructions {
    /// Returns what a task is told, to which the answers count of the conversation around it.
    pub(crate) fn within(answers: Answers) -> Self {
        Self {
            answers,
            ..Self::default()
        }
    }

    /// Returns what was answered in the conversation, for its tasks.
    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Returns what the model is told before all that the user says.
    pub(crate) fn front(&self) -> Arc<Vec<Part>> {
        Arc::clone(&self.known.lock().front)
    }

    /// Returns the skills that the model may read.
    pub(crate) fn skills(&self) -> Arc<Vec<Skill>> {
        Arc::clone(&self.known.lock().skills)
    }

    /// Returns the files that the model is told.
    pub(crate) fn told(&self) -> Vec<InstructionFile> {
        let known = self.known.lock();
        known.told.iter().map(|it| shown(it, true)).collect()
    }

    /// Returns what each file takes of what the model is told.
    pub(crate) fn parts(&self) -> Vec<(ContextKind, String, Part)> {
        let known = self.known.lock();
        let told = known.told.iter().map(|words| {
            let said = Part::text(words.text.as_str());
            (ContextKind::Instructions, words.path.clone(), said)
        });
        let skills = known.skills.iter().map(|skill| {
            let said = Part::text(line_of(skill));
            (ContextKind::Skills, skill.name.clone(), said)
        });
        told.chain(skills).collect()
    }

    /// Notes that a tool works on a file, or in a folder, of the project.
    pub(crate) fn visit(&self, file: &File, is_folder: bool) {
        if !file.in_project {
            return;
        }
        let mut folder = match (is_folder, file.relative.as_str()) {
            (_, "." | "") => return,
            (true, folder) => folder,
            (false, file) => file.rsplit_once('/').map_or("", |(folder, _)| folder),
        };
        let mut known = self.known.lock();
        while !folder.is_empty() && !known.folders.contains(folder) {
            known.has_new = true;
            if known.folders.len() >= MAX_FOLDERS {
                known.has_too_many = true;
                break;
            }
            known.folders.insert(folder.to_owned());
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }

    /// Returns whether there is a folder that nobody has looked into.
    fn has_new(&self) -> bool {
        self.known.lock().has_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_folders_are_looked_into_and_one_more_is_not_forgotten_in_silence() {
        let instructions = Instructions::default();
        let visit = |number: usize| {
            let file = File {
                writes: false,
                root: "/p".to_owned(),
                in_project: true,
                relative: format!("f{number}/a.txt"),
            };
            instructions.visit(&file, false);
        };
        (0..MAX_FOLDERS).for_each(visit);
        let known = || {
            let known = instructions.known.lock();
            (known.folders.len(), known.has_too_many)
        };
        assert_eq!(known(), (MAX_FOLDERS, false));
        instructions.known.lock().has_new = false;
        visit(0);
        assert!(!instructions.has_new());
        visit(MAX_FOLDERS);
        assert_eq!(known(), (MAX_FOLDERS, true));
        assert!(instructions.has_new());
    }
}
