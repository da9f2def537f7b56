//! Tasks: what a call hands to another model runs in a conversation of its own, which is made here and ends with it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::resolve::default_system;
use super::{ConversationHandle, Session};
use crate::config::{Config, Current, EXPLORE};
use crate::conversation;
use crate::exchange::context::{Context, ConversationContext, SessionContext, Setup};
use crate::exchange::history::History;
use crate::exchange::instructions::Instructions;
use crate::exchange::tasks::BeginTask;
use crate::message::{ConversationId, Message, Part, TASK};
use crate::permission::{Scope, Workflow};
use crate::tool::task::TaskTool;
use crate::tool::{Registry, Tool};

/// Most turns of a task.
const MAX_TURNS: u32 = 20;

/// The most tasks that have ended of which a session remembers what was said.
const REMEMBERED: usize = 64;

/// What a task is told besides its profile's own words.
const TASK_PROMPT: &str = include_str!("../../config/task_prompt.txt");

/// The tools of a session: those that its tasks have, and all of them.
pub(super) struct SessionTools {
    pub(super) of_tasks: Arc<Registry>,
    pub(super) all: Arc<Registry>,
}

impl SessionTools {
    /// Makes those of a session beside the tools of its project.
    pub(super) fn new(project: &Arc<Registry>, settings: &Current) -> Self {
        let config = settings.now();
        let of_tasks = Arc::new(Registry::beside(project, []));
        let task = config.tasks.enabled.then(|| -> Arc<dyn Tool> {
            let names = config.tasks.names();
            let names = names
                .into_iter()
                .filter(|it| profile(it, &config).is_some());
            let settings = settings.clone();
            // As they are when a task begins, which is set up by them.
            let scope = move |name: &str| {
                let profile = profile(name, &settings.now())?;
                Some(Scope::everything().narrowed(&profile.permissions))
            };
            let tools = Arc::clone(&of_tasks);
            Arc::new(TaskTool::new(
                config.tasks.timeout,
                names.collect(),
                scope,
                tools,
            ))
        });
        Self {
            all: Arc::new(Registry::beside(&of_tasks, task)),
            of_tasks,
        }
    }
}

/// What was said in tasks that have ended, the oldest first.
#[derive(Default)]
pub(super) struct EndedTasks(VecDeque<(ConversationId, Arc<History>)>);

impl EndedTasks {
    /// Remembers one, unless its conversation was closed meanwhile. Of the one that is forgotten for it nothing is kept.
    pub(super) fn add(&mut self, id: ConversationId, history: Arc<History>) {
        if history.is_closed() {
            return;
        }
        self.0.push_back((id, history));
        if self.0.len() > REMEMBERED
            && let Some((_, oldest)) = self.0.pop_front()
        {
            oldest.close();
        }
    }

    fn get(&self, id: &ConversationId) -> Option<&Arc<History>> {
        let found = self.0.iter().find(|(known, _)| known == id);
        found.map(|(_, history)| history)
    }

    fn take(&mut self, id: &ConversationId) -> Option<Arc<History>> {
        let at = self.0.iter().position(|(known, _)| known == id)?;
        self.0.remove(at).map(|(_, history)| history)
    }
}

