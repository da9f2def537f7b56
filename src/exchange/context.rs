//! What an exchange is given: what it is to do (`Setup`), and by owner what it shares with others (`Context`).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{OnceCell, mpsc};
use tokio_util::task::TaskTracker;

use super::background::RunningExchange;
use super::budget::Gauge;
use super::compaction::Breaker;
use super::executions::Executions;
use super::failure;
use super::history::{History, Room};
use super::instructions::Instructions;
use super::ledger::Totals;
use super::memory::{ConversationMemory, Memory};
use super::output::Form;
use super::questions::{QuestionRegistry, Questions};
use super::searches::Searches;
use super::tasks::{BeginTask, Within};
use super::transcript::Events;
use crate::audit::Audit;
use crate::config::{Config, Current};
use crate::hooks::Hooks;
use crate::message::{
    BackgroundId, BudgetId, CompactionId, ConversationId, InputId, MessageId, Model, Money,
    OnViolation, Part, Pricing, SessionId, Thinking, ToolCall, ToolId, TrustId,
};
use crate::permission::{Freedom, Scope};
use crate::protocol::ChatCode;
use crate::protocol::event::ChatError;
use crate::provider::rates::Rates;
use crate::provider::{ErrorKind, Provider, ProviderError};
use crate::sandbox::Pod;
use crate::sandbox::spill::Spill;
use crate::spend::{Account, Outputs, Spend};
use crate::store::Journal;
use crate::telemetry::Redactor;
use crate::tool::Registry;
use crate::tool::background::Jobs;
use crate::tool::locks::Locks;
use crate::tool::quota::WriteQuota;
use crate::tool::seen::SeenFiles;
use crate::tool::workspace::Workspace;
use crate::users::User;
use crate::users::quota::Quota;

/// One exchange, resolved from the send, the session, the workflow and the configuration.
#[derive(Clone)]
pub(crate) struct Setup {
    pub conversation_id: ConversationId,
    pub message_id: MessageId,
    pub content: Vec<Part>,
    pub provider: Arc<dyn Provider>,
    pub provider_id: String,
    /// How fast the instance is asked.
    pub rates: Arc<Rates>,
    /// What its models cost, by the operator's word.
    pub pricing: Option<Pricing>,
    /// The first model that the instance lists, once it was asked for it.
    pub first_model: Arc<OnceCell<String>>,
    /// The model's id; empty until its exchange begins, where nobody names one.
    pub model: String,
    pub system: String,
    /// How much is done without asking.
    pub freedom: Freedom,
    pub on_violation: OnViolation,
    pub scope: Scope,
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub thinking: Option<Thinking>,
    /// What the answer has to be, where a program reads it.
    pub output: Option<Arc<Form>>,
    pub max_turns: u32,
    /// Longest duration without tools on offer.
    pub timeout_plain: Duration,
    /// Longest duration with tools on offer.
    pub timeout_tools: Duration,
    /// Tokens kept free for the last answer.
    pub context_reserve: u64,
    /// From which hundredth of the model's window on the conversation is compacted; `None` for never.
    pub compact_at: Option<u64>,
    /// Most that it may cost.
    pub max_cost: Option<Money>,
    /// Most fresh tokens that it may take.
    pub max_fresh_tokens: Option<u64>,
    pub max_retries: u32,
    /// How often a turn that broke off after output is run again.
    pub restarts: u32,
    /// Routes the conversation's requests to the same prompt cache.
    pub cache_key: String,
}

impl Setup {
    /// Returns the model's name among those of all providers.
    pub(crate) fn model_key(&self) -> String {
        format!("{}/{}", self.provider_id, self.model)
    }

    /// Returns an error of this exchange.
    pub(crate) fn error(&self, code: ChatCode, message: impl Into<String>) -> ChatError {
        ChatError::new(&self.conversation_id, Some(&self.message_id), code, message)
    }

    /// Returns what is known of its model. What the operator says of prices outweighs it.
    pub(crate) fn known_model(&self) -> Model {
        self.priced(self.provider.model(&self.model))
    }

    /// Returns a model of its provider with the prices that the operator says, where they do.
    pub(crate) fn priced(&self, model: Model) -> Model {
        Model {
            pricing: self.pricing.or(model.pricing),
            ..model
        }
    }

