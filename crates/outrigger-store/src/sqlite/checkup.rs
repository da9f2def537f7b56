//! Whether a file is well, for who asks why something does not work. Nothing is written.

use std::fs::{self, OpenOptions};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::offline::{PATIENCE, check, problem};
use super::{file, reader};
use crate::Error;

/// The most problems that are told.
const PROBLEMS: usize = 10;

/// How a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkup {
    /// The process that has it, by what it wrote of itself; `None` where none has.
    pub holder: Option<String>,
    /// Its schema.
    pub schema: i64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of its log of changes (`-wal`).
    pub log_bytes: u64,
    /// Bytes of the file that are free.
    pub free_bytes: u64,
    /// Whether it is on a file system of another machine, where it works without a log of changes.
    pub is_on_a_network: bool,
    /// Whether this user may write it.
    pub is_writable: bool,
    /// What is wrong with what is in it; the first 10.
    pub problems: Vec<String>,
}

/// Looks at the file at `path`, all of it: a second for some gigabytes on a fast disk. Fails where there is none, it is
/// newer than this program, or no database.
pub fn check_up(path: &Path) -> Result<Checkup, Error> {
    check(path)?;
    let failed = |error: rusqlite::Error| problem(path, &error);
    let holder = file::holder(path);
    let log_bytes = fs::metadata(file::with(path, "-wal")).map_or(0, |it| it.len());
    let connection = match holder.is_none() && log_bytes == 0 {
        true => at_rest(path),
        false => reader(path),
    };
    let connection = connection.map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    let number = |pragma: &str| -> Result<i64, Error> {
        let read = connection.query_row(pragma, [], |row| row.get(0));
        read.map_err(failed)
    };
    let free = number("PRAGMA freelist_count")?.saturating_mul(number("PRAGMA page_size")?);
    Ok(Checkup {
        holder,
        schema: number("PRAGMA user_version")?,
        bytes: fs::metadata(path).map_or(0, |it| it.len()),
        log_bytes,
        free_bytes: u64::try_from(free).unwrap_or(0),
        is_on_a_network: file::is_on_a_network(path),
        is_writable: OpenOptions::new().write(true).open(path).is_ok(),
        problems: problems(&connection).unwrap_or_else(|error| vec![error.to_string()]),
    })
}

/// Opens a file that nobody has, and that is whole by itself. Otherwise a log of changes and shared memory would be made
/// beside it, perhaps another user's.
fn at_rest(path: &Path) -> rusqlite::Result<Connection> {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(uri, flags)
}

/// Returns what is wrong with what is in it.
fn problems(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = connection.prepare(&format!("PRAGMA quick_check({PROBLEMS})"))?;
    let lines = check.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> = lines.collect::<rusqlite::Result<_>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}
