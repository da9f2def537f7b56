//! Starts a command that outlives its call, and the task that sees to it until its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tracing::Instrument as _;

use super::super::background::{Background, Job, MAX_PORTS};
use super::hosts::Unasked;
use super::{Before, Begun, Exec, OutputStream, Run, Stopped};
use crate::message::{BackgroundStatus, Part};
use crate::sandbox::output::{self, Ended, Stream};
use crate::sandbox::{Command, Process};
use crate::tool::Output;
use crate::tool::hosts::HostList;
use crate::tool::user::AskUser;

/// How long a call waits for the end of the command that it started: one that cannot do its work, such as a server whose
/// port is taken, ends within it, and the model need not look again.
const FIRST_LOOK: Duration = Duration::from_millis(500);

/// What the model reads of a command that goes on.
const GOES_ON: &str =
    "it goes on in the background; read what it writes with `bash_output`, end it with `bash_kill`";

impl Exec {
    /// Starts a command of this line in the background, and says whether it runs or what it came to at once. `hosts` are
    /// those that it may connect to, where they are decided about one by one: nobody is asked for others, whose names its
    /// output says.
    pub(in crate::tool) async fn start(
        &self,
        mut command: Command,
        line: &str,
        hosts: Option<HostList>,
        run: &Run<'_>,
    ) -> Output {
        let Some(Background { jobs, detach }) = run.background else {
            return Output::error("no command can run in the background here; run it without");
        };
        let place = match jobs.place() {
            Ok(place) => place,
            Err(full) => return Output::error(full),
        };
        let (sender, mut ports) = mpsc::channel(MAX_PORTS);
        command.listening = Some(sender);
        let begun = self.begin(&mut command, hosts.is_some(), false, run).await;
        let Begun {
            process,
            mode,
            before,
            questions,
        } = match begun {
            Ok(begun) => begun,
            Err(failed) => return failed.0,
        };
        if run.cancel.is_cancelled() {
            // Dropping the process ends it.
            return Output::error("[cancelled]").with(Stopped::Cancelled.metadata());
        }
        let pod = self.pod(run);
        let job = Arc::new(Job::new(line, pod, detach(), command.refused_ports.clone()));
        let unasked = hosts.map(|list| Unasked {
            list,
            known: run.user.map(AskUser::known_hosts),
            questions,
        });
        let task = self.clone().attend(
            process,
            before,
            unasked,
            Arc::clone(&job),
            run.timeout,
            place,
        );
        // From here on the conversation owns it: nothing is awaited in between.
        jobs.add(Arc::clone(&job));
        job.outlet.announce(&job.known());
        let listening = Arc::clone(&job);
        // Ends when nothing of the command is left that could begin to listen, and so nobody who tells.
        tokio::spawn(async move {
            while let Some(port) = ports.recv().await {
                listening.note_port(port);
            }
        });
        tokio::spawn(task.in_current_span());
        let ended = tokio::time::timeout(FIRST_LOOK, job.ended());
        let cancelled = run.cancel.run_until_cancelled(ended).await.is_none();
        if cancelled {
            // Its call was not answered, so nobody would know of it.
            job.kill();
            job.ended().await;
        }
        let (known, mut output) = job.look(None, self.output_cap).await;
        output.metadata.sandbox = Some(mode.to_string());
        output.metadata.cancelled = cancelled;
        if known.is_running() {
            output.content.push(Part::text(format!("\n[{GOES_ON}]")));
        } else {
            let is_well = known.exit_code == Some(0) && known.status == BackgroundStatus::Exited;
            output.is_error |= !is_well;
        }
        output
    }

    /// Sees to a command until nothing is left of it.
    async fn attend(
        self,
        mut process: Process,
        before: Before,
        unasked: Option<Unasked>,
        job: Arc<Job>,
        limit: Duration,
        place: OwnedSemaphorePermit,
    ) {
        let _ends = job.ends();
        // Given back before its end is known.
        let _place = place;
        let stop = async {
            match tokio::time::timeout(limit, job.killed()).await {
                Ok(()) => Stopped::Cancelled,
                Err(_) => Stopped::TimedOut,
            }
        };
        let outlet = Arc::clone(&job.outlet);
        let following = output::follow(&mut process, stop, |stream, text| {
            let stream = match stream {
                Stream::Stdout => OutputStream::Stdout,
                Stream::Stderr => OutputStream::Stderr,
            };
            outlet.push(stream, text);
        });
        let collected = match unasked {
            Some(unasked) => unasked.answer_while(following, &job).await,
            None => following.await,
        };
        let status = match collected.ended {
            Ended::Exited | Ended::Flooded => BackgroundStatus::Exited,
            Ended::Stopped(Stopped::Cancelled) => BackgroundStatus::Killed,
            Ended::Stopped(Stopped::TimedOut) => BackgroundStatus::TimedOut,
        };
        let remarks = self
            .remarks(&process, &collected.exit, &self.limits, &before.settings)
            .await;
        job.end(status, &collected.exit, remarks);
    }
}
