//! Whether a repository's settings name programs that nothing switches off.
//!
//! In a line of bash no option can be added, and no variable switches off filters, converters and external diffs,
//! whose names are free: such a line only reads where the settings name none. They are looked at when the call is
//! judged; what could change them between then and the run is a command, which can run its programs itself.

use std::path::Path;

use crate::classifier::{SimpleCommand, Word};
use crate::sandbox::deny::Access;
use crate::sandbox::paths::{Found, RootName, Roots};

/// Beginnings of sections of which any setting names a program, or further settings.
const SECTIONS: [&str; 2] = ["[filter", "[include"];

/// Settings that name a program, or have a submodule looked at by a git of its own.
const KEYS: [&str; 5] = ["external", "command", "textconv", "driver", "ignore"];

/// Whether a git in this line may run a program that settings name; where that is unknown it may.
pub(in crate::tool) fn may_run_programs(commands: &[SimpleCommand], roots: &Roots) -> bool {
    let mut folder = String::new();
    let mut may_run = names_programs(&folder, roots, says_so);
    for command in commands {
        let moved = match command.as_slice() {
            [Word::Literal(cd), Word::Literal(target)] if cd == "cd" => {
                below(&folder, target, roots)
            }
            [Word::Literal(cd), ..] if cd == "cd" => None,
            _ => continue,
        };
        let Some(moved) = moved else { return true };
        may_run |= names_programs(&moved, roots, says_so);
        folder = moved;
    }
    may_run
}

/// Whether git itself, run in the project's folder with all switched off that can be, may run a filter that settings
/// name; where that is unknown it may.
pub(super) fn may_run_filters(roots: &Roots) -> bool {
    names_programs("", roots, has_section)
}

/// The folder of the project to which a `cd` leads.
fn below(folder: &str, target: &str, roots: &Roots) -> Option<String> {
    let joined = match target.starts_with(['/', '~']) || folder.is_empty() {
        true => target.to_owned(),
        false => format!("{folder}/{target}"),
    };
    let target = roots.map(&joined, Access::Look).ok()?;
    let located = roots.locate(&target, Access::Look).ok()?;
    let inside = located.root() == RootName::Project && matches!(located.found(), Found::Folder(_));
    let relative = located.relative();
    inside.then(|| if relative == "." { "" } else { relative }.to_owned())
}

/// Whether the settings of the repository that git finds from a folder of the project on name a program, as far as
/// `says_so` finds.
fn names_programs(folder: &str, roots: &Roots, says_so: impl Fn(&str) -> bool) -> bool {
    for folder in Path::new(folder).ancestors() {
        let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
        if is_there(&at("HEAD"), roots) {
            // It may be the directory of a repository itself.
            return true;
        }
        if is_there(&at(".git"), roots) {
            let says = |name: &str| {
                let content = roots.hidden_content(&at(name))?;
                Some(says_so(&String::from_utf8_lossy(&content)))
            };
            // Elsewhere, where `.git` is a file or `commondir` says so.
            return is_there(&at(".git/commondir"), roots)
                || says(".git/config").unwrap_or(true)
                || says(".git/config.worktree").unwrap_or(false)
                || says(".gitmodules").unwrap_or(false);
        }
    }
    false
}

/// Whether there is something of that name; what cannot be looked at is.
fn is_there(path: &str, roots: &Roots) -> bool {
    let target = roots.map(path, Access::Look);
    let located = target.and_then(|target| roots.locate(&target, Access::Look));
    !located.is_ok_and(|located| matches!(located.found(), Found::Missing))
}

/// Whether a text of settings may name a program: it has such a word, in whatever place.
fn says_so(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    has_section(&text) || words.any(|word| KEYS.contains(&word))
}

/// Whether a text of settings may have a section of [`SECTIONS`].
fn has_section(text: &str) -> bool {
    let text = text.to_lowercase();
    SECTIONS.iter().any(|section| text.contains(section))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::file::testing::World;

    #[test]
    fn settings_that_name_a_program_are_found() {
        for (text, expected) in [
            ("", false),
            ("[core]\n\tbare = false\n\tignorecase = true\n", false),
            (
                "[remote \"o\"]\n\turl = x\n[branch \"main\"]\n\tmerge = r\n",
                false,
            ),
            (
                "[diff]\n\trenames = true\n[merge]\n\tconflictstyle = zdiff3\n",
                false,
            ),
            ("[diff \"x\"]\n\txfuncname = y\n", false),
            ("[submodule \"x\"]\n\tactive = true\n", false),
            ("[branch \"my-driver\"]\n\tremote = o\n", false),
            ("[filter \"x\"]\n\tclean = y\n", true),
            ("[FILTER.x]clean=y", true),
            (
                "[core] bare = false\n[core][filter \"x\"] clean = y\n",
                true,
            ),
            ("[remote \"a]b\"] [filter \"x\"]\n", true),
            ("[remote \"a\\\"]b\"][filter \"x\"]\n", true),
            ("\u{feff}[include]\n\tpath = ../more\n", true),
            ("[includeIf \"gitdir:x\"]\n\tpath = y\n", true),
            ("[Diff]\n\tExternal = y\n", true),
            ("[diff \"x\"]\r\n\ttextconv=y\r\n", true),
            ("[diff \"x\"] command = y\n", true),
            ("[merge \"x\"]\n\tdriver = y\n", true),
            ("[submodule \"x\"]\n\tignore = none\n", true),
        ] {
            assert_eq!(says_so(text), expected, "{text:?}");
        }
    }

    #[test]
    fn each_repository_that_a_line_reaches_is_looked_at() {
        let world = World::with(&[
            ("src/deep/a.rs", ""),
            (".git/HEAD", ""),
            (".git/config", "[core]\n"),
            ("nested/.git/config", "[diff]\n\texternal = x\n"),
            ("nested/below/b.rs", ""),
            ("bare/HEAD", ""),
            ("linked/.git", "gitdir: ../elsewhere\n"),
        ]);
        let root = world.at("").display().to_string();
        for (words, expected) in [
            (&[][..], false),
            (&["src"], false),
            (&["src", "deep"], false),
            (&[&root], false),
            (&["src", "../nested"], true),
            (&["nested/below"], true),
            (&["bare"], true),
            (&["linked"], true),
            (&["missing"], true),
            (&["/etc"], true),
        ] {
            let command = |folder: &&str| {
                let words = ["cd", folder].map(|word| Word::Literal(word.to_owned()));
                SimpleCommand::from(words)
            };
            let commands: Vec<SimpleCommand> = words.iter().map(command).collect();
            let found = may_run_programs(&commands, &world.roots);
            assert_eq!(found, expected, "{words:?}");
        }
        std::fs::write(world.at(".git/config"), "[filter \"x\"]\n\tclean = y\n").unwrap();
        assert!(may_run_programs(&[], &world.roots));
        std::fs::remove_file(world.at(".git/config")).unwrap();
        assert!(may_run_programs(&[], &world.roots));
    }
}
