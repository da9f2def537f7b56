//! Standing instructions and skills of a conversation: which files' words its model is told as the user's.
//!
//! They stand before what the user says, in the user's name and in no system prompt, and are no part of the history: no
//! compaction loses them. Before each exchange, and before a turn once a tool worked in a folder that nobody has looked into,
//! the files are read. What the operator does not let be read at once, the user is asked about, with all that it says; what was
//! read then is what is told.

mod told;

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::context::{Context, Setup};
use super::questions::trust::TrustQuestion;
use super::questions::{Open, Question, QuestionId};
use super::{Exchange, Leave, NOTHING_ASKED};
use crate::config::{InstructionsTrust, Unattended};
use crate::instructions::skills::Skill;
use crate::instructions::{self, Words};
use crate::message::{Notice, Part, Severity};
use crate::permission::ApprovalPolicy;
use crate::permission::rule::{File, Key};
use crate::protocol::context::ContextKind;
use crate::protocol::event::{By, Event, State, StateName, StopReason};
use crate::protocol::trust::{
    InstructionFile, InstructionsChanged, TrustConfirm, TrustFile, TrustKind, TrustOutcome,
};
use crate::runtime::Stopwatch;
use crate::tool::Tool as _;
use crate::tool::skill::skill;

pub(crate) use told::{Found, find, shown};
use told::{front, line_of};

/// The most folders of a project that are looked into for one conversation, besides the project's own.
const MAX_FOLDERS: usize = 64;

/// The most bytes of a project's files that are told in one conversation.
const MAX_TOLD: usize = instructions::MAX_BYTES;

/// The most bytes of the names and descriptions of skills, which go out with each request.
const MAX_LISTED: usize = 16 * 1024;

/// The most bytes of files in one question, but for a single one.
const MAX_ASKED: usize = 128 * 1024;

/// The most contents that are known as settled in one conversation, and the most notices.
const MAX_SETTLED: usize = 1_024;

/// What a conversation is told; changed by its own task alone.
#[derive(Debug, Default)]
pub(crate) struct Instructions(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Folders of the project in which a tool worked, and those above them, less the project's own.
    folders: BTreeSet<String>,
    /// Whether there is one that nobody has looked into.
    has_new: bool,
    told: Vec<Words>,
    /// Skills whose names and descriptions the model is told.
    skills: Arc<Vec<Skill>>,
    front: Arc<Vec<Part>>,
    /// Contents that the user does not want told here, and what was said of others: neither is said twice.
    settled: BTreeSet<String>,
}

impl Known {
    /// Notes that something is settled; returns whether it was not.
    fn settle(&mut self, what: String) -> bool {
        if self.settled.len() >= MAX_SETTLED {
            self.settled.clear();
        }
        self.settled.insert(what)
    }
}

impl Instructions {
    /// Returns what the model is told before all that the user says.
    pub(crate) fn front(&self) -> Arc<Vec<Part>> {
        Arc::clone(&self.0.lock().front)
    }

    /// Returns the skills that the model may read.
    pub(crate) fn skills(&self) -> Arc<Vec<Skill>> {
        Arc::clone(&self.0.lock().skills)
    }

    /// Returns the files that the model is told.
    pub(crate) fn told(&self) -> Vec<InstructionFile> {
        self.0
            .lock()
            .told
            .iter()
            .map(|it| shown(it, true))
            .collect()
    }

