//! What the key Tab adds: commands, their words, and paths. One function reads a folder, the others nothing.

use std::path::{Path, PathBuf};

/// The most entries of a folder that are looked at.
const ENTRIES: usize = 2_000;

/// The most candidates that are named below the line.
const NAMED: usize = 40;

/// Words that may follow a command.
const WORDS: &[(&str, &[&str])] = &[
    ("/trust", &["supervised", "guided", "autonomous"]),
    ("/revoke", &["conversation", "session", "project", "always"]),
];

/// What could be completed at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Where the word begins, in bytes.
    pub(super) start: usize,
    pub(super) of: Of,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Words(Vec<String>),
    /// What this folder has that begins so.
    Folder {
        folder: PathBuf,
        prefix: String,
    },
}

/// What there is to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Completed {
    Nothing,
    /// Put this from the word's begin to the cursor.
    Put(String),
    /// Several go on differently: these.
    Several(String),
}

/// Returns what could stand at the end of this text, which ends at the cursor; paths are those of `base`.
pub(super) fn wanted(text: &str, commands: &[String], base: &Path) -> Option<Wanted> {
    let start = text.rfind(char::is_whitespace).map_or(0, |at| {
        let blank = text.get(at..).and_then(|rest| rest.chars().next());
        at + blank.map_or(1, char::len_utf8)
    });
    let word = text.get(start..)?;
    if start == 0 && word.starts_with('/') && !word.get(1..)?.contains('/') {
        return words(0, word, commands.iter().map(String::as_str));
    }
    let before = text.get(..start)?.trim();
    if let Some((_, known)) = WORDS.iter().find(|(command, _)| *command == before) {
        return words(start, word, known.iter().copied());
    }
    path(start, word, base)
}

fn words<'a>(start: usize, word: &str, known: impl Iterator<Item = &'a str>) -> Option<Wanted> {
    let fitting = known.filter(|known| known.starts_with(word));
    let fitting: Vec<String> = fitting.map(|known| format!("{known} ")).collect();
    let of = Of::Words(fitting);
    Some(Wanted { start, of })
}

/// A path may stand in quotes, brackets or after an `@`.
fn path(start: usize, word: &str, base: &Path) -> Option<Wanted> {
    let bare = word.trim_start_matches(['@', '"', '\'', '`', '(', '[']);
    if bare.is_empty() {
        return None;
    }
    let cut = bare.rfind('/').map_or(0, |at| at + 1);
    let (folder, prefix) = bare.split_at_checked(cut)?;
    let folder = match folder.strip_prefix("~/") {
        Some(rest) => dirs::home_dir()?.join(rest),
        None => base.join(folder),
    };
    Some(Wanted {
        start: start + (word.len() - prefix.len()),
        of: Of::Folder {
            folder,
            prefix: prefix.to_owned(),
        },
    })
}

/// Reads the names of a folder that begin so; folders end with a slash, everything else with a blank.
pub(super) fn names(folder: &Path, prefix: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let fitting = entries.take(ENTRIES).flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_hidden = name.starts_with('.') && !prefix.starts_with('.');
        let is_odd = name.chars().any(char::is_control);
        if is_hidden || is_odd || !name.starts_with(prefix) {
            return None;
        }
        // Of a link what it leads to.
        let end = if entry.path().is_dir() { '/' } else { ' ' };
        Some(format!("{name}{end}"))
    });
    let mut names: Vec<String> = fitting.collect();
    names.sort();
    names
}

/// Decides what is put in the place of `typed`.
pub(super) fn complete(typed: &str, candidates: &[String]) -> Completed {
    let Some(first) = candidates.first() else {
        return Completed::Nothing;
    };
    let common = candidates
        .iter()
        .skip(1)
        .fold(first.as_str(), |common, other| {
            let pairs = common.char_indices().zip(other.chars());
            let end = pairs
                .take_while(|((_, one), other)| one == other)
                .last()
                .map_or(0, |((at, one), _)| at + one.len_utf8());
            common.get(..end).unwrap_or_default()
        });
    if candidates.len() == 1 || common.len() > typed.len() {
        return Completed::Put(common.to_owned());
    }
    let named: Vec<&str> = candidates
        .iter()
        .take(NAMED)
        .map(|name| name.trim_end())
        .collect();
    let mut text = named.join("  ");
    if candidates.len() > NAMED {
        text.push_str(&format!("  … {} more", candidates.len() - NAMED));
    }
    Completed::Several(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Vec<String> {
        ["/model", "/history", "/help", "/trust"]
            .map(str::to_owned)
            .to_vec()
    }

    #[test]
    fn what_stands_at_the_cursor_decides() {
        let words = |start, words: &[&str]| {
            let of = Of::Words(words.iter().map(|word| format!("{word} ")).collect());
            Some(Wanted { start, of })
        };
        let folder = |start, folder: &str, prefix: &str| {
            let (folder, prefix) = (PathBuf::from(folder), prefix.to_owned());
            let of = Of::Folder { folder, prefix };
            Some(Wanted { start, of })
        };
        for (text, expected) in [
            ("/h", words(0, &["/history", "/help"])),
            ("/", words(0, &["/model", "/history", "/help", "/trust"])),
            ("/x", words(0, &[])),
            ("/trust ", words(7, &["supervised", "guided", "autonomous"])),
            ("/trust g", words(7, &["guided"])),
            ("/usr/b", folder(5, "/usr/", "b")),
            ("see /h", folder(5, "/", "h")),
            ("see sr", folder(4, "/base/", "sr")),
            ("see src/ch", folder(8, "/base/src/", "ch")),
            ("see @src/ch", folder(9, "/base/src/", "ch")),
            ("see `src/", folder(9, "/base/src/", "")),
            ("漢\u{3000}字", folder(6, "/base/", "字")),
            ("see ", None),
            ("", None),
            ("see @", None),
        ] {
            assert_eq!(
                wanted(text, &commands(), Path::new("/base")),
                expected,
                "{text:?}"
            );
        }
    }

    #[test]
    fn what_they_have_in_common_is_put() {
        for (typed, candidates, expected) in [
            ("x", &[][..], Completed::Nothing),
            ("/mo", &["/model "], Completed::Put("/model ".to_owned())),
            ("s", &["src/"], Completed::Put("src/".to_owned())),
            ("", &["one ", "other "], Completed::Put("o".to_owned())),
            (
                "o",
                &["one ", "other "],
                Completed::Several("one  other".to_owned()),
            ),
            (
                "漢",
                &["漢字 ", "漢文 "],
                Completed::Several("漢字  漢文".to_owned()),
            ),
        ] {
            let candidates: Vec<String> = candidates.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(complete(typed, &candidates), expected, "{typed:?}");
        }
        let many: Vec<String> = (0..50).map(|number| format!("f{number} ")).collect();
        let Completed::Several(text) = complete("f", &many) else {
            panic!("one of many was chosen");
        };
        assert!(text.ends_with("f39  … 10 more"), "{text}");
    }

    #[test]
    fn names_of_a_folder_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["alpha", "alps.txt", ".hidden", "beta", "al\tb"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("almond")).unwrap();
        for (prefix, expected) in [
            ("al", &["almond/", "alpha ", "alps.txt "][..]),
            (".", &[".hidden "]),
            ("", &["almond/", "alpha ", "alps.txt ", "beta "]),
            ("z", &[]),
        ] {
            assert_eq!(names(folder.path(), prefix), expected, "{prefix:?}");
        }
        assert_eq!(names(&folder.path().join("none"), ""), [""; 0]);
    }
}
