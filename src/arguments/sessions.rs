//! What `outrigger sessions` can be asked.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ConfigArguments;
use crate::protocol::command::SessionFormat;

/// What is to be done with the sessions that are kept.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum SessionsCommand {
    /// List them, the one that changed last first
    List(ListArguments),
    /// Find those in which words were said; each word has to be there, the last one perhaps as a beginning
    Search(SearchArguments),
    /// Print what was said in one
    Show(OneArguments),
    /// Write one as JSON lines, which `import` reads, or as Markdown
    Export(ExportArguments),
    /// Make a new session of a file that was exported as JSON lines, and print its id
    Import(ImportArguments),
    /// Delete sessions for good
    Delete(DeleteArguments),
    /// Print how much is kept
    Stats(StatsArguments),
    /// Write a copy of all that is kept to a new file; also while a daemon runs
    Backup(BackupArguments),
    /// Write the store anew, as small as it can be
    Vacuum(VacuumArguments),
}

// Which sessions are listed.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Those that were put away, instead of the others
    #[arg(long)]
    pub archived: bool,
    /// Only those with this label (may be given several times)
    #[arg(long, value_name = "LABEL")]
    pub label: Vec<String>,
    /// Only those that work in this folder
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub limit: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
}

// What is looked for, and where.
#[derive(Debug, Args)]
pub struct SearchArguments {
    /// The words
    #[arg(required = true, value_name = "WORD")]
    pub words: Vec<String>,
    /// Where it is looked for.
    #[command(flatten)]
    pub list: ListArguments,
}

// Which session.
#[derive(Debug, Args)]
pub struct OneArguments {
    /// Its id, or the beginning of it that no other has
    #[arg(value_name = "ID")]
    pub id: String,
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
}

// Which session goes where.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// Its id, or the beginning of it that no other has
    #[arg(value_name = "ID")]
    pub id: String,
    /// A new file [default: stdout]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// As what
    #[arg(long, value_enum, default_value = "jsonl")]
    pub format: SessionFormat,
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
}

// Which file is read.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// The file; `-` for stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
}

// Which sessions go.
#[derive(Debug, Args)]
pub struct DeleteArguments {
    /// Their ids, or the beginnings of them that no others have
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
}

// How it is said how much is kept.
#[derive(Debug, Args)]
pub struct StatsArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
}

// Where the copy goes.
#[derive(Debug, Args)]
pub struct BackupArguments {
    /// A new file, of mode 0600
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
}

// Which store is written anew.
#[derive(Debug, Args)]
pub struct VacuumArguments {
    /// Where the configuration and the project are.
    #[command(flatten)]
    pub config: ConfigArguments,
}
