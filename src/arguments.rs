//! The command line: what can be typed, and which keys of the configuration it sets.
//!
//! A token is never an argument: every user of a machine sees the arguments of its processes.
#![expect(
    missing_docs,
    reason = "clap would show the docs of a struct of arguments in the place of its command's"
)]

mod admin;
mod sessions;
mod token;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use serde_json::Value;

use crate::config::{LogFormat, Override, Sources};
use crate::message::TrustLevel;
pub use admin::{AdminArguments, AdminCommand, DrainArguments};
pub use sessions::{
    BackupArguments, DeleteArguments, ExportArguments, ImportArguments, ListArguments,
    OneArguments, SearchArguments, SessionsCommand, StatsArguments, VacuumArguments,
};
pub use token::{CreateArguments, KeyArguments, TokenCommand};

/// A headless daemon beside a chat frontend.
#[derive(Debug, Parser)]
#[command(name = "outrigger", version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArguments,
}

impl Arguments {
    /// Reads a command line, the program's name first. Flags of a subcommand may stand before it, too.
    ///
    /// # Errors
    /// What clap has to say, help among it.
    pub fn read(line: &[OsString]) -> Result<Self, Unread> {
        let error = match Self::try_parse_from(line) {
            Ok(arguments) => return Ok(arguments),
            Err(error) => error,
        };
        let first = line.get(1).map(OsString::as_os_str).unwrap_or_default();
        let subcommand = match error.get(ContextKind::InvalidSubcommand) {
            Some(ContextValue::String(word)) if first.as_encoded_bytes().starts_with(b"-") => word,
            _ => {
                return Err(Unread {
                    is_serve: is_serve(first),
                    error: Box::new(error),
                });
            }
        };
        // A flag's value may be the same word.
        let places =
            (1..line.len()).filter(|at| line.get(*at).is_some_and(|it| it == subcommand.as_str()));
        let behind = |at| {
            let (before, from) = line.split_at_checked(at)?;
            let (program, flags) = before.split_at_checked(1)?;
            Some(Self::try_parse_from(
                program.iter().chain(from).chain(flags),
            ))
        };
        // What is wrong with it behind its subcommand, not that flags stood before that.
        let mut wrong = None;
        for moved in places.filter_map(behind) {
            match moved {
                Ok(arguments) => return Ok(arguments),
                Err(moved) => _ = wrong.get_or_insert(moved),
            }
        }
        Err(Unread {
            is_serve: is_serve(OsStr::new(subcommand)),
            error: Box::new(wrong.unwrap_or(error)),
        })
    }

    /// Returns what is to be done; `serve` where nothing is said.
    pub fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

/// Why a command line could not be read, or what was asked of it.
#[derive(Debug)]
pub struct Unread {
    /// What clap has to say.
    pub error: Box<clap::Error>,
    /// Whether the arguments were the daemon's: those of no other command.
    pub is_serve: bool,
}

/// Whether what follows a word is the daemon's: it is no other command.
fn is_serve(word: &OsStr) -> bool {
    let command = Arguments::command();
    let mut names = command.get_subcommands().map(clap::Command::get_name);
    word == "serve" || (word != "help" && !names.any(|name| word == name))
}

// Here and below `defer`: the arguments of all other commands are not made at each start of the daemon.

/// What is to be done.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// Run the daemon (the default)
    Serve(ServeArguments),
    /// Chat in the terminal, with a daemon of its own unless --url names one
    Chat(ChatArguments),
    /// Serve an editor on stdin and stdout, as an agent of the Agent Client Protocol
    Acp(AcpArguments),
    /// Ask one thing without a terminal, for scripts and pipelines; questions are refused
    Run(RunArguments),
    /// Check what the daemon needs on this machine and say what is missing
    Doctor(DoctorArguments),
    /// Write the protocol as JSON Schema, TypeScript and AsyncAPI, and the configuration's JSON Schema
    Schema(SchemaArguments),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look at the sessions that are kept, write them to files and read them back
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Ask a running daemon who works where, what runs and what it costs, or have it end in order
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Make tokens for users, and the key that they are signed with
    #[command(subcommand)]
    Token(TokenCommand),
    /// Ask a running daemon whether it is alive (exit code 0 or 1)
    Healthcheck(HealthcheckArguments),
}

