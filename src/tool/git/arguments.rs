//! What a call of git names, what it must not, and what is added to its words.

use super::super::Refusal;
use super::shown;
use super::words::{Role, TABLE, Words};
use crate::sandbox::GitAccess;
use crate::sandbox::deny::Access;
use crate::sandbox::paths::{Found, PathError, RootName, Roots};

/// The most words of a call: the system takes more, a person who is asked reads less.
const MAX_WORDS: usize = 1_000;

/// The longest word, in bytes; a commit message fits.
const MAX_WORD: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) words: Vec<String>,
    /// The paths they name, below their root; the project itself where they name none.
    pub(super) paths: Vec<String>,
    /// The words git is run with: converters of the repository's off, submodules not entered, since the filters of each
    /// would run, files of the deny list excluded.
    pub(super) hardened: Vec<String>,
    pub(super) access: GitAccess,
    /// Whether it does nothing but change settings of the repository.
    pub(super) only_configures: bool,
}

impl Arguments {
    /// Reads the words of a call. Fails with [`Refusal::Violation`] where a word is a path outside the roots or on the
    /// deny list, and with [`Refusal::Invalid`] where the words ask for more than git by itself.
    pub(super) fn read(words: Vec<String>, roots: &Roots) -> Result<Self, Refusal> {
        check_form(&words)?;
        let read = Words::read(&words);
        // A path outside is one wherever it stands, also where the word is not taken for other reasons.
        let mut paths = Vec::new();
        for path in candidates(&read) {
            paths.extend(inside(path, roots)?);
        }
        check_subcommand(&read)?;
        check_options(&read)?;
        for item in &read.items {
            shown::check(&read, item, roots)?;
            if item.role != Role::Text {
                paths.extend(existing(item.word, roots));
            }
        }
        paths.dedup();
        if paths.is_empty() {
            paths.push(".".to_owned());
        }
        let access = match (read.subcommand, read.first()) {
            ("clean" | "rm" | "submodule", _)
            | ("worktree", "move" | "prune" | "remove" | "repair") => GitAccess::Nested,
            _ => GitAccess::Create,
        };
        Ok(Self {
            hardened: hardened(&read),
            only_configures: only_configures(&read),
            paths,
            access,
            words,
        })
    }
}

fn only_configures(words: &Words<'_>) -> bool {
    let elsewhere = |option: &str| option.starts_with("-f") || option.starts_with("--f");
    match (words.subcommand, words.first()) {
        ("remote", "add" | "remove" | "rename" | "rm" | "set-branches" | "set-url") => true,
        ("config", "--add" | "--unset" | "set" | "unset") => !words.options().any(elsewhere),
        ("config", key) => {
            key.contains('.') && words.items.len() > 1 && words.options().next().is_none()
        }
        _ => false,
    }
}

fn hardened(words: &Words<'_>) -> Vec<String> {
    let mut line = vec!["--no-pager"];
    let mut items: Vec<&str> = words.items.iter().map(|item| item.word).collect();
    if (words.subcommand, words.first()) == ("submodule", "update") && items.contains(&"--init") {
        // It would write to the settings, which are read-only; without it, git takes what `.gitmodules` says.
        items.retain(|word| *word != "--init");
        line.extend(["-c", "submodule.active=."]);
    }
    let (leading, rest) = items.split_at(words.leading().min(items.len()));
    line.push(words.subcommand);
    line.extend(leading);
    if words.compares() {
        line.extend([
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=dirty",
        ]);
    }
    line.extend(words.about.adds.iter().map(String::as_str));
    line.extend(rest);
    let line = line.into_iter().map(str::to_owned);
    line.chain(shown::excluded(words)).collect()
}

fn invalid(reason: impl Into<String>) -> Refusal {
    Refusal::Invalid(reason.into())
}

fn check_form(words: &[String]) -> Result<(), Refusal> {
    let holds = |is_wrong: fn(&String) -> bool| words.iter().any(is_wrong);
    Err(invalid(if words.is_empty() {
        "`args` is empty; give the words after `git`, e.g. [\"status\"]".to_owned()
    } else if words.len() > MAX_WORDS {
        format!("`args` has more than {MAX_WORDS} words")
    } else if holds(|word| word.len() > MAX_WORD) {
        format!("a word of `args` has more than {MAX_WORD} bytes")
    } else if holds(|word| word.contains('\0')) {
        "a word of `args` holds a NUL character".to_owned()
    } else {
        return Ok(());
    }))
}

fn check_subcommand(words: &Words<'_>) -> Result<(), Refusal> {
    let first = words.subcommand;
    if words.is_known {
        return Ok(());
    }
    Err(invalid(if first == "git" {
        "`args` are the words after `git`; leave out the word `git`".to_owned()
    } else if first.starts_with('-') {
        format!(
            "`args` begins with {first:?}; options for all of git are not taken here, begin with the subcommand (git runs in the project's folder, without a pager)"
        )
    } else {
        format!(
            "{first:?} is no subcommand that this tool runs: aliases, and subcommands that start other programs, are the user's to run, or `bash`'s where `tools.bash.git` is \"write\""
        )
    }))
}

