//! Tokens that are taken back: a file with a line for each, `jti NAME` or `sub NAME [TIME]`.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::SystemTime;

use jiff::Timestamp;

use super::Claims;
use super::source::read_text;

/// The longest file, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// What was taken back.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Revoked {
    tokens: HashSet<String>,
    /// Users, each with the time before which tokens were made that count no more; `None` for all.
    users: HashMap<String, Option<Timestamp>>,
    /// The file as it was when it was read.
    state: Option<State>,
}

/// By which a file is told from what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    changed: Option<SystemTime>,
    bytes: u64,
}

impl State {
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self {
            changed: found.modified().ok(),
            bytes: found.len(),
        })
    }
}

impl Revoked {
    /// Reads the file, where one is named.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self, String> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let named = |problem: String| format!("{}: {problem}", path.display());
        // Before it is read: what is written meanwhile is another one.
        let state = State::of(path);
        let text = read_text(path, MAX_BYTES).map_err(named)?;
        let revoked = Self::of(&text).map_err(named)?;
        Ok(Self { state, ..revoked })
    }

    /// Returns whether the file is another one than it was.
    pub(crate) fn is_other(&self, path: &Path) -> bool {
        State::of(path) != self.state
    }

    fn of(text: &str) -> Result<Self, String> {
        let mut revoked = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = || format!("line {number} is neither `jti NAME` nor `sub NAME [TIME]`");
            let (kind, rest) = line.split_once(char::is_whitespace).ok_or_else(wrong)?;
            let rest = rest.trim();
            match kind {
                "jti" => drop(revoked.tokens.insert(rest.to_owned())),
                "sub" => {
                    let timed = rest.rsplit_once(char::is_whitespace);
                    let timed = timed.and_then(|(name, at)| Some((name, at.parse().ok()?)));
                    let (name, before) = match timed {
                        Some((name, at)) => (name.trim(), Some(at)),
                        None => (rest, None),
                    };
                    revoked.users.insert(name.to_owned(), before);
                }
                _ => return Err(wrong()),
            }
        }
        Ok(revoked)
    }

    /// Returns whether a token counts no more. One that does not say when it was made may be old.
    pub(super) fn has(&self, claims: &Claims) -> bool {
        let is_named = claims
            .jti
            .as_ref()
            .is_some_and(|it| self.tokens.contains(it));
        let is_old = |before: &Option<Timestamp>| match (before, claims.iat) {
            (None, _) | (_, None) => true,
            #[expect(clippy::cast_precision_loss, reason = "seconds are few enough")]
            (Some(before), Some(made)) => made < before.as_second() as f64,
        };
        is_named || self.users.get(&claims.sub).is_some_and(is_old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_take_tokens_and_users_back() {
        let text = "# lost\njti abc\n\n  sub ben  \nsub anna 2026-11-27T00:00:00Z\nsub two words\n";
        let revoked = Revoked::of(text).unwrap();
        let made = |at: &str| at.parse::<Timestamp>().unwrap().as_second() as f64;
        let claims = |sub: &str, jti: Option<&str>, iat: Option<f64>| Claims {
            sub: sub.to_owned(),
            jti: jti.map(str::to_owned),
            iat,
            ..Claims::default()
        };
        for (claims, expected) in [
            (claims("carla", Some("abc"), None), true),
            (claims("carla", Some("abcd"), None), false),
            (claims("carla", None, None), false),
            (
                claims("ben", None, Some(made("2030-01-01T00:00:00Z"))),
                true,
            ),
            (
                claims("anna", None, Some(made("2026-11-26T23:59:59Z"))),
                true,
            ),
            (
                claims("anna", None, Some(made("2026-11-27T00:00:01Z"))),
                false,
            ),
            (claims("anna", None, None), true),
            (claims("two words", None, None), true),
            (claims("two", None, None), false),
        ] {
            assert_eq!(revoked.has(&claims), expected, "{claims:?}");
        }
        for wrong in ["abc", "jti", "user anna"] {
            assert!(Revoked::of(wrong).is_err(), "{wrong}");
        }
    }
}