    /// Returns the first model that the provider lists. It is asked once, by whoever comes first, and again where it
    /// failed or was configured anew.
    pub(crate) async fn find_model(&self) -> Result<String, ChatError> {
        let ask = || async {
            let mut models = self.provider.models().await?.into_iter();
            models.next().map(|model| model.id).ok_or_else(|| {
                let message = format!(
                    "provider `{}` lists no model; install one there, or name one in the field `model`",
                    self.provider_id
                );
                ProviderError::new(ErrorKind::NotFound, message)
            })
        };
        let found = self.first_model.get_or_try_init(ask).await;
        found
            .cloned()
            .map_err(|error| failure::from_provider(&error, self))
    }
}

/// What the user says into an exchange that runs.
#[derive(Debug)]
pub(crate) struct Steer {
    /// The id that its send was given, under which it waits.
    pub id: MessageId,
    pub content: Vec<Part>,
}

pub(crate) struct Context {
    pub services: Services,
    pub session: SessionContext,
    pub conversation: ConversationContext,
}

impl Context {
    pub(crate) fn events(&self) -> &Events {
        &self.session.events
    }

    /// Returns whose what happens here is, to who looks back: the conversation and its exchange, of a task those around it.
    pub(super) fn owner<'o>(
        &'o self,
        exchange: &'o MessageId,
    ) -> (&'o ConversationId, &'o MessageId) {
        match &self.conversation.within {
            Some(within) => (&within.conversation, &within.exchange),
            None => (&self.conversation.id, exchange),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Services {
    pub settings: Current,
    pub locks: Locks,
    /// The exchanges that run, for a shutdown to wait for.
    pub exchanges: TaskTracker,
    pub redactor: Redactor,
    pub spill: Spill,
    pub audit: Audit,
    pub room: Room,
    pub spend: Spend,
    /// Asks what the operator has asked at certain points.
    pub hooks: Hooks,
    /// What the user does whose services these are.
    pub quota: Arc<Quota>,
}

impl Services {
    /// Returns the configuration that is in force now.
    pub(crate) fn config(&self) -> Arc<Config> {
        self.settings.now()
    }
}

#[derive(Clone)]
pub(crate) struct SessionContext {
    pub id: SessionId,
    /// Whose it is.
    pub user: User,
    /// The project its conversations work in, and their tools.
    pub workspace: Arc<Workspace>,
    /// The tools there are for it: the project's, and those that its client runs.
    pub tools: Arc<Registry>,
    pub events: Events,
    /// What of it outlives the process.
    pub journal: Journal,
    pub executions: Arc<Executions>,
    pub ids: Arc<Ids>,
    pub quota: Arc<WriteQuota>,
    /// What its user said that counts for later calls.
    pub memory: Memory,
    /// Whose open question is whose.
    pub questions: Arc<QuestionRegistry>,
    pub totals: Arc<Totals>,
    /// What was spent in it.
    pub account: Arc<Account>,
    /// Where tasks are asked for.
    pub desk: mpsc::Sender<Box<BeginTask>>,
}

pub(crate) struct ConversationContext {
    pub id: ConversationId,
    /// What it is within, where it is a task's.
    pub within: Option<Arc<Within>>,
    pub history: Arc<History>,
    pub seen: Arc<SeenFiles>,
    pub pod: Arc<OnceLock<Pod>>,
    /// Its commands in the background, which end with it.
    pub background: Jobs,
    pub running: Arc<RunningExchange>,
    pub memory: ConversationMemory,
    pub repeats: Repeats,
    pub searches: Arc<Searches>,
    pub questions: Arc<Questions>,
    /// How many of its tasks wait for an answer.
    pub asking: Arc<AtomicUsize>,
    /// Calls of the turn that a client was shown, while their input streams; some may be open by now.
    pub announced: Mutex<Vec<ToolId>>,
    /// How many tokens its next request holds.
    pub gauge: Mutex<Gauge>,
    /// How its compactions went.
    pub breaker: Mutex<Breaker>,
    /// What was spent in it.
    pub account: Arc<Account>,
    /// How long its last answers were.
    pub outputs: Mutex<Outputs>,
    /// Files whose words its model is told as the user's.
    pub instructions: Instructions,
}

impl ConversationContext {
    pub(crate) fn new(
        id: ConversationId,
        history: Arc<History>,
        memory: ConversationMemory,
        account: Arc<Account>,
    ) -> Self {
        Self {
            id,
            within: None,
            history,
            seen: Arc::default(),
            pod: Arc::default(),
            background: Jobs::default(),
            running: Arc::default(),
            memory,
            repeats: Repeats::default(),
            searches: Arc::default(),
            questions: Arc::default(),
            asking: Arc::default(),
            announced: Mutex::default(),
            gauge: Mutex::default(),
            breaker: Mutex::default(),
            account,
            outputs: Mutex::default(),
            instructions: Instructions::default(),
        }
    }
}

/// The last call of a conversation and how often in a row the model has made it in the exchange that runs.
#[derive(Debug, Default)]
pub(crate) struct Repeats(Mutex<Option<Repeat>>);

/// A tool's name, the input, and how often.
type Repeat = (String, Map<String, Value>, u32);

impl Repeats {
    /// Begins anew: the user spoke, so what follows is no loop of the model.
    pub(crate) fn restart(&self) {
        *self.0.lock() = None;
    }

    /// Counts how often in a row this very call was made, this one included.
    pub(crate) fn count(&self, call: &ToolCall) -> u32 {
        let mut last = self.0.lock();
        if let Some((name, input, count)) = &mut *last
            && *name == call.name
            && *input == call.input
        {
            *count += 1;
            return *count;
        }
        *last = Some((call.name.clone(), call.input.clone(), 1));
        1
    }
}

/// Mints the ids of a session: short, so that a person can type them.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    journal: Journal,
    messages: AtomicU64,
    tools: AtomicU64,
    inputs: AtomicU64,
    background: AtomicU64,
    compactions: AtomicU64,
    budgets: AtomicU64,
    trusts: AtomicU64,
}

impl Ids {
    /// Returns ids above `last`; the journal is told of those that are used.
    pub(crate) fn after(last: u64, journal: Journal) -> Self {
        let last = || AtomicU64::new(last);
        Self {
            journal,
            messages: last(),
            tools: last(),
            inputs: last(),
            background: last(),
            compactions: last(),
            budgets: last(),
            trusts: last(),
        }
    }

    /// Returns the next exchange's id: `m1`, `m2`, ….
    pub(crate) fn message(&self) -> MessageId {
        MessageId::new(format!("m{}", self.next(&self.messages)))
    }

    /// Returns the next call's id: `t1`, `t2`, …; see also [`Ids::taken`].
    pub(crate) fn tool(&self) -> ToolId {
        ToolId::new(format!("t{}", self.next(&self.tools)))
    }

    /// Returns the next request's for input: `i1`, `i2`, ….
    pub(crate) fn input(&self) -> InputId {
        InputId::new(format!("i{}", self.next(&self.inputs)))
    }

    /// Returns the next command's in the background: `b1`, `b2`, ….
    pub(crate) fn background(&self) -> BackgroundId {
        BackgroundId::new(format!("b{}", self.next(&self.background)))
    }

    /// Returns the next compaction's id: `k1`, `k2`, ….
    pub(crate) fn compaction(&self) -> CompactionId {
        CompactionId::new(format!("k{}", self.next(&self.compactions)))
    }

    /// Returns the next question's about money: `c1`, `c2`, ….
    pub(crate) fn budget(&self) -> BudgetId {
        BudgetId::new(format!("c{}", self.next(&self.budgets)))
    }

    /// Returns the next question's about files: `f1`, `f2`, ….
    pub(crate) fn trust(&self) -> TrustId {
        TrustId::new(format!("f{}", self.next(&self.trusts)))
    }

    /// Notes a call that a client's own history has: no later call gets its id.
    pub(crate) fn taken(&self, id: &ToolId) {
        let number = id.as_str().strip_prefix('t').map(str::parse::<u32>);
        if let Some(Ok(number)) = number {
            self.tools.fetch_max(u64::from(number), Ordering::Relaxed);
            self.journal.use_id(u64::from(number));
        }
    }

    fn next(&self, ids: &AtomicU64) -> u64 {
        let next = ids.fetch_add(1, Ordering::Relaxed) + 1;
        self.journal.use_id(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_gets_an_id_that_a_history_has() {
        let ids = Ids::default();
        assert_eq!(ids.tool().as_str(), "t1");
        for (taken, next) in [
            ("t4", "t5"),
            ("t2", "t6"),
            ("t", "t7"),
            ("call_9", "t8"),
            // No daemon comes so far.
            ("t99999999999999999999", "t9"),
            ("t18446744073709551615", "t10"),
        ] {
            ids.taken(&ToolId::new(taken));
            assert_eq!(ids.tool().as_str(), next, "{taken}");
        }
    }
}
