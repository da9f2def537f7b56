//! Runs a program for a tool: environment, sandbox, output, time limit, and what it came to in words.
//!
//! Shared by every tool that starts a process. What may run at all is decided before.

mod advice;
mod background;
mod begin;
mod hosts;
mod limits;
mod tracked;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::hosts::HostList;
use super::stop::Stopped;
use super::{Metadata, Output, OutputStream, Run};
use crate::config::{MANAGER_SETTINGS, Variable};
use crate::message::Part;
use crate::runtime::Stopwatch;
use crate::sandbox::output::{self, Ended, Stream, TOTAL_BYTES};
use crate::sandbox::paths::{Reach, RootName, Roots, Settings};
use crate::sandbox::programs::Programs;
use crate::sandbox::{
    Command, Exit, Limits, Mode, Network, Overfull, Pod, Process, Restored, Sandbox, environment,
};

pub(super) use advice::GIT_IS_READ_ONLY;
pub(crate) use advice::repository_above;
use begin::{Before, Begun};
use hosts::Hosts;
pub(super) use hosts::{MAX_REFUSED, ports_note};
use view::{Shown, View};

/// What programs of tools are run with.
#[derive(Clone)]
pub struct Exec {
    sandbox: Sandbox,
    roots: Arc<Roots>,
    programs: Programs,
    environment: Arc<BTreeMap<String, String>>,
    settings_of_managers: Arc<[Variable]>,
    output_cap: usize,
    limits: Limits,
}

/// What is said of a program's end besides its output.
#[derive(Default)]
pub(super) struct Remarks {
    /// Each begins on a line of its own.
    pub(super) texts: Vec<String>,
    /// What editors, shells or agents run by, and is other than before.
    pub(super) settings_changed: Vec<String>,
}

impl Exec {
    /// Prepares to run programs in the project.
    ///
    /// `parent` is the daemon's own environment, of which little is passed on; `secrets` are values
    /// that are never passed on; `output_cap` is in bytes, for each of the two streams.
    pub fn new(
        sandbox: Sandbox,
        roots: Arc<Roots>,
        parent: impl IntoIterator<Item = (String, String)>,
        secrets: &[&str],
        output_cap: usize,
    ) -> Self {
        let further = roots
            .further()
            .filter(|(_, reach)| *reach == Reach::ReadWrite);
        let further = further.map(|(folder, _)| folder.path().to_owned());
        let own = [RootName::Project, RootName::Central].map(|root| roots.path(root).to_owned());
        let programs = Programs::outside(own.into_iter().chain(further).collect());
        let toolchains = sandbox.toolchains();
        let surroundings = environment::Surroundings {
            readable: &|path| toolchains.iter().any(|known| path.starts_with(known)),
            trusted: &|directory| programs.directory_is_trusted(directory),
            secrets,
        };
        let parent: Vec<Variable> = parent.into_iter().collect();
        let settings = parent.iter();
        let settings = settings.filter(|(name, _)| MANAGER_SETTINGS.contains(&name.as_str()));
        let settings_of_managers = settings.cloned().collect();
        let environment = environment::build(parent, &surroundings);
        Self {
            sandbox,
            roots,
            environment: Arc::new(environment),
            settings_of_managers,
            programs,
            output_cap,
            limits: Limits::default(),
        }
    }

    /// Holds the programs that are [described](Self::command) by it to these limits.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// What they are held to.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The roots that programs may change.
    pub fn roots(&self) -> &Arc<Roots> {
        &self.roots
    }

    /// What confines them.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The variables that each of them gets.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// What of the daemon's own environment package managers are asked with.
    pub(super) fn settings_of_managers(&self) -> &[Variable] {
        &self.settings_of_managers
    }

    /// Whether a bare name is a program of the system.
    pub fn is_trusted(&self, name: &str) -> bool {
        let path = self.environment.get("PATH").map_or("", String::as_str);
        self.programs.is_trusted(path, name)
    }

    /// Whether the sandbox keeps a command from files outside of the roots; not known counts as no.
    pub fn keeps_files_apart(&self) -> bool {
        self.sandbox
            .known_mode()
            .is_some_and(|mode| mode >= Mode::Fallback)
    }

    /// Describes a program that runs in the project's folder and may change both roots.
    pub fn command(&self, program: &str, args: Vec<String>, network: Network) -> Command {
        let project = self.roots.path(RootName::Project).to_owned();
        Command {
            args,
            env: BTreeMap::clone(&self.environment),
            network,
            read_write: vec![
                project.clone(),
                self.roots.path(RootName::Central).to_owned(),
            ],
            held: self.roots.held(),
            limits: self.limits.clone(),
            ..Command::new(program, project)
        }
    }

    /// Returns what the commands of a conversation share.
    fn pod(&self, run: &Run<'_>) -> Pod {
        let make = || self.sandbox.pod_of(run.owner);
        run.pod.get_or_init(make).clone()
    }

