//! Files that are named as the user's own. One that lies in the project, by a link, is the project's all the same: whoever
//! changes the project changes it.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use same_file::Handle;

use super::{Words, below, of_project, read_own};
use crate::sandbox::paths::{RootName, Roots};
use crate::telemetry::Redactor;

/// The most links on the way to a file, as the system has it.
const MAX_LINKS: usize = 40;

/// Where a file of the user's own lies.
#[derive(Debug, PartialEq, Eq)]
enum Lies {
    /// Outside of the project, with nothing of the project on the way.
    Outside,
    /// In the project, at this path below it.
    Inside(String),
    /// Outside of it, but a link in the project leads there.
    ByALink,
}

/// Reads a file of the user's own; `None` where there is none. One that lies in the project is read as the project's are, and is
/// one of them.
pub(super) fn of_own(
    path: &Path,
    roots: Option<&Roots>,
    redactor: &Redactor,
) -> Option<Result<Words, String>> {
    if !path.is_file() {
        return None;
    }
    let shown = path.display();
    let lies = match roots {
        None => Ok(Lies::Outside),
        Some(roots) => lies(path, roots.path(RootName::Project)),
    };
    match (lies, roots) {
        (Ok(Lies::Inside(below)), Some(roots)) => of_project(roots, &below, redactor),
        (Ok(Lies::ByALink), _) => Some(Err(format!(
            "{shown}: a link in the project leads to it, and none of it is told; have it lead there without the project"
        ))),
        (Ok(_), _) => Some(read_own(path, redactor)),
        (Err(error), _) => Some(Err(format!("{shown}: {error}"))),
    }
}

/// Follows a path link by link, and says where it ends.
fn lies(path: &Path, project: &Path) -> io::Result<Lies> {
    let project = Handle::from_path(project)?;
    let is_project = |folder: &Path| Handle::from_path(folder).is_ok_and(|it| it == project);
    let (mut real, mut links, mut is_inside) = (PathBuf::new(), 0, false);
    let mut rest: VecDeque<PathBuf> = parts(path).collect();
    while let Some(part) = rest.pop_front() {
        let name = match part.components().next() {
            Some(Component::Normal(name)) => name,
            Some(Component::ParentDir) => {
                real.pop();
                continue;
            }
            Some(Component::CurDir) | None => continue,
            // It begins anew.
            Some(Component::Prefix(_) | Component::RootDir) => {
                real.push(part);
                continue;
            }
        };
        // Whatever is below the project is looked up in its folder once.
        is_inside |= is_project(&real);
        let next = real.join(name);
        if !fs::symlink_metadata(&next)?.is_symlink() {
            real = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::other("too many links lead to it"));
        }
        let target = fs::read_link(&next)?;
        for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
            rest.push_front(part);
        }
    }
    let folder = real.ancestors().skip(1).find(|folder| is_project(folder));
    Ok(
        match (folder.and_then(|folder| below(&real, folder)), is_inside) {
            (Some(below), _) => Lies::Inside(below),
            (None, true) => Lies::ByALink,
            (None, false) => Lies::Outside,
        },
    )
}

fn parts(path: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    path.components()
        .map(|part| PathBuf::from(part.as_os_str()))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_lies_in_the_project_or_is_led_to_by_it_is_not_the_users_own() {
        let place = tempfile::tempdir().unwrap();
        let real = crate::sandbox::canonicalize(place.path()).unwrap();
        for folder in ["project/skills/a", "settings", "other"] {
            fs::create_dir_all(real.join(folder)).unwrap();
        }
        for file in ["project/a.md", "project/skills/a/b.md", "other/a.md"] {
            fs::write(real.join(file), "x").unwrap();
        }
        let link = |to: &str, at: &str| symlink(to, real.join(at)).unwrap();
        link("../other/a.md", "settings/outside");
        link("../project/a.md", "settings/file");
        link("../project/skills", "settings/skills");
        link("../other/a.md", "project/out");
        link("../project/out", "settings/by-a-link");
        link("project", "by-another-name");
        link(
            real.join("by-another-name/a.md").to_str().unwrap(),
            "settings/far",
        );
        link("../project/skills/../../other/a.md", "settings/up");
        link("round", "settings/round");
        let project = real.join("by-another-name");
        let at = |path: &str| lies(&real.join("settings").join(path), &project);
        let inside = |path: &str| Lies::Inside(path.to_owned());
        for (path, expected) in [
            ("outside", Lies::Outside),
            ("file", inside("a.md")),
            ("skills/a/b.md", inside("skills/a/b.md")),
            ("far", inside("a.md")),
            ("by-a-link", Lies::ByALink),
            ("up", Lies::ByALink),
        ] {
            assert_eq!(at(path).unwrap(), expected, "{path}");
        }
        assert!(at("round").is_err() && at("none").is_err());
    }
}
