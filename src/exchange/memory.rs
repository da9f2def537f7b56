//! What the user said that counts for later calls: of a session and its conversations, of a project, and of everything.
//!
//! What is a project's or everybody's is the daemon's: each session looks there when it decides, so an answer counts in all
//! of them at once, and is gone from all of them when it is revoked. Whatever changes here is written to the journal of the
//! session in which it was said.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use data_encoding::BASE32_DNSSEC;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::message::{ConversationId, SessionId};
use crate::permission::rule::{Call, Key, Place, Remember, Rule, Said, said};
use crate::store::{Journal, Store, now, restored};
use crate::users::User;

/// The most answers in a session and its conversations, in one project, and for everything; after that a further one is for
/// its call alone.
const MOST: usize = 1_000;

/// The most of all projects and for everything together.
const MOST_SHARED: usize = 10_000;

/// How long a session that begins waits for the answers of the store.
const PATIENCE: Duration = Duration::from_secs(2);

/// After how long the store is asked again that could not say.
const PAUSE: Duration = Duration::from_secs(2);

/// The answers of each user that are no session's.
#[derive(Debug)]
pub(crate) struct RulesOfUsers {
    has_store: bool,
    /// Those of the daemon's one user, which stay; those of others as long as one of their sessions does.
    own: SharedRules,
    others: Mutex<HashMap<User, Weak<Shared>>>,
}

/// The answers of a user that are no session's; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct SharedRules(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Held for a look at them, and for a change with its way into the journal.
    rules: Mutex<Vec<Rule>>,
    reading: watch::Sender<Reading>,
}

/// How far the answers of the store are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Not,
    Begun,
    /// Begun, and somebody has waited in vain.
    Late,
    Done,
}

/// What was said of the words of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaidOfWords {
    Nothing,
    Yes,
    /// There is a yes, and a no may be among what is not read of the store yet.
    PerhapsYes,
    No,
}

/// Why it is not known what was said: there may be a denial. Reads as a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unread {
    /// The store has not answered yet.
    #[error("what was denied or allowed for projects and always cannot be read from the store yet")]
    Store,
    /// There is a denial of which nobody knows what it is for.
    #[error(
        "a denial that was remembered cannot be read: approval:list names it, approval:revoke forgets it"
    )]
    Denial,
}

/// What a session knows; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    session: SessionId,
    journal: Journal,
    /// Its own and those of its conversations.
    own: Arc<Mutex<Vec<Rule>>>,
    shared: SharedRules,
    /// The folder it works in.
    project: Option<String>,
    /// How far the operator lets answers reach.
    most: Remember,
}

/// What a conversation knows.
#[derive(Clone, Debug)]
pub(crate) struct ConversationMemory {
    memory: Memory,
    conversation: ConversationId,
    /// Whether anything is still kept for it; changed while the session's own are held.
    is_open: Arc<AtomicBool>,
}

/// An answer, as it is listed.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub rule: Rule,
    /// Whether it counts now: not an approval that reaches further than the operator lets them.
    pub in_force: bool,
}

impl RulesOfUsers {
    /// Returns those of a daemon: read of the store first, where there is one.
    pub(crate) fn new(has_store: bool) -> Self {
        Self {
            has_store,
            own: SharedRules::new(has_store),
            others: Mutex::default(),
        }
    }

    /// Returns those of a user.
    pub(crate) fn of(&self, user: &User) -> SharedRules {
        if *user == User::default() {
            return self.own.clone();
        }
        let mut others = self.others.lock();
        // There are as many as have sessions.
        others.retain(|_, rules| rules.strong_count() > 0);
        if let Some(known) = others.get(user).and_then(Weak::upgrade) {
            return SharedRules(known);
        }
        let rules = SharedRules::new(self.has_store);
        others.insert(user.clone(), Arc::downgrade(&rules.0));
        rules
    }
}

impl SharedRules {
    /// Returns those of a user: read of the store first, where there is one.
    pub(crate) fn new(has_store: bool) -> Self {
        let reading = match has_store {
            true => Reading::Not,
            false => Reading::Done,
        };
        Self(Arc::new(Shared {
            rules: Mutex::default(),
            reading: watch::Sender::new(reading),
        }))
    }

    /// Returns whether nobody reads or has read them yet: whoever is told so calls [`read`](Self::read).
    pub(crate) fn begin(&self) -> bool {
        self.0.reading.send_if_modified(|reading| {
            let is_first = *reading == Reading::Not;
            if is_first {
                *reading = Reading::Begun;
            }
            is_first
        })
    }

    /// Reads those of the store, however long it takes; returns whether somebody has waited in vain.
    pub(crate) async fn read(&self, store: &dyn Store) -> bool {
        let mut is_told = false;
        let kept = loop {
            match store.rules().await {
                Ok(kept) => break kept,
                Err(error) if !is_told => {
                    tracing::error!(%error, "what was remembered for projects and always cannot be read; it is tried again");
                    is_told = true;
                }
                Err(_) => {}
            }
            tokio::time::sleep(PAUSE).await;
        };
        let mut rules = self.0.rules.lock();
        // What was said meanwhile is there already.
        let mut known = restored::rules(&kept, &Place::Always);
        known.retain(|kept| !rules.iter().any(|rule| rule.id == kept.id));
        known.append(&mut rules);
        *rules = known;
        self.0.reading.send_replace(Reading::Done) == Reading::Late
    }