impl Session {
    /// Begins a task, and says what came of that.
    pub(super) fn begin_task(&mut self, begin: BeginTask) {
        self.forget_ended();
        let id = ConversationId::of_task(&begin.within.call);
        let setup = self.task_setup(&begin, &id);
        let room = self.room_for_conversation(&id);
        // It is part of the exchange around it, and no further one of its user.
        let room = room.map_err(|error| error.message);
        let setup = match setup.and_then(|setup| room.map(|()| setup)) {
            Ok(begins) => begins,
            // Its call may have been given up.
            Err(problem) => return drop(begin.begun.send(Err(problem))),
        };
        let BeginTask {
            within,
            memory,
            account,
            questions,
            events,
            cancel,
            begun,
            ..
        } = begin;
        // Of a copy of a session, whose calls are counted anew.
        if let Some(before) = self.ended_tasks.take(&id) {
            before.close();
        }
        let history = self.new_history(&id);
        let mut context = Context {
            services: self.services.clone(),
            session: SessionContext {
                events,
                tools: Arc::clone(&self.tools_of_tasks),
                ..self.shared.clone()
            },
            conversation: ConversationContext::new(
                id.clone(),
                Arc::clone(&history),
                memory.clone(),
                Arc::clone(&account),
            ),
        };
        self.services.quota.count_home(&context.conversation.pod);
        context.conversation.instructions = Instructions::within(within.answers.clone());
        context.conversation.within = Some(within);
        context.conversation.questions = questions;
        let (inbox, commands) = mpsc::channel(conversation::INBOX);
        let gone = CancellationToken::new();
        let on_end = gone.clone().drop_guard();
        let span = tracing::info_span!("task", conversation_id = %id);
        let run = async move {
            conversation::run_task(commands, context, setup, cancel).await;
            drop(on_end);
        };
        if begun.send(Ok(Arc::clone(&history))).is_err() {
            return;
        }
        self.daemon.tasks.spawn(run.instrument(span));
        let handle = ConversationHandle {
            inbox,
            gone,
            history,
            memory,
            account,
        };
        self.conversations.insert(id, handle);
    }

    /// Lets go of tasks that have ended; what was said in the last of them is remembered.
    pub(super) fn forget_ended(&mut self) {
        let is_over = |id: &ConversationId, handle: &mut ConversationHandle| {
            id.task().is_some() && handle.inbox.is_closed()
        };
        let over = self.conversations.extract_if(|id, it| is_over(id, it));
        for (id, handle) in over {
            self.closing.insert(id.clone(), handle.gone);
            self.ended_tasks.add(id, handle.history);
        }
    }

    /// Returns what was said in a task that has ended.
    pub(super) fn said_in_task(&self, id: &ConversationId) -> Option<Arc<History>> {
        let ended = self.conversations.get(id).filter(|it| it.inbox.is_closed());
        let ended = ended.filter(|_| id.task().is_some()).map(|it| &it.history);
        ended.or_else(|| self.ended_tasks.get(id)).cloned()
    }

    /// Forgets what was said in the tasks of a conversation, which is closed.
    pub(super) fn forget_tasks_of(&mut self, history: &History) {
        self.forget_ended();
        let messages = history.snapshot();
        let replies = messages.iter().filter_map(|message| match message {
            Message::Reply(reply) => Some(&reply.calls),
            _ => None,
        });
        for call in replies.flatten().filter(|call| call.name == TASK) {
            let id = ConversationId::of_task(&call.id);
            let running = self.conversations.get(&id);
            let running = running.map(|handle| Arc::clone(&handle.history));
            if let Some(history) = running.or_else(|| self.ended_tasks.take(&id)) {
                history.close();
            }
        }
    }

