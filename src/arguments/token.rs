//! `outrigger token`: what its arguments are.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::message::TrustLevel;
use crate::token::Role;
use crate::units::{parse_duration, parse_size};

/// What is to be done with tokens of users.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum TokenCommand {
    /// Print the public half of a private key, for auth.jwt.keys; the key is made where there is none
    Key(KeyArguments),
    /// Print a token for a user, signed with a private key
    Create(Box<CreateArguments>),
}

// Which key.
#[derive(Debug, Args)]
pub struct KeyArguments {
    /// The private key (Ed25519, PEM); made with mode 0600 where it is not there
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

// What a token says.
#[derive(Debug, Args)]
pub struct CreateArguments {
    /// The private key that it is signed with
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// The user's name
    #[arg(long, value_name = "NAME")]
    pub sub: String,
    /// How long it holds, e.g. 8h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub ttl: Duration,
    /// What its sockets may do
    #[arg(long, value_name = "ROLE", default_value = "driver")]
    pub role: Role,
    /// A folder below which its projects are, absolute; may be given several times [default: those of project.allowed]
    #[arg(long = "root", value_name = "DIR")]
    pub roots: Vec<PathBuf>,
    /// The most that is done without asking [default: what the configuration allows]
    #[arg(long, value_name = "LEVEL")]
    pub trust: Option<TrustLevel>,
    /// US dollars that the user may spend in a day [default: budget.user_day]
    #[arg(long, value_name = "DOLLARS")]
    pub budget: Option<f64>,
    /// How much the user may keep, e.g. 500MiB [default: auth.limits.disk]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub disk: Option<u64>,
    /// Who makes it, for auth.jwt.issuer
    #[arg(long, value_name = "NAME")]
    pub iss: Option<String>,
    /// Which daemon it is for, for auth.jwt.audience
    #[arg(long, value_name = "NAME")]
    pub aud: Option<String>,
    /// Its own name, by which it can be taken back [default: a random one]
    #[arg(long, value_name = "NAME")]
    pub jti: Option<String>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|it| !it.is_zero())
        .ok_or_else(|| "expected a duration such as 30m or 8h".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "expected a size such as 500MiB".to_owned())
}
