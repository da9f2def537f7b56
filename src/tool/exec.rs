//! Runs a program for a tool: environment, sandbox, output, time limit, and what it came to in words.
//!
//! Shared by every tool that starts a process. What may run at all is decided before.

mod tracked;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Metadata, Output, OutputStream, Run};
use crate::message::Part;
use crate::sandbox::output::{self, Caps, Captured, Ended, Stream};
use crate::sandbox::paths::{RootName, Roots, Settings};
use crate::sandbox::programs::Programs;
use crate::sandbox::{Command, DEFAULT_PORTS, Exit, Mode, Network, Restored, Sandbox, environment};

use view::{Shown, View};

/// What programs of tools are run with.
#[derive(Clone)]
pub struct Exec {
    sandbox: Sandbox,
    roots: Arc<Roots>,
    programs: Programs,
    environment: Arc<BTreeMap<String, String>>,
    output_cap: usize,
}

/// Secrets that git tracks as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tracked {
    /// Hidden like the others.
    Hidden,
    /// Seen, see `tracked`.
    Seen,
}

/// Why a program was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    TimedOut,
    Cancelled,
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
        let programs = Programs::outside(vec![
            roots.path(RootName::Project).to_owned(),
            roots.path(RootName::Central).to_owned(),
        ]);
        let toolchains = sandbox.toolchains();
        let surroundings = environment::Surroundings {
            readable: &|path| {
                toolchains
                    .iter()
                    .any(|toolchain| path.starts_with(toolchain))
            },
            trusted: &|directory| programs.directory_is_trusted(directory),
            secrets,
        };
        let environment = environment::build(parent, &BTreeMap::new(), &surroundings);
        Self {
            sandbox,
            roots,
            environment: Arc::new(environment),
            programs,
            output_cap,
        }
    }

    /// The roots that programs may change.
    pub fn roots(&self) -> &Roots {
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
    pub fn command(&self, program: &str, args: Vec<String>, network: bool) -> Command {
        let project = self.roots.path(RootName::Project).to_owned();
        Command {
            args,
            env: BTreeMap::clone(&self.environment),
            network: if network {
                Network::On {
                    ports: DEFAULT_PORTS.to_vec(),
                }
            } else {
                Network::Off
            },
            read_write: vec![
                project.clone(),
                self.roots.path(RootName::Central).to_owned(),
            ],
            held: self.roots.held(),
            ..Command::new(program, project)
        }
    }

    /// Runs a program to its end, its time limit or a cancel, and says what it came to.
    pub async fn run(&self, command: Command, run: &Run<'_>) -> Output {
        self.run_with(command, run, Tracked::Hidden).await
    }

    /// The same for a command that is nothing but git, which sees what it tracks.
    pub async fn run_git(&self, command: Command, run: &Run<'_>) -> Output {
        self.run_with(command, run, Tracked::Seen).await
    }

    async fn run_with(&self, mut command: Command, run: &Run<'_>, tracked: Tracked) -> Output {
        let mode = self.sandbox.report().await.mode;
        self.sandbox.expect_command();
        // Each of them waits for a thread that looks at files.
        let (covered, settings) = tokio::join!(self.cover(&mut command, mode), self.settings());
        if let Err(reason) = covered {
            return Output::error(reason);
        }
        if tracked == Tracked::Seen {
            command.hidden = self.without_tracked(command.hidden, run).await;
        }
        command.limits.cpu = run.timeout.checked_mul(2);
        let mut process = match self.sandbox.spawn(&command).await {
            Ok(process) => process,
            Err(error) => {
                return Output::error(format!("failed to start `{}`: {error}", command.program));
            }
        };
        // What is kept is kept by the views.
        let caps = Caps {
            kept_bytes: 0,
            ..Caps::default()
        };
        let view = || View::new(run.redactor, self.output_cap);
        let (mut stdout, mut stderr) = (view(), view());
        let stop = async {
            let cancelled = run.cancel.cancelled();
            match tokio::time::timeout(run.timeout, cancelled).await {
                Ok(()) => Stopped::Cancelled,
                Err(_) => Stopped::TimedOut,
            }
        };
        let collected = output::collect(&mut process, caps, stop, |chunk| {
            let (stream, view) = match chunk.stream {
                Stream::Stdout => (OutputStream::Stdout, &mut stdout),
                Stream::Stderr => (OutputStream::Stderr, &mut stderr),
            };
            (run.emit)(stream, chunk.text);
            view.push(chunk.text);
        })
        .await;
        let shown = (stdout.finish(), stderr.finish());
        let mut output = outcome(&collected, shown, mode, run.timeout);
        let offline = mode >= Mode::Fallback && command.network == Network::Off;
        if output.metadata.timed_out && offline {
            // Programs that fetch something, such as `npx`, try again for minutes and say nothing.
            let hint = "\n[it had no network; where it needs one, ask for it with `network`]";
            output.content.push(Part::text(hint));
        }
        if let Some(restored) = process.restored() {
            tracing::warn!(paths = ?restored.paths, failure = restored.failure, "a command changed what git runs");
            output.content.push(Part::text(warning(&restored)));
        }
        let changed = self.settings().await.changed_since(&settings);
        tell_of_settings(&mut output, changed);
        output
    }

    /// The project's settings that others run, as they are now.
    async fn settings(&self) -> Settings {
        let roots = Arc::clone(&self.roots);
        tokio::task::spawn_blocking(move || roots.settings())
            .await
            .unwrap_or_default()
    }

    /// Names in a command the files that it must not read and the repositories in the roots, found anew each time: the
    /// program before may have made one. Below [`Mode::Full`] it is not kept from them; what they are is known from here
    /// on all the same, so that a command that gives one another name does not have it shown by the next.
    ///
    /// # Errors
    ///
    /// Why not all of them can be known, in which case nothing may run, and what to do.
    pub async fn cover(&self, command: &mut Command, mode: Mode) -> Result<(), String> {
        let roots = Arc::clone(&self.roots);
        let walked = tokio::task::spawn_blocking(move || roots.hidden()).await;
        match walked {
            _ if mode < Mode::Full => Ok(()),
            Ok(hidden) if hidden.complete => {
                command.hidden = hidden.paths;
                command.repositories = hidden.repositories;
                Ok(())
            }
            Ok(_) => Err(
                "not run: the project has more than 1,000,000 files and folders, or had more than 100,000 secrets since the daemon started, or changes while it is looked through, so not every secret in it can be hidden from the command; choose a smaller folder as the project, or move generated folders out of it, and start the daemon again".to_owned(),
            ),
            Err(error) => {
                tracing::error!(%error, "looking for secrets ended early");
                Err("not run: looking for secrets to hide from the command failed; see the log".to_owned())
            }
        }
    }
}

