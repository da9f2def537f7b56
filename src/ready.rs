//! What is printed to stdout: that the daemon is ready, or why it cannot start; and the ready file.

mod people;
mod private_file;

use std::io::{IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use people::Surroundings;
pub use private_file::PrivateFile;

/// Exit codes of the program.
pub mod exit {
    /// It was asked to stop.
    pub const OK: u8 = 0;
    /// It failed while it ran.
    pub const FAILED: u8 = 1;
    /// Bad arguments or configuration.
    pub const CONFIGURATION: u8 = 2;
    /// The port is in use, or the store of sessions is.
    pub const PORT_IN_USE: u8 = 3;
    /// `outrigger run`, or `outrigger chat` without a terminal: a call was refused, or a host, since nobody could be asked.
    pub const REFUSED: u8 = 4;
    /// `outrigger run` and `outrigger chat`: a cap on money ended it.
    pub const BUDGET: u8 = 5;
    /// It ended, and what was said last in some session is lost: the store did not take it.
    pub const NOT_KEPT: u8 = 6;
}

/// That the daemon is ready, and where.
#[derive(Debug, Serialize, Deserialize)]
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
    /// What the start found that cannot be used, and what the configuration has that does nothing, or not what it seems to; the
    /// log has it, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Warnings on a ready line; the log has the rest. Clients read a line of 64 KiB.
const MAX_WARNINGS: usize = 12;

/// The most characters of one.
const MAX_WARNING: usize = 1_000;

impl ReadyLine {
    /// A line for a daemon that listens there, and serves the console page or does not.
    pub fn new(address: SocketAddr, token: Option<String>, has_console: bool) -> Self {
        // Browsers are let in by a loopback name; that of every address is none.
        let page = reachable(address);
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
            warnings: Vec::new(),
        }
    }

    /// The same line with what there is to warn of, without secrets.
    #[must_use]
    pub fn warning(mut self, warnings: &[String], redact: impl Fn(&str) -> String) -> Self {
        let short = |warning: &String| {
            // A control character is six in JSON.
            let plain = redact(warning).replace(char::is_control, " ");
            plain.chars().take(MAX_WARNING).collect()
        };
        self.warnings = warnings.iter().take(MAX_WARNINGS).map(short).collect();
        self
    }

    /// Prints the line.
    ///
    /// # Errors
    ///
    /// [`Fatal`] where nobody reads stdout any more.
    pub fn print(&self) -> Result<(), Fatal> {
        print(&(json(self) + "\n"))
            .map_err(|error| Fatal::failed(format!("the ready line could not be written: {error}")))
    }

    /// Writes the line to a file that lasts as long as what is returned.
    ///
    /// # Errors
    ///
    /// [`Fatal`] where it cannot be written.
    pub fn write(&self, path: PathBuf) -> Result<PrivateFile, Fatal> {
        let name = path.display().to_string();
        PrivateFile::write(path, &json(self)).map_err(|error| {
            let message = format!("the ready file {name} could not be written: {error}");
            Fatal::configuration(message, "change --ready-file")
        })
    }
}

/// Returns the address to connect to: a daemon that listens everywhere is reached over loopback.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
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
        let message = format!("{address} is in use by another program");
        let hint = "choose another port with --port or server.port; 0 takes a free one";
        Self::new("port_in_use", message, hint, exit::PORT_IN_USE)
    }

    /// The file that sessions are kept in cannot be had.
    pub fn store(problem: &crate::store::Error) -> Self {
        let hint = "set store.path to another file, or store.enabled = false";
        let code = match problem {
            crate::store::Error::InUse { .. } => "state_in_use",
            _ => "store",
        };
        Self::new(code, problem.to_string(), hint, exit::PORT_IN_USE)
    }

    /// The database that sessions are kept in cannot be had.
    pub fn database(problem: &crate::store::Error) -> Self {
        let hint = "look whether the server runs and store.url is right; `outrigger doctor` tries it again; store.enabled = false starts without kept sessions";
        Self::new("store", problem.to_string(), hint, exit::PORT_IN_USE)
    }

    /// Something failed.
    pub fn failed(message: impl Into<String>) -> Self {
        let hint = "see the log on stderr";
        Self::new("failed", message.into(), hint, exit::FAILED)
    }

    /// Tells it once: a program that waits for the line gets one, with the log beside it, and a person a text, beside the log
    /// where that goes elsewhere.
    pub fn tell(&self, is_for_person: bool) {
        let are_terminals = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        // Where nobody reads it there is nobody to tell.
        if is_for_person && are_terminals {
            return complain(&self.text());
        }
        tracing::error!(code = self.code, hint = self.hint, "{self}");
        let text = match is_for_person {
            true => format!("outrigger: {}\n", self.text()),
            false => json(self) + "\n",
        };
        drop(print(&text));
    }

    /// Returns what happened and what to do, for people.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.message, self.hint)
    }
}

fn json(line: &impl Serialize) -> String {
    serde_json::to_string(line).unwrap_or_default()
}

/// Prints text to stdout.
///
/// # Errors
///
/// Where nobody reads it any more, as with `outrigger config show | head`.
pub fn print(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Prints a problem to stderr; where nobody reads it there is nobody to tell.
pub fn complain(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "outrigger: {text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_start_is_text_for_people() {
        let fatal = Fatal::configuration("the configuration has 2 errors:\n  a: b\n  c: d", "look");
        assert_eq!(
            fatal.text(),
            "the configuration has 2 errors:\n  a: b\n  c: d\nlook"
        );
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

    #[test]
    fn a_line_holds_some_warnings_of_some_length() {
        let line = ReadyLine::new(([127, 0, 0, 1], 1).into(), None, false);
        assert!(!json(&line).contains("warnings"));
        let long = vec!["\u{1}𝄞".repeat(MAX_WARNING); MAX_WARNINGS + 1];
        let redact = |text: &str| text.replace("hunter2", "***");
        let secret = line.warning(&["hunter2".to_owned()], redact);
        assert_eq!(secret.warnings, ["***"]);
        let line = secret.warning(&long, redact);
        let short = " 𝄞".repeat(MAX_WARNING / 2);
        assert_eq!(line.warnings, vec![short; MAX_WARNINGS]);
        assert!(json(&line).len() < 64 * 1024);
    }
}
