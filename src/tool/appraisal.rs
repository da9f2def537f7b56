//! How much harm a change of a file may do, in words for whoever is asked. Pure.
//!
//! Whether the call is asked for does not rest on it: every write is, where the trust level says so.

use std::sync::LazyLock;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::message::{Danger, DangerLevel};
use crate::sandbox::deny;

/// Lines that a change may remove without being dangerous for that alone.
const MANY_LINES: usize = 50;

/// The same of a file that git does not keep.
const MANY_UNTRACKED_LINES: usize = 10;

/// Removing more than half of a file counts as losing it from this length on.
const SHORT_FILE: usize = 20;

/// Files by which builds, tests and continuous integration run programs: globs on the folded path, one a line.
const RUN_BY_BUILDS: &str = include_str!("appraisal/builds.txt");

static BUILDS: LazyLock<GlobSet> = LazyLock::new(|| {
    let mut set = GlobSetBuilder::new();
    for glob in RUN_BY_BUILDS.lines() {
        // A test looks that each is well formed.
        if let Ok(glob) = Glob::new(glob) {
            set.add(glob);
        }
    }
    set.build().unwrap_or_default()
});

/// A change, as far as its harm depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'a> {
    pub(super) path: &'a str,
    pub(super) before: Before,
    pub(super) added: usize,
    pub(super) removed: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Before {
    Missing,
    File {
        /// Its lines; `None` where it is no text, or too large.
        lines: Option<usize>,
        is_executable: bool,
        is_tracked: bool,
    },
}

/// Returns the level of a change and what it does.
pub(super) fn appraise(change: &Change<'_>) -> Danger {
    let Change {
        path,
        before,
        added,
        removed,
    } = *change;
    let mut reasons = Vec::new();
    let mut is_dangerous = false;
    let mut worse = |reason: &str| {
        is_dangerous = true;
        reasons.push(reason.to_owned());
    };
    if BUILDS.is_match(deny::fold(path)) {
        worse("builds, tests or CI run what the file says");
    }
    let does = match before {
        Before::Missing => format!("creates a file of {}", lines(added)),
        Before::File {
            lines: old,
            is_executable,
            is_tracked,
        } => {
            if is_executable {
                worse("the file is executable");
            }
            if let Some(old) = old {
                let is_most = removed * 2 > old;
                let is_much = removed >= MANY_LINES || (old >= SHORT_FILE && is_most);
                if !is_tracked && removed > 0 && (removed >= MANY_UNTRACKED_LINES || is_most) {
                    worse(
                        "the file is not under version control: what is removed cannot be brought back",
                    );
                } else if is_much {
                    worse("much of the file is removed");
                }
            } else {
                worse("the old content is not text or very large, and is lost as a whole");
            }
            match old {
                None => format!("replaces the file by {}", lines(added)),
                Some(_) if added == 0 && removed == 0 => "changes nothing".to_owned(),
                Some(old) => format!("removes {removed} of {}, adds {added}", lines(old)),
            }
        }
    };
    reasons.push(does);
    Danger {
        level: match is_dangerous {
            true => DangerLevel::Dangerous,
            false => DangerLevel::Warning,
        },
        reasons,
    }
}

fn lines(count: usize) -> String {
    match count {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACKED: bool = true;
    const UNTRACKED: bool = false;

    fn file(lines: usize, is_tracked: bool) -> Before {
        Before::File {
            lines: Some(lines),
            is_executable: false,
            is_tracked,
        }
    }

    #[test]
    fn the_level_says_what_a_change_does() {
        use DangerLevel::{Dangerous, Warning};

        let program = Before::File {
            lines: Some(3),
            is_executable: true,
            is_tracked: TRACKED,
        };
        let picture = Before::File {
            lines: None,
            is_executable: false,
            is_tracked: TRACKED,
        };
        for (path, before, added, removed, level, reason) in [
            (
                "poem.txt",
                Before::Missing,
                12,
                0,
                Warning,
                "creates a file of 12 lines",
            ),
            (
                "src/a.rs",
                file(10, TRACKED),
                10,
                10,
                Warning,
                "removes 10 of 10 lines, adds 10",
            ),
            (
                "src/a.rs",
                file(100, TRACKED),
                0,
                50,
                Dangerous,
                "much of the file",
            ),
            (
                "src/a.rs",
                file(200, TRACKED),
                90,
                49,
                Warning,
                "removes 49 of 200 lines",
            ),
            (
                "src/a.rs",
                file(30, TRACKED),
                1,
                16,
                Dangerous,
                "much of the file",
            ),
            (
                "src/a.rs",
                file(30, TRACKED),
                1,
                1,
                Warning,
                "removes 1 of 30 lines, adds 1",
            ),
            (
                "notes.md",
                file(30, UNTRACKED),
                1,
                1,
                Warning,
                "removes 1 of 30 lines",
            ),
            (
                "notes.md",
                file(30, UNTRACKED),
                30,
                0,
                Warning,
                "removes 0 of 30 lines",
            ),
            (
                "notes.md",
                file(1, UNTRACKED),
                1,
                1,
                Dangerous,
                "not under version control",
            ),
            (
                "notes.md",
                file(300, UNTRACKED),
                1,
                10,
                Dangerous,
                "not under version control",
            ),
            ("run", program, 1, 1, Dangerous, "executable"),
            ("a.png", picture, 1, 0, Dangerous, "is not text"),
            (
                "Makefile",
                Before::Missing,
                1,
                0,
                Dangerous,
                "builds, tests or CI",
            ),
            (
                "sub/package.json",
                file(20, TRACKED),
                1,
                1,
                Dangerous,
                "builds, tests or CI",
            ),
            (
                ".github/workflows/ci.yml",
                Before::Missing,
                1,
                0,
                Dangerous,
                "CI",
            ),
            (
                "src/a.rs",
                file(3, TRACKED),
                0,
                0,
                Warning,
                "changes nothing",
            ),
        ] {
            let danger = appraise(&Change {
                path,
                before,
                added,
                removed,
            });
            assert_eq!(danger.level, level, "{path} {before:?} {danger:?}");
            let reasons = danger.reasons.join("; ");
            assert!(reasons.contains(reason), "{path}: {reasons}");
        }
    }

    #[test]
    fn every_glob_is_well_formed() {
        for glob in RUN_BY_BUILDS.lines() {
            assert!(Glob::new(glob).is_ok(), "{glob}");
        }
        assert_eq!(BUILDS.len(), RUN_BY_BUILDS.lines().count());
    }
}
