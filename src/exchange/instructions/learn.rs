//! Which files' words a model is told: they are read, and those count that fit and that the operator or the user let be told.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::MAX_FOLDERS;
use super::told::{Found, find_skills, find_words, front, line_of};
use crate::config::InstructionsTrust;
use crate::exchange::context::{Context, Setup};
use crate::exchange::{Exchange, Leave};
use crate::instructions::skills::Skill;
use crate::instructions::{self, Words};
use crate::protocol::event::{Event, StopReason};
use crate::protocol::trust::{InstructionsChanged, TrustKind};
use crate::runtime::Stopwatch;
use crate::tool::Tool as _;
use crate::tool::skill::skill;

/// The most bytes of a project's files that are told in one conversation.
const MAX_TOLD: usize = instructions::MAX_BYTES;

/// The most bytes of the names and descriptions of skills, which go out with each request.
const MAX_LISTED: usize = 16 * 1024;

/// The most bytes of files in one question, but for a single one.
const MAX_ASKED: usize = 128 * 1024;

/// That the exchange ends.
#[derive(Debug)]
pub(crate) struct Cancelled;

/// For whom files are read, and who may be asked.
pub(crate) struct Learner<'a> {
    pub setup: &'a Setup,
    pub context: &'a Context,
    /// The time limit, which stands still while the user is asked.
    pub stopwatch: &'a Stopwatch,
    pub cancel: &'a CancellationToken,
}

impl Exchange<'_> {
    /// Reads what applies since a tool worked in further folders.
    pub(in crate::exchange) async fn learn_of_folders(&self) -> Result<(), Leave> {
        let instructions = &self.context.conversation.instructions;
        if !instructions.has_new() {
            return Ok(());
        }
        let learner = Learner {
            setup: self.setup,
            context: self.context,
            stopwatch: self.stopwatch,
            cancel: self.cancel,
        };
        let learnt = learner.learn().await;
        if learnt.map_err(|Cancelled| Leave::Stop(StopReason::Cancelled))? {
            self.emit(Event::ChatInstructions(InstructionsChanged {
                conversation_id: self.setup.conversation_id.clone(),
                message_id: self.setup.message_id.clone(),
                files: instructions.told(),
            }));
        }
        Ok(())
    }
}