    /// Waits until they are read, for two seconds at most; returns whether they are.
    pub(crate) async fn are_read_soon(&self) -> bool {
        let mut reading = self.0.reading.subscribe();
        let read = reading.wait_for(|reading| *reading == Reading::Done);
        if tokio::time::timeout(PATIENCE, read).await.is_ok() {
            return true;
        }
        self.0.reading.send_if_modified(|reading| {
            let is_late = *reading != Reading::Done;
            if is_late {
                *reading = Reading::Late;
            }
            is_late
        });
        self.are_read()
    }

    /// Returns whether a file's words are known as trusted in a project.
    pub(crate) fn trust_words(&self, project: Option<&str>, key: &Key, most: Remember) -> bool {
        let rules = self.0.rules.lock();
        let is_of = |rule: &&Rule| match &rule.place {
            Place::Project(of) => Some(of.as_str()) == project,
            place => *place == Place::Always,
        };
        let mut said = rules.iter().filter(is_of).filter(|it| it.key == *key);
        said.any(|rule| rule.allows && rule.place.reach() <= most)
    }

    fn are_read(&self) -> bool {
        *self.0.reading.borrow() == Reading::Done
    }
}

impl Memory {
    /// Returns that of a session in which nothing was said yet.
    pub(crate) fn new(
        session: SessionId,
        journal: Journal,
        shared: SharedRules,
        project: Option<String>,
        most: Remember,
    ) -> Self {
        Self {
            session,
            journal,
            own: Arc::default(),
            shared,
            project,
            most,
        }
    }

    /// Returns that of a session without a store, whose operator allows everything.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self::new(
            SessionId::new("s"),
            Journal::default(),
            SharedRules::new(false),
            Some("/work".to_owned()),
            Remember::Always,
        )
    }

    /// Takes back what the store has of the session.
    pub(crate) fn restore(&self, rules: Vec<Rule>) {
        *self.own.lock() = rules;
    }

    /// Has it be that of another project: what was said of one was not said of the other.
    pub(crate) fn move_to(&mut self, project: Option<String>) {
        self.project = project;
        self.revoke(|rule| rule.place.reach() <= Remember::Session);
    }

    pub(crate) fn for_conversation(&self, conversation: &ConversationId) -> ConversationMemory {
        ConversationMemory {
            memory: self.clone(),
            conversation: conversation.clone(),
            is_open: Arc::new(AtomicBool::new(true)),
        }
    }

    /// Returns all that may count in the session, in the order in which it was said.
    pub(crate) fn list(&self) -> Vec<Listed> {
        let mut rules = self.own.lock().clone();
        let shared = self.shared.0.rules.lock();
        rules.extend(shared.iter().filter(|it| self.is_here(it)).cloned());
        drop(shared);
        rules.sort_by_key(|rule| rule.given_ms);
        let listed = |rule: Rule| Listed {
            in_force: !rule.allows || rule.place.reach() <= self.most,
            rule,
        };
        rules.into_iter().map(listed).collect()
    }

    /// Has answers count no more, of those that are listed; returns their ids.
    pub(crate) fn revoke(&self, which: impl Fn(&Rule) -> bool) -> Vec<String> {
        let mut revoked = Vec::new();
        for (rules, here) in [(&*self.own, true), (&self.shared.0.rules, false)] {
            let mut rules = rules.lock();
            let gone = rules.extract_if(.., |it| (here || self.is_here(it)) && which(it));
            let gone: Vec<String> = gone.map(|it| it.id).collect();
            self.journal.revoke(&gone);
            revoked.extend(gone);
        }
        revoked
    }

    /// Returns whether a denial that counts in the session cannot be read.
    pub(crate) fn has_unreadable(&self) -> bool {
        self.list().iter().any(|it| is_unreadable(&it.rule))
    }

    /// Returns whether an answer that is no session's counts here.
    fn is_here(&self, rule: &Rule) -> bool {
        match &rule.place {
            Place::Project(project) => self.project.as_ref() == Some(project),
            Place::Always => true,
            Place::Conversation(_) | Place::Session => false,
        }
    }

    /// Returns how far an answer reaches that is to reach so far.
    fn bounded(&self, wanted: Remember) -> Remember {
        let is_kept = self.journal.is_on();
        match wanted.min(self.most) {
            Remember::Project if !is_kept || self.project.is_none() => Remember::Session,
            Remember::Always if !is_kept => Remember::Session,
            reach => reach,
        }
    }

    fn place(&self, reach: Remember, conversation: &ConversationId) -> Option<Place> {
        Some(match reach {
            Remember::Once => return None,
            Remember::Conversation => Place::Conversation(conversation.clone()),
            Remember::Session => Place::Session,
            Remember::Project => Place::Project(self.project.clone()?),
            Remember::Always => Place::Always,
        })
    }
}

