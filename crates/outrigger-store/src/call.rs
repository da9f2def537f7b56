//! Calls of tools: as they are written, as they are read, and what they come to in sum.

/// Milliseconds of a day.
pub const MS_OF_DAY: i64 = 24 * 60 * 60 * 1_000;

/// The name under which the rest is summed, where a day has more names than are kept.
pub const OTHER: &str = "other";

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Its id.
    pub id: String,
    /// Whose.
    pub conversation: String,
    /// Whether its tool has begun to run.
    pub began: bool,
    /// What is known of it, as its owner writes it.
    pub record: String,
    /// What it came to, while no message says so.
    pub result: Option<String>,
}

/// What a call is found and summed by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFacts {
    /// The tool's name.
    pub tool: String,
    /// The provider whose model made it.
    pub provider: String,
    /// Commands that it runs, by names that hold no secret and no line break; each once.
    pub commands: Vec<String>,
    /// How it stands.
    pub status: CallStatus,
    /// When it was made.
    pub at_ms: i64,
    /// How long it ran.
    pub duration_ms: u64,
    /// Processor time.
    pub cpu_ms: u64,
    /// The most memory that it held, in bytes.
    pub memory: u64,
    /// Bytes of its input.
    pub input_bytes: u64,
    /// Bytes of its output.
    pub output_bytes: u64,
}

impl CallFacts {
    /// Returns the day on which it was made, since 1970 (UTC).
    pub fn day(&self) -> i64 {
        self.at_ms.div_euclid(MS_OF_DAY)
    }
}

/// How a call stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallStatus {
    /// It runs.
    #[default]
    Running,
    /// It is settled.
    Ended(Ended),
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It worked.
    Success,
    /// It failed, or was broken off by the end of the process.
    Error,
    /// It was refused.
    Denied,
    /// It was cancelled.
    Cancelled,
}

impl CallStatus {
    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended(Ended::Success) => "success",
            Self::Ended(Ended::Error) => "error",
            Self::Ended(Ended::Denied) => "denied",
            Self::Ended(Ended::Cancelled) => "cancelled",
        }
    }
}

/// Which calls are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallListing {
    /// Only of conversations with this id.
    pub conversation: Option<String>,
    /// Only of this provider.
    pub provider: Option<String>,
    /// Only of this tool.
    pub tool: Option<String>,
    /// Only those that stand so.
    pub status: Option<CallStatus>,
    /// Only those that were made then or later.
    pub since_ms: Option<i64>,
    /// Only those that were made earlier.
    pub until_ms: Option<i64>,
    /// What an earlier page said comes next.
    pub cursor: Option<i64>,
    /// At most so many; 1 at least.
    pub limit: usize,
    /// No more bytes of records than so many, but for a single one.
    pub bytes: usize,
}

/// A page of calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallPage {
    /// The calls.
    pub calls: Vec<KnownCall>,
    /// What to ask for the next page with; `None` where there is none.
    pub next: Option<i64>,
}

/// A call as it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownCall {
    /// The id of its session.
    pub session: String,
    /// What is known of it, as its owner wrote it: what ran when the process before ended still runs there.
    pub record: String,
}

/// What ran, in sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ran {
    /// By tool, those with the most calls first; the first 200.
    pub tools: Vec<Sum>,
    /// By provider, likewise.
    pub providers: Vec<Sum>,
    /// By command, likewise: of the calls that ran it, with what else they ran.
    pub commands: Vec<Sum>,
    /// By day, in order; its name is the day, since 1970 (UTC).
    pub days: Vec<Sum>,
}

/// Settled calls, in sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// What they have in common.
    pub name: String,
    /// How many there are.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were refused.
    pub denied: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
    /// Those that ran.
    pub began: u64,
    /// How long they ran.
    pub duration_ms: u64,
    /// How long the longest ran.
    pub longest_ms: u64,
    /// Processor time.
    pub cpu_ms: u64,
    /// The most memory that one of them held, in bytes.
    pub memory: u64,
    /// Bytes of their inputs.
    pub input_bytes: u64,
    /// Bytes of their outputs.
    pub output_bytes: u64,
}

impl Sum {
    /// Adds a call, whose tool has begun to run or not; one that runs does not count.
    pub fn add(&mut self, call: &CallFacts, began: bool) {
        let CallStatus::Ended(ended) = call.status else {
            return;
        };
        match ended {
            Ended::Success => {}
            Ended::Error => self.failed += 1,
            Ended::Denied => self.denied += 1,
            Ended::Cancelled => self.cancelled += 1,
        }
        self.calls += 1;
        self.began += u64::from(began);
        self.duration_ms = self.duration_ms.saturating_add(call.duration_ms);
        self.longest_ms = self.longest_ms.max(call.duration_ms);
        self.cpu_ms = self.cpu_ms.saturating_add(call.cpu_ms);
        self.memory = self.memory.max(call.memory);
        self.input_bytes = self.input_bytes.saturating_add(call.input_bytes);
        self.output_bytes = self.output_bytes.saturating_add(call.output_bytes);
    }
}
