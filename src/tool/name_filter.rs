//! Which files a glob of the model's means. Pure.

use globset::{GlobBuilder, GlobMatcher};

/// A glob on paths below a folder.
///
/// One without a slash is about names, at any depth, as in a `.gitignore`: that is what `*.rs` is
/// meant for. One with a slash is about the path below the folder.
#[derive(Clone, Debug)]
pub(super) struct NameFilter {
    matcher: GlobMatcher,
    whole_path: bool,
}

impl NameFilter {
    pub(super) fn parse(glob: &str) -> Result<Self, String> {
        let trimmed = glob.trim_start_matches("./").trim_start_matches('/');
        GlobBuilder::new(trimmed)
            .literal_separator(true)
            .build()
            .map(|compiled| Self {
                matcher: compiled.compile_matcher(),
                whole_path: glob.contains('/'),
            })
            .map_err(|error| format!("glob {glob:?} cannot be used: {}", error.kind()))
    }

    pub(super) fn matches(&self, below: &str) -> bool {
        let subject = if self.whole_path {
            below
        } else {
            below.rsplit('/').next().unwrap_or(below)
        };
        self.matcher.is_match(subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_mean_names_or_paths() {
        for (glob, path, expected) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "src/deep/a.rs", true),
            ("*.rs", "a.rs.bak", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/*.rs", "lib/src/a.rs", false),
            ("src/**/*.rs", "src/a.rs", true),
            ("src/**/*.rs", "src/x/y/a.rs", true),
            ("**/*.rs", "a.rs", true),
            ("./src/*", "src/a", true),
            ("/a.rs", "a.rs", true),
            ("/a.rs", "src/a.rs", false),
            ("*.{ts,tsx}", "ui/a.tsx", true),
            ("**", "any/thing", true),
            ("[ab].c", "x/b.c", true),
        ] {
            let filter = NameFilter::parse(glob).unwrap();
            assert_eq!(filter.matches(path), expected, "{glob} {path}");
        }
        let error = NameFilter::parse("a[").unwrap_err();
        assert!(error.starts_with("glob \"a[\" cannot be used: "), "{error}");
    }
}