    /// Returns how a task is set up: as the exchange around it, but for what is its profile's. Fails with why it cannot be.
    fn task_setup(&self, begin: &BeginTask, id: &ConversationId) -> Result<Setup, String> {
        let config = &self.daemon.services.config();
        let around = &begin.setup;
        let profile = profile(&begin.profile, config)
            .ok_or_else(|| format!("there is no profile `{}` any more", begin.profile))?;
        let own_model = match (&profile.provider, &profile.model) {
            (None, None) => config.tasks.own_model().map(|(provider, model)| {
                let model = Some(model.to_owned());
                (provider.to_owned(), model)
            }),
            (provider, model) => {
                let default = || self.daemon.providers.default_id().to_owned();
                Some((provider.clone().unwrap_or_else(default), model.clone()))
            }
        };
        let mut setup = around.clone();
        if let Some((provider_id, model)) = own_model {
            let instance = self.daemon.providers.find(&provider_id);
            let instance =
                instance.ok_or_else(|| format!("there is no provider `{provider_id}`"))?;
            setup.model = model.unwrap_or_else(|| instance.config.model.clone());
            setup.rates = instance.rates;
            setup.pricing = instance.config.pricing;
            setup.max_retries = instance.config.max_retries;
            setup.restarts = instance.config.restart_after_partial;
            setup.provider = instance.provider;
            setup.first_model = instance.first_model;
            setup.provider_id = provider_id;
        }
        let limits = profile.limits;
        let timeout = limits.timeout_ms.map(Duration::from_millis);
        let timeout = timeout.into_iter().chain([begin.timeout]).min();
        let timeout = timeout.unwrap_or(begin.timeout);
        let own = profile.system_prompt.clone();
        let own = own.unwrap_or_else(|| default_system(config, &self.shared.workspace));
        Ok(Setup {
            conversation_id: id.clone(),
            message_id: self.shared.ids.message(),
            content: vec![Part::text(begin.prompt.clone())],
            system: format!("{own}\n\n{}", TASK_PROMPT.trim_end()),
            freedom: around.freedom.of_task(profile.trust_level),
            scope: around.scope.narrowed(&profile.permissions),
            max_tokens: None,
            output: None,
            max_turns: limits.max_turns.unwrap_or(MAX_TURNS).min(MAX_TURNS),
            timeout_plain: timeout,
            timeout_tools: timeout,
            context_reserve: limits.context_reserve.unwrap_or(around.context_reserve),
            max_cost: less(begin.max_cost, limits.max_cost_usd),
            max_fresh_tokens: less(begin.max_fresh_tokens, limits.max_fresh_tokens),
            cache_key: format!("{}-{id}", self.ready.session_id),
            ..setup
        })
    }
}

/// Returns the profile of a name: a workflow that the operator lets be one, or the one that is there always.
fn profile(name: &str, config: &Config) -> Option<Workflow> {
    match config.tasks.profiles.iter().any(|it| it == name) {
        true => config.workflows.get(name).cloned(),
        false if name == EXPLORE => Some(Workflow::default()),
        false => None,
    }
}

/// Returns the lower of two limits.
fn less<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::history::Room;
    use crate::store::Journal;

    #[test]
    fn of_the_tasks_that_have_ended_the_last_are_remembered_unless_they_are_closed() {
        let history = |number: usize| {
            let id = ConversationId::new(format!("task:t{number}"));
            let history = History::new(Room::default(), Journal::default(), id.clone());
            (id, Arc::new(history))
        };
        let mut ended = EndedTasks::default();
        let (first, oldest) = history(0);
        ended.add(first.clone(), Arc::clone(&oldest));
        for number in 1..REMEMBERED {
            let (id, history) = history(number);
            ended.add(id, history);
        }
        let (closed, history_of_closed) = history(REMEMBERED);
        history_of_closed.close();
        ended.add(closed.clone(), history_of_closed);
        assert!(ended.get(&closed).is_none() && ended.get(&first).is_some());
        assert!(!oldest.is_closed());
        let (last, history_of_last) = history(REMEMBERED + 1);
        ended.add(last.clone(), history_of_last);
        assert!(ended.get(&first).is_none() && ended.get(&last).is_some());
        assert!(oldest.is_closed());
    }

    #[test]
    fn the_explorer_is_there_unless_the_operator_has_another_one() {
        let mut config = crate::config::for_tests();
        assert!(profile(EXPLORE, &config).is_some());
        assert!(profile("fix", &config).is_none());
        config
            .workflows
            .insert("fix".to_owned(), Workflow::default());
        assert!(
            profile("fix", &config).is_none(),
            "not every workflow is one"
        );
        config.tasks.profiles = vec!["fix".to_owned(), EXPLORE.to_owned()];
        assert!(profile("fix", &config).is_some());
        assert!(profile(EXPLORE, &config).is_none());
        assert_eq!(config.tasks.names(), ["fix", EXPLORE]);
    }
}
