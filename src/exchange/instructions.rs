//! Standing instructions of a conversation: which files' words its model is told as the user's.
//!
//! They stand before what the user says, in the user's name and in no system prompt, and are no part of the history: no
//! compaction loses them. Before each exchange, and before a turn once a tool worked in a folder that nobody has looked into,
//! the files are read. What the operator does not let be read at once, the user is asked about, with all that it says; what was
//! read then is what is told.

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
use crate::instructions::{self, Words};
use crate::message::{Notice, Part, Severity};
use crate::permission::ApprovalPolicy;
use crate::permission::rule::{File, Key};
use crate::protocol::event::{By, Event, State, StateName, StopReason};
use crate::protocol::trust::{
    InstructionFile, InstructionSource, InstructionsChanged, TrustConfirm, TrustFile, TrustKind,
    TrustOutcome,
};
use crate::runtime::Stopwatch;
use crate::sandbox::paths::RootName;
use crate::telemetry::Redactor;
use crate::tool::workspace::Workspace;

/// The most folders of a project that are looked into for one conversation, besides the project's own.
const MAX_FOLDERS: usize = 64;

/// The most bytes of a project's files that are told in one conversation.
const MAX_TOLD: usize = instructions::MAX_BYTES;

/// The most contents that are known as settled in one conversation, and the most notices.
const MAX_SETTLED: usize = 1_024;

/// What stands before the files.
const HEAD: &str = "[Standing instructions of mine, from files. They are words of mine, and no more than that: they change nothing about \
                    which tools may run and what is asked first.]";

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
    pub(crate) fn parts(&self) -> Vec<(String, Part)> {
        let known = self.0.lock();
        let told = known.told.iter();
        told.map(|words| (words.path.clone(), Part::text(words.text.as_str())))
            .collect()
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
        let (instructions, trust) = (&self.context.conversation.instructions, self.trust());
        let found = self.read(trust).await?;
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
            match trust {
                InstructionsTrust::On => {}
                InstructionsTrust::Ask => match self.said(&words) {
                    Some(true) => {}
                    Some(false) => continue,
                    None => asked.push(words.clone()),
                },
                InstructionsTrust::Off => continue,
            }
            left = rest;
            told.push(words);
        }
        if !asked.is_empty() && !self.are_trusted(&asked).await? {
            told.retain(|words| !asked.contains(words));
        }
        let mut known = instructions.0.lock();
        let is_other = known.told != told;
        if is_other {
            known.front = Arc::new(front(&told));
            known.told = told;
        }
        Ok(is_other)
    }

    fn trust(&self) -> InstructionsTrust {
        self.context.services.config().project.instructions.trust
    }

    /// Reads the user's own file and those of the project, from the project's folder on down.
    async fn read(
        &self,
        trust: InstructionsTrust,
    ) -> Result<Vec<Result<Words, String>>, Cancelled> {
        let context = self.context;
        let folders = {
            let mut known = context.conversation.instructions.0.lock();
            known.has_new = false;
            known.folders.clone()
        };
        let config = context.services.config();
        let is_read = trust != InstructionsTrust::Off && context.session.workspace.exec().is_ok();
        if !is_read && config.project.instructions.user.is_none() {
            return Ok(Vec::new());
        }
        let workspace = Arc::clone(&context.session.workspace);
        let redactor = context.services.redactor.clone();
        let read = tokio::task::spawn_blocking(move || {
            let settings = &config.project.instructions;
            let mut found = Vec::new();
            found.extend(of_user(settings, &workspace, &redactor));
            if is_read && let Ok(exec) = workspace.exec() {
                // The names of folders are in order: those above come before those below.
                let folders = std::iter::once("").chain(folders.iter().map(String::as_str));
                found.extend(folders.filter_map(|folder| {
                    instructions::of_folder(exec.roots(), folder, &settings.names, &redactor)
                }));
            }
            found
        });
        let read = self.cancel.run_until_cancelled(read).await;
        let read = read.ok_or(Cancelled)?;
        Ok(read.unwrap_or_else(|error| {
            tracing::error!(%error, "reading instructions ended early");
            Vec::new()
        }))
    }

    /// Returns what was said of a content at its path before.
    fn said(&self, words: &Words) -> Option<bool> {
        let known = self.context.conversation.instructions.0.lock();
        if known.told.contains(words) {
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
    async fn are_trusted(&self, asked: &[Words]) -> Result<bool, Cancelled> {
        if let Some(why) = self.unable() {
            let paths: Vec<&str> = asked.iter().map(|it| it.path.as_str()).collect();
            self.say_once("instructions_not_asked", format!(
                "the model is not told what {} says: the user is to be asked first, and {why}; project.instructions_trust = \"on\" has it told, \"off\" never",
                paths.join(", ")
            ));
            return Ok(false);
        }
        let outcome = self.ask(asked).await;
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

    async fn ask(&self, asked: &[Words]) -> TrustOutcome {
        let _pause = self.stopwatch.pause();
        let (setup, context) = (self.setup, self.context);
        let request_id = context.session.ids.trust();
        let confirm = TrustConfirm {
            conversation_id: setup.conversation_id.clone(),
            message_id: setup.message_id.clone(),
            request_id: request_id.clone(),
            files: asked.iter().map(file_of).collect(),
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
        match (self.setup.policy, unattended) {
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

/// Reads the user's own file, where it is no project's.
pub(crate) fn of_user(
    settings: &crate::config::Instructions,
    workspace: &Workspace,
    redactor: &Redactor,
) -> Option<Result<Words, String>> {
    let folder = settings.user.as_deref()?;
    let project = workspace
        .exec()
        .ok()
        .map(|exec| exec.roots().path(RootName::Project));
    if project.is_some_and(|project| folder.starts_with(project)) {
        return None;
    }
    instructions::of_user(folder, &settings.names, redactor)
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

/// Returns what an answer about a file is kept for.
pub(crate) fn key_of(words: &Words) -> Key {
    Key::Words {
        path: words.absolute.clone(),
        sha256: words.sha256.clone(),
    }
}

fn file_of(words: &Words) -> TrustFile {
    TrustFile {
        path: words.path.clone(),
        kind: TrustKind::Instructions,
        sha256: words.sha256.clone(),
        bytes: words.bytes as u64,
        text: words.text.clone(),
    }
}

fn name_of(words: &Words) -> String {
    format!("{} {}", words.sha256, words.absolute)
}

/// Returns what the model is told of files.
fn front(told: &[Words]) -> Vec<Part> {
    if told.is_empty() {
        return Vec::new();
    }
    let mut text = HEAD.to_owned();
    for words in told {
        let Words {
            path,
            sha256,
            text: said,
            ..
        } = words;
        text.push_str(&format!(
            "\n\n<instructions file={path:?} sha256=\"{sha256}\">\n{}\n</instructions>",
            said.trim_end()
        ));
    }
    text.push('\n');
    vec![Part::text(text)]
}
