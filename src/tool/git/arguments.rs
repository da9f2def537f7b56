//! What a call of git names, what it must not, and what is added to its words.

use super::super::{Refusal, Violation};
use super::shown;
use super::words::{Item, Role, SUBCOMMANDS, TEXTS, Words};
use crate::sandbox::GitAccess;
use crate::sandbox::deny::Access;
use crate::sandbox::paths::{Found, PathError, RootName, Roots};

/// The most words of a call: the system takes more, a person who is asked reads less.
const MAX_WORDS: usize = 1_000;

/// The longest word, in bytes; a commit message fits.
const MAX_WORD: usize = 64 * 1024;

/// Options that name a program for git to run, or where to take programs from.
const RUNNING: [&str; 17] = [
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--ext-diff",
    "--textconv",
    "--extcmd",
    "--open-files-in-pager",
    "--config-env",
    "--exec-path",
    "--sendmail-cmd",
    "--template",
    "--config",
    "--upload-archive",
    "--run",
    "--filters",
    "--show-signature",
    "--remerge-diff",
];

/// Whole options of git's own that are the beginning of one of these, but in `cat-file`.
const HARMLESS: [&str; 2] = ["--text", "--filter"];

/// A call's words, checked.
#[derive(Debug)]
pub(super) struct Arguments {
    /// As they came.
    pub(super) words: Vec<String>,
    /// The paths they name, below their root; the project itself where they name none.
    pub(super) paths: Vec<String>,
}

impl Arguments {
    /// Reads the words of a call.
    ///
    /// # Errors
    ///
    /// [`Refusal::Violation`] where a word is a path outside the roots or on the deny list;
    /// [`Refusal::Invalid`] where the words ask for more than git by itself.
    pub(super) fn read(words: Vec<String>, roots: &Roots) -> Result<Self, Refusal> {
        check_form(&words)?;
        let read = Words::read(&words);
        // A path outside is one wherever it stands, also where the word is not taken for other reasons.
        let mut paths = Vec::new();
        for path in candidates(&read) {
            if let Some(path) = inside(path, roots)? {
                paths.push(path);
            }
        }
        check_subcommand(read.subcommand)?;
        check_options(&read)?;
        for item in &read.items {
            shown::check(&read, item, roots)?;
            if !item.is_text()
                && let Some(path) = existing(item.word, roots)
            {
                paths.push(path);
            }
        }
        paths.dedup();
        if paths.is_empty() {
            paths.push(".".to_owned());
        }
        Ok(Self { words, paths })
    }

    /// Returns what the call may do to repositories.
    pub(super) fn access(&self) -> GitAccess {
        let words = Words::read(&self.words);
        match (words.subcommand, words.first()) {
            ("clean" | "rm" | "submodule", _)
            | ("worktree", "move" | "prune" | "remove" | "repair") => GitAccess::Nested,
            _ => GitAccess::Create,
        }
    }

    /// Returns the words git is run with: converters of the repository's off, submodules not entered, since the filters of
    /// each would run, files of the deny list excluded.
    pub(super) fn hardened(&self) -> Vec<String> {
        let words = Words::read(&self.words);
        let mut added: Vec<&str> = Vec::new();
        if words.compares() || words.shows_stash() {
            added.extend([
                "--no-ext-diff",
                "--no-textconv",
                "--ignore-submodules=dirty",
            ]);
        }
        match words.subcommand {
            "blame" | "annotate" | "grep" => added.push("--no-textconv"),
            "status" => added.push("--ignore-submodules=dirty"),
            _ => {}
        }
        let updates = (words.subcommand, words.first()) == ("submodule", "update")
            && words.items.iter().any(|item| item.word == "--init");
        // It would write to the settings, which are read-only; without it, git takes what `.gitmodules` says.
        let initializes = |item: &&Item<'_>| updates && item.word == "--init";
        let first = match updates {
            true => ["--no-pager", "-c", "submodule.active=."].as_slice(),
            false => &["--no-pager"],
        };
        let (leading, rest) = words.items.split_at(words.leading());
        first
            .iter()
            .copied()
            .chain([words.subcommand])
            .chain(leading.iter().map(|item| item.word))
            .chain(added)
            .chain(
                rest.iter()
                    .filter(|item| !initializes(item))
                    .map(|item| item.word),
            )
            .map(str::to_owned)
            .chain(shown::excluded(&words))
            .collect()
    }
}

fn invalid(reason: impl Into<String>) -> Refusal {
    Refusal::Invalid(reason.into())
}

