//! Caches of the user's package managers that commands may be given. They see them below their home as they are, and what
//! they write there is their pod's.
//!
//! Each is at the place that its program takes without any setting. No folder here holds credentials: those are beside
//! them (`~/.cargo/credentials.toml`, `~/.m2/settings.xml`, `~/.npmrc`, `~/.gradle/gradle.properties`).

use std::path::{Path, PathBuf};

/// Names, and folders below the home.
const TABLE: [(&str, &[&str]); 9] = [
    // `_npx` beside it holds programs that were run, `_logs` what they said.
    ("npm", &[".npm/_cacache"]),
    ("cargo", &[".cargo/registry", ".cargo/git"]),
    ("go", &["go/pkg/mod", ".cache/go-build"]),
    ("pip", &[".cache/pip"]),
    ("uv", &[".cache/uv"]),
    ("maven", &[".m2/repository", ".m2/wrapper/dists"]),
    // What Gradle itself lets others read (`GRADLE_RO_DEP_CACHE`); the rest of `caches` has compiled settings.
    (
        "gradle",
        &[".gradle/caches/modules-2", ".gradle/wrapper/dists"],
    ),
    ("pnpm", &[".local/share/pnpm/store", ".cache/pnpm"]),
    ("yarn", &[".cache/yarn", ".yarn/berry/cache"]),
];

/// Returns the names that there are.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

/// What was found of the caches that were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caches {
    /// Folders below the home, canonical.
    pub folders: Vec<PathBuf>,
    /// The names of which nothing is there.
    pub missing: Vec<String>,
}

/// Looks for the folders of these caches. Does file I/O.
///
/// A folder that is reached through a link is none: the link could name any place, and programs look for it by its own
/// path.
pub fn find(home: Option<&Path>, names: &[String]) -> Caches {
    let mut found = Caches::default();
    let home = home.and_then(|home| crate::canonicalize(home).ok());
    for name in names {
        let below = TABLE.iter().find(|(known, _)| known == name);
        let below = below.map_or(&[][..], |(_, below)| below);
        let places = home
            .iter()
            .flat_map(|home| below.iter().map(|below| home.join(below)));
        let is_there = |place: &PathBuf| {
            place.is_dir() && crate::canonicalize(place).is_ok_and(|canonical| canonical == *place)
        };
        let before = found.folders.len();
        for place in places.filter(is_there) {
            if !found.folders.contains(&place) {
                found.folders.push(place);
            }
        }
        if found.folders.len() == before {
            found.missing.push(name.clone());
        }
    }
    found
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_there_is_found_and_no_link_followed() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        for folder in [
            ".npm/_cacache",
            ".npm/_npx",
            ".cargo/registry",
            "elsewhere/uv",
        ] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        fs::create_dir(home.join(".cache")).unwrap();
        symlink("../elsewhere/uv", home.join(".cache/uv")).unwrap();
        fs::write(home.join(".cache/pip"), "a file").unwrap();
        let asked = ["npm", "cargo", "uv", "pip", "go"].map(str::to_owned);
        let found = find(Some(&home), &asked);
        assert_eq!(
            found.folders,
            [home.join(".npm/_cacache"), home.join(".cargo/registry")]
        );
        assert_eq!(found.missing, ["uv", "pip", "go"]);
        assert_eq!(find(None, &asked).missing, asked);
    }

    /// The deny list names files that hold credentials; none of the folders is one of them, or in one.
    #[test]
    fn no_folder_is_one_for_credentials() {
        for below in TABLE.iter().flat_map(|(_, below)| *below) {
            assert_eq!(
                crate::deny::denied_folder(below, crate::deny::Access::Read),
                None,
                "{below}"
            );
            let is_around = |other: &&str| other.starts_with(&format!("{below}/"));
            let credentials = [
                ".cargo/credentials.toml",
                ".m2/settings.xml",
                ".m2/settings-security.xml",
                ".npmrc",
                ".gradle/gradle.properties",
                ".gradle/init.d/init.gradle",
                ".config/pnpm/rc",
                ".yarnrc.yml",
                ".local/share/uv/credentials/credentials.toml",
                ".config/pip/pip.conf",
                ".config/go/env",
                ".netrc",
            ];
            assert_eq!(credentials.into_iter().find(is_around), None, "{below}");
        }
    }
}
