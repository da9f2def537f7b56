//! `bash_output` and `bash_kill`: what a model does with commands in the background.

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::typed::Typed;
use super::super::{Facts, Output, Prepared, Run, Tool, Violation};
use crate::message::{DangerLevel, Metadata, ToolCategory, WITH_BASH};

/// Returns the output of a command in the background that is new since the last look, in whole lines, and whether the
/// command runs or how it ended. Long output is shortened in the middle.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Look {
    /// The id that `bash` returned, such as `b1`.
    id: String,
    /// Where to begin: `next` of an earlier result, or 0 for the beginning; what is new where absent.
    since: Option<u64>,
}

/// Ends a command in the background and all of its processes: asks it to end (SIGTERM), and kills it two seconds later.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Kill {
    /// The id that `bash` returned, such as `b1`.
    id: String,
}

/// Makes both tools; `output_cap` is in bytes.
pub fn tools(output_cap: usize) -> [Box<dyn Tool>; 2] {
    // They reach nothing but what the conversation itself has started.
    let (category, level) = (ToolCategory::Exec, DangerLevel::Safe);
    let [output, kill] = WITH_BASH;
    let mut output = Typed::new(output, category, level, move |Look { id, since }| {
        Ok(Call {
            id,
            work: Work::Look { since, output_cap },
        })
    });
    output.looks_at_files = false;
    let mut kill = Typed::new(kill, category, level, |Kill { id }| {
        let work = Work::Kill;
        Ok(Call { id, work })
    });
    kill.looks_at_files = false;
    [Box::new(output), Box::new(kill)]
}

struct Call {
    id: String,
    work: Work,
}

enum Work {
    Look {
        since: Option<u64>,
        output_cap: usize,
    },
    Kill,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        Facts::new(DangerLevel::Safe, None)
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>> {
        Box::pin(async move { Ok(self.output(&run).await) })
    }
}

impl Call {
    async fn output(self, run: &Run<'_>) -> Output {
        let Some(background) = run.background else {
            return Output::error("nothing runs in the background here");
        };
        let job = match background.jobs.get(self.id.trim()) {
            Ok(job) => job,
            Err(unknown) => return Output::error(unknown),
        };
        if let Work::Look { since, output_cap } = self.work {
            return job.look(since, output_cap).await.1;
        }
        let before = job.known();
        let metadata = Metadata {
            background: Some(before.id.clone()),
            ..Metadata::default()
        };
        if !before.is_running() {
            let text = format!("[it does not run any more: {before}]");
            return Output::text(text).with(metadata);
        }
        job.kill();
        let ended = run.cancel.run_until_cancelled(job.ended());
        let ended = tokio::time::timeout(run.timeout, ended).await;
        match ended {
            Ok(Some(())) => {
                let (after, remarks, settings_changed) = job.stands();
                Output::text(format!("[{after}]{remarks}")).with(Metadata {
                    exit_code: after.exit_code,
                    signal: after.signal,
                    settings_changed,
                    ..metadata
                })
            }
            Ok(None) | Err(_) => Output::error(format!(
                "{} was asked to end, and has not ended yet; it will be killed",
                before.id
            ))
            .with(Metadata {
                cancelled: run.cancel.is_cancelled(),
                ..metadata
            }),
        }
    }
}
