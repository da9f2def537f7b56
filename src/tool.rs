//! What a tool is, how one call of it is prepared, judged and run, and which tools there are.
//!
//! A call goes through three steps: [`Tool::prepare`] parses the input, [`crate::permission`] decides by the [`Facts`] of
//! the [`Prepared`] call, and [`Prepared::run`] does the work. Files and processes are reached through `sandbox` alone.
//!
//! What the model can read and react to is an [`Output`] with `is_error`; what must end more than the call is a
//! [`Violation`].

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::classifier::{Classification, Finding, SimpleCommand};
use crate::message::{Danger, DangerLevel, Part, ToolSpec};
pub use crate::message::{Metadata, OutputStream};
use crate::permission::rule::{File, Key};
use crate::sandbox::Pod;
use crate::sandbox::paths::PathError;
use crate::telemetry::Redactor;
pub(crate) use crate::terminal_text::visible;

mod appraisal;
pub mod background;
pub mod bash;
mod cache;
pub mod client;
pub mod core;
pub mod custom;
mod diff;
pub mod exec;
mod file;
mod file_change;
pub mod file_edit;
pub mod file_list;
pub mod file_read;
pub mod file_search;
pub mod file_write;
mod foreign;
pub mod git;
mod hosts;
pub mod input;
mod listed;
pub mod locks;
mod mask;
mod name_filter;
pub mod program;
pub mod quota;
mod secrets;
pub mod seen;
pub(crate) mod skill;
mod stop;
pub mod task;
#[cfg(test)]
mod testing;
mod text;
mod typed;
pub mod undo;
pub mod user;
mod walk;
pub mod web_fetch;
pub mod web_search;
pub mod workspace;

/// Something the model can call.
pub trait Tool: Send + Sync {
    /// Its description for the model and the client.
    fn spec(&self) -> &ToolSpec;

    /// Returns whether preparing and judging a call looks at files, which may take as long as the file system does.
    fn looks_at_files(&self) -> bool {
        true
    }

    /// Parses the input of one call. Looks at no more than where a path leads, changes nothing.
    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal>;
}

/// Why a call cannot be prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The input does not fit; the model reads why, and how to mend it.
    Invalid(String),
    /// A path argument is outside the roots or on the deny list; the exchange ends.
    Violation(Violation),
}

impl From<PathError> for Refusal {
    fn from(error: PathError) -> Self {
        match error {
            PathError::Forbidden(message) => Self::Violation(Violation { message }),
            error => Self::Invalid(error.to_string()),
        }
    }
}

/// A call that its own path argument takes outside the roots or onto the deny list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Violation {
    /// What was asked for and why it may not be, for model and user.
    pub message: String,
}

/// One call with its input parsed, ready to be judged and run.
pub trait Prepared: Send + Sync + 'static {
    /// What the decision about this call rests on.
    fn facts(&self) -> Facts;

    /// What this call reads or writes, to be locked until [`run`](Self::run) has returned. What it leaves running in the
    /// background holds nothing.
    fn claims(&self) -> Vec<Claim> {
        Vec::new()
    }

    /// Returns who sees to it that it is known that the call began, whatever happens to the daemon, before it changes
    /// anything.
    fn begins(&self) -> Begins {
        Begins::Waited
    }

    /// Returns what the call counts towards while it runs.
    fn slot(&self) -> Slot {
        Slot::Tool
    }

    /// How much harm the call does to what it finds there, for whoever is asked and for the record; `None` where
    /// [`facts`](Self::facts) say all. What is decided rests on the facts alone.
    fn appraise(&self) -> BoxFuture<'_, Option<Danger>> {
        Box::pin(std::future::ready(None))
    }

    /// What the call asks a search engine for: words that leave this machine.
    fn query(&self) -> Option<&str> {
        None
    }

    /// A unified diff of what the call would write, for the user who is asked.
    fn preview(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Does the work. Ends soon after `run.cancel` is cancelled, with nothing left running, and keeps its time limit
    /// (`run.timeout`) itself, so that it can say what was done until then. Fails where following a path shows that it
    /// leaves the roots or is denied.
    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>>;
}

/// When it is known that a call began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// Before it runs: that was waited for.
    Waited,
    /// When it has waited for that itself ([`Run::known`]). It looks around meanwhile.
    Looking,
    /// With what it keeps ([`Run::keep`]).
    Keeping,
}