fn is_unreadable(rule: &Rule) -> bool {
    !rule.allows && rule.key == Key::Unreadable
}

impl ConversationMemory {
    /// Returns what was said before of a call. Fails where that is not known yet: a denial that is known holds all the same.
    pub(crate) fn said(&self, call: &Call<'_>) -> Result<Option<Said>, Unread> {
        let memory = &self.memory;
        let is_ours = |rule: &&Rule| match &rule.place {
            Place::Conversation(conversation) => *conversation == self.conversation,
            _ => true,
        };
        let own = memory.own.lock();
        let shared = memory.shared.0.rules.lock();
        // While they are held: what is read in between counts.
        let are_read = memory.shared.are_read();
        let shared = shared.iter().filter(|it| memory.is_here(it));
        let rules = own.iter().filter(is_ours).chain(shared);
        let said = said(rules.clone(), call, memory.most);
        if said.as_ref().is_some_and(|said| !said.allows) {
            return Ok(said);
        }
        match rules.into_iter().any(is_unreadable) {
            _ if !are_read => Err(Unread::Store),
            true => Err(Unread::Denial),
            false => Ok(said),
        }
    }

    /// Returns what was said of the words of a file.
    pub(crate) fn said_of_words(&self, key: &Key) -> SaidOfWords {
        let memory = &self.memory;
        let own = memory.own.lock();
        let shared = memory.shared.0.rules.lock();
        let shared = shared.iter().filter(|it| memory.is_here(it));
        let counts = |rule: &&Rule| match (&rule.place, rule.allows) {
            (Place::Conversation(conversation), _) if *conversation != self.conversation => false,
            (place, true) => place.reach() <= memory.most,
            (_, false) => true,
        };
        let said = own.iter().chain(shared).filter(counts);
        let said: Vec<bool> = said
            .filter(|it| it.key == *key)
            .map(|it| it.allows)
            .collect();
        // A denial goes before every approval, and one may be among what is not read.
        match (said.contains(&false), said.contains(&true)) {
            (true, _) => SaidOfWords::No,
            (false, true) if memory.shared.are_read() => SaidOfWords::Yes,
            (false, true) => SaidOfWords::PerhapsYes,
            (false, false) => SaidOfWords::Nothing,
        }
    }

    /// Returns how far an answer reaches that is to reach as far as the project.
    pub(crate) fn reach_of_words(&self) -> Remember {
        self.memory.bounded(Remember::Project)
    }

    /// Returns how far an answer may reach beyond its call, the nearest first.
    pub(crate) fn on_offer(&self) -> Vec<Remember> {
        let further = Remember::FURTHER.into_iter();
        let offered = further.filter(|it| self.memory.bounded(*it) == *it);
        offered.collect()
    }

    /// Keeps an answer, in the place of what was said of the same thing there; returns how far it reaches and its id, `None`
    /// where it is for its call alone.
    pub(crate) fn keep(
        &self,
        key: Key,
        allows: bool,
        reason: Option<String>,
        wanted: Remember,
    ) -> Option<(Remember, String)> {
        let memory = &self.memory;
        let reach = memory.bounded(wanted);
        let place = memory.place(reach, &self.conversation)?;
        let rule = Rule {
            id: new_id()?,
            key,
            allows,
            place,
            reason,
            session: memory.session.clone(),
            given_ms: now(),
        };
        let rule = rule.bounded();
        let (rules, most) = match reach {
            Remember::Project | Remember::Always => (&memory.shared.0.rules, MOST_SHARED),
            _ => (&*memory.own, MOST),
        };
        let mut rules = rules.lock();
        if !self.is_open.load(Ordering::Relaxed) {
            return None;
        }
        let is_same = |it: &Rule| it.key == rule.key && it.place == rule.place;
        let replaced: Vec<String> = rules
            .extract_if(.., |it| is_same(it))
            .map(|it| it.id)
            .collect();
        let is_beside = |it: &&Rule| reach <= Remember::Session || it.place == rule.place;
        if replaced.is_empty()
            && (rules.len() >= most || rules.iter().filter(is_beside).count() >= MOST)
        {
            return None;
        }
        memory.journal.rule(&rule, &replaced);
        let id = rule.id.clone();
        rules.push(rule);
        Some((reach, id))
    }

    /// Forgets what was said of the conversation, which is closed. Its history takes it out of the journal.
    pub(crate) fn close(&self) {
        let mut own = self.memory.own.lock();
        self.is_open.store(false, Ordering::Relaxed);
        own.retain(|rule| rule.place != Place::Conversation(self.conversation.clone()));
    }
}

/// Returns an id that a person can type; none is like another.
fn new_id() -> Option<String> {
    let mut bytes = [0; 5];
    getrandom::fill(&mut bytes)
        .inspect_err(|error| tracing::error!(%error, "no random numbers for the id of an answer"))
        .ok()?;
    Some(format!("r{}", BASE32_DNSSEC.encode(&bytes)))
}

#[cfg(test)]
mod tests;