/// What is to be done with the configuration.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum ConfigCommand {
    /// Print each value with where it came from, secrets masked
    Show(ShowArguments),
}

// Where the configuration and the project are.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigArguments {
    /// Configuration file (.toml, .yaml or .json) in the place of the user's
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The folder the model works in [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub project_root: Option<PathBuf>,
    /// The project's name [default: the folder's]
    #[arg(long, value_name = "NAME")]
    pub project_name: Option<String>,
}

impl ConfigArguments {
    /// Puts the flags on top of the other sources.
    pub fn apply(&self, sources: &mut Sources) {
        sources.config_file.clone_from(&self.config);
        let root = self.project_root.as_ref();
        let root = root.map(|root| root.to_string_lossy().into_owned());
        set(sources, "--project-root", "project.root", root);
        let name = self.project_name.clone();
        set(sources, "--project-name", "project.name", name);
    }

    /// Returns the sources of the configuration.
    pub fn sources(&self) -> Sources {
        let mut sources = Sources::of_process();
        self.apply(&mut sources);
        sources
    }
}

// How an editor's agent runs.
#[derive(Debug, Default, Args)]
pub struct AcpArguments {
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Form of the log on stderr [default: human on a terminal, else json]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Record each exchange with a provider into this directory
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
}

impl AcpArguments {
    /// Puts the flags on top of the other sources. Where the configuration does not say, the editor may name MCP servers: it
    /// is the user's own, and may run any program anyway. And a question stays open for as long as it takes to read a change.
    pub fn apply(&self, sources: &mut Sources) {
        self.config.apply(sources);
        set_log_format(sources, self.log_format);
        sources.record.clone_from(&self.record);
        let servers = Override::new("outrigger acp", "mcp.allow_runtime_add", true);
        let patience = Override::new("outrigger acp", "approval.timeout", "10m");
        sources.defaults.extend([servers, patience]);
    }
}

fn set_log_format(sources: &mut Sources, format: Option<LogFormat>) {
    let format = format.and_then(|format| format.to_possible_value());
    let format = format.map(|value| value.get_name().to_owned());
    set(sources, "--log-format", "log.format", format);
}

/// What the daemon prints when it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReadyForm {
    /// Lines for a person
    Text,
    /// One line of JSON for a program
    Json,
}

// How the daemon runs.
#[derive(Debug, Default, Args)]
pub struct ServeArguments {
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// IP address to listen on, or localhost [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<String>,
    /// Port to listen on; 0 takes a free one [default: 4517]
    #[arg(long, value_parser = port)]
    pub port: Option<u16>,
    /// Read the token from a file
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Read the token from the first line of stdin
    #[arg(long, conflicts_with = "token_file")]
    pub token_stdin: bool,
    /// Write the ready line to a file too (mode 0600, removed on exit)
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// What is printed when it is ready [default: text on a terminal, else json]
    #[arg(long, value_name = "FORM")]
    pub ready: Option<ReadyForm>,
    /// End when the process with this id ends
    #[arg(long, value_name = "PID", value_parser = process_id)]
    pub parent_pid: Option<u32>,
    /// Accept this browser origin too (may be given several times; replaces the file's)
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Form of the log on stderr [default: human on a terminal, else json]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Refuse to start where commands cannot be sandboxed at least so well
    #[arg(long, value_name = "MODE")]
    pub require_sandbox: Option<RequiredSandbox>,
    /// Record each exchange with a provider into this directory
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
}

impl ServeArguments {
    /// Puts the flags on top of the other sources.
    pub fn apply(&self, sources: &mut Sources) {
        self.config.apply(sources);
        set(sources, "--host", "server.host", self.host.clone());
        set(sources, "--port", "server.port", self.port);
        let origins = self.allow_origin.clone();
        let origins = (!origins.is_empty()).then_some(origins);
        set(sources, "--allow-origin", "server.allowed_origins", origins);
        set_log_format(sources, self.log_format);
        sources.token_file.clone_from(&self.token_file);
        sources.record.clone_from(&self.record);
    }
}

