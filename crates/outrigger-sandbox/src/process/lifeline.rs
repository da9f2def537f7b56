//! What ends the commands of a daemon that was killed, where no kernel does: it has no object that dies with its owner there.
//!
//! A child of the daemon's, this program executed again. It is told by a pipe which groups of processes there are, and at the
//! pipe's end, which comes with the daemon's own by any means, it kills those that are left. Two lines are all that there is to
//! say: `+1234` is a group from now on, `-1234` is none any more.
//!
//! A program that left its group (`setsid`) is not among them, and neither is a command of the moment between its start and its
//! line.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group, setsid};

use super::leader::Register;
use crate::HELPER_ARGUMENT;

/// Most groups at once, of which each has a command that runs; systems with such groups allow a user fewer processes.
const MAX_GROUPS: usize = 4_096;

/// Longest line: a sign, the digits of the largest number, and its end.
const MAX_LINE: u64 = 16;

/// The line by which it says that it is there, and deaf to the terminal.
const READY: &str = "ready\n";

/// Reads which groups there are, and kills those that are left at the end.
pub(crate) fn main() -> ExitCode {
    // Ctrl-C and the terminal's end are for the daemon, which ends its commands in order and then this.
    let is_alone = setsid().is_ok();
    if !is_alone || io::stdout().write_all(READY.as_bytes()).is_err() {
        return ExitCode::FAILURE;
    }
    for group in left(io::stdin().lock()) {
        // Fails where it has ended meanwhile.
        kill_process_group(group, Signal::KILL).unwrap_or_default();
    }
    ExitCode::SUCCESS
}

/// Returns the groups that are left at the end of the input. What is no line of the two is passed over, and so are groups beyond
/// [`MAX_GROUPS`].
fn left(mut input: impl BufRead) -> HashSet<Pid> {
    let mut groups = HashSet::new();
    let (mut line, mut is_begin) = (Vec::new(), true);
    loop {
        line.clear();
        let piece = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if !matches!(piece, Ok(1..)) {
            return groups;
        }
        let is_end = line.ends_with(b"\n");
        match read(&line) {
            Some((true, group)) if is_begin && groups.len() < MAX_GROUPS => {
                groups.insert(group);
            }
            Some((false, group)) if is_begin => {
                groups.remove(&group);
            }
            _ => {}
        }
        is_begin = is_end;
    }
}

/// Returns whether a line says that there is a group, or that there is none any more, and which.
fn read(line: &[u8]) -> Option<(bool, Pid)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (is_there, digits) = match line.strip_prefix('+') {
        Some(digits) => (true, digits),
        None => (false, line.strip_prefix('-')?),
    };
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    // As a group, 1 is every process of the user, and 0 one's own.
    let number = digits.parse().ok().filter(|number| *number > 1)?;
    Some((is_there, Pid::from_raw(number).filter(|_| is_number)?))
}

/// The daemon's side. It is started when the first command is, and again when somebody has ended it, by the next line that there
/// is to say.
#[derive(Debug)]
pub(crate) struct Lifeline {
    program: PathBuf,
    arguments: Vec<OsString>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    groups: HashSet<Pid>,
    running: Option<Running>,
}

impl Lifeline {
    /// Returns one that is not started: by this program, which answers to [`HELPER_ARGUMENT`] behind these arguments.
    pub(crate) fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self {
            program,
            arguments,
            held: Mutex::default(),
        }
    }

    /// Starts it where it does not run, and waits until it is there. Done before a command starts, so that the command inherits
    /// nothing of the pipe.
    pub(crate) fn prepare(&self) {
        let mut held = self.held.lock();
        if held.running.is_none() {
            self.start(&mut held);
        }
    }

    /// Starts it, and tells it of all groups. Where that fails, commands run all the same, and outlive a daemon that is killed.
    fn start(&self, held: &mut Held) {
        match Running::start(self, &held.groups) {
            Ok(running) => held.running = Some(running),
            Err(error) => {
                tracing::warn!(%error, "the lifeline cannot be started: commands outlive the daemon where it is killed");
            }
        }
    }

    fn tell(&self, held: &mut Held, sign: char, group: Pid) {
        let told = held
            .running
            .as_mut()
            .map(|running| running.tell(&line(sign, group)));
        if matches!(told, Some(Ok(()))) {
            return;
        }
        if let Some(running) = held.running.take() {
            running.end();
        }
        if !held.groups.is_empty() {
            self.start(held);
        }
    }
}

impl Register for Lifeline {
    fn add(&self, group: Pid) {
        let mut held = self.held.lock();
        if held.groups.len() >= MAX_GROUPS {
            tracing::warn!(
                "more than {MAX_GROUPS} commands: one outlives the daemon where it is killed"
            );
            return;
        }
        held.groups.insert(group);
        self.tell(&mut held, '+', group);
    }

    fn remove(&self, group: Pid) {
        let mut held = self.held.lock();
        if held.groups.remove(&group) {
            self.tell(&mut held, '-', group);
        }
    }
}

fn line(sign: char, group: Pid) -> String {
    format!("{sign}{}\n", group.as_raw_pid())
}

/// The other process, with the pipe to it.
#[derive(Debug)]
struct Running(Child);

impl Running {
    fn start(lifeline: &Lifeline, groups: &HashSet<Pid>) -> io::Result<Self> {
        let mut running = Command::new(&lifeline.program)
            .args(&lifeline.arguments)
            .arg(HELPER_ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)?;
        let begun = running.begin(groups);
        match begun {
            Ok(()) => Ok(running),
            Err(error) => {
                running.end();
                Err(error)
            }
        }
    }

    fn begin(&mut self, groups: &HashSet<Pid>) -> io::Result<()> {
        let stdout = self.0.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let is_ready = lines.any(|line| line == READY.trim_end());
        if !is_ready {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let all: String = groups.iter().map(|group| line('+', *group)).collect();
        self.tell(&all)?;
        // Who reads no more, for somebody stopped it, is replaced, and never waited for.
        let pipe = self.0.stdin.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(rustix::io::ioctl_fionbio(pipe, true)?)
    }

    fn tell(&mut self, lines: &str) -> io::Result<()> {
        let pipe = self.0.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        pipe.write_all(lines.as_bytes())
    }

    /// Ends it without the groups: it is killed before the pipe is closed.
    fn end(mut self) {
        let pipe = self.0.stdin.take();
        if self.0.kill().is_ok() {
            self.0.wait().map_or_else(drop, drop);
        }
        drop(pipe);
    }
}

#[cfg(test)]
mod tests;
