//! Slices of sessions that are imported, and the removal of those that never became whole or are no more.

use std::time::Instant;

use rusqlite::TransactionBehavior;

use super::growth::{LAST_STEPS, REMOVE_FOR};
use super::{Writer, apply, is_of_the_disk, problem};
use crate::Error;
use crate::slices::Slice;

impl Writer {
    /// Writes a slice in one transaction.
    pub(super) fn slice(&mut self, slice: &Slice) -> Result<(), Error> {
        self.is_well()?;
        let Some(connection) = &mut self.connection else {
            return Err(Error::Failing("it is not open".to_owned()));
        };
        self.imports.insert(slice.session.clone());
        let mut write = || {
            let behavior = TransactionBehavior::Immediate;
            let transaction = connection.transaction_with_behavior(behavior)?;
            apply::import::slice(&transaction, slice)?;
            transaction.commit()
        };
        match write() {
            Ok(()) => {}
            Err(error) if is_of_the_disk(&error) => {
                // A connection whose disk failed is opened anew.
                self.connection = None;
                return Err(problem(&self.path, &error));
            }
            Err(error) => return Err(Error::Refused(error.to_string())),
        }
        if slice.is_last {
            self.imports.remove(&slice.session);
            self.upkeep.look();
        }
        Ok(())
    }

    /// Has what was written of an import removed.
    pub(super) fn break_off(&mut self, session: &str) {
        self.imports.remove(session);
        self.upkeep.has_left = true;
    }

    /// Removes some of what imports have left that broke off, and of large sessions that were deleted.
    pub(super) fn remove_some(&mut self) -> rusqlite::Result<()> {
        self.upkeep.has_left = false;
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if apply::import::remove(&transaction, &self.imports)? {
            transaction.commit()?;
            self.has_removed = true;
            (self.upkeep.has_left, self.upkeep.has_free) = (true, true);
        }
        Ok(())
    }

    /// Removes what is left of imports and of large sessions, as far as that does not take long.
    pub(super) fn remove_last(&mut self) {
        self.imports.clear();
        self.upkeep.has_left = true;
        let began = Instant::now();
        let mut steps = 0;
        while self.upkeep.has_left && (steps < LAST_STEPS || began.elapsed() < REMOVE_FOR) {
            if self.remove_some().is_err() {
                return;
            }
            steps += 1;
        }
    }
}
