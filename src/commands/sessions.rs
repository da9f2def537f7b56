//! `outrigger sessions`: the sessions that are kept, without a daemon, or beside one.
//!
//! What only reads goes on beside a daemon. What changes something needs the store for itself, and says who has it.

mod source;
mod table;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outrigger_store::{Change, Listed, Listing};
use secrecy::ExposeSecret as _;

use self::source::Source;
use super::{complain, exit_code, print};
use crate::arguments::{
    ConfigArguments, DeleteArguments, ExportArguments, ImportArguments, ListArguments,
    OneArguments, SessionsCommand,
};
use crate::config::{self, Config, StoreConfig, StorePlace};
use crate::message::SessionId;
use crate::plain_text::exposed;
use crate::protocol::command::SessionFormat;
use crate::ready::exit;
use crate::store::postgres::Node;
use crate::store::transfer::{Export, Import, MAX_BYTES};
use crate::store::{self, AnyStore, Error, Postgres, Reader, Sqlite, Store as _, Sync};
use crate::users::User;

/// How many sessions are named where an id is the beginning of several.
const NAMED: usize = 5;

/// How many characters of an id it takes at least to delete a session: fewer may be a slip.
const DELETED_BY: usize = 8;

/// Why a command cannot do what it was asked.
struct Refused {
    message: String,
    exit: u8,
}

impl From<Error> for Refused {
    fn from(problem: Error) -> Self {
        let (hint, exit) = match problem {
            Error::InUse { .. } | Error::Elsewhere { .. } => (
                "; or ask that daemon: its page and session:delete, session:import and session:export do the same",
                exit::PORT_IN_USE,
            ),
            _ => ("", exit::FAILED),
        };
        Self {
            message: format!("{problem}{hint}"),
            exit,
        }
    }
}

impl From<io::Error> for Refused {
    fn from(problem: io::Error) -> Self {
        failed(problem.to_string())
    }
}

fn failed(message: String) -> Refused {
    let exit = exit::FAILED;
    Refused { message, exit }
}

/// Does it. What goes wrong is said on stderr.
pub fn sessions(command: &SessionsCommand) -> ExitCode {
    let done = match command {
        SessionsCommand::List(wanted) => list(wanted, None),
        SessionsCommand::Search(wanted) => list(&wanted.list, Some(&wanted.words.join(" "))),
        SessionsCommand::Show(wanted) => show(wanted),
        SessionsCommand::Export(wanted) => export(wanted),
        SessionsCommand::Import(wanted) => import(wanted),
        SessionsCommand::Delete(wanted) => delete(wanted),
        SessionsCommand::Stats(wanted) => stats(&wanted.config, wanted.json),
        SessionsCommand::Backup(wanted) => backup(&wanted.config, &wanted.file),
        SessionsCommand::Vacuum(wanted) => vacuum(&wanted.config),
    };
    match done {
        Ok(text) => exit_code(print(&text).is_ok()),
        Err(refused) => {
            complain(&refused.message);
            ExitCode::from(refused.exit)
        }
    }
}

fn configuration(arguments: &ConfigArguments) -> Result<(Config, StoreConfig), Refused> {
    let configuration = |message: String| Refused {
        message,
        exit: exit::CONFIGURATION,
    };
    let loaded = config::load(&arguments.sources());
    let config = loaded
        .map_err(|errors| configuration(errors.to_string()))?
        .config;
    let store = config.store.clone().ok_or_else(|| {
        configuration(
            "sessions are not kept (store.enabled, or there is no folder for state)".to_owned(),
        )
    })?;
    Ok((config, store))
}

fn reader(arguments: &ConfigArguments) -> Result<Source, Refused> {
    let (_, store) = configuration(arguments)?;
    Ok(Source::open(&store.place)?)
}

/// Returns the file that sessions are kept in; what is not done with a database is done by others.
fn file_of(store: &StoreConfig, otherwise: &str) -> Result<PathBuf, Refused> {
    let file = store.place.file().map(Path::to_owned);
    file.ok_or_else(|| {
        failed(format!(
            "sessions are kept in a database (store.url), not in a file; {otherwise}"
        ))
    })
}

