//! Tool names that every vendor accepts.
//!
//! Those of the tools on offer are such names (`ToolSpec::name`); in a client's own history there may be others.

use std::borrow::Cow;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Longest name that every vendor accepts, in characters (`docs/providers.md`, "Tool names").
const MAX_NAME: usize = 64;

/// Returns the name a tool bears on the wire: its own where that is `^[A-Za-z0-9_-]{1,64}$`, else what
/// is left of it and 8 digits of its hash, which keep two such names apart, from one request to the next.
pub(crate) fn wire_name(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(allowed) {
        return Cow::Borrowed(name);
    }
    let digest = Sha256::digest(name.as_bytes());
    let mut tail = HEXLOWER.encode(&digest);
    tail.truncate(8);
    let head: String = name
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .take(MAX_NAME - tail.len() - 1)
        .collect();
    Cow::Owned(format!("{head}_{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fit_and_told_apart() {
        let long = "x".repeat(65);
        let exact = "x".repeat(64);
        let names = ["bash", "a b", "a.b", "", "é", &long, &exact];
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            let wire = wire_name(name);
            assert!((1..=MAX_NAME).contains(&wire.len()), "{wire}");
            assert!(
                wire.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
            );
            assert!(seen.insert(wire.into_owned()));
        }
        assert_eq!(wire_name("bash"), "bash");
    }
}