fn check_form(words: &[String]) -> Result<(), Refusal> {
    if words.is_empty() {
        return Err(invalid(
            "`args` is empty; give the words after `git`, e.g. [\"status\"]",
        ));
    }
    if words.len() > MAX_WORDS {
        return Err(invalid(format!("`args` has more than {MAX_WORDS} words")));
    }
    if words.iter().any(|word| word.len() > MAX_WORD) {
        return Err(invalid(format!(
            "a word of `args` has more than {MAX_WORD} bytes"
        )));
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err(invalid("a word of `args` holds a NUL character"));
    }
    Ok(())
}

fn check_subcommand(first: &str) -> Result<(), Refusal> {
    if first == "git" {
        return Err(invalid(
            "`args` are the words after `git`; leave out the word `git`",
        ));
    }
    if first.starts_with('-') {
        return Err(invalid(format!(
            "`args` begins with {first:?}; options for all of git are not taken here, begin with the subcommand (git runs in the project's folder, without a pager)"
        )));
    }
    if SUBCOMMANDS.contains(&first) {
        return Ok(());
    }
    Err(invalid(format!(
        "{first:?} is no subcommand that this tool runs: aliases, and subcommands that start other programs, are left to `bash`"
    )))
}

fn check_options(words: &Words<'_>) -> Result<(), Refusal> {
    let subcommand = words.subcommand;
    let runs = |word: &str| {
        invalid(format!(
            "{word:?} has git run other programs, which this tool does not; use `bash` for it"
        ))
    };
    let rest: Vec<&str> = words.items.iter().map(|item| item.word).collect();
    let clones = matches!(
        subcommand,
        "clone" | "fetch" | "pull" | "ls-remote" | "push"
    );
    for word in rest.iter().copied().take_while(|word| *word != "--") {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        // git takes any beginning of an option's name that is clear.
        let long = name.len() > 2 && name.starts_with("--");
        let whole = subcommand != "cat-file" && HARMLESS.contains(&name);
        let named = long && !whole && RUNNING.iter().any(|option| option.starts_with(name));
        let letter = match subcommand {
            "rebase" => short(word, 'x') || short(word, 'i'),
            "grep" => short(word, 'O'),
            "clone" => short(word, 'c') || short(word, 'u'),
            _ => false,
        };
        // `git clone --config` and `git archive --exec` among others; `git commit --template` reads a file only.
        let harmless = subcommand == "commit" && "--template".starts_with(name);
        if (named && !harmless) || letter {
            return Err(runs(word));
        }
        // Merging once more, for a comparison, runs the repository's merge drivers.
        let merges = word
            .strip_prefix("--diff-merges")
            .is_some_and(|value| value.is_empty() || value.starts_with("=r"));
        if words.compares() && merges {
            return Err(runs(word));
        }
        if clones && (word.contains("ext::") || word.starts_with("fd::")) {
            return Err(runs(word));
        }
    }
    if let Some((option, instead)) = words
        .options()
        .find_map(|option| Some((option, runs_converters(words, option)?)))
    {
        return Err(invalid(format!(
            "{option:?} has git run what the repository's settings name; {instead}"
        )));
    }
    if let Some(strategy) = foreign_strategy(subcommand, &rest) {
        return Err(runs(strategy));
    }
    let first = rest.first().copied().unwrap_or_default();
    match (subcommand, first) {
        ("bisect", "run" | "visualize" | "view") | ("submodule", "foreach") => Err(runs(first)),
        ("help", _) if !first.is_empty() => Err(runs("help")),
        _ => Ok(()),
    }
}