/// Finds a session by its id or the beginning of it.
fn find(reader: &Source, id: &str) -> Result<Listed, Refused> {
    let mut found = reader.find(id, NAMED + 1)?;
    if found.len() > 1 {
        let more = if found.len() > NAMED { ", …" } else { "" };
        let ids = found.iter().take(NAMED).map(|it| it.id.as_str());
        let ids: Vec<&str> = ids.collect();
        return Err(failed(format!(
            "several sessions begin with {id:?}: {}{more}",
            ids.join(", ")
        )));
    }
    found.pop().filter(|_| !id.is_empty()).ok_or_else(|| {
        failed(format!(
            "no session {id:?} is kept; `outrigger sessions list` says which are"
        ))
    })
}

fn list(wanted: &ListArguments, query: Option<&str>) -> Result<String, Refused> {
    let reader = reader(&wanted.config)?;
    let project = wanted.project.as_deref();
    let page = reader.list(&Listing {
        query: query.map(str::to_owned),
        project: project.map(|folder| absolute(folder).display().to_string()),
        archived: wanted.archived,
        labels: wanted.label.clone(),
        limit: wanted.limit.max(1),
        cursor: None,
    })?;
    Ok(match wanted.json {
        true => table::json(&page.sessions, query),
        false => table::text(&page, query),
    })
}

fn absolute(path: &Path) -> PathBuf {
    crate::sandbox::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Writes a session to a file.
fn written(reader: &Source, id: &str, format: SessionFormat, file: File) -> Result<(), Refused> {
    let export = Export::new(format, file);
    if !reader.export(id, export.each())? {
        return Err(failed(format!("session {id} was deleted meanwhile")));
    }
    Ok(export.end()?)
}

/// Writes a session to a file without a name, and returns it: whoever reads slowly must not hold up the store.
fn spooled(reader: &Source, id: &str, format: SessionFormat) -> Result<File, Refused> {
    let mut file = tempfile::tempfile()?;
    written(reader, id, format, file.try_clone()?)?;
    file.rewind()?;
    Ok(file)
}

fn show(wanted: &OneArguments) -> Result<String, Refused> {
    let reader = reader(&wanted.config)?;
    let found = find(&reader, &wanted.id)?;
    let mut text = String::new();
    spooled(&reader, &found.id, SessionFormat::Markdown)?.read_to_string(&mut text)?;
    // What others wrote must not steer the terminal.
    Ok(exposed(&text))
}

fn export(wanted: &ExportArguments) -> Result<String, Refused> {
    let reader = reader(&wanted.config)?;
    let found = find(&reader, &wanted.id)?;
    let Some(path) = &wanted.file else {
        let mut file = spooled(&reader, &found.id, wanted.format)?;
        let mut stdout = io::stdout().lock();
        io::copy(&mut file, &mut stdout)?;
        stdout.flush()?;
        return Ok(String::new());
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let shown = path.display();
    let file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => occupied(path),
        _ => failed(format!("{shown} cannot be made: {error}")),
    })?;
    written(&reader, &found.id, wanted.format, file).inspect_err(|_| {
        // Nothing of it is of use.
        std::fs::remove_file(path).ok();
    })?;
    Ok(String::new())
}

fn occupied(path: &Path) -> Refused {
    failed(format!(
        "{} is there already, and was left as it is; name another file, or move this one away",
        path.display()
    ))
}

