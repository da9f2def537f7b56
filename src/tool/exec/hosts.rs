//! Answers a running command's questions for hosts.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;

use crate::runtime::Stopwatch;
use crate::sandbox::{Host, HostQuestion};
use crate::tool::background::{Job, Unconnected};
use crate::tool::hosts::HostList;
use crate::tool::user::{AskUser, HostVerdict, KnownHosts};

/// Most questions that wait; a command has one thread for each, and is stopped there.
pub(super) const MAX_QUESTIONS: usize = 64;

/// Most hosts that a result names as refused.
pub(in crate::tool) const MAX_REFUSED: usize = 10;

/// What a command may connect to, and what it was refused.
pub(super) struct Hosts<'a> {
    decider: Decider<'a>,
    /// Why there was no connection, by host.
    refused: BTreeMap<String, String>,
}

#[derive(Clone, Copy)]
struct Decider<'a> {
    list: &'a HostList,
    user: Option<&'a dyn AskUser>,
    /// The time limit of the command, which stands still while the user is asked.
    clock: &'a Stopwatch,
}

impl<'a> Hosts<'a> {
    pub(super) fn new(
        list: &'a HostList,
        user: Option<&'a dyn AskUser>,
        clock: &'a Stopwatch,
    ) -> Self {
        Self {
            decider: Decider { list, user, clock },
            refused: BTreeMap::new(),
        }
    }

    /// Waits for the command, and answers its questions meanwhile.
    pub(super) async fn answer_while<T>(
        &mut self,
        command: impl Future<Output = T>,
        questions: mpsc::Receiver<HostQuestion>,
    ) -> T {
        let Self { decider, refused } = self;
        let decider = *decider;
        let decide = |question| decider.decide(question);
        // Those for the user wait for each other elsewhere.
        let answering = answer(questions, decide, |(host, reason)| {
            if refused.len() < MAX_REFUSED {
                refused.insert(host, reason);
            }
        });
        alongside(answering, command).await
    }

    /// Returns what the model reads of connections that were not made; `None` where there is nothing to say.
    pub(super) fn note(&self) -> Option<String> {
        let refused = self.refused.iter();
        let refused: Vec<String> = refused
            .map(|(host, reason)| format!("{host} ({reason})"))
            .collect();
        (!refused.is_empty()).then(|| format!("\n[not connected to {}]", refused.join(", ")))
    }
}

/// Returns what the model reads of ports of hosts that are not on the list of ports; nothing where there are none.
pub(in crate::tool) fn ports_note(refused: &[(Host, u16)]) -> Option<String> {
    let refused: Vec<String> = refused
        .iter()
        .map(|(host, port)| format!("{host} port {port}"))
        .collect();
    (!refused.is_empty()).then(|| {
        format!(
            "\n[not connected to {}: not on the list of ports (tools.bash.ports)]",
            refused.join(", ")
        )
    })
}

/// What a command may connect to that nobody waits for.
pub(super) struct Unasked {
    pub(super) list: HostList,
    /// What was said of hosts in its conversation by then.
    pub(super) known: Option<KnownHosts>,
    pub(super) questions: mpsc::Receiver<HostQuestion>,
}

impl Unasked {
    /// Waits for the command, and answers its questions meanwhile: it may connect to what the list holds, and to what is allowed
    /// in its conversation by then.
    pub(super) async fn answer_while<T>(self, command: impl Future<Output = T>, job: &Job) -> T {
        let Self {
            list,
            known,
            questions,
        } = self;
        let (list, known) = (&list, known.as_ref());
        let decide = |question| decide_unasked(list, known, question);
        let answering = answer(questions, decide, |(host, why)| {
            job.note_unconnected(host, why);
        });
        alongside(answering, command).await
    }
}

/// Decides and answers; returns the host and why, where it is refused or there is no address to connect to.
async fn decide_unasked(
    list: &HostList,
    known: Option<&KnownHosts>,
    question: HostQuestion,
) -> Option<(String, Unconnected)> {
    let HostQuestion {
        host,
        answer,
        no_address,
        ..
    } = question;
    let name = host.to_string();
    let is_known = |known: &KnownHosts| known(&name) == Some(HostVerdict::Allowed);
    let is_allowed =
        list.holds(&host).await || list.refuses(&host).is_none() && known.is_some_and(is_known);
    answer.send(list.answer(is_allowed)).unwrap_or_default();
    match is_allowed {
        true => Some((name, Unconnected::NoAddress(no_address.await.ok()?))),
        false => Some((name, Unconnected::NotListed)),
    }
}

/// Answers each question by `decide`, until nobody can ask any more, and has what became of it noted.
async fn answer<T, D: Future<Output = Option<T>>>(
    mut questions: mpsc::Receiver<HostQuestion>,
    decide: impl Fn(HostQuestion) -> D,
    mut note: impl FnMut(T),
) {
    let mut answers = FuturesUnordered::new();
    let mut may_ask = true;
    while may_ask || !answers.is_empty() {
        tokio::select! {
            question = questions.recv(), if may_ask && answers.len() < MAX_QUESTIONS => match question {
                Some(question) => answers.push(decide(question)),
                None => may_ask = false,
            },
            Some(became) = answers.next() => {
                if let Some(became) = became {
                    note(became);
                }
            }
        }
    }
}

/// Waits for the command while its questions are answered.
async fn alongside<T>(answering: impl Future<Output = ()>, command: impl Future<Output = T>) -> T {
    let mut command = pin!(command);
    tokio::select! {
        // What became of the last question is noted before its command's end.
        biased;
        () = answering => {}
        ended = &mut command => return ended,
    }
    command.await
}

impl Decider<'_> {
    /// Decides and answers; returns the host and why, where it is refused or there is no address to connect to.
    async fn decide(self, question: HostQuestion) -> Option<(String, String)> {
        let HostQuestion {
            host,
            port,
            answer,
            no_address,
        } = question;
        let name = host.to_string();
        let refused = |reason: &str| HostVerdict::Refused(reason.to_owned());
        let is_listed = {
            // The package managers may not have answered yet.
            let _pause = self.clock.pause();
            self.list.holds(&host).await
        };
        let verdict = if is_listed {
            HostVerdict::Allowed
        } else if let Some(why) = self.list.refuses(&host) {
            refused(why)
        } else if let Some(user) = self.user {
            let _pause = self.clock.pause();
            user.ask_host(&name, port).await
        } else {
            refused("nobody is there to be asked")
        };
        // The command may have ended meanwhile.
        let is_allowed = verdict == HostVerdict::Allowed;
        answer
            .send(self.list.answer(is_allowed))
            .unwrap_or_default();
        match verdict {
            // The command sees no more than that nothing is there, or that it may not.
            HostVerdict::Allowed => Some((name, no_address.await.ok()?)),
            HostVerdict::Refused(reason) => Some((name, reason)),
        }
    }
}