/// Tells a call when it is known that it began.
pub trait Known: Send + Sync {
    /// Waits for that. An error is what the call came to instead: it has to change nothing.
    fn known(&self) -> BoxFuture<'_, Result<(), Box<Output>>>;
}

/// Where nobody has to know it.
impl Known for () {
    fn known(&self) -> BoxFuture<'_, Result<(), Box<Output>>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What a call counts towards while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// `tools.max_concurrent`.
    Tool,
    /// Nothing: it runs elsewhere.
    Elsewhere,
    /// The tasks that run at once.
    Task {
        /// Whether no other one may run beside it.
        alone: bool,
    },
}

/// What the decision about a call rests on.
#[derive(Clone, Debug)]
pub struct Facts {
    /// How much harm it may do, and why.
    pub danger: Danger,
    /// Paths it names, relative to their root, with `/` between components.
    pub paths: Vec<String>,
    /// Whether these paths are folders that are looked through for what [`Run::visible`] lets be seen.
    pub walks: bool,
    /// The simple commands it runs, for patterns of the scope; empty for other tools.
    pub commands: Vec<SimpleCommand>,
    /// Those of them that stand in its line themselves.
    pub written: Vec<SimpleCommand>,
    /// The rules that made the level what it is, for whoever is asked.
    pub findings: Vec<Finding>,
    /// Whether these commands are all that runs, so that a pattern for each of them speaks for the call.
    pub plain: bool,
    /// Whether it wants the network for a command.
    pub network: bool,
    /// What an approval stands for that is to be remembered; `None` where it must not be.
    pub remember: Option<Key>,
    /// The file it names, where a rule may be for that.
    pub file: Option<File>,
    /// The host it names, as the user who is asked for the call sees it there.
    pub host: Option<String>,
    /// How long the call itself asks to run at most.
    pub timeout: Option<Duration>,
}

impl Facts {
    /// Returns the facts of a call that is as harmful as its tool, names no paths and runs no commands.
    pub fn new(level: DangerLevel, remember: Option<Key>) -> Self {
        Self {
            danger: Danger {
                level,
                reasons: Vec::new(),
            },
            paths: Vec::new(),
            walks: false,
            commands: Vec::new(),
            written: Vec::new(),
            findings: Vec::new(),
            plain: true,
            network: false,
            remember,
            file: None,
            host: None,
            timeout: None,
        }
    }

    /// Returns the facts of a call of this tool that runs commands.
    pub(crate) fn of_commands(tool: &str, classified: &Classification) -> Self {
        let remembered = classified.remembered.clone();
        let key = remembered.map(|it| Key::Commands {
            tool: tool.to_owned(),
            commands: it.commands,
            line: it.line,
        });
        let mut facts = Self::new(classified.level, key);
        facts.danger.reasons = classified.reasons();
        facts.commands.clone_from(&classified.commands);
        facts.written.clone_from(&classified.written);
        facts.findings.clone_from(&classified.findings);
        facts.plain = classified.plain;
        facts
    }
}

/// What a call reads or writes of the project while it runs. A file is its identity: its root and its path below, resolved
/// and folded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// This file is read, which others may do at the same time.
    Read(String),
    /// This file is written.
    Write(String),
    /// Any file below these folders may be read, by a command, a search or git.
    ReadTree(Vec<String>),
    /// Any file below these folders may be changed, by a command or by git. Reading goes on beside it, but for what comes
    /// before or after it in one turn.
    WriteTree(Vec<String>),
}

impl Claim {
    fn writes(&self) -> bool {
        match self {
            Self::Write(_) | Self::WriteTree(_) => true,
            Self::Read(_) | Self::ReadTree(_) => false,
        }
    }

    /// The file, or the folders.
    fn paths(&self) -> &[String] {
        match self {
            Self::Read(file) | Self::Write(file) => std::slice::from_ref(file),
            Self::ReadTree(folders) | Self::WriteTree(folders) => folders,
        }
    }
}

