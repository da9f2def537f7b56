//! What `outrigger admin` can be asked.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::ConfigArguments;
use crate::units::parse_duration;

/// What an operator asks a running daemon.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum AdminCommand {
    /// List the sessions that live: whose, where, how they stand, what they cost
    Sessions(AdminArguments),
    /// List the users with sessions that live
    Users(AdminArguments),
    /// List the nodes: how many sessions each has, and whether it takes new ones
    Nodes(AdminArguments),
    /// Have the daemon take nothing new, wait for what runs, and end
    Drain(DrainArguments),
}

// Which daemon, and how its answer is printed.
#[derive(Debug, Default, Args)]
pub struct AdminArguments {
    /// The daemon's address, e.g. http://127.0.0.1:4517 [default: the configuration's]
    #[arg(long)]
    pub url: Option<String>,
    /// Read the daemon's token from a file [default: OUTRIGGER_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
}

// How a daemon ends.
#[derive(Debug, Args)]
pub struct DrainArguments {
    /// How long what runs may take, e.g. 30s or 10m, up to a day [default: the daemon's shutdown.grace]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub within: Option<Duration>,
    /// Return at once, instead of when the daemon has ended
    #[arg(long)]
    pub no_wait: bool,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: AdminArguments,
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    parse_duration(text).ok_or("a duration is a number with its unit, such as 500ms, 30s or 10m")
}