fn check_options(words: &Words<'_>) -> Result<(), Refusal> {
    let subcommand = words.subcommand;
    let runs = |word: &str| {
        Err(invalid(format!(
            "{word:?} has git run other programs, which this tool does not; it is the user's to run, or `bash`'s where `tools.bash.git` is \"write\""
        )))
    };
    let rest: Vec<&str> = words.items.iter().map(|item| item.word).collect();
    // The user's are out of sight, as `/dev/null`: where nothing keeps git from it, it would put a file in its place.
    let is_scope = |word: &&str| {
        let mut scopes = ["--global", "--system"].into_iter();
        word.len() > 2 && scopes.any(|scope| scope.starts_with(word))
    };
    if subcommand == "config" && rest.iter().any(is_scope) {
        let why = "settings of the user and of the system are not reached from here; the user changes them, in a terminal of their own";
        return Err(invalid(why.to_owned()));
    }
    for word in rest.iter().copied().take_while(|word| *word != "--") {
        if runs_programs(words, word) {
            return runs(word);
        }
    }
    for option in words.options() {
        if let Some(instead) = instead_of_converters(words, option) {
            return Err(invalid(format!(
                "{option:?} has git run what the repository's settings name; {instead}"
            )));
        }
    }
    if let Some(strategy) = foreign_strategy(subcommand, &rest) {
        return runs(strategy);
    }
    match (subcommand, words.first()) {
        ("bisect", first @ ("run" | "visualize" | "view")) | ("submodule", first @ "foreach") => {
            runs(first)
        }
        ("help", first) if !first.is_empty() => runs("help"),
        _ => Ok(()),
    }
}

/// Whether a word, as an option or an address, has git run other programs.
fn runs_programs(words: &Words<'_>, word: &str) -> bool {
    let subcommand = words.subcommand;
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    // git takes any beginning of an option's name that is clear.
    let begins = name.len() > 2 && name.starts_with("--");
    let named = begins && TABLE.running.iter().any(|option| option.starts_with(name));
    let harmless = match subcommand {
        "cat-file" => false,
        // It reads a file only; that of `git clone` is a folder with hooks.
        "commit" if "--template".starts_with(name) => true,
        _ => TABLE.harmless.contains(name),
    };
    // Git's settings and hooks are then those that a command has put there.
    let taken_over = subcommand == "init" && begins && "--bare".starts_with(name);
    let letters = word.strip_prefix('-').unwrap_or_default();
    let letter =
        !letters.starts_with('-') && letters.contains(|letter| words.about.runs.contains(letter));
    // Merging once more, for a comparison, runs the repository's merge drivers.
    let merges = word
        .strip_prefix("--diff-merges")
        .is_some_and(|value| value.is_empty() || value.starts_with("=r"));
    let clones = matches!(
        subcommand,
        "clone" | "fetch" | "pull" | "ls-remote" | "push"
    );
    (named && !harmless)
        || taken_over
        || letter
        || (merges && words.compares())
        || (clones && (word.contains("ext::") || word.starts_with("fd::")))
}

/// Returns what to use in the place of an option that has git run converters or filters which no option switches off.
fn instead_of_converters(words: &Words<'_>, option: &str) -> Option<&'static str> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let begins = |whole: &str| name.len() > 2 && whole.starts_with(name);
    if words.compares() && begins("--submodule") && value == "diff" {
        return Some("leave the option away");
    }
    let (letters, _) = words.about.cluster(option).unwrap_or_default();
    let is_option = |whole: &&String| match whole.strip_prefix('-') {
        Some(letter) if !letter.starts_with('-') => letters.contains(letter),
        _ => begins(whole),
    };
    let mut converts = words.about.converts.iter();
    match converts.find(is_option)?.as_str() {
        _ if words.shows_stash() => None,
        "-v" | "--verbose" => Some("use `diff` or `diff --cached`"),
        "--show-current-patch" => Some("use `show REBASE_HEAD`"),
        _ => Some("name the files, or use `bash`"),
    }
}

/// A strategy for merges that is none of git's own.
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
    named
        .into_iter()
        .find(|name| !TABLE.strategies.contains(*name))
}

/// The parts of words that are paths by their form: absolute, or leading up.
fn candidates<'w>(words: &Words<'w>) -> Vec<&'w str> {
    let mut found = Vec::new();
    let first = (words.subcommand, Role::Option);
    let items = words.items.iter().map(|item| (item.word, item.role));
    for (word, role) in std::iter::once(first).chain(items) {
        match role {
            Role::Path => found.push(word),
            Role::Text | Role::Range => {}
            _ => {
                let value = match word.split_once('=') {
                    Some((name, _)) if TABLE.texts.contains(name) => continue,
                    Some((name, value)) if name.starts_with('-') => value,
                    _ => word,
                };
                // `-C/x`, `-o../x`, `-F/etc/passwd`: a letter and its value in one word.
                let attached = value
                    .split_at_checked(2)
                    .filter(|(letter, _)| letter.starts_with('-') && *letter != "--")
                    .filter(|(letter, _)| !TABLE.texts.contains(*letter));
                let both = [Some(value), attached.map(|(_, value)| value)];
                found.extend(both.into_iter().flatten().filter(|it| leads_away(it)));
            }
        }
    }
    found
}

/// Whether a word can only be a path, and one that may leave the project.
fn leads_away(text: &str) -> bool {
    let url = text.strip_prefix("file://").unwrap_or(text);
    url.starts_with(['/', '~']) || url.split('/').any(|part| part == "..")
}

/// Maps a path; `None` where it is one that git alone knows what to make of.
fn inside(path: &str, roots: &Roots) -> Result<Option<String>, Refusal> {
    let plain = path.strip_prefix("file://").unwrap_or(path);
    // `:(exclude)x`, `:/x` and `:!x` are pathspecs below the work tree; `HEAD~2:../x` is an object.
    if plain.is_empty() || !plain.starts_with(['/', '~', '.']) && plain.contains(':') {
        return Ok(None);
    }
    let target = roots.map(plain, Access::Look)?;
    Ok((target.root() == RootName::Project).then(|| target.relative().to_owned()))
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
