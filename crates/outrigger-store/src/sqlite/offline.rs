//! The file without a thread that writes: looked at beside a process that has it, or made smaller while nobody does.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::apply::FORGET_WORDS;
use super::{Sync, file, read, reader, writer};
use crate::user::Whose;
use crate::{Each, Error, Listed, Listing, Page, Stats};

/// How long a read waits for whoever writes.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// A store's file that is only read, also beside a process that has it. Each read is one snapshot of it.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    path: PathBuf,
}

impl Reader {
    /// Opens the file at `path`; fails where there is none, it is newer than this program, or no database.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let path = path.to_owned();
        check(&path)?;
        let opened = reader(&path).and_then(|connection| {
            connection.busy_timeout(PATIENCE)?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => Ok(Self { connection, path }),
            Err(error) => Err(problem(&path, &error)),
        }
    }

    /// Returns a page of sessions, the one that changed last first.
    pub fn list(&self, wanted: &Listing) -> Result<Page, Error> {
        self.read(read::list(&self.connection, Whose::Everybodys, wanted))
    }

    /// Returns the session of this id, or else those whose ids begin with it, `most` at most.
    pub fn find(&self, id: &str, most: usize) -> Result<Vec<Listed>, Error> {
        self.read(read::find(&self.connection, id, most))
    }

    /// Reads all of a session; false where there is none.
    pub fn export(&self, id: &str, mut each: Each) -> Result<bool, Error> {
        self.read(read::export(
            &self.connection,
            (Whose::Everybodys, id),
            &mut each,
        ))
    }

    /// Returns how much is kept.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.read(read::stats(&self.connection, &self.path))
    }

    /// Writes a copy of all that is kept to a new file of mode 0600; fails where something is there.
    pub fn backup(&self, to: &Path) -> Result<(), Error> {
        let open = |problem: String| Error::Open {
            path: to.display().to_string(),
            problem,
        };
        let name = to.to_str();
        let name = name.ok_or_else(|| open("its name is no UTF-8".to_owned()))?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        file::private(&mut options);
        // SQLite takes a file that is empty, and leaves its mode as it is.
        options.open(to).map_err(|error| open(error.to_string()))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // Whoever may only ask may not do this.
        let copied = Connection::open_with_flags(&self.path, flags).and_then(|connection| {
            connection.busy_timeout(PATIENCE)?;
            connection.execute("VACUUM INTO ?1", [name])
        });
        copied.map(drop).map_err(|error| {
            // Nothing of it is of use.
            std::fs::remove_file(to).ok();
            problem(&self.path, &error)
        })
    }

    fn read<T>(&self, read: rusqlite::Result<T>) -> Result<T, Error> {
        read.map_err(|error| problem(&self.path, &error))
    }
}

/// Writes the whole file anew, so that nothing in it is free. Returns how many bytes it had and has; fails where another
/// process has it.
pub fn vacuum(path: &Path) -> Result<(u64, u64), Error> {
    check(path)?;
    let lock = Arc::new(file::lock(path)?);
    let bytes = || std::fs::metadata(path).map_or(0, |it| it.len());
    let before = bytes();
    let done = writer::connect(path, Sync::Full, file::is_on_a_network(path)).and_then(|it| {
        it.execute_batch(FORGET_WORDS)?;
        it.execute_batch("VACUUM")?;
        it.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    });
    done.map_err(|error| problem(path, &error))?;
    drop(lock);
    Ok((before, bytes()))
}

/// Fails where there is no database of ours.
pub(super) fn check(path: &Path) -> Result<(), Error> {
    let shown = || path.display().to_string();
    if !path.exists() {
        return Err(Error::Missing { path: shown() });
    }
    match file::looks(path)? {
        file::Looks::Ours => Ok(()),
        file::Looks::Empty => Err(Error::Missing { path: shown() }),
        file::Looks::Foreign => Err(Error::Corrupt {
            path: shown(),
            problem: file::FOREIGN.to_owned(),
        }),
    }
}

pub(super) fn problem(path: &Path, error: &rusqlite::Error) -> Error {
    let (path, problem) = (path.display().to_string(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::Corrupt { path, problem }
        }
        _ => Error::Open { path, problem },
    }
}
