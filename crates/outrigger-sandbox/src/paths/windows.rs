//! What a path means on Windows, by its text alone, and which names lead elsewhere there than they say. Pure.
//!
//! Windows has many ways to write one file: two separators, drives with folders of their own, devices in every folder, streams
//! behind a colon, dots and blanks that it drops, short names. A path is brought into one form here, or refused; what is left
//! has one meaning, which is looked up below a root's handle.

/// What is before the names of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// The drive, in upper case; `None` for a relative path.
    pub(super) drive: Option<char>,
    /// Names, `.` and `..` among them.
    pub(super) names: Vec<String>,
}

impl Written {
    /// Returns it in the form that Windows' own programs write.
    pub(super) fn text(&self) -> String {
        let names = self.names.join("\\");
        match self.drive {
            Some(drive) => format!("{drive}:\\{names}"),
            None => names,
        }
    }
}

/// Why a path is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It names no file of a drive: another machine, a device, or a place that depends on the folder of a drive.
    Outside,
    /// One of its names leads elsewhere than it says, or nowhere.
    Name { name: String, why: &'static str },
}

/// Takes a path apart.
///
/// `/c/Users` is what Git's bash writes for `C:\Users`. A path of another machine, `\\server\share`, is not even looked at:
/// that would send it the user's name and a proof of the password.
pub(super) fn read(path: &str) -> Result<Written, Refused> {
    let is_separator = |letter: char| matches!(letter, '/' | '\\');
    let names = |rest: &str| {
        let names = rest.split(is_separator).filter(|name| !name.is_empty());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut letters = path.chars();
    let (first, second, third) = (letters.next(), letters.next(), letters.next());
    match (first, second, third) {
        (Some(drive), Some(':'), Some(separator))
            if drive.is_ascii_alphabetic() && is_separator(separator) =>
        {
            Ok(Written {
                drive: Some(drive.to_ascii_uppercase()),
                names: names(path.get(2..).unwrap_or_default()),
            })
        }
        // Of Git's bash.
        (Some('/'), Some(drive), third)
            if drive.is_ascii_alphabetic() && matches!(third, None | Some('/')) =>
        {
            Ok(Written {
                drive: Some(drive.to_ascii_uppercase()),
                names: names(path.get(2..).unwrap_or_default()),
            })
        }
        // `C:name` is a name in the folder that the process has on that drive.
        (Some(drive), Some(':'), _) if drive.is_ascii_alphabetic() => Err(Refused::Outside),
        // Of another machine (`\\server`), of devices (`\\.\`), past all rules (`\\?\`, `\??\`), or on the current drive.
        (Some(separator), ..) if is_separator(separator) => Err(Refused::Outside),
        _ => Ok(Written {
            drive: None,
            names: names(path),
        }),
    }
}

/// Returns the names of a path below a root; `None` where it is not below it. Windows takes no notice of case, and a name that
/// is taken for the root's is walked from the root's own handle.
pub(super) fn below(path: &Written, root: &Written) -> Option<Vec<String>> {
    let same = |(one, other): (&String, &String)| one.to_lowercase() == other.to_lowercase();
    let rest = path.names.get(root.names.len()..)?;
    let is_below = root.drive.is_some()
        && path.drive == root.drive
        && path.names.iter().zip(&root.names).all(same);
    is_below.then(|| rest.to_vec())
}

/// Names of devices, which are in every folder, with any ending.
const DEVICES: [&str; 7] = ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"];

/// What has a number behind it as a device, from 0 to 9 or raised: Windows takes `COM¹` for one.
const NUMBERED: [&str; 2] = ["com", "lpt"];

/// Characters that no name has. `<`, `>` and `"` are patterns to some calls, as `*` and `?` are.
const FORBIDDEN: &str = "<>\"|?*";

/// Longest name, in units of UTF-16.
const MAX_NAME: usize = 255;

/// Returns why a name below a root is refused; `None` for an ordinary one, `.` and `..`.
pub(super) fn refused(name: &str) -> Option<&'static str> {
    if matches!(name, "." | "..") {
        return None;
    }
    if name.contains(':') {
        return Some("a colon names another stream of a file, or a drive");
    }
    if name
        .chars()
        .any(|it| it.is_control() || FORBIDDEN.contains(it))
    {
        return Some("Windows has no such names");
    }
    if name.ends_with(['.', ' ']) {
        return Some("Windows drops dots and blanks at the end, and takes it for another file");
    }
    if is_device(name) {
        return Some("it is the name of a device, in every folder");
    }
    if is_short(name) {
        return Some("it has the form of a short name of another file; write the file's long name");
    }
    if name.encode_utf16().count() > MAX_NAME {
        return Some("it is too long");
    }
    None
}

/// Refuses a path below a root for any of its names.
pub(super) fn check(names: &[String]) -> Result<(), Refused> {
    let mut found = names.iter().filter_map(|name| Some((name, refused(name)?)));
    match found.next() {
        Some((name, why)) => Err(Refused::Name {
            name: name.clone(),
            why,
        }),
        None => Ok(()),
    }
}

/// Whether Windows opens a device by this name: what is before the first dot counts, without blanks at its end.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let stem = stem.trim_end_matches(' ').to_lowercase();
    let is_numbered = |device: &&str| {
        let mut rest = stem.strip_prefix(device).unwrap_or_default().chars();
        let is_number =
            |it: char| it.is_ascii_digit() || matches!(it, '\u{b9}' | '\u{b2}' | '\u{b3}');
        rest.next().is_some_and(is_number) && rest.next().is_none()
    };
    DEVICES.contains(&stem.as_str()) || NUMBERED.iter().any(is_numbered)
}

/// Whether a name has the form that Windows gives to short ones (`ENV~1`, `PROGRA~2.TXT`): at most eight letters with `~` and
/// a number at their end, and at most three behind the dot. `.env` has one on most disks, and the deny list does not know it.
fn is_short(name: &str) -> bool {
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let Some((begin, number)) = stem.rsplit_once('~') else {
        return false;
    };
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number && !begin.contains('.') && stem.chars().count() <= 8 && ending.chars().count() <= 3
}

/// Folders of the system, on whatever drive it is, with all that is in them.
const SYSTEM_TREES: [&str; 10] = [
    "windows",
    "program files",
    "program files (x86)",
    "programdata",
    "$recycle.bin",
    "system volume information",
    "recovery",
    "boot",
    "perflogs",
    "documents and settings",
];

/// Folders that are refused as a whole, while what is in them may be a root.
const SHARED_PLACES: [&str; 2] = ["users", "users\\public"];

/// Returns why a folder of the system can be no root; `None` for any other one.
pub(super) fn of_the_system(folder: &Written) -> Option<&'static str> {
    let names: Vec<String> = folder
        .names
        .iter()
        .map(|name| name.to_lowercase())
        .collect();
    let [first, ..] = names.as_slice() else {
        return Some("it is a whole drive");
    };
    if SYSTEM_TREES.contains(&first.as_str()) {
        return Some("it belongs to the system");
    }
    let path = names.join("\\");
    SHARED_PLACES
        .contains(&path.as_str())
        .then_some("it holds folders of many owners")
}

/// Returns whether a folder below the home is one in which programs keep settings and credentials: what is in `AppData`, but
/// for temporary files.
pub(super) fn of_programs(below_home: &[String]) -> bool {
    let names: Vec<String> = below_home.iter().map(|name| name.to_lowercase()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["appdata", "local", "temp", _, ..] => false,
        ["appdata", ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