/// What a running call is given.
pub struct Run<'a> {
    /// Sends output to the client while the call runs.
    pub emit: &'a (dyn Fn(OutputStream, &str) + Send + Sync),
    /// Cancelled when the call has to end.
    pub cancel: CancellationToken,
    /// The longest the call may run.
    pub timeout: Duration,
    /// Tells when it is known that the call began, which one waits for that [looks around](Begins::Looking) first.
    pub known: &'a dyn Known,
    /// What this conversation has seen of files.
    pub seen: &'a Arc<seen::SeenFiles>,
    /// Takes secrets out of what is cut later, and says what the model is not shown of a file.
    pub redactor: &'a Redactor,
    /// What this session may still write.
    pub quota: &'a Arc<quota::WriteQuota>,
    /// Where it keeps what a change of a file takes to be undone.
    pub keep: &'a Arc<dyn undo::Keep>,
    /// The name of the user whose call it is.
    pub owner: &'a str,
    /// What the commands of this conversation share; made by the first of them.
    pub pod: &'a OnceLock<Pod>,
    /// What a call needs to leave a command behind; `None` where none may.
    pub background: Option<background::Background<'a>>,
    /// Whether a path below a root may be seen, for calls that look through folders.
    pub visible: Visible,
    /// The user, for a call that asks for something in its middle; `None` where nobody can be asked.
    pub user: Option<&'a dyn user::AskUser>,
    /// Who begins tasks; `None` where none can be.
    pub tasks: Option<&'a dyn task::RunTask>,
}

/// Tells whether a path below a root may be seen.
pub type Visible = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// For the model, and the client.
    pub content: Vec<Part>,
    /// Whether the model should take it for a failure.
    pub is_error: bool,
    /// Facts for the client.
    pub metadata: Metadata,
}

impl Output {
    /// A success with text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Part::text(text)],
            is_error: false,
            metadata: Metadata::default(),
        }
    }

    /// A failure that the model reads.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// The same with facts for the client.
    #[must_use]
    pub fn with(mut self, metadata: Metadata) -> Self {
        self.metadata = metadata;
        self
    }
}

/// The tools there are: core tools for good, MCP tools as they come and go.
///
/// A snapshot is immutable, so an exchange keeps the tools it began a turn with.
#[derive(Default)]
pub struct Registry {
    /// Held for a pointer's copy, never across an await.
    tools: parking_lot::RwLock<Arc<ToolSet>>,
    /// Whose tools there are besides.
    shared: Option<Arc<Self>>,
    /// Both, as they were put together last; held likewise.
    merged: parking_lot::RwLock<Merged>,
}

/// The tools of a registry and of another one, and both together.
#[derive(Clone, Default)]
struct Merged {
    own: Arc<ToolSet>,
    shared: Arc<ToolSet>,
    all: Arc<ToolSet>,
}

/// The tools of one moment, by name and so in a stable order.
pub type ToolSet = BTreeMap<String, Arc<dyn Tool>>;

impl Registry {
    /// Makes a registry of core tools.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let registry = Self::default();
        registry.replace("core", tools);
        registry
    }

    /// Makes a registry of core tools that has those of another one besides, as they come and go there.
    pub fn beside(shared: &Arc<Self>, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        Self {
            shared: Some(Arc::clone(shared)),
            ..Self::new(tools)
        }
    }

    /// Returns the tools there are now.
    pub fn snapshot(&self) -> Arc<ToolSet> {
        let own = Arc::clone(&self.tools.read());
        let Some(shared) = &self.shared else {
            return own;
        };
        let shared = shared.snapshot();
        {
            let merged = self.merged.read();
            if Arc::ptr_eq(&merged.own, &own) && Arc::ptr_eq(&merged.shared, &shared) {
                return Arc::clone(&merged.all);
            }
        }
        let mut all = ToolSet::clone(&shared);
        let tools = own.iter();
        all.extend(tools.map(|(name, tool)| (name.clone(), Arc::clone(tool))));
        let all = Arc::new(all);
        *self.merged.write() = Merged {
            own,
            shared,
            all: Arc::clone(&all),
        };
        all
    }

    /// Returns the names of the tools there are now.
    pub fn names(&self) -> Vec<String> {
        self.snapshot().keys().cloned().collect()
    }

    /// Replaces all tools of one origin. A name that another origin has stays the other's.
    pub fn replace(&self, origin: &str, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        let mut guard = self.tools.write();
        let mut set = ToolSet::clone(&guard);
        set.retain(|_, tool| tool.spec().origin != origin);
        for tool in tools {
            set.entry(tool.spec().name.clone()).or_insert(tool);
        }
        *guard = Arc::new(set);
    }
}
