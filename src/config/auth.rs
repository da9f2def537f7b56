//! Who is let in besides whoever has the daemon's own token, as the rest of the daemon may rely on it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Who is let in besides whoever has the daemon's own token, and as whom.
#[derive(Clone, Debug, Default)]
pub struct AuthConfig {
    /// Users with tokens; `None` for none.
    pub jwt: Option<JwtConfig>,
    /// Users of a proxy; `None` for none.
    pub header: Option<HeaderConfig>,
    /// How much each user may do.
    pub limits: UserLimits,
}

impl AuthConfig {
    /// Returns whether there are users besides whoever has the daemon's own token.
    pub(crate) fn has_users(&self) -> bool {
        self.jwt.is_some() || self.header.is_some()
    }
}

/// How much each user may do; `None` for no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct UserLimits {
    /// Sessions at once.
    pub sessions: Option<u64>,
    /// Exchanges at once.
    pub exchanges: Option<u64>,
    /// Sends in a minute.
    pub sends_per_minute: Option<u64>,
    /// Bytes that are kept.
    pub disk: Option<u64>,
}

/// Users with tokens.
#[derive(Clone, Debug)]
pub struct JwtConfig {
    /// Where the keys are.
    pub keys: KeySource,
    /// What a token has to have as `iss`.
    pub issuer: Option<String>,
    /// What a token has to have in `aud`.
    pub audience: Option<String>,
    /// How far clocks may be apart.
    pub clock_skew: Duration,
    /// The file with what was taken back.
    pub revoked: Option<PathBuf>,
}

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A file.
    File(PathBuf),
    /// An address.
    Address(String),
}

/// Users of a proxy.
#[derive(Clone, Debug)]
pub struct HeaderConfig {
    /// The header, in small letters.
    pub name: String,
    /// From where it counts: addresses, each with how many of its bits have to be the same.
    pub from: Vec<(IpAddr, u8)>,
    /// Who may also do what is about the daemon.
    pub operators: BTreeSet<String>,
}

impl HeaderConfig {
    /// Returns whether the header counts from this address.
    pub fn is_trusted(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.from
            .iter()
            .any(|(network, bits)| is_in(address, *network, *bits))
    }
}

fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let differ = a.to_bits() ^ b.to_bits();
            differ.leading_zeros() >= bits
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let differ = a.to_bits() ^ b.to_bits();
            differ.leading_zeros() >= bits
        }
        _ => false,
    }
}
