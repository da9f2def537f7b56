//! What sessions are read from, beside a daemon that has it.

use std::path::PathBuf;

use outrigger_store::{Each, Listed, Listing, Page, Stats};
use secrecy::ExposeSecret as _;

use crate::config::StorePlace;
use crate::store::{Error, Reader, postgres};

pub(super) enum Source {
    File(PathBuf, Reader),
    Database(Box<postgres::Reader>),
}

impl Source {
    /// Opens it; fails where nothing is kept there.
    pub(super) fn open(place: &StorePlace) -> Result<Self, Error> {
        Ok(match place {
            StorePlace::File(path) => Self::File(path.clone(), Reader::open(path)?),
            StorePlace::Database(url) => {
                Self::Database(Box::new(postgres::Reader::open(url.expose_secret())?))
            }
        })
    }

    /// Returns where it is, for people.
    pub(super) fn place(&self) -> String {
        match self {
            Self::File(path, _) => path.display().to_string(),
            Self::Database(reader) => reader.shown().to_owned(),
        }
    }

    /// Returns a page of sessions, the one that changed last first.
    pub(super) fn list(&self, wanted: &Listing) -> Result<Page, Error> {
        match self {
            Self::File(_, reader) => reader.list(wanted),
            Self::Database(reader) => reader.list(wanted),
        }
    }

    /// Returns the session of this id, or else those whose ids begin with it.
    pub(super) fn find(&self, id: &str, most: usize) -> Result<Vec<Listed>, Error> {
        match self {
            Self::File(_, reader) => reader.find(id, most),
            Self::Database(reader) => reader.find(id, most),
        }
    }

    /// Reads all of a session; false where there is none.
    pub(super) fn export(&self, id: &str, each: Each) -> Result<bool, Error> {
        match self {
            Self::File(_, reader) => reader.export(id, each),
            Self::Database(reader) => reader.export(id, each),
        }
    }

    /// Returns how much is kept.
    pub(super) fn stats(&self) -> Result<Stats, Error> {
        match self {
            Self::File(_, reader) => reader.stats(),
            Self::Database(reader) => reader.stats(),
        }
    }
}