fn import(wanted: &ImportArguments) -> Result<String, Refused> {
    let (config, store) = configuration(&wanted.config)?;
    let shown = wanted.file.display();
    let unreadable = |error: io::Error| failed(format!("{shown} cannot be read: {error}"));
    let file = match wanted.file.as_os_str() == "-" {
        true => {
            let mut file = tempfile::tempfile()?;
            io::copy(&mut io::stdin().lock().take(MAX_BYTES + 1), &mut file)?;
            file
        }
        false => File::open(&wanted.file).map_err(unreadable)?,
    };
    let projects = config.project;
    let own = projects.own.as_ref().ok();
    let own = own.map(|project| project.root.display().to_string());
    // Another machine's folder is none to work in here.
    let project = move |named: Option<&str>| {
        let named = named.filter(|named| projects.may_be(named));
        named.map(str::to_owned).or_else(|| own.clone())
    };
    let wrong = |problem: String| failed(format!("{shown}: {problem}"));
    let again = file.try_clone().map_err(unreadable)?;
    let checked = Import::new(file, project.clone()).and_then(Import::check);
    checked.map_err(wrong)?;
    let changes = Import::new(again, project).map_err(wrong)?;
    let id = SessionId::random();
    let id = id.ok_or_else(|| failed("there are no random numbers for an id".to_owned()))?;
    change(&store, async |store| {
        let store = store.of(&User::default());
        store.import(id.as_str(), Box::new(changes)).await
    })?;
    Ok(format!("{id}\n"))
}

fn delete(wanted: &DeleteArguments) -> Result<String, Refused> {
    let (_, store) = configuration(&wanted.config)?;
    let reader = Source::open(&store.place)?;
    let found = wanted.ids.iter().map(|id| {
        let found = find(&reader, id)?;
        if id.len() < DELETED_BY {
            return Err(failed(format!(
                "{id:?} is too short for what cannot be undone: give {DELETED_BY} characters of {} at least",
                found.id
            )));
        }
        Ok(found)
    });
    let found: Vec<Listed> = found.collect::<Result<_, _>>()?;
    drop(reader);
    change(&store, async |store| {
        for session in &found {
            // It may have been deleted meanwhile.
            if let Some(user) = store.owner(&session.id).await? {
                let store = store.of(&user);
                store.attempt(&session.id, vec![Change::Delete]).await?;
            }
        }
        Ok(())
    })?;
    let lines = found.iter().map(|it| format!("deleted {}\n", it.id));
    Ok(lines.collect())
}

/// Changes the store, which nobody else may have.
fn change(
    config: &StoreConfig,
    work: impl AsyncFnOnce(&AnyStore) -> Result<(), Error>,
) -> Result<(), Refused> {
    // One that is damaged is left for its owner to look at.
    match Source::open(&config.place) {
        Ok(_) | Err(Error::Missing { .. }) => {}
        Err(problem) => return Err(problem.into()),
    }
    let store = match &config.place {
        StorePlace::File(path) => AnyStore::from(Sqlite::start(path, Sync::Full)?),
        StorePlace::Database(url) => {
            AnyStore::from(Postgres::start(url.expose_secret(), &Node::default())?)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let done = runtime.block_on(async {
        // It lets go in any case: else other daemons know it until its lease is over.
        let done = work(&store).await;
        let closed = store.close().await;
        done.and(closed)
    });
    Ok(done?)
}

fn stats(arguments: &ConfigArguments, is_json: bool) -> Result<String, Refused> {
    let (_, store) = configuration(arguments)?;
    let source = Source::open(&store.place)?;
    Ok(table::stats(&source, &source.stats()?, is_json))
}

fn backup(arguments: &ConfigArguments, file: &Path) -> Result<String, Refused> {
    let (_, store) = configuration(arguments)?;
    let path = file_of(&store, "`pg_dump` makes a backup of it")?;
    let reader = Reader::open(&path)?;
    // A look ahead for the better word: what is there is not written over, whoever makes it when.
    if file.symlink_metadata().is_ok() {
        return Err(occupied(file));
    }
    reader.backup(file)?;
    Ok(String::new())
}

fn vacuum(arguments: &ConfigArguments) -> Result<String, Refused> {
    let (_, store) = configuration(arguments)?;
    let path = file_of(&store, "its server uses again what is free (autovacuum)")?;
    let (before, after) = store::vacuum(&path).map_err(|problem| match problem {
        Error::InUse { .. } => Refused {
            message: format!(
                "{problem}; or leave it to that daemon, which gives back what is free by itself while it is idle"
            ),
            exit: exit::PORT_IN_USE,
        },
        _ => problem.into(),
    })?;
    Ok(format!("{before} bytes before, {after} bytes now\n"))
}