    /// Gives a program the further folders.
    fn add_further(&self, command: &mut Command) {
        for (folder, reach) in self.roots.further() {
            let given = match reach {
                Reach::ReadOnly => &mut command.read_only,
                Reach::ReadWrite => &mut command.read_write,
            };
            given.push(folder.path().to_owned());
            command.held.push(folder);
        }
    }

    /// Runs a program to its end, its time limit or a cancel, and says what it came to. `hosts` are those that it may connect
    /// to without a question; `None` where the network as a whole was decided about. Where it `changes` the project's files,
    /// it is said which.
    pub(super) async fn run(
        &self,
        mut command: Command,
        hosts: Option<HostList>,
        changes: bool,
        run: &Run<'_>,
    ) -> Output {
        let begun = self.begin(&mut command, hosts.is_some(), changes, run);
        let Begun {
            mut process,
            mode,
            before,
            questions,
        } = match begun.await {
            Ok(begun) => begun,
            Err(failed) => {
                // It may have begun after all, and been given up.
                let (mut output, tree) = *failed;
                output.metadata.changed = self.changed_since(tree, run.redactor).await;
                return output;
            }
        };
        let view = || View::new(run.redactor, self.output_cap);
        let (mut stdout, mut stderr) = (view(), view());
        let mut is_in_line = false;
        let clock = Stopwatch::start(run.timeout);
        let stop = async {
            tokio::select! {
                () = run.cancel.cancelled() => Stopped::Cancelled,
                () = clock.expired() => Stopped::TimedOut,
            }
        };
        let mut asked = hosts
            .as_ref()
            .map(|list| Hosts::new(list, run.user, &clock));
        let collecting = output::collect(&mut process, TOTAL_BYTES, stop, |stream, text| {
            let (stream, view) = match stream {
                Stream::Stdout => (OutputStream::Stdout, &mut stdout),
                Stream::Stderr => (OutputStream::Stderr, &mut stderr),
            };
            (run.emit)(stream, text);
            is_in_line = !text.ends_with('\n');
            view.push(text);
        });
        let collected = match &mut asked {
            Some(asked) => asked.answer_while(collecting, questions).await,
            None => collecting.await,
        };
        let (stdout, stderr) = (stdout.finish(), stderr.finish());
        let mut output = outcome(&collected, stdout, &stderr, mode, run.timeout);
        let hosts = asked.and_then(|asked| asked.note());
        let ports = ports_note(&command.refused_ports.list());
        for note in [hosts, ports].into_iter().flatten() {
            // Who watches the command sees it fail, and not why.
            let before = if std::mem::take(&mut is_in_line) {
                "\n"
            } else {
                ""
            };
            (run.emit)(
                OutputStream::Progress,
                &format!("{before}{}\n", note.trim()),
            );
            output.content.push(Part::text(note));
        }
        let advice = self.advice(&command, mode, &output).await;
        output.content.extend(advice.into_iter().map(Part::text));
        // Each of them waits for a thread that looks at files.
        let (remarks, changed) = tokio::join!(
            self.remarks(&process, &collected.exit, &command.limits, &before.settings),
            self.changed_since(before.tree, run.redactor),
        );
        output
            .content
            .extend(remarks.texts.into_iter().map(Part::text));
        output.metadata.settings_changed = remarks.settings_changed;
        output.metadata.changed = changed;
        output
    }

    /// Returns what is said of a program that has ended, whoever waited for it; `before` are the settings at its start.
    async fn remarks(
        &self,
        process: &Process,
        exit: &Exit,
        limits: &Limits,
        before: &Settings,
    ) -> Remarks {
        let mut texts = limits::notes(process.reached(), limits, exit);
        texts.extend(process.overfull().map(too_full));
        if let Some(restored) = process.restored() {
            tracing::warn!(paths = ?restored.paths, failure = restored.failure, "a command changed what git runs");
            texts.push(warning(&restored));
        }
        let changed = self.settings().await.changed_since(before);
        if !changed.is_empty() {
            texts.push(settings_warning(&changed));
        }
        Remarks {
            texts,
            settings_changed: changed,
        }
    }

    /// Names in a command the files that it must not read and the repositories in the roots, found anew each time: the
    /// program before may have made one. Below [`Mode::Full`] it is not kept from them, but maybe where nobody tried it; what
    /// they are is known from here on all the same, so that a command that gives one another name does not have it shown by
    /// the next.
    ///
    /// An error says why not all of them can be known, in which case nothing may run, and what to do.
    pub async fn cover(&self, command: &mut Command, mode: Mode) -> Result<(), String> {
        let roots = Arc::clone(&self.roots);
        let walked = tokio::task::spawn_blocking(move || roots.hidden()).await;
        match walked {
            // What is kept there from commands is a matter of luck, and nothing that waits for it to be whole.
            Ok(hidden)
                if mode == Mode::Unverified || (mode == Mode::Full && hidden.complete) =>
            {
                command.hidden = hidden.paths;
                command.repositories = hidden.repositories;
                Ok(())
            }
            _ if mode < Mode::Full => Ok(()),
            Ok(_) => Err(
                "not run: the project, with its central storage and the folders of `tools.bash.read_only` and `read_write`, has more than 1,000,000 files and folders, or had more than 100,000 secrets since the daemon started, or cannot be read, or changes while it is looked through, so not every secret in it can be hidden from the command; choose a smaller folder as the project, or move generated folders out of it, and start the daemon again".to_owned(),
            ),
            Err(error) => {
                tracing::error!(%error, "looking for secrets ended early");
                Err("not run: looking for secrets to hide from the command failed; see the log".to_owned())
            }
        }
    }
}

