//! `task`: hands a piece of work to another model, which begins with nothing but the prompt.
//!
//! The tool is beside all others and not among them ([`super::Registry::beside`]): a task is given the others, so it cannot
//! begin one itself.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Facts, Output, OutputStream, Prepared, Refusal, Registry, Run, Slot, Tool, Violation, input,
};
use crate::config::EXPLORE;
use crate::message::{DangerLevel, TASK, ToolCategory, ToolSpec};
use crate::permission::Scope;

/// Hands a piece of work to another model, and returns what it answers. Use it for what takes many calls and ends in a short
/// answer, such as a wide search: what it reads does not fill your own context. It sees nothing of this conversation, so say
/// everything in the prompt: what is wanted and why, all paths and facts that you know, and what to report, in a few sentences.
/// Several calls in one answer run side by side, three at a time. What it says is not seen by the user: tell them what matters.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wanted {
    /// What it is about, in three to eight words, for the user.
    #[serde(rename = "description")]
    _description: String,
    /// All that the other model is told.
    prompt: String,
    /// Which profile it has.
    profile: Option<String>,
}

/// What a call hands to another model.
#[derive(Clone, Debug)]
pub struct Task {
    /// All that it is told.
    pub prompt: String,
    /// The profile that it has.
    pub profile: String,
    /// The longest it may take.
    pub timeout: Duration,
}

/// Runs a task to its end.
pub trait RunTask: Send + Sync {
    /// Returns what came of it; `progress` gets a line for each of its calls.
    fn run<'a>(
        &'a self,
        task: Task,
        progress: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Output>;
}

/// Returns what the profile of a name may do.
type ScopeOf = dyn Fn(&str) -> Option<Scope> + Send + Sync;

/// The tool.
pub struct TaskTool {
    spec: ToolSpec,
    timeout: Duration,
    profiles: Vec<String>,
    /// Returns what a profile may do now; `None` where there is none any more.
    scope: Box<ScopeOf>,
    /// The tools that a task has.
    tools: Arc<Registry>,
}

impl TaskTool {
    /// Makes the tool of these profiles, each of which may do what `scope` says by then, and whose tasks have these tools.
    pub fn new(
        timeout: Duration,
        profiles: Vec<String>,
        scope: impl Fn(&str) -> Option<Scope> + Send + Sync + 'static,
        tools: Arc<Registry>,
    ) -> Self {
        let mut spec = input::spec_of::<Wanted>(TASK, ToolCategory::Task, DangerLevel::Safe);
        let schema = Arc::make_mut(&mut spec.input_schema);
        if let Some(profile) = schema.pointer_mut("/properties/profile") {
            *profile = json!({
                "type": "string",
                "enum": profiles,
                "description": format!("What it may do; `{EXPLORE}`, which only reads, where absent."),
            });
        }
        Self {
            spec,
            timeout,
            profiles,
            scope: Box::new(scope),
            tools,
        }
    }

    /// Returns whether a task may change something.
    fn may_change(&self, scope: &Scope) -> bool {
        let tools = self.tools.snapshot();
        let mut specs = tools.values().map(|tool| tool.spec());
        specs.any(|spec| spec.danger_level > DangerLevel::Safe && scope.allows(spec))
    }
}

impl Tool for TaskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn looks_at_files(&self) -> bool {
        false
    }

    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        let Wanted {
            _description: _,
            prompt,
            profile,
        } = input::parse(&self.spec, input)?;
        if prompt.trim().is_empty() {
            let problem = "`prompt` is empty; say all that the other model has to know";
            return Err(Refusal::Invalid(problem.to_owned()));
        }
        let wanted = profile.unwrap_or_else(|| EXPLORE.to_owned());
        let is_known = self.profiles.contains(&wanted);
        let Some(scope) = (self.scope)(&wanted).filter(|_| is_known) else {
            return Err(Refusal::Invalid(format!(
                "there is no profile of this name; there are: {}",
                self.profiles.join(", ")
            )));
        };
        Ok(Box::new(Call {
            runs_alone: self.may_change(&scope),
            prompt,
            profile: wanted,
            timeout: self.timeout,
        }))
    }
}

struct Call {
    prompt: String,
    profile: String,
    runs_alone: bool,
    timeout: Duration,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        Facts {
            timeout: Some(self.timeout),
            // It changes nothing itself: whatever the task does is decided and asked for there.
            ..Facts::new(DangerLevel::Safe, None)
        }
    }

    fn slot(&self) -> Slot {
        Slot::Task {
            alone: self.runs_alone,
        }
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>> {
        Box::pin(async move {
            let Some(tasks) = run.tasks else {
                return Ok(Output::error("no task can be begun here"));
            };
            let task = Task {
                prompt: self.prompt,
                profile: self.profile,
                timeout: run.timeout,
            };
            let emit = run.emit;
            let progress = move |line: &str| emit(OutputStream::Progress, line);
            Ok(tasks.run(task, &progress).await)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tool that changes something, or one that reads.
    struct Named(ToolSpec);

    impl Tool for Named {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn prepare(&self, _: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
            unreachable!("no task runs here")
        }
    }

    fn tool() -> TaskTool {
        let profiles = [EXPLORE, "all", "gone"].map(str::to_owned);
        let scope = |name: &str| match name {
            EXPLORE => Some(Scope::everything().narrowed(&Arc::default())),
            "all" => Some(Scope::everything()),
            _ => None,
        };
        let named = |name: &str, level| -> Arc<dyn Tool> {
            Arc::new(Named(input::spec_of::<Wanted>(
                name,
                ToolCategory::File,
                level,
            )))
        };
        let tools = [
            named("read", DangerLevel::Safe),
            named("write", DangerLevel::Warning),
        ];
        let tools = Arc::new(Registry::new(tools));
        TaskTool::new(Duration::from_secs(1), profiles.into(), scope, tools)
    }

    #[test]
    fn a_task_has_a_profile_that_there_is_and_says_something() {
        let tool = tool();
        let prepare = |input: &Value| tool.prepare(input.as_object().unwrap()).map(|it| it.slot());
        let reads = json!({"description": "d", "prompt": "p"});
        assert_eq!(prepare(&reads), Ok(Slot::Task { alone: false }));
        let writes = json!({"description": "d", "prompt": "p", "profile": "all"});
        assert_eq!(prepare(&writes), Ok(Slot::Task { alone: true }));
        for (input, expected) in [
            (
                json!({"description": "d", "prompt": " "}),
                "`prompt` is empty",
            ),
            (json!({"prompt": "p"}), "`description` is missing"),
            (
                json!({"description": "d", "prompt": "p", "profile": "x"}),
                "explore",
            ),
            (
                json!({"description": "d", "prompt": "p", "profile": "gone"}),
                "there is no profile",
            ),
        ] {
            let Err(Refusal::Invalid(message)) = prepare(&input) else {
                unreachable!("{input}")
            };
            assert!(message.contains(expected), "{input}: {message}");
        }
    }
}
