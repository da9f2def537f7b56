//! Passes: what one daemon of a cluster says to another one of a socket that it passes on. It is for that socket and for a
//! moment, and signed with what they know each other by.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::crypto;
use crate::message::{Money, TrustLevel};
use crate::protocol::roles::SocketRole;
use crate::users::{Grant, User};

/// How long a pass is good for, and how far clocks of two daemons may be apart besides.
const LASTS: Duration = Duration::from_secs(30);
const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// Whom all passes are for.
const AUDIENCE: &str = "outrigger-cluster";

/// What a pass is for: one request at one daemon. Whoever reads a pass on its way can do no more with it than that request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Where the daemon is that is asked.
    pub address: String,
    pub path: String,
    /// The socket, where one is asked for.
    pub socket: Option<AskedSocket>,
}

/// A socket that is passed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AskedSocket {
    pub session: String,
    /// The `Sec-WebSocket-Key` of the request: random, and new for each socket (RFC 6455, 4.1).
    pub key: String,
}

/// What a pass says: for which request it is, and what is granted there.
#[derive(Serialize, Deserialize)]
struct Claims {
    aud: String,
    exp: i64,
    asked: Asked,
    user: String,
    role: String,
    is_operator: bool,
    roots: Option<Vec<PathBuf>>,
    trust: TrustLevel,
    day: Option<i64>,
    #[serde(default)]
    disk: Option<u64>,
    ends: Option<i64>,
}

/// Writes passes, and reads those of other daemons.
pub(crate) struct Passes {
    write: EncodingKey,
    read: DecodingKey,
}

impl Passes {
    /// Those of a cluster that has this secret.
    pub(crate) fn new(secret: &SecretString) -> Self {
        crypto::install();
        let secret = secret.expose_secret().as_bytes();
        Self {
            write: EncodingKey::from_secret(secret),
            read: DecodingKey::from_secret(secret),
        }
    }

    /// Returns a pass for a request; `None` where a folder's name cannot be written.
    pub(crate) fn write(&self, asked: Asked, grant: &Grant) -> Option<String> {
        let lasts = i64::try_from(LASTS.as_secs()).ok()?;
        let claims = Claims {
            aud: AUDIENCE.to_owned(),
            exp: Timestamp::now().as_second().saturating_add(lasts),
            asked,
            user: grant.user.as_str().to_owned(),
            role: grant.role.word().to_owned(),
            is_operator: grant.is_operator,
            roots: grant.roots.clone(),
            trust: grant.most_trust,
            day: grant.day.as_deref().map(|it| it.micros()),
            disk: grant.disk.as_deref().copied(),
            ends: grant.ends.map(Timestamp::as_millisecond),
        };
        encode(&Header::new(Algorithm::HS256), &claims, &self.write).ok()
    }