/// The least sandbox the daemon starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RequiredSandbox {
    /// Namespaces, Landlock and seccomp
    Full,
    /// What works without namespaces
    Fallback,
}

// A chat in the terminal.
#[derive(Debug, Default, Args)]
pub struct ChatArguments {
    /// Ask this and end; without it, a conversation. Several words are one question
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
    /// Go on in the last session of this project
    #[arg(long = "continue", conflicts_with = "resume")]
    pub go_on: bool,
    /// Go on in this session: its id, or as much of its beginning as no other has
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,
    /// Which daemon, and how the session is set up.
    #[command(flatten)]
    pub client: ClientArguments,
}

// One prompt, for scripts.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Ask this; several words are one prompt. Without it, or with -, the prompt is read from stdin to its end
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
    /// Print each event as a line of JSON in the place of the answer
    #[arg(long)]
    pub json: bool,
    /// A file with the JSON schema of an object: the answer is one that fits it, as JSON, or none
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Which daemon, and how the session is set up.
    #[command(flatten)]
    pub client: ClientArguments,
}

// Which daemon a client talks to, and how its session is set up.
#[derive(Debug, Default, Args)]
pub struct ClientArguments {
    /// Address of a running daemon: its page's, e.g. http://127.0.0.1:4517, or its WebSocket's (ws://, or wss:// behind a proxy)
    ///
    /// With it `--project-root` names the folder of a new session, at the daemon: one of its `project.allowed`. Without that the model works in the daemon's own project, and not in the working directory.
    #[arg(long, conflicts_with_all = ["config", "project_name"])]
    pub url: Option<String>,
    /// Read the running daemon's token from a file [default: OUTRIGGER_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Provider instance
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Model
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// How much is done without asking
    #[arg(long, value_name = "LEVEL")]
    pub trust_level: Option<TrustLevel>,
    /// Workflow
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
}

// What `doctor` looks at and how it says it.
#[derive(Debug, Default, Args)]
pub struct DoctorArguments {
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Port that the daemon is to listen on [default: 4517]
    #[arg(long, value_parser = port)]
    pub port: Option<u16>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print the profile of AppArmor that mode `full` takes on Ubuntu 24.04, and check nothing
    #[arg(long)]
    pub apparmor_profile: bool,
}

impl DoctorArguments {
    /// Returns what the configuration is read from.
    pub fn sources(&self) -> Sources {
        let mut sources = self.config.sources();
        set(&mut sources, "--port", "server.port", self.port);
        sources
    }
}

// Where schemas go.
#[derive(Debug, Args)]
pub struct SchemaArguments {
    /// Directory to write into; made where it is not there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

// Which configuration is shown and how.
#[derive(Debug, Default, Args)]
pub struct ShowArguments {
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

// Which daemon is asked.
#[derive(Debug, Default, Args)]
pub struct HealthcheckArguments {
    /// The daemon's address, e.g. http://127.0.0.1:4517 [default: the configuration's]
    #[arg(long)]
    pub url: Option<String>,
    /// Port of the daemon on this machine [default: the configuration's]
    #[arg(long, value_parser = port, conflicts_with = "url")]
    pub port: Option<u16>,
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
}

impl HealthcheckArguments {
    /// Returns the sources of the configuration.
    pub fn sources(&self) -> Sources {
        let mut sources = self.config.sources();
        set(&mut sources, "--port", "server.port", self.port);
        sources
    }
}

fn port(text: &str) -> Result<u16, &'static str> {
    text.parse()
        .map_err(|_| "a port is a number from 0 to 65535; 0 takes a free one")
}

fn process_id(text: &str) -> Result<u32, &'static str> {
    let id = text.parse().ok().filter(|id| *id > 0);
    id.ok_or("the id of a process is a number, at least 1")
}

fn set(sources: &mut Sources, flag: &str, key: &'static str, value: Option<impl Into<Value>>) {
    sources
        .flags
        .extend(value.map(|value| Override::new(flag, key, value)));
}

#[cfg(test)]
mod tests;
