//! Where a program is on Windows, by its name: in the folders of `PATH`, with the endings of `PATHEXT`. Pure; whether a
//! file is there is asked of the caller.
//!
//! The folder that a command runs in is not searched, as `cmd.exe` and `CreateProcess` do: what lies in a project would run
//! in the place of the system's.

use std::collections::BTreeMap;

use crate::environment::folders_on_drives;

/// Endings that are tried where nothing else is said. `PATHEXT` may have more, for scripts that something else runs.
const ENDINGS: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];

/// Says whether a file is there.
pub(crate) type Ask<'a> = &'a dyn Fn(&str) -> bool;

/// Finds a program by a bare name in the folders of `PATH`, or by its whole path; `None` where there is none.
pub(crate) fn find(path: &str, name: &str, is_file: Ask<'_>) -> Option<String> {
    if name.is_empty() || name.contains('\0') {
        return None;
    }
    if name.contains(['\\', '/', ':']) {
        let name = name.replace('/', "\\");
        return is_from_a_drive(&name).then(|| with_ending(&name, is_file))?;
    }
    let mut folders = folders_on_drives(path).into_iter();
    folders.find_map(|folder| {
        let folder = folder.replace('/', "\\");
        let folder = folder.trim_end_matches('\\');
        with_ending(&format!("{folder}\\{name}"), is_file)
    })
}

/// The same, in the environment of a command.
pub(crate) fn program_of(
    environment: &BTreeMap<String, String>,
    name: &str,
    is_file: Ask<'_>,
) -> Option<String> {
    let mut variables = environment.iter();
    let path = variables.find(|(name, _)| name.eq_ignore_ascii_case("PATH"));
    find(path.map_or("", |(_, path)| path), name, is_file)
}

fn is_from_a_drive(path: &str) -> bool {
    let mut letters = path.chars();
    letters.next().is_some_and(|it| it.is_ascii_alphabetic())
        && letters.next() == Some(':')
        && letters.next() == Some('\\')
}

/// The name itself where it has an ending that is run, else the first one that is there.
fn with_ending(path: &str, is_file: Ask<'_>) -> Option<String> {
    let lower = path.to_ascii_lowercase();
    if ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
        return is_file(path).then(|| path.to_owned());
    }
    let mut tried = ENDINGS.iter().map(|ending| format!("{path}{ending}"));
    tried.find(|path| is_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_ending() {
        let there = [
            r"C:\Git\cmd\git.exe",
            r"C:\node\npx.cmd",
            r"C:\node\npx",
            r"C:\node\node.exe",
            r"C:\both\x.cmd",
            r"C:\both\x.exe",
            r"C:\a;b\c.exe",
            r"rel\evil.exe",
            r"\evil.exe",
            r"\\server\share\evil.exe",
        ];
        let is_file = |path: &str| there.contains(&path);
        let path = r#"rel;;\;\\server\share;C:\none;"C:\Git\cmd";C:\node\;C:/both;"C:\a;b""#;
        for (name, found) in [
            ("git", Some(r"C:\Git\cmd\git.exe")),
            ("git.exe", Some(r"C:\Git\cmd\git.exe")),
            ("npx", Some(r"C:\node\npx.cmd")),
            ("npx.cmd", Some(r"C:\node\npx.cmd")),
            ("x", Some(r"C:\both\x.exe")),
            ("c", Some(r"C:\a;b\c.exe")),
            ("evil", None),
            ("missing", None),
            ("", None),
            (r"C:\node\node", Some(r"C:\node\node.exe")),
            ("C:/node/node.exe", Some(r"C:\node\node.exe")),
            (r"C:node", None),
            (r"rel\evil.exe", None),
            (r"\evil.exe", None),
            (r"\\server\share\evil.exe", None),
        ] {
            assert_eq!(find(path, name, &is_file).as_deref(), found, "{name}");
        }
        let environment = BTreeMap::from([("Path".to_owned(), path.to_owned())]);
        assert!(program_of(&environment, "git", &is_file).is_some());
        assert!(program_of(&BTreeMap::new(), "git", &is_file).is_none());
    }
}
