//! How much is kept: sessions that are too old or too many are deleted, and what is free in the file is given back.
//!
//! All of it is done in steps while nothing waits to be written.

use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};

use super::super::read;
use super::{Writer, apply};
use crate::upkeep::Tell;
use crate::{Growth, Limits, User};

/// How many free pages stay in the file for what is written next, how many are given back in one step, and in how many
/// steps at the end of the process. A page has 4 KiB.
const SPARE: i64 = 256;
const STEP: i64 = 512;
pub(super) const LAST_STEPS: usize = 32;

/// For how long what was deleted is removed at the end of the process, where that takes more steps; the next process removes
/// the rest.
pub(super) const REMOVE_FOR: Duration = Duration::from_secs(2);

/// How many pages of the index of words are merged at once at the end, and for how long.
const FORGET_PAGES: i64 = 1_000;
const FORGET_FOR: Duration = Duration::from_secs(2);

impl Writer {
    pub(super) fn limit(&mut self, limits: Limits, tell: Tell) {
        self.upkeep.limits = limits;
        self.upkeep.tell = Some(tell);
        self.upkeep.look();
    }

    /// Does one step of what is to be done.
    pub(super) fn keep_up(&mut self) {
        // What is deleted is removed before it is asked whether that was enough.
        let done = match (self.upkeep.has_left, self.upkeep.is_due) {
            (true, _) => self.remove_some(),
            (false, true) => self.hold_limits(),
            (false, false) => self.give_back(),
        };
        if let Err(error) = done {
            // The next commit says what is wrong with the disk.
            tracing::debug!(%error, "the store does not shrink now");
            self.upkeep.is_due = false;
            (self.upkeep.has_left, self.upkeep.has_free) = (false, false);
        }
    }

    /// Takes the words of what was removed out of the index, which only notes that they are gone until it is merged.
    /// What was said is taken into the file first; of a large index some may be left.
    pub(super) fn forget_words(&self) {
        let Some(connection) = self.connection.as_ref().filter(|_| self.has_removed) else {
            return;
        };
        let forget = || -> rusqlite::Result<bool> {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            let began = Instant::now();
            // Negative: all of the index, not only what is worth it.
            let mut pages = -FORGET_PAGES;
            loop {
                let before = connection.total_changes();
                connection.execute(apply::FORGET_WORDS, [pages])?;
                // Then nothing was left to do: https://sqlite.org/fts5.html#the_merge_command
                if connection.total_changes() - before < 2 {
                    return Ok(true);
                }
                if began.elapsed() > FORGET_FOR {
                    return Ok(false);
                }
                pages = FORGET_PAGES;
            }
        };
        match forget() {
            Ok(true) => {}
            Ok(false) => tracing::warn!("some words of what was removed are left in the index"),
            Err(error) => {
                tracing::warn!(%error, "words of what was removed are left in the index");
            }
        }
    }

    /// Gives back what is free, as far as that does not take long.
    pub(super) fn give_back_last(&mut self) {
        for _ in 0..LAST_STEPS {
            if !self.upkeep.has_free || self.give_back().is_err() {
                return;
            }
        }
    }

    /// Deletes one session, where there is one too many.
    fn hold_limits(&mut self) -> rusqlite::Result<()> {
        let Limits { keep, max_bytes } = self.upkeep.limits;
        if let Some(keep) = keep {
            let before = self
                .time()?
                .saturating_sub(i64::try_from(keep.as_millis()).unwrap_or(i64::MAX));
            if self.delete_first(read::BEFORE, before, true)? {
                return Ok(());
            }
        }
        if let Some(max_bytes) = max_bytes {
            let Some(connection) = &self.connection else {
                self.upkeep.is_due = false;
                return Ok(());
            };
            let bytes = held(connection)?;
            if bytes > max_bytes && self.delete_first(read::PUT_AWAY_BEFORE, i64::MAX, false)? {
                return Ok(());
            }
            self.upkeep.tell_fullness(bytes, max_bytes);
        }
        self.upkeep.is_due = false;
        Ok(())
    }

    /// Returns the time, as far as it is believed.
    fn time(&mut self) -> rusqlite::Result<i64> {
        match (&self.connection, &mut self.clock) {
            (Some(connection), Some(clock)) => {
                let (time, has_gone_on) = clock.read();
                if has_gone_on {
                    connection
                        .prepare_cached("INSERT OR REPLACE INTO clock (key, at_ms) VALUES (1, ?1)")?
                        .execute([time])?;
                }
                Ok(time)
            }
            _ => Ok(0),
        }
    }

    /// Deletes the first of these sessions that nobody has open; false where there is none.
    fn delete_first(&mut self, sql: &str, bound: i64, is_old: bool) -> rusqlite::Result<bool> {
        let Some(connection) = &mut self.connection else {
            return Ok(false);
        };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut first = None;
        {
            let mut statement = transaction.prepare_cached(sql)?;
            let mut rows = statement.query([bound])?;
            while let Some(row) = rows.next()? {
                let id: String = row.get(1)?;
                let user: String = row.get(3)?;
                let user = User::new(&user);
                if !self.held.has(&user, &id) {
                    first = Some((row.get(0)?, user, id, row.get(2)?));
                    break;
                }
            }
        }
        let Some((key, user, session, updated_ms)) = first else {
            return Ok(false);
        };
        apply::take_away(&transaction, key)?;
        transaction.commit()?;
        self.has_removed = true;
        (self.upkeep.has_left, self.upkeep.has_free) = (true, true);
        self.upkeep.tell(Growth::Deleted {
            user,
            session,
            updated_ms,
            is_old,
        });
        Ok(true)
    }

    /// Gives some pages back that are free.
    fn give_back(&mut self) -> rusqlite::Result<()> {
        let Some(connection) = &self.connection else {
            self.upkeep.has_free = false;
            return Ok(());
        };
        let free = number(connection, "PRAGMA freelist_count")?;
        if free > SPARE {
            let pages = STEP.min(free - SPARE);
            let mut step = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
            // A row for each page.
            let mut rows = step.query([])?;
            while rows.next()?.is_some() {}
        }
        let left = number(connection, "PRAGMA freelist_count")?;
        if left <= SPARE || left == free {
            self.upkeep.has_free = false;
            if free > SPARE {
                // The file is shorter when the log of changes was taken in.
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            }
        }
        Ok(())
    }
}

/// Returns how many bytes of the file are in use.
fn held(connection: &Connection) -> rusqlite::Result<u64> {
    let pages =
        number(connection, "PRAGMA page_count")? - number(connection, "PRAGMA freelist_count")?;
    let bytes = pages.saturating_mul(number(connection, "PRAGMA page_size")?);
    Ok(u64::try_from(bytes).unwrap_or(0))
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.query_row(pragma, [], |row| row.get(0))
}