    /// Returns what a pass grants to the request that shows it; `None` where it is none for it.
    pub(crate) fn read(&self, asked: &Asked, pass: &str) -> Option<Grant> {
        let mut wanted = Validation::new(Algorithm::HS256);
        wanted.set_audience(&[AUDIENCE]);
        wanted.set_required_spec_claims(&["aud", "exp"]);
        wanted.leeway = CLOCK_SKEW.as_secs();
        let claims = decode::<Claims>(pass, &self.read, &wanted).ok()?.claims;
        let roles = [
            SocketRole::Driver,
            SocketRole::Approver,
            SocketRole::Observer,
        ];
        let role = roles.into_iter().find(|it| it.word() == claims.role)?;
        let ends = claims.ends.map(Timestamp::from_millisecond);
        (claims.asked == *asked).then_some(())?;
        Some(Grant {
            user: User::new(&claims.user),
            is_operator: claims.is_operator,
            roots: claims.roots,
            most_trust: claims.trust,
            day: claims.day.map(|it| Arc::new(Money::from_micros(it))),
            disk: claims.disk.map(Arc::new),
            ends: ends.transpose().ok()?,
            ..Grant::of_the_daemon(role)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked {
            address: "http://10.0.0.5:4517".to_owned(),
            path: "/ws".to_owned(),
            socket: Some(AskedSocket {
                session: "s".to_owned(),
                key: "dGhlIHNhbXBsZSBub25jZQ==".to_owned(),
            }),
        }
    }

    fn passes(secret: &str) -> Passes {
        Passes::new(&SecretString::from(secret))
    }

    #[test]
    fn a_pass_says_all_that_is_granted() {
        let passes = passes("0123456789abcdef0123456789abcdef");
        let ends = Timestamp::from_millisecond(4_000_000_000_123).unwrap();
        for grant in [
            Grant::default(),
            Grant {
                user: User::new("anna"),
                is_operator: false,
                roots: Some(vec![PathBuf::from("/work/änna")]),
                most_trust: TrustLevel::Guided,
                day: Some(Arc::new(Money::from_micros(1_500_000))),
                disk: Some(Arc::new(7_000_000)),
                ends: Some(ends),
                ..Grant::of_the_daemon(SocketRole::Observer)
            },
        ] {
            let pass = passes.write(asked(), &grant).unwrap();
            let read = passes.read(&asked(), &pass).unwrap();
            // What takes a grant back is not written: the daemon that passes on ends the socket.
            let all = |it: &Grant| {
                (
                    it.user.clone(),
                    it.role,
                    it.is_operator,
                    it.roots.clone(),
                    it.most_trust,
                    it.day.as_deref().copied(),
                    it.disk.as_deref().copied(),
                    it.ends,
                )
            };
            assert_eq!(all(&read), all(&grant));
        }
    }

    #[test]
    fn a_pass_is_good_for_its_request_and_its_cluster_alone() {
        let own = passes("0123456789abcdef0123456789abcdef");
        let pass = own.write(asked(), &Grant::default()).unwrap();
        assert!(own.read(&asked(), &pass).is_some());
        let socket = asked().socket.unwrap();
        let (session, key) = ("t".to_owned(), "AAAAAAAAAAAAAAAAAAAAAA==".to_owned());
        let others = [
            Some(AskedSocket {
                session,
                ..socket.clone()
            }),
            Some(AskedSocket { key, ..socket }),
            None,
        ];
        let others = others.map(|socket| Asked { socket, ..asked() });
        let [address, path] = ["http://10.0.0.6:4517", "/admin/nodes"].map(str::to_owned);
        let elsewhere = [Asked { address, ..asked() }, Asked { path, ..asked() }];
        for other in others.into_iter().chain(elsewhere) {
            assert!(own.read(&other, &pass).is_none(), "{other:?}");
        }
        let stranger = passes("another secret of the same length");
        assert!(stranger.read(&asked(), &pass).is_none());
        let now = Timestamp::now().as_second();
        let made = |aud: &str, exp: i64, algorithm| {
            let claims = Claims {
                aud: aud.to_owned(),
                exp,
                asked: asked(),
                user: String::new(),
                role: "driver".to_owned(),
                is_operator: true,
                roots: None,
                trust: TrustLevel::Autonomous,
                day: None,
                disk: None,
                ends: None,
            };
            encode(&Header::new(algorithm), &claims, &own.write)
        };
        let good = made(AUDIENCE, now + 30, Algorithm::HS256).unwrap();
        assert!(own.read(&asked(), &good).is_some());
        for wrong in [
            made("outrigger", now + 30, Algorithm::HS256).unwrap(),
            made(AUDIENCE, now - 120, Algorithm::HS256).unwrap(),
            // "alg": "none", with the claims of a good one.
            format!("eyJhbGciOiJub25lIn0.{}.", good.split('.').nth(1).unwrap()),
            String::new(),
            "a.b.c".to_owned(),
        ] {
            assert!(own.read(&asked(), &wrong).is_none(), "{wrong}");
        }
    }
}