    /// Returns what each file takes of what the model is told.
    pub(crate) fn parts(&self) -> Vec<(ContextKind, String, Part)> {
        let known = self.0.lock();
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
        let mut known = self.0.lock();
        while !folder.is_empty() && known.folders.len() < MAX_FOLDERS {
            if !known.folders.insert(folder.to_owned()) {
                break;
            }
            known.has_new = true;
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }

    /// Returns whether there is a folder that nobody has looked into.
    fn has_new(&self) -> bool {
        self.0.lock().has_new
    }
}

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
    pub(super) async fn learn_of_folders(&self) -> Result<(), Leave> {
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
        let mut known = self.context.conversation.instructions.0.lock();
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
        if !asked.is_empty() && !self.are_trusted(&asked, TrustKind::Instructions).await? {
            told.retain(|words| !asked.contains(words));
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
            if !self.are_trusted(now, TrustKind::Skill).await? {
                told.retain(|skill| !now.contains(&skill.words));
            }
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

    /// Reads the user's own files and those of the project, from the project's folder on down.
    async fn read(&self, trust: InstructionsTrust) -> Result<Found, Cancelled> {
        let context = self.context;
        let folders = {
            let mut known = context.conversation.instructions.0.lock();
            known.has_new = false;
            known.folders.clone()
        };
        let config = context.services.config();
        let workspace = Arc::clone(&context.session.workspace);
        let is_read = trust != InstructionsTrust::Off && workspace.exec().is_ok();
        if !is_read && config.project.instructions.user.is_none() {
            return Ok(Found::default());
        }
        let redactor = context.services.redactor.clone();
        let (with_skills, user) = (self.offers_skills(), context.session.user.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut found = find(
                &config.project.instructions,
                trust,
                &workspace,
                (&user, &folders),
                &redactor,
            );
            if !with_skills {
                found.skills.clear();
            }
            found
        });
        let read = self.cancel.run_until_cancelled(read).await;
        let read = read.ok_or(Cancelled)?;
        Ok(read.unwrap_or_else(|error| {
            tracing::error!(%error, "reading instructions ended early");
            Found::default()
        }))
    }

    /// Returns what was said of a content at its path before, by the operator or the user.
    fn said(&self, words: &Words, trust: InstructionsTrust) -> Option<bool> {
        match trust {
            InstructionsTrust::On => return Some(true),
            InstructionsTrust::Off => return Some(false),
            InstructionsTrust::Ask => {}
        }
        let known = self.context.conversation.instructions.0.lock();
        let mut skills = known.skills.iter();
        if known.told.contains(words) || skills.any(|skill| skill.words == *words) {
            return Some(true);
        }
        if known.settled.contains(&name_of(words)) {
            return Some(false);
        }
        drop(known);
        let memory = &self.context.conversation.memory;
        memory.said_of_words(&key_of(words))
    }

    /// Asks the user whether the model is told these files; false where nobody can be asked, too.
    async fn are_trusted(&self, asked: &[Words], kind: TrustKind) -> Result<bool, Cancelled> {
        if let Some(why) = self.unable() {
            let paths: Vec<&str> = asked.iter().map(|it| it.path.as_str()).collect();
            self.say_once("instructions_not_asked", format!(
                "the model is not told what {} says: the user is to be asked first, and {why}; project.instructions_trust = \"on\" has it told, \"off\" never",
                paths.join(", ")
            ));
            return Ok(false);
        }
        let outcome = self.ask(asked, kind).await;
        if matches!(outcome, TrustOutcome::Refused | TrustOutcome::Expired) {
            let mut known = self.context.conversation.instructions.0.lock();
            for words in asked {
                known.settle(name_of(words));
            }
        }
        match outcome {
            TrustOutcome::Trusted => Ok(true),
            TrustOutcome::Refused | TrustOutcome::Expired => Ok(false),
            TrustOutcome::Cancelled if self.cancel.is_cancelled() => Err(Cancelled),
            TrustOutcome::Cancelled => Ok(false),
        }
    }

    async fn ask(&self, asked: &[Words], kind: TrustKind) -> TrustOutcome {
        let _pause = self.stopwatch.pause();
        let (setup, context) = (self.setup, self.context);
        let request_id = context.session.ids.trust();
        let confirm = TrustConfirm {
            conversation_id: setup.conversation_id.clone(),
            message_id: setup.message_id.clone(),
            request_id: request_id.clone(),
            files: asked.iter().map(|words| file_of(words, kind)).collect(),
            remember: context.conversation.memory.reach_of_words(),
            expires_at: None,
        };
        let (decided, outcome) = oneshot::channel();
        let question = TrustQuestion {
            confirm,
            keys: asked.iter().map(key_of).collect(),
            decided,
        };
        context.events().emit(Event::ChatState(State::new(
            &setup.conversation_id,
            Some(&setup.message_id),
            StateName::AwaitingTrust,
        )));
        let questions = &context.conversation.questions;
        questions.ask(Question::Trust(Box::new(question)), context);
        let id = QuestionId::Trust(request_id);
        let ours = |open: &Open| open.id == id;
        tokio::select! {
            biased;
            // Dropped without an answer where it could not be asked.
            outcome = outcome => outcome.unwrap_or(TrustOutcome::Cancelled),
            () = self.cancel.cancelled() => {
                questions.withdraw(ours, By::Cancel, context);
                TrustOutcome::Cancelled
            }
        }
    }

    /// Returns why nobody is asked; `None` where somebody is.
    fn unable(&self) -> Option<&'static str> {
        let unattended = self.context.services.config().approval.unattended;
        match (self.setup.freedom.policy(), unattended) {
            (ApprovalPolicy::DenyAll, _) => Some(NOTHING_ASKED),
            (_, Unattended::Deny) => Some("nobody can answer here (approval.unattended)"),
            _ => self.context.session.questions.unable_to_trust(),
        }
    }

    fn say_once(&self, code: &str, message: String) {
        let mut known = self.context.conversation.instructions.0.lock();
        let is_new = known.settle(format!("{code} {message}"));
        drop(known);
        if is_new {
            self.context.events().emit(Event::SessionNotice(Notice {
                severity: Severity::Info,
                code: code.to_owned(),
                message,
            }));
        }
    }
}

/// Returns what an answer about a file is kept for.
pub(crate) fn key_of(words: &Words) -> Key {
    Key::Words {
        path: words.absolute.clone(),
        sha256: words.sha256.clone(),
    }
}

fn file_of(words: &Words, kind: TrustKind) -> TrustFile {
    TrustFile {
        path: words.path.clone(),
        kind,
        sha256: words.sha256.clone(),
        bytes: words.bytes as u64,
        text: words.text.clone(),
    }
}

fn name_of(words: &Words) -> String {
    format!("{} {}", words.sha256, words.absolute)
}
