//! The section `[store]`.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use super::Secret;
use crate::units::{DAY, MIB, Size};

/// Where sessions are kept, so that they outlive the daemon.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreSettings {
    /// Whether sessions are kept. Where they are not, they end with the daemon, or `session.resume_grace` after their last
    /// socket.
    pub(crate) enabled: bool,
    /// The file, outside the project and its central storage; one daemon at a time has it. Empty for
    /// `outrigger/outrigger.db` in the user's folder for state (`~/.local/state`, on macOS `~/Library/Application Support`).
    pub(crate) path: PathBuf,
    /// A database of PostgreSQL instead of the file: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, which several daemons may
    /// have (`[cluster]`). What leaves the machine is encrypted, and the server's certificate looked at, unless it ends with
    /// `?sslmode=disable`; `sslrootcert=FILE` names authorities.
    /// `OUTRIGGER_STORE__URL_FILE` names a file that holds it. Empty for the file.
    #[serde(with = "Secret")]
    pub(crate) url: Option<SecretString>,
    /// How sure it is that what was acknowledged is kept in the file: `full` for also after a loss of power, `normal` for after
    /// the daemon was killed, which is faster on slow disks. Without effect on a database, whose server says that itself
    /// (`synchronous_commit`).
    #[serde(deserialize_with = "super::word")]
    pub(crate) sync: StoreSync,
    /// Whether sends that waited when the daemon ended run as soon as their session is resumed. Where not, they wait until
    /// the user says something in their conversation.
    pub(crate) resume_queue: bool,
    /// For how long a session is kept that does not change: `forever`, or days, `1d` to `36500d`. Then it is deleted, unless
    /// somebody has it open.
    #[serde(deserialize_with = "keep")]
    #[schemars(with = "String")]
    pub(crate) keep: Option<Duration>,
    /// How much is kept; 16MiB to 16384GiB. Beyond it sessions that were put away are deleted, the one that did not change for
    /// longest first, and no others. Empty: no limit.
    #[serde(deserialize_with = "Size::<{ 16 * MIB }, { 16384 * 1024 * MIB }>::optional")]
    #[schemars(with = "Size::<{ 16 * MIB }, { 16384 * 1024 * MIB }>")]
    pub(crate) max_bytes: Option<u64>,
}

/// Reads for how long something is kept; `None` for ever.
fn keep<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    let days = text.trim().strip_suffix('d');
    let days = days.and_then(|days| days.parse::<u64>().ok());
    match (text.trim(), days) {
        ("forever", _) => Ok(None),
        (_, Some(days @ 1..=36_500)) => Ok(Some(Duration::from_millis(days * DAY))),
        _ => Err(D::Error::custom(format!(
            "{text:?} is neither \"forever\" nor a number of days from \"1d\" to \"36500d\""
        ))),
    }
}

/// How sure it is that what was acknowledged is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoreSync {
    /// Also after a loss of power.
    #[default]
    Full,
    /// After the daemon was killed.
    Normal,
}
