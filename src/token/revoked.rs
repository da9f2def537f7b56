//! Tokens that are taken back: a file with a line for each, `jti NAME` or `sub NAME [TIME]`.
//!
//! A line that cannot be read may be the one that somebody relies on, so it refuses the whole file.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use jiff::Timestamp;

use super::Claims;
use super::source::read_text;

/// The longest file, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// What was taken back.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Revoked {
    tokens: HashSet<String>,
    users: HashMap<String, Old>,
    /// The file's text, by which it is told from another one.
    text: String,
}

/// Which tokens of a user count no more. The greater takes more back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Old {
    /// Those that were made before.
    Before(Timestamp),
    All,
}

impl Revoked {
    /// Reads the file, where one is named.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self, String> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let named = |problem: String| format!("{}: {problem}", path.display());
        let text = read_text(path, MAX_BYTES).map_err(named)?;
        Self::of(text).map_err(named)
    }

    /// Returns whether it was read from the same text.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.text == other.text
    }

    fn of(text: String) -> Result<Self, String> {
        let mut revoked = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            revoked.add(line).ok_or_else(|| {
                format!(
                    r#"line {number} is neither `jti NAME` nor `sub NAME [TIME]`, where a name with a space stands in "…", and a time is like 2026-11-27T09:00:00Z"#
                )
            })?;
        }
        Ok(Self { text, ..revoked })
    }

    /// Adds what a line says; `None` where it cannot be read.
    fn add(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(char::is_whitespace)?;
        let (name, rest) = name(rest.trim_start())?;
        match (kind, rest) {
            ("jti", "") => drop(self.tokens.insert(name)),
            ("sub", rest) => {
                let old = match rest {
                    "" => Old::All,
                    time => Old::Before(time.parse().ok()?),
                };
                let known = self.users.entry(name).or_insert(old);
                *known = old.max(*known);
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns whether a token counts no more. One that does not say when it was made may be old.
    pub(super) fn has(&self, claims: &Claims) -> bool {
        let is_named = claims
            .jti
            .as_ref()
            .is_some_and(|it| self.tokens.contains(it));
        let is_old = |old: &Old| match (old, claims.iat) {
            (Old::All, _) | (_, None) => true,
            (Old::Before(time), Some(made)) => made < time.as_duration().as_secs_f64(),
        };
        is_named || self.users.get(&claims.sub).is_some_and(is_old)
    }
}

/// Returns the name that a text begins with, and what comes behind it. One in quotes is written as in JSON.
fn name(text: &str) -> Option<(String, &str)> {
    let (name, rest) = match text.starts_with('"') {
        true => {
            let mut read = serde_json::Deserializer::from_str(text).into_iter::<String>();
            let name = read.next()?.ok()?;
            (name, text.get(read.byte_offset()..)?)
        }
        false => {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            let (name, rest) = text.split_at_checked(end)?;
            (name.to_owned(), rest)
        }
    };
    let is_apart = rest.is_empty() || rest.starts_with(char::is_whitespace);
    (!name.is_empty() && is_apart).then_some((name, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Revoked, String> {
        Revoked::of(text.to_owned())
    }

    fn claims(sub: &str, jti: Option<&str>, made: Option<&str>) -> Claims {
        let made = made.map(|at| at.parse::<Timestamp>().unwrap());
        Claims {
            sub: sub.to_owned(),
            jti: jti.map(str::to_owned),
            iat: made.map(|at| at.as_second() as f64),
            ..Claims::default()
        }
    }

    #[test]
    fn lines_take_tokens_and_users_back() {
        let text = "# lost\njti abc\n\n  sub ben  \nsub\tanna 2026-11-27T00:00:00.5Z\r\nsub \"two words\"\njti \"a \\\"b\\\"\"\n";
        let revoked = of(text).unwrap();
        for (claims, expected) in [
            (claims("carla", Some("abc"), None), true),
            (claims("carla", Some("abcd"), None), false),
            (claims("carla", Some("a \"b\""), None), true),
            (claims("carla", None, None), false),
            (claims("ben", None, Some("2030-01-01T00:00:00Z")), true),
            (claims("anna", None, Some("2026-11-26T23:59:59Z")), true),
            // In the same second: it may have been before.
            (claims("anna", None, Some("2026-11-27T00:00:00Z")), true),
            (claims("anna", None, Some("2026-11-27T00:00:01Z")), false),
            (claims("anna", None, None), true),
            (claims("two words", None, None), true),
            (claims("two", None, None), false),
        ] {
            assert_eq!(revoked.has(&claims), expected, "{claims:?}");
        }
    }

    #[test]
    fn of_several_lines_for_a_user_the_strictest_counts() {
        let (early, late) = (
            "sub ben 2026-11-01T00:00:00Z\n",
            "sub ben 2026-11-27T00:00:00Z\n",
        );
        let between = claims("ben", None, Some("2026-11-10T00:00:00Z"));
        let after = claims("ben", None, Some("2026-11-28T00:00:00Z"));
        for (lines, expected) in [
            (vec![early], (false, false)),
            (vec![late], (true, false)),
            (vec![early, late], (true, false)),
            (vec![late, early], (true, false)),
            (vec!["sub ben\n", late], (true, true)),
            (vec![late, "sub ben\n"], (true, true)),
        ] {
            let revoked = of(&lines.concat()).unwrap();
            let found = (revoked.has(&between), revoked.has(&after));
            assert_eq!(found, expected, "{lines:?}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_refuses_the_file() {
        for wrong in [
            "abc",
            "jti",
            "jti \"\"",
            "jti abc def",
            "user anna",
            "SUB anna",
            "\u{feff}sub anna",
            "sub",
            // A day is no time, and no part of a name.
            "sub anna 2026-11-27",
            "sub anna 2026-11-27 09:00",
            "sub anna yesterday",
            "sub two words",
            "sub anna 2026-11-27T00:00:00Z 2026-11-27T00:00:00Z",
            "sub \"anna",
            "sub \"anna\"2026-11-27T00:00:00Z",
            "sub anna # who left",
        ] {
            let problem = of(&format!("jti good\n{wrong}\n")).unwrap_err();
            assert!(problem.starts_with("line 2 "), "{wrong}: {problem}");
        }
    }
}