impl Learner<'_> {
    /// Reads the files that apply, asks about those that need it, and has the model be told what may be; returns whether that is
    /// something else than before.
    pub(crate) async fn learn(&self) -> Result<bool, Cancelled> {
        let trust = self.trust();
        let found = self.read(trust).await?;
        let told = self.instructions(found.words, trust).await?;
        let skills = self.skills(found.skills, trust).await?;
        let mut known = self.context.conversation.instructions.known.lock();
        let is_other = known.told != told || *known.skills != skills;
        if is_other {
            known.front = Arc::new(front(&told, &skills));
            known.told = told;
            known.skills = Arc::new(skills);
        }
        Ok(is_other)
    }

    /// Returns the instructions that the model is told.
    async fn instructions(
        &self,
        found: Vec<Result<Words, String>>,
        trust: InstructionsTrust,
    ) -> Result<Vec<Words>, Cancelled> {
        let mut told = Vec::new();
        let (mut left, mut asked) = (MAX_TOLD, Vec::new());
        for words in found {
            let words = match words {
                Ok(words) => words,
                Err(why) => {
                    self.say_once("instructions_not_read", why);
                    continue;
                }
            };
            if words.is_users {
                told.push(words);
                continue;
            }
            let Some(rest) = left.checked_sub(words.bytes) else {
                self.say_once("instructions_not_read", format!(
                    "{}: the files of a project that are told together have {} KiB at most, and it is not among them",
                    words.path,
                    MAX_TOLD / 1024
                ));
                continue;
            };
            match self.said(&words, trust) {
                Some(true) => {}
                Some(false) => continue,
                None => asked.push(words.clone()),
            }
            left = rest;
            told.push(words);
        }
        if !asked.is_empty() {
            let trusted = self.ask_about(&asked, TrustKind::Instructions).await?;
            told.retain(|words| trusted.contains(words) || !asked.contains(words));
        }
        Ok(told)
    }

    /// Returns the skills whose names and descriptions the model is told.
    async fn skills(
        &self,
        found: Vec<Result<Skill, String>>,
        trust: InstructionsTrust,
    ) -> Result<Vec<Skill>, Cancelled> {
        let (mut told, mut asked): (Vec<Skill>, Vec<Words>) = (Vec::new(), Vec::new());
        let mut left = MAX_LISTED;
        for skill in found {
            let skill = match skill {
                Ok(skill) => skill,
                Err(why) => {
                    self.say_once("skill_not_read", why);
                    continue;
                }
            };
            // The user's own come first.
            if let Some(other) = told.iter().find(|it| it.name == skill.name) {
                self.say_once(
                    "skill_not_read",
                    format!(
                        "{}: there is another skill of this name, {}, which counts",
                        skill.words.path, other.words.path
                    ),
                );
                continue;
            }
            let Some(rest) = left.checked_sub(line_of(&skill).len()) else {
                self.say_once("skill_not_read", format!(
                    "{}: the descriptions of all skills have {} KiB at most, and it is not among them",
                    skill.words.path,
                    MAX_LISTED / 1024
                ));
                continue;
            };
            if !skill.words.is_users {
                match self.said(&skill.words, trust) {
                    Some(true) => {}
                    Some(false) => continue,
                    None => asked.push(skill.words.clone()),
                }
            }
            left = rest;
            told.push(skill);
        }
        // As many files in a question as a person may look through.
        let mut rest = asked.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|words| {
                bytes += words.bytes;
                bytes <= MAX_ASKED
            });
            let (now, later) = rest.split_at(fits.count().max(1));
            let trusted = self.ask_about(now, TrustKind::Skill).await?;
            told.retain(|skill| trusted.contains(&skill.words) || !now.contains(&skill.words));
            rest = later;
        }
        Ok(told)
    }

    fn trust(&self) -> InstructionsTrust {
        self.context.services.config().project.instructions.trust
    }

    /// Returns whether the model may read skills here.
    fn offers_skills(&self) -> bool {
        let spec = skill(Arc::default()).spec().clone();
        self.setup.scope.allows(&spec)
    }

    /// Returns the folders of the project that are looked into, and says where there are more.
    fn folders(&self) -> BTreeSet<String> {
        let mut known = self.context.conversation.instructions.known.lock();
        known.has_new = false;
        let (folders, has_too_many) = (known.folders.clone(), known.has_too_many);
        drop(known);
        if has_too_many {
            self.say_once("instructions_not_read", format!(
                "tools worked in more than {MAX_FOLDERS} folders of the project, and files in further ones are not told; what is to hold everywhere belongs in the project's own folder"
            ));
        }
        folders
    }

    /// Reads the user's own files and those of the project, from the project's folder on down.
    async fn read(&self, trust: InstructionsTrust) -> Result<Found, Cancelled> {
        let context = self.context;
        let folders = self.folders();
        let config = context.services.config();
        let workspace = Arc::clone(&context.session.workspace);
        let is_read = trust != InstructionsTrust::Off && workspace.exec().is_ok();
        if !is_read && config.project.instructions.user.is_none() {
            return Ok(Found::default());
        }
        let redactor = context.services.redactor.clone();
        let (with_skills, user) = (self.offers_skills(), context.session.user.clone());
        let read = tokio::task::spawn_blocking(move || {
            let settings = &config.project.instructions;
            let skills =
                with_skills.then(|| find_skills(settings, trust, &workspace, &user, &redactor));
            Found {
                words: find_words(settings, trust, &workspace, (&user, &folders), &redactor),
                skills: skills.unwrap_or_default(),
            }
        });
        let read = self.cancel.run_until_cancelled(read).await;
        let read = read.ok_or(Cancelled)?;
        Ok(read.unwrap_or_else(|error| {
            tracing::error!(%error, "reading instructions ended early");
            Found::default()
        }))
    }
}
