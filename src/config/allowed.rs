//! Which folders a session may name as its project.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::sandbox::paths::of_the_system;

/// What makes a part of a pattern more than a name.
const WILD: [char; 5] = ['*', '?', '[', '{', '\\'];

/// Globs over absolute paths without links. A wildcard matches no name that begins with a dot, as in a shell.
#[derive(Clone, Debug, Default)]
pub struct AllowedFolders(Vec<Pattern>);

#[derive(Clone, Debug)]
struct Pattern {
    glob: GlobMatcher,
    /// The names in it that begin with a dot.
    hidden: Vec<String>,
}

impl AllowedFolders {
    /// Adds a pattern such as `~/src/*`; says what is wrong with one that cannot be used. What exists of the path before
    /// its first wildcard is taken without links.
    pub(crate) fn add(&mut self, pattern: &str, home: Option<&Path>) -> Result<(), String> {
        let path = match (pattern.strip_prefix("~/"), home) {
            (Some(_), None) => return Err("there is no home directory for `~`".to_owned()),
            (Some(rest), Some(home)) => home.join(rest),
            (None, _) => PathBuf::from(pattern),
        };
        if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
            return Err(
                "expected an absolute path, or one that begins with ~/, without ..".to_owned(),
            );
        }
        // The home is no pattern, whatever its name is.
        let fixed = home.filter(|home| path.starts_with(home));
        let fixed = fixed.map_or(0, |home| home.components().count());
        let names: Vec<_> = path.components().map(|part| part.as_os_str()).collect();
        let wild = names
            .iter()
            .enumerate()
            .position(|(at, name)| at >= fixed && name.to_string_lossy().contains(WILD));
        let (plain, rest) = names.split_at(wild.unwrap_or(names.len()));
        let mut glob = globset::escape(&real(&plain.iter().collect::<PathBuf>()).to_string_lossy());
        for name in rest {
            glob.push_str(if glob.ends_with('/') { "" } else { "/" });
            glob.push_str(&name.to_string_lossy());
        }
        let hidden = glob.split('/').filter(|name| name.starts_with('.'));
        let hidden = hidden.map(str::to_owned).collect();
        let glob = GlobBuilder::new(&glob)
            .literal_separator(true)
            .build()
            .map_err(|error| error.kind().to_string())?
            .compile_matcher();
        self.0.push(Pattern { glob, hidden });
        Ok(())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a folder may be named, by its text alone: an absolute path without links.
    pub fn contains(&self, folder: &Path) -> bool {
        let hidden: Vec<_> = folder
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .filter(|name| name.starts_with('.'))
            .collect();
        let is_meant = |pattern: &Pattern| {
            let mut hidden = hidden.iter();
            hidden.all(|name| pattern.hidden.iter().any(|known| known == name))
                && pattern.glob.is_match(folder)
        };
        of_the_system(folder).is_none() && self.0.iter().any(is_meant)
    }

    /// Returns whether a path is such a folder or lies in one.
    pub fn covers(&self, path: &Path) -> bool {
        !self.is_empty() && path.ancestors().any(|folder| self.contains(folder))
    }
}

/// Returns a path with the links of what exists of it resolved.
fn real(path: &Path) -> PathBuf {
    let resolved = path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).ok()?;
        Some(crate::sandbox::canonicalize(above).ok()?.join(rest))
    });
    // Without the slash at the end that an empty rest leaves.
    resolved.map_or_else(|| path.to_owned(), |path| path.components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(patterns: &[&str], home: &Path) -> AllowedFolders {
        let mut allowed = AllowedFolders::default();
        for pattern in patterns {
            allowed.add(pattern, Some(home)).expect(pattern);
        }
        allowed
    }

    #[test]
    fn a_pattern_is_matched_against_the_whole_path() {
        let home = Path::new("/nonexistent/home");
        for (pattern, path, expected) in [
            ("~/src/*", "/nonexistent/home/src/a", true),
            ("~/src/*", "/nonexistent/home/src", false),
            ("~/src/*", "/nonexistent/home/src/a/b", false),
            ("~/src/*", "/nonexistent/home/src/.a", false),
            ("~/src/**", "/nonexistent/home/src/a/b", true),
            ("~/src/**", "/nonexistent/home/src/a/.git/b", false),
            ("~/.work/*", "/nonexistent/home/.work/b", true),
            ("~/.work/*", "/nonexistent/home/.work/.b", false),
            ("~/one", "/nonexistent/home/one", true),
            ("/nonexistent/{a,b}/x", "/nonexistent/b/x", true),
            ("/nonexistent/{a,b}/x", "/nonexistent/c/x", false),
            ("/**", "/nonexistent/x", true),
            ("/**", "/etc/x", false),
            ("/**", "/usr/bin", false),
            ("/**", "/", false),
        ] {
            let found = allowed(&[pattern], home).contains(Path::new(path));
            assert_eq!(found, expected, "{pattern} {path}");
        }
        assert!(!AllowedFolders::default().covers(home));
        let inside = Path::new("/nonexistent/home/src/a/.venv/bin");
        assert!(allowed(&["~/src/*"], home).covers(inside));
        assert!(!allowed(&["~/src/*"], home).covers(Path::new("/nonexistent/home/bin")));
        // A home with such a name is no pattern.
        let odd = Path::new("/nonexistent/[h]ome");
        assert!(allowed(&["~/a"], odd).contains(&odd.join("a")));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        let home = Path::new("/nonexistent/home");
        for pattern in ["", "src/*", "~", "~x/*", "/a/../*", "/a/[", "/a/{b"] {
            let mut allowed = AllowedFolders::default();
            assert!(allowed.add(pattern, Some(home)).is_err(), "{pattern}");
        }
        assert!(AllowedFolders::default().add("~/a", None).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_before_the_first_wildcard_are_followed() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        std::fs::create_dir(place.join("real")).unwrap();
        std::os::unix::fs::symlink("real", place.join("link")).unwrap();
        let allowed = allowed(&["~/link/*", "~/link/later"], &place);
        assert!(allowed.contains(&place.join("real/a")));
        assert!(!allowed.contains(&place.join("link/a")));
    }
}
