//! A hook that is a program: how it is started, fed and read.

use std::convert::Infallible;

use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::{Answer, Decision, Failure, MAX_ANSWER, read, too_long};
use crate::sandbox::output::{self, Ended, Stream};
use crate::sandbox::{Network, Sandbox, Stdin};
use crate::tool::exec::Exec;

/// The most that is read of what a program writes, answer and errors together.
const MAX_OUTPUT: u64 = 2 * MAX_ANSWER as u64;

/// By this exit code a program refuses, with what it wrote to its standard error as the reason.
const REFUSES: i32 = 2;

/// A program that is about to be asked.
pub(super) struct Program<'a> {
    pub(super) exec: &'a Exec,
    /// What it runs in where it is not to be confined.
    pub(super) unconfined: Option<&'a Sandbox>,
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    pub(super) network: Network,
}

impl Program<'_> {
    /// Runs it and reads its answer. Dropped, it is gone with all that it started.
    pub(super) async fn run(self, body: &Value) -> Result<Answer, Failure> {
        let mut command = self
            .exec
            .command(self.command, self.args.to_vec(), self.network);
        (command.stdin, command.private_tmp) = (Stdin::Piped, true);
        let sandbox = match self.unconfined {
            // Nothing is kept from it, so nothing is looked for.
            Some(unconfined) => unconfined,
            None => {
                // What the operator names may be read: it is mostly a script of theirs.
                let named = std::iter::once(self.command);
                let named = named.chain(self.args.iter().map(String::as_str));
                let named = named.filter(|word| word.starts_with('/'));
                command.read_only.extend(named.map(Into::into));
                let sandbox = self.exec.sandbox();
                let mode = sandbox.report().await.mode;
                self.exec.cover(&mut command, mode).await?;
                sandbox
            }
        };
        let process = sandbox.spawn(&command).await;
        let mut process = process.map_err(|error| format!("it cannot be started: {error}"))?;
        let feeding = feed(process.stdin.take(), body.to_string());
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let ended = output::collect(
            &mut process,
            MAX_OUTPUT,
            feeding,
            |stream, text| match stream {
                Stream::Stdout => stdout.push_str(text),
                Stream::Stderr => stderr.push_str(text),
            },
        )
        .await;
        match (ended.ended, ended.exit.code) {
            (Ended::Stopped(never), _) => match never {},
            (Ended::Flooded, _) => Err(too_long().into()),
            (Ended::Exited, Some(REFUSES)) => Ok(Answer {
                decision: Decision::Refuse,
                reason: stderr,
                ..Answer::default()
            }),
            (Ended::Exited, Some(0)) if stdout.len() > MAX_ANSWER => Err(too_long().into()),
            (Ended::Exited, Some(0)) => Ok(read(stdout.as_bytes())?),
            (Ended::Exited, code) => {
                let how = code.map_or("by a signal".to_owned(), |code| format!("with {code}"));
                Err(Failure {
                    told: format!("it ended {how}; what it wrote is in the daemon's log"),
                    wrote: stderr,
                })
            }
        }
    }
}

/// Writes to a program for as long as it runs, beside what is read of it: one that does not read, or writes before it does, ends
/// all the same.
async fn feed(stdin: Option<impl AsyncWrite + Unpin>, body: String) -> Infallible {
    if let Some(mut stdin) = stdin {
        // One that does not read it has answered all the same.
        drop(stdin.write_all(body.as_bytes()).await);
        drop(stdin.shutdown().await);
    }
    std::future::pending().await
}
