//! What a call asks of the user while it runs. Whether it may run at all was settled before, elsewhere.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::client::Answer;

/// See [`AskUser::known_hosts`].
pub type KnownHosts = Arc<dyn Fn(&str) -> Option<HostVerdict> + Send + Sync>;

/// What a call asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Who asks, to be shown to the user.
    pub server: String,
    /// What for, in the words of whoever asks.
    pub message: String,
    /// How it is given.
    pub form: Form,
    /// What it is for.
    pub purpose: Purpose,
}

/// What something is asked of the user for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Whoever asks wants to know it.
    #[default]
    Input,
    /// The model is to answer something, which the message shows.
    Sampling,
    /// What the model has answered is to be passed on.
    SampledAnswer,
}

/// What a call has the model of its conversation asked, with the user's leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Who asks, to be shown to the user.
    pub server: String,
    /// The system prompt, where there is one.
    pub system: Option<String>,
    /// What was said, in its order.
    pub messages: Vec<Line>,
    /// The most tokens of the answer.
    pub max_tokens: u32,
    /// How varied the answer is, 0 to 2.
    pub temperature: Option<f64>,
}

/// Something that was said, in a request for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Whether the assistant said it, and not the user.
    pub is_assistant: bool,
    /// The words.
    pub text: String,
}

/// What the model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Which model.
    pub model: String,
    /// The words.
    pub text: String,
    /// Whether the end of it is missing.
    pub is_cut: bool,
}

/// Why there is no answer of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsampled {
    /// The user said no.
    Declined,
    /// The user did not decide, or the call ended first.
    Cancelled,
    /// Nobody was asked, or the model failed; why, as a part of a sentence.
    Failed(String),
}

/// How a user gives what is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// In the fields of a flat JSON Schema.
    Fields(Map<String, Value>),
    /// On a page of this address.
    Page(String),
}

/// What the user did. It holds what may be a secret, so there is no way to print it.
#[derive(Clone, PartialEq)]
pub enum Given {
    /// Gave it: the fields of a form, checked; nothing of a page.
    Accepted(Option<Map<String, Value>>),
    /// Said no.
    Declined,
    /// Did not decide: closed it, let it lapse, or the call ended first.
    Cancelled,
}

/// Whether a running call may connect to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostVerdict {
    /// It may.
    Allowed,
    /// It may not, for this reason, which the model reads.
    Refused(String),
}

/// A call for the client to run.
#[derive(Clone, Debug, PartialEq)]
pub struct HandOut {
    /// The tool's name for the model.
    pub tool_name: String,
    /// Its name for the client.
    pub name: String,
    /// The input, checked.
    pub input: Map<String, Value>,
    /// How long its output is waited for while a client is there.
    pub timeout: Duration,
    /// Whether a person is part of it: the exchange's limit stands still.
    pub interactive: bool,
}

/// What came of a call that the client was to run.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned {
    /// Its output.
    Answer(Box<Answer>),
    /// None in time.
    Expired,
    /// It was cancelled.
    Cancelled,
    /// Nobody is there to run it any more.
    Gone,
}

/// Time limits of a call and its exchange stand still while this lives.
pub type Standstill<'a> = Box<dyn Send + 'a>;

/// A way to the user.
pub trait AskUser: Send + Sync {
    /// Why nobody can be asked now, as a part of a sentence; `None` where somebody can.
    fn unable(&self) -> Option<String>;

    /// Asks. Time limits of the call and its exchange stand still until there is an answer; dropping the
    /// future takes the question back.
    fn ask(&self, wanted: Wanted) -> BoxFuture<'_, Given>;

    /// Has time limits stand still as for [`ask`](Self::ask), for what a person is asked elsewhere; `None` where nobody is taken to
    /// be there.
    fn stand_still(&self) -> Option<Standstill<'_>>;

    /// Has the model of the conversation answer, where the user agrees to what it is sent and to what it answers. Time limits
    /// stand still as for [`ask`](Self::ask).
    fn sample(&self, wanted: Sample) -> BoxFuture<'_, Result<Sampled, Unsampled>>;

    /// Asks whether the call, which runs, may connect to a host; once for each host in a conversation. Time limits stand
    /// still as for [`ask`](Self::ask).
    fn ask_host<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, HostVerdict>;

    /// Returns who says for longer than the call what is known of a host in the conversation; `None` where nobody said anything.
    fn known_hosts(&self) -> KnownHosts;

    /// Hands the call out to the client and waits for its output; `progress` is given what the client says meanwhile. The
    /// call's own time limit stands still: the client has that of the hand-out. Dropping the future takes the call back.
    fn hand_out<'a>(
        &'a self,
        call: HandOut,
        progress: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Returned>;
}
