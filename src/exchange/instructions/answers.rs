//! Whether the words of a file may count as the user's: what was said of them, and the question.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::learn::{Cancelled, Learner};
use crate::config::InstructionsTrust;
use crate::exchange::memory::SaidOfWords;
use crate::exchange::questions::trust::TrustQuestion;
use crate::exchange::questions::{Open, Question, QuestionId};
use crate::exchange::{NOTHING_ASKED, Unasked, unasked};
use crate::instructions::Words;
use crate::message::{Notice, Severity};
use crate::permission::rule::Key;
use crate::protocol::event::{By, Event, State, StateName};
use crate::protocol::trust::{TrustConfirm, TrustFile, TrustKind, TrustOutcome};

/// The most contents of which is known what was said of them in one conversation alone, and the most notices.
const MAX_SETTLED: usize = 1_024;

/// What was answered in a conversation and its tasks; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    settled: Mutex<Settled>,
    /// Held by the one that asks: what several tasks meet is asked once.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Settled {
    /// Whether contents are told, where that is kept nowhere else: a question lapsed, or no answers are kept here.
    here: BTreeMap<String, bool>,
    /// What the client was told, which is not said twice.
    notices: BTreeSet<String>,
}

impl Answers {
    fn here(&self, words: &Words) -> Option<bool> {
        self.0.settled.lock().here.get(&name_of(words)).copied()
    }

    fn settle(&self, words: &Words, is_told: bool) {
        let here = &mut self.0.settled.lock().here;
        if here.len() >= MAX_SETTLED {
            here.clear();
        }
        here.insert(name_of(words), is_told);
    }

    /// Notes that the client is told something; returns whether it was not.
    fn is_news(&self, what: String) -> bool {
        let notices = &mut self.0.settled.lock().notices;
        if notices.len() >= MAX_SETTLED {
            notices.clear();
        }
        notices.insert(what)
    }
}

impl Learner<'_> {
    /// Returns what was said of a content at its path before, by the operator or the user.
    pub(super) fn said(&self, words: &Words, trust: InstructionsTrust) -> Option<bool> {
        match trust {
            InstructionsTrust::On => return Some(true),
            InstructionsTrust::Off => return Some(false),
            InstructionsTrust::Ask => {}
        }
        let conversation = &self.context.conversation;
        let here = conversation.instructions.answers.here(words);
        if here == Some(false) {
            return here;
        }
        match conversation.memory.said_of_words(&key_of(words)) {
            SaidOfWords::Yes => Some(true),
            SaidOfWords::No => Some(false),
            // Whoever was told it is not asked again meanwhile.
            SaidOfWords::PerhapsYes => self.is_told(words).then_some(true),
            SaidOfWords::Nothing => here,
        }
    }

    fn is_told(&self, words: &Words) -> bool {
        let known = self.context.conversation.instructions.known.lock();
        let mut skills = known.skills.iter();
        known.told.contains(words) || skills.any(|skill| skill.words == *words)
    }

    /// Asks the user whether the model is told these files, and returns those that it may be told; none where nobody can be
    /// asked, too.
    pub(super) async fn ask_about(
        &self,
        asked: &[Words],
        kind: TrustKind,
    ) -> Result<Vec<Words>, Cancelled> {
        if let Some(why) = self.unable() {
            let paths: Vec<&str> = asked.iter().map(|it| it.path.as_str()).collect();
            self.say_once("instructions_not_asked", format!(
                "the model was not told of {}: it is told of a project's files after a yes of the user, and {why}. With project.instructions_trust = \"on\" it is told without a question, with \"off\" never",
                paths.join(", ")
            ));
            return Ok(Vec::new());
        }
        // Whoever waits for another's answer waits for the user.
        let _pause = self.stopwatch.pause();
        let answers = &self.context.conversation.instructions.answers;
        let turn = self.cancel.run_until_cancelled(answers.0.asking.lock());
        let _turn = turn.await.ok_or(Cancelled)?;
        // Another task may have asked about them meanwhile.
        let said = |words: &Words| self.said(words, InstructionsTrust::Ask);
        let open: Vec<Words> = asked
            .iter()
            .filter(|it| said(it).is_none())
            .cloned()
            .collect();
        if !open.is_empty() {
            let outcome = self.ask(&open, kind).await;
            let is_told = match outcome {
                TrustOutcome::Trusted => true,
                TrustOutcome::Refused | TrustOutcome::Expired => false,
                TrustOutcome::Cancelled if self.cancel.is_cancelled() => return Err(Cancelled),
                TrustOutcome::Cancelled => return Ok(told(asked, said)),
            };
            let memory = &self.context.conversation.memory;
            for words in &open {
                if memory.said_of_words(&key_of(words)) == SaidOfWords::Nothing {
                    answers.settle(words, is_told);
                }
            }
            // It counts now, whatever can be read of the store.
            return Ok(told(asked, |words| match open.contains(words) {
                true => Some(is_told),
                false => said(words),
            }));
        }
        Ok(told(asked, said))
    }

    async fn ask(&self, asked: &[Words], kind: TrustKind) -> TrustOutcome {
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
        match unasked(self.setup, self.context) {
            Some(Unasked::Policy) => Some(NOTHING_ASKED),
            Some(Unasked::Unattended) => Some("nobody can answer here (approval.unattended)"),
            None => self.context.session.questions.unable_to_trust(),
        }
    }

    pub(super) fn say_once(&self, code: &str, message: String) {
        let answers = &self.context.conversation.instructions.answers;
        if answers.is_news(format!("{code} {message}")) {
            self.context.events().emit(Event::SessionNotice(Notice {
                severity: Severity::Info,
                code: code.to_owned(),
                message,
            }));
        }
    }
}

fn told(asked: &[Words], said: impl Fn(&Words) -> Option<bool>) -> Vec<Words> {
    let told = asked.iter().filter(|words| said(words) == Some(true));
    told.cloned().collect()
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
