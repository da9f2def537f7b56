//! Options with which git shows what is in files where no pathspec leaves any of them out. Pure.
//!
//! They are refused, with the words that do the same: `diff`, `show` and `log` leave files for secrets out.

use super::super::Refusal;
use super::history;
use super::words::Words;

/// What `stash show` takes beside the options of `log`.
const OF_STASH: [&str; 4] = [
    "-u",
    "--include-untracked",
    "--no-include-untracked",
    "--only-untracked",
];

/// Refuses a call that would show what is in files for secrets.
pub(super) fn check(words: &Words<'_>) -> Result<(), Refusal> {
    let first = words.first();
    let subcommand = words.subcommand;
    let refused = |option: &str, instead: &str| {
        Err(Refusal::Invalid(format!(
            "{option:?} shows files that this tool leaves out; {instead}"
        )))
    };
    for option in words.options() {
        if is_verbose(subcommand, option) {
            return refused(option, "use `diff` or `diff --cached`");
        }
        if chooses_parts(subcommand, option) && !words.shows_stash() {
            return refused(option, "name the files, or use `bash`");
        }
        if abbreviates(option, "--show-current-patch", 4) {
            return refused(option, "use `show REBASE_HEAD`");
        }
        if subcommand == "cat-file" && abbreviates(option, "--batch-all-objects", 9) {
            return refused(option, "name the objects, or use `bash`");
        }
        if words.shows_stash() && !history::is_quiet(option) && !OF_STASH.contains(&option) {
            return refused(option, "use `diff stash@{0}^ stash@{0}`");
        }
        if subcommand == "merge-tree" && abbreviates(option, "--trivial-merge", 3) {
            return refused(option, "leave it away");
        }
    }
    if subcommand == "rerere" && first == "diff" {
        return refused("rerere diff", "use `diff`");
    }
    if subcommand == "merge-tree" && words.operands() > 2 {
        return refused(
            "merge-tree",
            "name two branches, and a base with `--merge-base=`",
        );
    }
    let follows = words
        .options()
        .any(|option| abbreviates(option, "--follow", 4));
    if subcommand == "log" && follows && !history::left_out(words).is_empty() {
        return refused(
            "--follow",
            "leave it away, or what shows contents, and look at single commits with `show`",
        );
    }
    Ok(())
}

/// Whether it has what would be committed shown: `status -v`, `commit --dry-run -v`.
fn is_verbose(subcommand: &str, option: &str) -> bool {
    matches!(subcommand, "commit" | "status")
        && (abbreviates(option, "--verbose", 3) || has_letter(subcommand, option, "v"))
}

/// Whether it has each part of a change shown, to choose among them: there is nobody to do that.
fn chooses_parts(subcommand: &str, option: &str) -> bool {
    let patch = || abbreviates(option, "--patch", 3) || has_letter(subcommand, option, "p");
    let interactive = || abbreviates(option, "--interactive", 5);
    match subcommand {
        "add" => {
            patch()
                || interactive()
                || abbreviates(option, "--edit", 3)
                || has_letter(subcommand, option, "ie")
        }
        "checkout" | "reset" | "restore" | "stash" => patch(),
        "commit" => patch() || interactive(),
        _ => false,
    }
}

/// Whether it is this option, or a beginning of it that is at least so long.
fn abbreviates(option: &str, whole: &str, least: usize) -> bool {
    let name = option.split_once('=').map_or(option, |(name, _)| name);
    name.len() >= least && whole.starts_with(name)
}

/// Whether one of the letters is among `-abc`, before one that takes the rest.
fn has_letter(subcommand: &str, option: &str, wanted: &str) -> bool {
    let with_value = match subcommand {
        "checkout" => "bB",
        "commit" => "mFCctSu",
        "restore" => "s",
        "stash" => "m",
        "status" => "u",
        _ => "",
    };
    option
        .strip_prefix('-')
        .filter(|letters| !letters.starts_with('-'))
        .is_some_and(|letters| {
            letters
                .chars()
                .take_while(|letter| !with_value.contains(*letter))
                .any(|letter| wanted.contains(letter))
        })
}