/// Says what a program came to; `shown` is what the model reads of its two streams.
fn outcome(
    collected: &output::Output<Stopped>,
    shown: (Shown, Shown),
    mode: Mode,
    timeout: Duration,
) -> Output {
    let output::Output {
        stdout,
        stderr,
        exit,
        ended,
    } = collected;
    let note = note(exit, *ended, timeout);
    let left_out = shown.0.kept.left_out_bytes + shown.1.kept.left_out_bytes;
    let masked = shown.0.masked + shown.1.masked;
    let failed = exit.code != Some(0) || !matches!(ended, Ended::Exited);
    Output {
        content: vec![Part::text(text(
            shown.0.kept,
            &shown.1.kept,
            note.as_deref(),
        ))],
        is_error: failed,
        metadata: Metadata {
            exit_code: exit.code,
            signal: exit.signal,
            timed_out: matches!(ended, Ended::Stopped(Stopped::TimedOut)),
            cancelled: matches!(ended, Ended::Stopped(Stopped::Cancelled)),
            truncated: left_out > 0,
            total_bytes: Some(stdout.total_bytes + stderr.total_bytes),
            stderr_bytes: Some(stderr.total_bytes),
            omitted_bytes: Some(left_out).filter(|bytes| *bytes > 0),
            redacted: Some(masked).filter(|masked| *masked > 0),
            sandbox: Some(mode.to_string()),
            cpu_ms: Some(exit.cpu_ms),
            max_rss_bytes: Some(exit.max_rss_bytes),
            ..Metadata::default()
        },
    }
}

/// What the model reads: both streams, and how it ended.
fn text(stdout: Captured, stderr: &Captured, note: Option<&str>) -> String {
    let mut text = stdout.text;
    let errors = &stderr.text;
    let mut section = |heading: &str, body: &str| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(heading);
        text.push_str(body);
    };
    if !errors.trim().is_empty() {
        section("[stderr]\n", errors);
    }
    if let Some(note) = note {
        section("", note);
    }
    if text.trim().is_empty() {
        return "[no output]".to_owned();
    }
    text
}

/// Says that a command changed settings that others run.
fn tell_of_settings(output: &mut Output, changed: Vec<&str>) {
    if changed.is_empty() {
        return;
    }
    tracing::warn!(paths = ?changed, "a command changed what editors, shells or agents run");
    output.content.push(Part::text(format!(
        "\n[warning: this command made or changed {}, from which the user's editor, shell, hooks or agents take programs; tell the user, and undo it if it was not asked for]",
        changed.join(", ")
    )));
    output.metadata.settings_changed = changed.into_iter().map(str::to_owned).collect();
}

/// Says that a command's changes to a repository were undone.
fn warning(restored: &Restored) -> String {
    let paths = if restored.paths.is_empty() {
        "something".to_owned()
    } else {
        restored.paths.join(", ")
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

fn note(exit: &Exit, ended: Ended<Stopped>, timeout: Duration) -> Option<String> {
    match (ended, exit.code, exit.signal) {
        (Ended::Stopped(Stopped::TimedOut), ..) => Some(format!(
            "[stopped after its time limit of {} s; ask for more with `timeout`]",
            timeout.as_secs_f64()
        )),
        (Ended::Stopped(Stopped::Cancelled), ..) => Some("[cancelled]".to_owned()),
        (Ended::Flooded, ..) => Some(format!(
            "[killed: it wrote more than {} bytes]",
            Caps::default().total_bytes
        )),
        (Ended::Exited, Some(0), _) => None,
        (Ended::Exited, Some(code), _) => Some(format!("[exit code {code}]")),
        (Ended::Exited, None, Some(signal)) => Some(format!("[killed by signal {signal}]")),
        (Ended::Exited, None, None) => Some("[ended without a status]".to_owned()),
    }
}
