//! What is kept of a sign-in.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How long before its end a token is not used any more, in seconds.
const LEAST_LEFT: i64 = 30;

/// The sign-in at one server: who issued what to whom.
///
/// Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The MCP server's address.
    pub(super) server: String,
    /// Who issued it; what it issued is never sent to another one.
    pub(super) issuer: String,
    /// The host that people sign in at.
    pub(super) host: String,
    /// Where it takes codes and refresh tokens.
    pub(super) token_endpoint: String,
    /// Where it takes tokens back.
    pub(super) revocation_endpoint: Option<String>,
    /// Whether the client's secret goes into the body instead of a header.
    pub(super) secret_in_body: bool,
    /// Which resource the tokens are for.
    pub(super) resource: String,
    /// As whom.
    pub(super) client: Registered,
    /// What was issued; nothing where it is over.
    pub(super) tokens: Option<Tokens>,
}

/// The daemon as an authorization server knows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Registered {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// Where answers go that it was registered with.
    pub(super) redirect: String,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// When the access token ends, in seconds since 1970; `None` where nobody said.
    pub(super) ends: Option<i64>,
    pub(super) scopes: Vec<String>,
}

impl Record {
    /// Lists what of it is secret.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let tokens = self.tokens.iter();
        let issued = tokens.flat_map(|it| [Some(&it.access), it.refresh.as_ref()]);
        let secret = self.client.secret.as_ref();
        issued.flatten().chain(secret).map(String::as_str)
    }
}

impl Tokens {
    /// Whether the access token is as good as over.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        let left = |ends: i64| ends.saturating_sub(now.as_second());
        self.ends.is_some_and(|ends| left(ends) < LEAST_LEFT)
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("server", &self.server)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}
