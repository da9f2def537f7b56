//! Caches of the user's package managers that commands may be given. They see them below their home as they are, and what
//! they write there is their pod's. Some need not be asked for (`ALWAYS`).
//!
//! Each is at the place that its program takes without any setting. No folder here holds credentials: those are beside
//! them (`~/.cargo/credentials.toml`, `~/.m2/settings.xml`, `~/.npmrc`, `~/.gradle/gradle.properties`).

use std::path::{Path, PathBuf};

/// Names, and folders below the home.
const TABLE: [(&str, &[&str]); 9] = [
    // `_npx` beside it holds programs that were run, `_logs` what they said.
    ("npm", &[".npm/_cacache"]),
    ("cargo", &[".cargo/registry", ".cargo/git"]),
    // `mod`, and `sumdb`, which each download writes to.
    ("go", &["go/pkg", ".cache/go-build"]),
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

/// What commands can read in any case, beside the toolchain that puts it there. Cargo and Go download to these folders and to
/// no other where they are, so that a command which could only read them could get nothing new.
const ALWAYS: [&str; 3] = [".cargo/registry", ".cargo/git", "go/pkg"];

/// Returns the names that there are.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

/// Returns the name of the cache that a folder is one of.
pub fn name_of(folder: &Path) -> Option<&'static str> {
    let is_of = |below: &[&str]| below.iter().any(|below| folder.ends_with(below));
    let named = TABLE.iter().find(|(_, below)| is_of(below));
    named.map(|(name, _)| *name)
}

/// What was found of the caches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caches {
    /// Folders below the home, canonical: of the caches that were asked for, and what is seen in any case.
    pub folders: Vec<PathBuf>,
    /// The names of which nothing is there.
    pub missing: Vec<String>,
}

/// Looks for the folders of these caches, and for those that are seen in any case. Does file I/O.
///
/// A folder that is reached through a link is none: the link could name any place, and programs look for it by its own
/// path.
pub fn find(home: Option<&Path>, names: &[String]) -> Caches {
    let mut found = Caches::default();
    let home = home.and_then(|home| crate::canonicalize(home).ok());
    let mut add = |below: &[&str]| {
        let places = home
            .iter()
            .flat_map(|home| below.iter().map(|below| home.join(below)));
        let is_there = |place: &PathBuf| {
            place.is_dir() && crate::canonicalize(place).is_ok_and(|canonical| canonical == *place)
        };
        let there: Vec<PathBuf> = places.filter(is_there).collect();
        let is_any = !there.is_empty();
        for place in there {
            if !found.folders.contains(&place) {
                found.folders.push(place);
            }
        }
        is_any
    };
    let mut missing = names.to_vec();
    missing.retain(|name| {
        let below = TABLE.iter().find(|(known, _)| known == name);
        !add(below.map_or(&[][..], |(_, below)| below))
    });
    add(&ALWAYS);
    found.missing = missing;
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
            "go/pkg",
            "elsewhere/uv",
        ] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        fs::create_dir(home.join(".cache")).unwrap();
        symlink("../elsewhere/uv", home.join(".cache/uv")).unwrap();
        fs::write(home.join(".cache/pip"), "a file").unwrap();
        let asked = ["npm", "cargo", "uv", "pip", "yarn"].map(str::to_owned);
        let found = find(Some(&home), &asked);
        let [npm, cargo, go] =
            [".npm/_cacache", ".cargo/registry", "go/pkg"].map(|below| home.join(below));
        assert_eq!(found.folders, [npm.clone(), cargo.clone(), go.clone()]);
        assert_eq!(found.missing, ["uv", "pip", "yarn"]);
        assert_eq!(find(None, &asked).missing, asked);
        assert_eq!(find(Some(&home), &[]).folders, [cargo, go.clone()]);
        assert_eq!((name_of(&npm), name_of(&go)), (Some("npm"), Some("go")));
        assert_eq!(name_of(&home), None);
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
