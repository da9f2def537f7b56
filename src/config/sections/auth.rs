//! The section `[auth]`: users beside the one who has the daemon's own token.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::units::{MIB, Number, Size, Span};

/// The longest difference between two clocks that is overlooked, in milliseconds.
const MOST_SKEW: u64 = 10 * 60 * 1_000;

/// Users beside the one who has the daemon's own token, each with sessions of its own. See [users.md](users.md).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuthSettings {
    /// Users who come with a token (JWT) that somebody signed.
    pub(crate) jwt: JwtSettings,
    /// Users who come through a proxy that has asked them who they are.
    pub(crate) header: HeaderSettings,
    /// How much each user may do.
    pub(crate) limits: LimitSettings,
}

/// How much each user may do; money is in `[budget]`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitSettings {
    /// Sessions at once, those included that wait for a socket to come back; up to 1000000, 0 for no limit.
    #[serde(with = "Number::<0, 1_000_000>")]
    pub(crate) sessions: u64,
    /// Exchanges at once; up to 1000000, 0 for no limit.
    #[serde(with = "Number::<0, 1_000_000>")]
    pub(crate) exchanges: u64,
    /// Sends in a minute, and calls that a client starts (`tool:execute`); up to 1000000, 0 for no limit.
    #[serde(with = "Number::<0, 1_000_000>")]
    pub(crate) sends_per_minute: u64,
    /// How much each user may keep: sessions with what is attached and changed in them, and homes of conversations; 1MiB to
    /// 16384GiB. Empty: no limit.
    #[serde(deserialize_with = "Size::<MIB, { 16384 * 1024 * MIB }>::optional")]
    #[schemars(with = "Size::<MIB, { 16384 * 1024 * MIB }>")]
    pub(crate) disk: Option<u64>,
}

/// Users who come with a token (JWT) that somebody signed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JwtSettings {
    /// The keys that tokens are signed with, a set of JSON web keys (JWKS) for EdDSA (Ed25519), RS256 or HS256: a file, or an
    /// address: `https`, or `http` on this machine. Empty for no tokens of users.
    pub(crate) keys: String,
    /// What a token has to have as `iss`; empty for anything.
    pub(crate) issuer: String,
    /// What a token has to have in `aud`; empty for anything.
    pub(crate) audience: String,
    /// How far the clock of whoever makes tokens may be off; up to 10m.
    #[serde(with = "Span::<0, MOST_SKEW>")]
    pub(crate) clock_skew: Duration,
    /// A file with a line for each token that is taken back, `jti NAME`, or for each user, `sub NAME` or `sub NAME TIME` for
    /// those that were made before. It is read again when it changes. Empty for none.
    pub(crate) revoked: String,
}

/// Users who come through a proxy that has asked them who they are.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeaderSettings {
    /// The header in which the proxy says who the user is, e.g. `x-auth-user`. It has to take it out of what clients send. Empty for none.
    pub(crate) name: String,
    /// The addresses from which the header counts, e.g. `["10.0.0.5", "10.1.0.0/16"]`; from others it is no header at all.
    pub(crate) from: Vec<String>,
    /// The users who may also do what is about the daemon.
    pub(crate) operators: Vec<String>,
}
