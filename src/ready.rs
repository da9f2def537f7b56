//! The one line on stdout: that the daemon is ready, or why it cannot start; and the ready file.

use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Exit codes of the program.
pub mod exit {
    /// It was asked to stop.
    pub const OK: u8 = 0;
    /// It failed while it ran.
    pub const FAILED: u8 = 1;
    /// Bad arguments or configuration.
    pub const CONFIGURATION: u8 = 2;
    /// The port is in use.
    pub const PORT_IN_USE: u8 = 3;
    /// `outrigger chat` without a terminal: a call was refused, since nobody could be asked.
    pub const REFUSED: u8 = 4;
}

/// That the daemon is ready, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyLine {
    /// Always `ready`.
    pub event: String,
    /// The WebSocket.
    pub url: String,
    /// The port.
    pub port: u16,
    /// The token, where the daemon made it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The daemon's process id.
    pub pid: u32,
    /// The daemon's version.
    pub version: String,
    /// The version of the contract.
    pub protocol_version: u32,
    /// The console page, where it is served; with the token in its fragment where one was made up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<String>,
}

impl ReadyLine {
    /// A line for a daemon that listens there, and serves the console page or does not.
    pub fn new(address: SocketAddr, token: Option<String>, has_console: bool) -> Self {
        // Browsers are let in by a loopback name; that of every address is none.
        let page = match address {
            SocketAddr::V4(all) if all.ip().is_unspecified() => format!("127.0.0.1:{}", all.port()),
            SocketAddr::V6(all) if all.ip().is_unspecified() => format!("[::1]:{}", all.port()),
            address => address.to_string(),
        };
        let console = match &token {
            Some(token) => format!("http://{page}/#token={token}"),
            None => format!("http://{page}/"),
        };
        Self {
            console: has_console.then_some(console),
            event: "ready".to_owned(),
            url: format!("ws://{address}/ws"),
            port: address.port(),
            token,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol_version: crate::protocol::PROTOCOL_VERSION,
        }
    }

    /// Prints the line.
    ///
    /// # Errors
    ///
    /// [`Fatal`] where nobody reads stdout any more.
    pub fn print(&self) -> Result<(), Fatal> {
        print_line(&self.text())
            .map_err(|error| Fatal::failed(format!("the ready line could not be written: {error}")))
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Why the daemon cannot start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fatal {
    event: String,
    /// For programs.
    pub code: String,
    /// What happened, to what.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// The exit code.
    #[serde(skip)]
    pub exit: u8,
}

impl Fatal {
    fn new(code: &str, message: String, hint: &str, exit: u8) -> Self {
        Self {
            event: "fatal".to_owned(),
            code: code.to_owned(),
            message,
            hint: hint.to_owned(),
            exit,
        }
    }

    /// Bad arguments or configuration.
    pub fn configuration(message: impl Into<String>, hint: &str) -> Self {
        Self::new("configuration", message.into(), hint, exit::CONFIGURATION)
    }

    /// The port is in use.
    pub fn port_in_use(address: SocketAddr) -> Self {
        Self::new(
            "port_in_use",
            format!("{address} is in use by another program"),
            "choose another port with --port or server.port; 0 takes a free one",
            exit::PORT_IN_USE,
        )
    }

    /// Something failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(
            "failed",
            message.into(),
            "see the log on stderr",
            exit::FAILED,
        )
    }

    /// Tells it once: a program that waits for the line gets one, with the log beside it, and a person on a terminal
    /// a text.
    pub fn tell(&self) {
        match Reader::here() {
            Reader::Program => {
                self.log();
                // Where nobody reads stdout there is nobody to tell.
                drop(print_line(&serde_json::to_string(self).unwrap_or_default()));
            }
            Reader::Person => drop(writeln!(std::io::stderr().lock(), "{}", self.text())),
            Reader::PersonWithLog => {
                self.log();
                drop(print_line(&self.text()));
            }
        }
    }

    fn log(&self) {
        tracing::error!(code = self.code, hint = self.hint, "{self}");
    }

    /// What happened and what to do, for people.
    fn text(&self) -> String {
        format!("outrigger: {}\n{}", self.message, self.hint)
    }
}

/// Who reads what the daemon says of its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A program, or a file: stdout is no terminal.
    Program,
    /// A person who sees stdout and stderr.
    Person,
    /// A person who sees stdout, while stderr, which has the log, goes elsewhere.
    PersonWithLog,
}

impl Reader {
    /// Who reads what this process says.
    pub fn here() -> Self {
        Self::of(
            std::io::stdout().is_terminal(),
            std::io::stderr().is_terminal(),
        )
    }

    fn of(stdout_is_terminal: bool, stderr_is_terminal: bool) -> Self {
        match (stdout_is_terminal, stderr_is_terminal) {
            (false, _) => Self::Program,
            (true, true) => Self::Person,
            (true, false) => Self::PersonWithLog,
        }
    }
}

fn print_line(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// The ready line in a file, removed when this is dropped.
#[derive(Debug)]
pub struct ReadyFile {
    path: PathBuf,
}

impl ReadyFile {
    /// Writes the line to a file of mode 0600, by rename, so that nobody reads half of it.
    ///
    /// # Errors
    ///
    /// [`Fatal`] where it cannot be written.
    pub fn write(path: PathBuf, line: &ReadyLine) -> Result<Self, Fatal> {
        write_private(&path, &line.text()).map_err(|error| {
            Fatal::configuration(
                format!(
                    "the ready file {} could not be written: {error}",
                    path.display()
                ),
                "change --ready-file",
            )
        })?;
        Ok(Self { path })
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the ready file could not be removed");
        }
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let temporary = path.with_file_name(name);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(&temporary)
        .and_then(|mut file| writeln!(file, "{text}"))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // What is left of the attempt, where anything is.
        drop(std::fs::remove_file(&temporary));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_start_is_text_for_people_and_a_line_for_programs() {
        let fatal = Fatal::configuration("the configuration has 2 errors:\n  a: b\n  c: d", "look");
        assert_eq!(
            fatal.text(),
            "outrigger: the configuration has 2 errors:\n  a: b\n  c: d\nlook"
        );
        for (stdout, stderr, expected) in [
            (false, false, Reader::Program),
            (false, true, Reader::Program),
            (true, true, Reader::Person),
            (true, false, Reader::PersonWithLog),
        ] {
            assert_eq!(Reader::of(stdout, stderr), expected);
        }
    }

    #[test]
    fn the_page_is_named_by_an_address_that_a_browser_is_let_in_by() {
        let cases = [
            (
                "127.0.0.1:4517",
                Some("t"),
                true,
                Some("http://127.0.0.1:4517/#token=t"),
            ),
            ("0.0.0.0:4517", None, true, Some("http://127.0.0.1:4517/")),
            ("[::]:1", None, true, Some("http://[::1]:1/")),
            ("127.0.0.1:4517", Some("t"), false, None),
        ];
        for (address, token, has_console, expected) in cases {
            let token = token.map(str::to_owned);
            let line = ReadyLine::new(address.parse().unwrap(), token, has_console);
            assert_eq!(line.console.as_deref(), expected, "{address}");
        }
    }
}
