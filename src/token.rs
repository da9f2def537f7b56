//! Tokens of users (JWT, RFC 7519): checked against keys that the operator names, and made by `outrigger token`.
//!
//! The algorithm is the key's, never the token's word. What a token says besides who it is for only narrows what the
//! configuration allows; a claim that is not understood refuses the whole token, since it may have been meant to narrow too.
//!
//! Read next: `keys` (what a token is checked against), `source` (where keys come from), `revoked` (what is taken back).

mod crypto;
mod keys;
mod make;
mod pass;
mod revoked;
mod source;

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::config::JwtConfig;
use crate::message::{Money, TrustLevel};
use crate::protocol::roles::SocketRole;
use crate::users::{Grant, User, is_plain};
use keys::Keys;
pub(crate) use make::{public_keys, signed, written_key};
pub(crate) use pass::{Asked, AskedSocket, Passes};
pub(crate) use revoked::Revoked;
use source::Source;

/// The longest token, in bytes: more than one with many folders has.
const MAX_TOKEN: usize = 8 * 1024;

/// The longest name of a user, in characters.
pub(crate) const MAX_NAME: usize = 128;

/// The most folders that a token names.
const MAX_ROOTS: usize = 64;

/// What a token says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Claims {
    /// Who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iss: Option<String>,
    /// Whom it is for: the user's name.
    pub sub: String,
    /// When it ends, in seconds since 1970.
    pub exp: f64,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iat: Option<f64>,
    /// Its own name, by which it can be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// Which daemon it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aud: Option<serde_json::Value>,
    /// What its user may do here.
    #[serde(default)]
    pub outrigger: Rights,
}

/// What a user may do here. What is absent narrows nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Rights {
    pub role: Role,
    /// Folders below which projects are, absolute and without `..`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<Vec<PathBuf>>,
    /// The most that is done without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustLevel>,
    /// US dollars in a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
    /// Bytes that the user may keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
}

/// What a user's sockets may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// They look on.
    Observer,
    /// They answer questions, too.
    Approver,
    /// They do everything in the user's own sessions.
    #[default]
    Driver,
    /// The same, and what is about the daemon.
    Operator,
}

/// Why a token opens nothing. It says nothing of what a good one would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("the token is missing or wrong")]
    Wrong,
    #[error("no key is known that the token was signed with")]
    UnknownKey,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    Early,
    #[error("the token is of another issuer, or for another audience, or it does not say which")]
    Elsewhere,
    #[error("the token was taken back")]
    Revoked,
    #[error(
        "the token has claims that cannot be read: they need `sub`, `exp`, and in `outrigger` no more than role, roots, trust, budget and disk"
    )]
    Claims,
}

/// Checks tokens, and knows those that are in use.
pub(crate) struct Tokens {
    config: JwtConfig,
    source: Source,
    door: Mutex<Door>,
    /// Held while the file of what was taken back is read, so that an older look never comes after a newer one.
    looking: tokio::sync::Mutex<()>,
}

/// What was taken back, and what is in use: under one lock, so that no token is let in beside its being taken back.
struct Door {
    revoked: Revoked,
    /// Why the file could not be read at the last look.
    problem: Option<String>,
    in_use: Vec<(Weak<Grant>, Claims)>,
}

impl Tokens {
    /// Returns what the configuration says; fails where a file that it names cannot be read.
    pub(crate) fn new(config: &JwtConfig) -> Result<Self, String> {
        crypto::install();
        Ok(Self {
            source: Source::new(&config.keys)?,
            door: Mutex::new(Door {
                revoked: Revoked::read(config.revoked.as_deref())?,
                problem: None,
                in_use: Vec::new(),
            }),
            looking: tokio::sync::Mutex::default(),
            config: config.clone(),
        })
    }

    /// Returns what a token grants.
    pub(crate) async fn grant(&self, token: &str) -> Result<Arc<Grant>, Refused> {
        if token.len() > MAX_TOKEN {
            return Err(Refused::Wrong);
        }
        let key = keys::wanted(token)?;
        let keys = self.source.keys(|keys| keys.has(&key)).await;
        let claims = keys.check(token, &key, &self.config)?;
        let grant = Arc::new(claims.grant(self.config.clock_skew)?);
        self.look_at_revoked().await;
        self.door.lock().enter(grant, claims)
    }

    /// Reads the keys again, and what was taken back, whose sockets are closed.
    pub(crate) async fn reload(&self) {
        self.source.read_again().await;
        self.look_at_revoked().await;
    }

    /// Reads what was taken back; closes the sockets of what is new there. A file that cannot be read changes nothing, and is
    /// said to be so once.
    pub(crate) async fn look_at_revoked(&self) {
        let Some(path) = self.config.revoked.clone() else {
            return;
        };
        let _alone = self.looking.lock().await;
        let read = tokio::task::spawn_blocking(move || Revoked::read(Some(&path))).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        self.door.lock().take_back(read);
    }
}