/// Returns what to use in the place of an option that has git run converters or filters which no option switches off.
fn runs_converters(words: &Words<'_>, option: &str) -> Option<&'static str> {
    let subcommand = words.subcommand;
    let long = |whole: &str, least: usize| {
        let name = option.split_once('=').map_or(option, |(name, _)| name);
        name.len() >= least && whole.starts_with(name)
    };
    // `-abc`, up to a letter that takes the rest.
    let (letters, with_value) = match subcommand {
        "add" => ("pie", ""),
        "checkout" => ("p", "bB"),
        "commit" => ("pv", "mFCctSu"),
        "reset" => ("p", ""),
        "restore" => ("p", "s"),
        "stash" if !words.shows_stash() => ("p", "m"),
        "status" => ("v", "u"),
        _ => ("", ""),
    };
    let letter = option
        .strip_prefix('-')
        .unwrap_or_default()
        .chars()
        .take_while(|letter| *letter != '-' && !with_value.contains(*letter))
        .find(|letter| letters.contains(*letter));
    let verbose = letters.contains('v') && long("--verbose", 3);
    let parts = letters.contains('p') && long("--patch", 3)
        || matches!(subcommand, "add" | "commit") && long("--interactive", 5)
        || subcommand == "add" && long("--edit", 3);
    let submodules = words.compares() && long("--submodule", 5) && option.ends_with("=diff");
    match letter {
        Some('v') => Some("use `diff` or `diff --cached`"),
        None if verbose => Some("use `diff` or `diff --cached`"),
        Some(_) => Some("name the files, or use `bash`"),
        None if parts => Some("name the files, or use `bash`"),
        None if long("--show-current-patch", 4) => Some("use `show REBASE_HEAD`"),
        None if submodules => Some("leave the option away"),
        None => None,
    }
}

/// Git's own strategies for merges. Any other is a program, `git-merge-NAME`, and a name may lead into the work tree.
const STRATEGIES: [&str; 6] = ["octopus", "ort", "ours", "recursive", "resolve", "subtree"];

/// A strategy that is none of git's own.
fn foreign_strategy<'w>(subcommand: &str, words: &[&'w str]) -> Option<&'w str> {
    let by_letter = matches!(subcommand, "merge" | "pull" | "rebase");
    if !by_letter && !matches!(subcommand, "cherry-pick" | "revert") {
        return None;
    }
    let named = words.iter().enumerate().filter_map(|(place, word)| {
        let next = || words.get(place + 1).copied().unwrap_or_default();
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (*word, None),
        };
        if name.len() > 3 && "--strategy".starts_with(name) {
            return Some(value.unwrap_or_else(next));
        }
        let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'))?;
        let (_, value) = letters.split_once('s').filter(|_| by_letter)?;
        Some(if value.is_empty() { next() } else { value })
    });
    named.into_iter().find(|name| !STRATEGIES.contains(name))
}

fn short(word: &str, letter: char) -> bool {
    word.strip_prefix('-')
        .is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
}

/// The parts of words that are paths by their form: absolute, or leading up.
fn candidates<'w>(words: &Words<'w>) -> Vec<&'w str> {
    let mut found = Vec::new();
    let first = Item::option(words.subcommand);
    for item in std::iter::once(&first).chain(&words.items) {
        if item.role == Role::Path {
            found.push(item.word);
            continue;
        }
        if item.is_text() || item.role == Role::Range {
            continue;
        }
        let word = item.word;
        let value = match word.split_once('=') {
            Some((name, _)) if TEXTS.contains(&name) => continue,
            Some((name, value)) if name.starts_with('-') => value,
            _ => word,
        };
        // `-C/x`, `-o../x`, `-F/etc/passwd`: a letter and its value in one word.
        let attached = value
            .strip_prefix('-')
            .filter(|rest| !rest.starts_with('-'))
            .and_then(|rest| rest.get(1..))
            .filter(|_| {
                !TEXTS
                    .iter()
                    .any(|text| text.len() == 2 && value.starts_with(text))
            });
        found.extend(
            [Some(value), attached]
                .into_iter()
                .flatten()
                .filter(|text| leads_away(text)),
        );
    }
    found
}

/// Whether a word can only be a path, and one that may leave the project.
fn leads_away(text: &str) -> bool {
    let url = text.strip_prefix("file://").unwrap_or(text);
    url.starts_with(['/', '~'])
        || url == ".."
        || url.starts_with("../")
        || url.split('/').any(|part| part == "..")
}

/// Maps a path; `None` where it is one that git alone knows what to make of.
fn inside(path: &str, roots: &Roots) -> Result<Option<String>, Refusal> {
    let plain = path.strip_prefix("file://").unwrap_or(path);
    // `:(exclude)x`, `:/x` and `:!x` are pathspecs below the work tree.
    if plain.is_empty() || plain.starts_with(':') {
        return Ok(None);
    }
    // `HEAD~2:../x`, `v1..v2`: objects, not files.
    if !plain.starts_with(['/', '~', '.']) && plain.contains(':') {
        return Ok(None);
    }
    match roots.map(plain, Access::Look) {
        Ok(target) => {
            Ok((target.root() == RootName::Project).then(|| target.relative().to_owned()))
        }
        Err(PathError::Forbidden(message)) => Err(Refusal::Violation(Violation { message })),
        Err(error) => Err(invalid(error.to_string())),
    }
}

/// The path below the project of a word that names something there.
pub(super) fn existing(word: &str, roots: &Roots) -> Option<String> {
    if word.is_empty() || word.starts_with(['-', ':']) {
        return None;
    }
    let target = roots.map(word, Access::Look).ok()?;
    match roots.locate(&target, Access::Look) {
        Ok(located) if matches!(located.found(), Found::Missing) => None,
        Ok(located) => Some(located.relative().to_owned()),
        // On the deny list, or through a link that leads out: there is something.
        Err(PathError::Forbidden(_)) => Some(target.relative().to_owned()),
        Err(_) => None,
    }
}
