//! The connection that writes: its settings, and the schema brought up to date.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::super::{CACHE_KIB, OLDEST_SQLITE, SCHEMA, Sync};

/// Opens the file and brings its schema up to date.
pub(in crate::sqlite) fn connect(
    path: &Path,
    sync: Sync,
    exclusive: bool,
) -> rusqlite::Result<Connection> {
    let found = rusqlite::version_number();
    if found < OLDEST_SQLITE {
        let problem =
            format!("SQLite {found} may lose what was committed; {OLDEST_SQLITE} is needed");
        return Err(rusqlite::Error::InvalidParameterName(problem));
    }
    let mut connection = Connection::open(path)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Else what goes by a partial index is planned anew for each value that it is given.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(Duration::from_secs(1))?;
    let journal = match exclusive {
        true => "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE;",
        false => "PRAGMA journal_mode = WAL;",
    };
    let sync = match sync {
        Sync::Full => "FULL",
        Sync::Normal => "NORMAL",
    };
    connection.execute_batch(&format!(
        "PRAGMA auto_vacuum = INCREMENTAL; {journal} PRAGMA synchronous = {sync}; PRAGMA foreign_keys = ON; \
         PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 67108864; \
         PRAGMA cache_size = -{CACHE_KIB}; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON; \
         CREATE TEMP TABLE gone (body INTEGER PRIMARY KEY); CREATE TEMP TABLE loose (attachment INTEGER PRIMARY KEY);"
    ))?;
    #[cfg(all(unix, debug_assertions))]
    super::deaths::watch(&mut connection)?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// Brings the schema up to date, one step in one transaction.
fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    const STEPS: [&str; SCHEMA as usize] = [
        include_str!("../1.sql"),
        include_str!("../2.sql"),
        include_str!("../3.sql"),
    ];
    let at: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if at > SCHEMA {
        let problem = format!("it has schema {at}, and this version knows {SCHEMA} at most");
        return Err(rusqlite::Error::InvalidParameterName(problem));
    }
    let done = usize::try_from(at).unwrap_or(0);
    for (version, step) in (1_i64..).zip(STEPS).skip(done) {
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    if done < STEPS.len() {
        // The next one to look reads the number from the file alone.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    Ok(())
}