/// How what tokens are checked by is, for who asks why something does not work.
pub(crate) struct Checkup {
    /// Why keys were left out; else why there are none.
    pub keys: Result<Vec<String>, String>,
    /// Why what was taken back cannot be read, where it cannot.
    pub revoked: Result<(), String>,
}

/// Reads keys, and what was taken back, as the daemon would.
pub(crate) async fn check_up(config: &JwtConfig) -> Checkup {
    let path = config.revoked.clone();
    let revoked = move || Revoked::read(path.as_deref()).map(drop);
    let revoked = tokio::task::spawn_blocking(revoked).await;
    Checkup {
        keys: source::read(&config.keys).await.map(|it| it.odd().to_vec()),
        revoked: revoked.unwrap_or_else(|error| Err(error.to_string())),
    }
}

impl Door {
    /// Lets a token in that was not taken back.
    fn enter(&mut self, grant: Arc<Grant>, claims: Claims) -> Result<Arc<Grant>, Refused> {
        if self.revoked.has(&claims) {
            return Err(Refused::Revoked);
        }
        // As many as sockets and sessions have.
        self.in_use.retain(|(grant, _)| grant.strong_count() > 0);
        self.in_use.push((Arc::downgrade(&grant), claims));
        Ok(grant)
    }

    /// Takes back what a file says; where it could not be read, what was taken back before stays so.
    fn take_back(&mut self, read: Result<Revoked, String>) {
        let revoked = match read {
            Ok(revoked) => revoked,
            Err(problem) => {
                if self.problem.as_ref() != Some(&problem) {
                    tracing::error!(%problem, "tokens that were taken back (auth.jwt.revoked) stay as they were; what is new in the file does not count until it can be read");
                }
                self.problem = Some(problem);
                return;
            }
        };
        if self.problem.take().is_some() {
            tracing::info!(
                "the file of tokens that were taken back (auth.jwt.revoked) can be read again"
            );
        }
        if self.revoked.is_same(&revoked) {
            return;
        }
        let gone = self.in_use.iter().filter(|(_, claims)| revoked.has(claims));
        for grant in gone.filter_map(|(grant, _)| grant.upgrade()) {
            grant.revoked.cancel();
        }
        self.revoked = revoked;
    }
}

impl Claims {
    /// Says what is wrong with them, before a token is made of them.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Err(_) = self.grant(Duration::ZERO) else {
            return Ok(());
        };
        let of_name = Self {
            sub: self.sub.clone(),
            ..Self::default()
        };
        let mut of_folders = of_name.clone();
        of_folders.outrigger.roots.clone_from(&self.outrigger.roots);
        let is_right = |claims: &Self| claims.grant(Duration::ZERO).is_ok();
        let wrong = match (is_right(&of_name), is_right(&of_folders)) {
            (false, _) => {
                format!("the name has 1 to {MAX_NAME} characters, and no control characters")
            }
            (true, false) => {
                format!("folders are absolute and without .., and {MAX_ROOTS} at most")
            }
            (true, true) => {
                "the budget is 0 or more, and it ends at a time that there is".to_owned()
            }
        };
        Err(format!("a daemon would not take it: {wrong}"))
    }

    /// Returns what they grant; fails where that cannot be said.
    fn grant(&self, clock_skew: Duration) -> Result<Grant, Refused> {
        let Rights {
            role,
            roots,
            trust,
            budget,
            disk,
        } = self.outrigger.clone();
        let name = &self.sub;
        let is_name = (1..=MAX_NAME).contains(&name.chars().count());
        if !is_name || name.chars().any(char::is_control) {
            return Err(Refused::Claims);
        }
        let is_folder = |root: &PathBuf| root.is_absolute() && is_plain(root);
        if let Some(roots) = &roots
            && (roots.len() > MAX_ROOTS || !roots.iter().all(is_folder))
        {
            return Err(Refused::Claims);
        }
        let day = match budget {
            Some(dollars) => Some(Arc::new(
                Money::from_dollars(dollars).ok_or(Refused::Claims)?,
            )),
            None => None,
        };
        // A part of a second is not worth a further one.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a cast of a float saturates"
        )]
        let ends = Timestamp::from_second(self.exp as i64).map_err(|_| Refused::Claims)?;
        // As long as it opens the door.
        let ends = ends.saturating_add(clock_skew).unwrap_or(ends);
        Ok(Grant {
            user: User::new(name),
            role: match role {
                Role::Observer => SocketRole::Observer,
                Role::Approver => SocketRole::Approver,
                Role::Driver | Role::Operator => SocketRole::Driver,
            },
            is_operator: role == Role::Operator,
            roots,
            most_trust: trust.unwrap_or(TrustLevel::Autonomous),
            day,
            disk: disk.map(Arc::new),
            ends: Some(ends),
            revoked: CancellationToken::new(),
        })
    }
}

#[cfg(test)]
mod tests;