/// Says what a program came to, with what the model reads of its two streams.
fn outcome(
    collected: &output::Output<Stopped>,
    stdout: Shown,
    stderr: &Shown,
    mode: Mode,
    timeout: Duration,
) -> Output {
    let output::Output { exit, ended, .. } = collected;
    let left_out = stdout.kept.left_out_bytes + stderr.kept.left_out_bytes;
    let masked = stdout.masked + stderr.masked;
    let mut text = stdout.kept.text;
    let mut section = |heading: &str, body: &str| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(heading);
        text.push_str(body);
    };
    if !stderr.kept.text.trim().is_empty() {
        section("[stderr]\n", &stderr.kept.text);
    }
    if let Some(note) = note(exit, *ended, timeout) {
        section("", &note);
    }
    if text.trim().is_empty() {
        text = "[no output]".to_owned();
    }
    Output {
        content: vec![Part::text(text)],
        is_error: exit.code != Some(0) || !matches!(ended, Ended::Exited),
        metadata: Metadata {
            exit_code: exit.code,
            signal: exit.signal,
            truncated: left_out > 0,
            total_bytes: Some(collected.stdout_bytes + collected.stderr_bytes),
            stderr_bytes: Some(collected.stderr_bytes),
            omitted_bytes: Some(left_out).filter(|bytes| *bytes > 0),
            redacted: Some(masked).filter(|masked| *masked > 0),
            sandbox: Some(mode.to_string()),
            cpu_ms: Some(exit.cpu_ms),
            max_rss_bytes: Some(exit.max_rss_bytes),
            ..match ended {
                Ended::Stopped(stopped) => stopped.metadata(),
                Ended::Flooded | Ended::Exited => Metadata::default(),
            }
        },
    }
}

fn settings_warning(changed: &[String]) -> String {
    tracing::warn!(paths = ?changed, "a command changed what editors, shells or agents run");
    format!(
        "\n[warning: this command, or one that ran beside it, made or changed {}, from which the user's editor, shell, hooks or agents take programs; tell the user, and undo it if it was not asked for]",
        changed.join(", ")
    )
}

fn warning(restored: &Restored) -> String {
    let paths = match restored.paths.as_slice() {
        [] => "something".to_owned(),
        paths => paths.join(", "),
    };
    match &restored.failure {
        Some(failure) => format!(
            "\n[warning: this command, or one that ran beside it, changed {paths}, from which git takes programs and settings, and not all of it could be changed back ({failure}); look at it before you use git there]"
        ),
        None => format!(
            "\n[this command, or one that ran beside it, changed {paths}, from which git takes programs and settings; that was changed back after its end]"
        ),
    }
}

/// Says that a conversation's folders hold too much, and what to do.
fn too_full(overfull: Overfull) -> String {
    let mib = |bytes: u64| format!("{} MiB", bytes.div_ceil(1 << 20));
    let held = match overfull.bytes {
        Some(bytes) => mib(bytes),
        None => "more files, or deeper folders, than can be counted".to_owned(),
    };
    let limit = mib(overfull.limit);
    let what = match overfull.is_killed {
        true => "killed",
        false => "warning",
    };
    format!(
        "\n[{what}: the home, the temporary files and what was added to caches of this conversation hold {held} together, of {limit} at most; remove what is not needed there (`du -sh ~/.[!.]* ~/* /tmp /var/tmp`; toolchains and caches of the user's are no part of it): as long as more is added, commands that run are killed, the last one first; the user may raise `tools.bash.limits.disk`]"
    )
}

fn note(exit: &Exit, ended: Ended<Stopped>, timeout: Duration) -> Option<String> {
    Some(match (ended, exit.code, exit.signal) {
        (Ended::Stopped(Stopped::TimedOut), ..) => format!(
            "[stopped after its time limit of {} s; where more is allowed, ask for it with `timeout`]",
            timeout.as_secs_f64()
        ),
        (Ended::Stopped(Stopped::Cancelled), ..) => "[cancelled]".to_owned(),
        (Ended::Flooded, ..) => format!("[killed: it wrote more than {TOTAL_BYTES} bytes]"),
        (Ended::Exited, Some(0), _) => return None,
        (Ended::Exited, Some(code), _) => format!("[exit code {code}]"),
        (Ended::Exited, None, Some(signal)) => format!("[killed by signal {signal}]"),
        (Ended::Exited, None, None) => "[ended without a status]".to_owned(),
    })
}
