//! `[sandbox]`: numbers of users of the system that are nobody's.

use std::fs;

use super::super::SandboxPolicy;
use super::super::sections::SandboxSettings;
use super::findings::Findings;
use crate::sandbox::IdRange;

/// Where the system's own users and groups are, each with its number after the second colon.
const ACCOUNTS: [&str; 2] = ["/etc/passwd", "/etc/group"];

/// Checks the section; `None` where all commands run as the daemon's user.
pub(super) fn check(
    settings: &SandboxSettings,
    policy: SandboxPolicy,
    findings: &mut Findings<'_>,
) -> Option<IdRange> {
    const PATH: [&str; 2] = ["sandbox", "user_ids"];
    let text = settings.user_ids.trim();
    if text.is_empty() {
        return None;
    }
    let range = text.parse::<IdRange>();
    let range = range
        .map_err(|problem| findings.refuse(&PATH, problem))
        .ok()?;
    if policy == SandboxPolicy::Off {
        findings.refuse(
            &PATH,
            "needs tools.bash.sandbox: what is not confined runs as the daemon's own user",
        );
    }
    for file in ACCOUNTS {
        let accounts = fs::read_to_string(file).unwrap_or_default();
        if let Some((id, name)) = taken(range, &accounts) {
            let problem = format!("{id} is {name}'s in {file}; name numbers that nobody has");
            findings.refuse(&PATH, problem);
        }
    }
    Some(range)
}

/// Returns the first number of the range that is somebody's, with the name.
fn taken(range: IdRange, accounts: &str) -> Option<(u32, &str)> {
    let mut numbers = accounts.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        Some((id.parse().ok()?, name))
    });
    numbers.find(|(id, _)| range.contains(*id))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{loaded, refused};
    use super::*;

    const KEY: &str = "OUTRIGGER_SANDBOX__USER_IDS";

    #[test]
    fn numbers_are_a_range_that_is_nobodys() {
        assert_eq!(loaded(&[]).0.user_ids, None);
        let found = loaded(&[(KEY, " 3000000000-3000000009 ")])
            .0
            .user_ids
            .unwrap();
        assert_eq!(
            (found.first(), found.last()),
            (3_000_000_000, 3_000_000_009)
        );
        for (pairs, part) in [
            (&[(KEY, "100000")][..], "the first and the last number"),
            (&[(KEY, "0-10")], "neither 0 (root)"),
            (
                &[
                    (KEY, "3000000000-3000000009"),
                    ("OUTRIGGER_TOOLS__BASH__SANDBOX", "off"),
                ],
                "needs tools.bash.sandbox",
            ),
        ] {
            let said = refused(pairs);
            assert!(said.contains(part), "{said}");
            assert!(said.contains("sandbox.user_ids"), "{said}");
        }
    }

    #[test]
    fn an_account_in_the_range_is_found() {
        let accounts =
            "root:x:0:0::/root:/bin/sh\nbroken\nanna:x:1000:100::/home/anna:/bin/sh\nodd:x:y:\n";
        let taken = |range: &str| taken(range.parse().unwrap(), accounts);
        assert_eq!(taken("1-999"), None);
        assert_eq!(taken("100-5000"), Some((1000, "anna")));
        assert_eq!(taken("1001-5000"), None);
    }
}
