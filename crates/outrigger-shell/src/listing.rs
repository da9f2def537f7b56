//! Names that are known as a pattern alone: what `find`, `ls` or `echo *` list, and what `{}` stands for.

use super::Word;
use super::expand::Arg;
use super::flow::Feed;
use super::peel::find_roots;

/// Returns patterns of the names that the program lists; others pass on the list that they read.
pub(super) fn of(program: &str, rest: &[Arg], input: &Feed) -> Vec<Arg> {
    match program {
        "find" | "gfind" => find_roots(rest).iter().map(listed_under).collect(),
        "ls" | "dir" | "vdir" | "tree" | "fd" | "fdfind" | "exa" | "eza" => directories(rest),
        "echo" | "printf" => rest.iter().filter(|arg| arg.glob).map(listed).collect(),
        _ => input.lists.clone(),
    }
}

/// Returns everything under the directories that `ls` and its kin are given.
fn directories(rest: &[Arg]) -> Vec<Arg> {
    let operands = rest.iter().filter(|arg| !arg.text.starts_with('-'));
    let mut names: Vec<Arg> = operands
        .map(|arg| {
            if arg.glob {
                listed(arg)
            } else {
                listed_under(arg)
            }
        })
        .collect();
    // Most of them write names without the directory.
    let here = Arg::literal("*");
    names.push(listed(&Arg { glob: true, ..here }));
    names
}

/// Everything under a directory, as `{}` of `find -exec` is.
pub(super) fn everything_under(root: &Arg) -> Arg {
    Arg {
        text: format!("{}/*", root.text),
        glob: true,
        word: Some(Word::Dynamic("{}".to_owned())),
        ..root.clone()
    }
}

/// Any of the names that a list of everything under a directory may hold.
fn listed_under(root: &Arg) -> Arg {
    listed(&everything_under(root))
}

/// Any of the names that match the pattern, read from a list.
fn listed(pattern: &Arg) -> Arg {
    Arg {
        made: true,
        loose: true,
        word: None,
        ..pattern.clone()
    }
}
