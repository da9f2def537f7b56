//! The words of a call of git, each with what git takes it for. Pure.
//!
//! Git has hundreds of options, and some take the next word. Where that is not known for certain a word counts as one
//! that names something.

/// Subcommands of git itself that work on a repository. No other name is tried, so that none is an alias or a
/// program of the repository's choice. Left out: what is there to run programs or to serve others (`difftool`,
/// `mergetool`, `filter-branch`, `daemon`, `instaweb`, `send-email`, `upload-pack`, `receive-pack`, `shell`, …), or has
/// programs run that nothing switches off (`archive`, `interpret-trailers`, `range-diff`).
pub(super) const SUBCOMMANDS: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "bisect",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "commit-graph",
    "commit-tree",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "help",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "maintenance",
    "merge",
    "merge-base",
    "merge-file",
    "merge-tree",
    "mktag",
    "mktree",
    "mv",
    "name-rev",
    "notes",
    "pack-refs",
    "patch-id",
    "prune",
    "pull",
    "push",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "replace",
    "rerere",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "worktree",
    "write-tree",
];

/// Options of subcommands that show no contents, followed by text in which a path means nothing.
pub(super) const TEXTS: &[&str] = &[
    "-m",
    "--message",
    "-S",
    "-G",
    "--grep",
    "--author",
    "--committer",
    "--format",
    "--pretty",
    "--date",
    "--since",
    "--until",
    "--after",
    "--before",
    "-L",
    "-e",
    "--trailer",
    "--subject-prefix",
    "-t",
];

/// Of these, the ones that take the next word in `log`, `show` and the kinds of `diff` (tried with git 2.47, 2026-11-20):
/// `-m`, `-t` and `--pretty` take none there, and the next word names what is shown.
const SEARCHES: &[&str] = &[
    "-S",
    "-G",
    "--grep",
    "--author",
    "--committer",
    "--date",
    "--since",
    "--until",
    "--after",
    "--before",
];

/// Subcommands that show what is in files, in the work tree or in history.
const SHOWING: &[&str] = &[
    "am",
    "annotate",
    "apply",
    "blame",
    "bundle",
    "cat-file",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "format-patch",
    "grep",
    "hash-object",
    "log",
    "merge-file",
    "merge-tree",
    "reflog",
    "show",
];

/// Options whose value is a file that git reads: it becomes a message, a setting or a complaint, and is shown as that.
const FILES: &[&str] = &[
    "--blob",
    "--contents",
    "--exclude-from",
    "--file",
    "--ignore-revs-file",
    "--pathspec-from-file",
    "--reedit-message",
    "--reuse-message",
    "--signature-file",
    "--template",
];

/// What `git reflog` does besides showing.
const REFLOG: &[&str] = &["delete", "drop", "exists", "expire", "list", "write"];

/// Beginnings of the options with which `log` and `reflog` show what is in files.
const PATCHES: &[&str] = &[
    "-p",
    "-u",
    "-U",
    "-W",
    "-c",
    "--patch",
    "--unified",
    "--function-context",
    "--cc",
    "--word-diff",
    "--color-words",
    "--binary",
];

/// Subcommands that compare contents, and so would run a converter of the repository's.
const COMPARING: &[&str] = &[
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "log",
    "reflog",
    "show",
];

/// What git takes a word for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// An option, with its value if that is in the same word.
    Option,
    /// Text: an option's value, or what `grep` looks for.
    Text,
    /// A range of lines, and in most subcommands the file it is in: the value of `-L`.
    Range,
    /// A file that git reads: the value of an option.
    File,
    /// A revision, an object or a path.
    Operand,
    /// `--`.
    Separator,
    /// What comes after it: paths, by pathspec.
    Path,
}

/// A word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'w> {
    pub(super) word: &'w str,
    pub(super) role: Role,
}

impl<'w> Item<'w> {
    pub(super) fn option(word: &'w str) -> Self {
        let role = Role::Option;
        Self { word, role }
    }

    /// Whether a path means nothing in it.
    pub(super) fn is_text(&self) -> bool {
        self.role == Role::Text
    }

    /// The range of lines it names, by whichever of the two forms.
    pub(super) fn range(&self) -> Option<&'w str> {
        match self.role {
            Role::Range => Some(self.word),
            Role::Option => self.word.strip_prefix("-L"),
            _ => None,
        }
    }
}

/// The words after `git`.
#[derive(Debug)]
pub(super) struct Words<'w> {
    /// Empty where there is none.
    pub(super) subcommand: &'w str,
    pub(super) items: Vec<Item<'w>>,
}

impl<'w> Words<'w> {
    /// Tells what each word is.
    pub(super) fn read(words: &'w [String]) -> Self {
        let mut words = words.iter().map(String::as_str);
        let subcommand = words.next().unwrap_or_default();
        let mut items: Vec<Item<'w>> = Vec::new();
        // What the next word is, where the last one says so.
        let mut next = None;
        let mut options = true;
        let mut paths = false;
        for word in words {
            let role = match next.take() {
                Some(role) => role,
                None if paths => Role::Path,
                None if word == "--" => Role::Separator,
                None if options && word.starts_with('-') && word != "-" => Role::Option,
                None => Role::Operand,
            };
            if role == Role::Option {
                next = value_of(subcommand, word);
                options = word != "--end-of-options";
            }
            paths |= role == Role::Separator;
            items.push(Item { word, role });
        }
        let mut words = Self { subcommand, items };
        words.find_pattern();
        words
    }

    /// The first operand of `grep` is what it looks for, unless an option may have said that.
    fn find_pattern(&mut self) {
        let given = |item: &Item<'_>| {
            let letters = item.word.strip_prefix('-').unwrap_or_default();
            item.role == Role::Option && !letters.starts_with('-') && letters.contains(['e', 'f'])
        };
        if self.subcommand != "grep" || self.items.iter().any(given) {
            return;
        }
        let mut items = self.items.iter_mut();
        if let Some(pattern) = items.find(|item| item.role == Role::Operand) {
            pattern.role = Role::Text;
        }
    }

    /// The first word after the subcommand, which names what some of them do.
    pub(super) fn first(&self) -> &'w str {
        self.items.first().map_or("", |item| item.word)
    }

    /// Whether it shows what is in files.
    pub(super) fn shows_contents(&self) -> bool {
        SHOWING.contains(&self.subcommand)
    }

    /// Whether it compares contents, for which the repository may name converters.
    pub(super) fn compares(&self) -> bool {
        COMPARING.contains(&self.subcommand) && !self.changes_reflog()
    }

    /// Whether it is a `reflog` that takes none of the options of `log`.
    pub(super) fn changes_reflog(&self) -> bool {
        self.subcommand == "reflog" && REFLOG.contains(&self.first())
    }

    /// Whether it is a stash that is shown, or a list of them.
    pub(super) fn shows_stash(&self) -> bool {
        self.subcommand == "stash" && matches!(self.first(), "list" | "show")
    }

    /// How many words are the name of what is done, behind which options are added.
    pub(super) fn leading(&self) -> usize {
        usize::from(self.shows_stash() || self.subcommand == "reflog" && self.first() == "show")
    }

    /// Whether two files are compared that need not be in the repository. No abbreviation is taken for this option.
    pub(super) fn compares_files(&self) -> bool {
        self.subcommand == "diff" && self.options().any(|option| option == "--no-index")
    }

    /// Whether it shows a range of lines of one file, for which no pathspec is taken.
    pub(super) fn shows_lines(&self) -> bool {
        matches!(self.subcommand, "log" | "show")
            && self.items.iter().any(|item| item.range().is_some())
    }

    /// Whether a `log` shows what is in files.
    pub(super) fn shows_patches(&self) -> bool {
        let shows = |option: &str| PATCHES.iter().any(|start| option.starts_with(start));
        !self.changes_reflog() && self.options().any(shows)
    }

    /// The options before `--`.
    pub(super) fn options(&self) -> impl Iterator<Item = &'w str> {
        self.items
            .iter()
            .filter(|item| item.role == Role::Option)
            .map(|item| item.word)
    }
}

/// What an option makes of the next word.
fn value_of(subcommand: &str, option: &str) -> Option<Role> {
    match subcommand {
        "log" | "show" | "blame" | "annotate" | "reflog" | "format-patch" if option == "-L" => {
            Some(Role::Range)
        }
        "grep" => (option == "-e").then_some(Role::Text),
        _ if SHOWING.contains(&subcommand) => SEARCHES.contains(&option).then_some(Role::Text),
        _ if names_file(subcommand, option) => Some(Role::File),
        // `-am`: the last letter takes it.
        "commit" | "merge" | "notes" | "stash" | "tag"
            if is_cluster(option) && option.ends_with('m') =>
        {
            Some(Role::Text)
        }
        _ => TEXTS.contains(&option).then_some(Role::Text),
    }
}

/// Whether the next word is a file that git reads; any clear beginning of a name is taken.
fn names_file(subcommand: &str, option: &str) -> bool {
    if option.starts_with("--") {
        return is_file_option(option);
    }
    is_cluster(option) && option.ends_with(|letter| file_letters(subcommand).contains(letter))
}

/// Whether the value of a long option is a file that git reads, or an object.
pub(super) fn is_file_option(option: &str) -> bool {
    option.len() > 3 && FILES.iter().any(|name| name.starts_with(option))
}

/// Letters for options whose value is a file that git reads, or an object that becomes a text.
pub(super) fn file_letters(subcommand: &str) -> &'static str {
    match subcommand {
        "commit" => "Ft",
        "commit-tree" | "merge" | "tag" => "F",
        "config" => "f",
        "ls-files" => "X",
        "notes" => "FCc",
        _ => "",
    }
}

fn is_cluster(option: &str) -> bool {
    option.starts_with('-') && !option.starts_with("--")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_what_git_takes_it_for() {
        use Role::{File, Operand, Option, Path, Range, Separator, Text};
        for (words, roles) in [
            (
                &["log", "-p", "--", "-L", "."][..],
                &[Option, Separator, Path, Path][..],
            ),
            (&["log", "-L", "1,2:f", "-L3,4:f"], &[Option, Range, Option]),
            (&["log", "-S", "-L", "x"], &[Option, Text, Operand]),
            (&["log", "--until", "--", "x"], &[Option, Text, Operand]),
            (
                &["log", "--end-of-options", "-L", "--", "x"],
                &[Option, Operand, Separator, Path],
            ),
            (&["show", "-m", "HEAD:f"], &[Option, Operand]),
            (&["show", "--pretty", "HEAD:f"], &[Option, Operand]),
            (&["commit", "-m", "HEAD:f"], &[Option, Text]),
            (&["grep", "x", "HEAD:f"], &[Text, Operand]),
            (&["grep", "-n", "x", "f"], &[Option, Text, Operand]),
            (&["grep", "-e", "x", "f"], &[Option, Text, Operand]),
            (&["grep", "-ffile", "HEAD:f"], &[Option, Operand]),
            (&["grep", "-nex", "HEAD:f"], &[Option, Operand]),
            (&["grep", "--", "x"], &[Separator, Path]),
            (&["grep", "-L", "x", "f"], &[Option, Text, Operand]),
            (&["diff", "-", "x"], &[Operand, Operand]),
            (&["commit", "-aF", "f"], &[Option, File]),
            (&["commit", "-am", "a: b"], &[Option, Text]),
            (&["config", "--fil", "f", "-l"], &[Option, File, Option]),
            (&["add", "-f", "f"], &[Option, Operand]),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let read = Words::read(&words);
            let found: Vec<Role> = read.items.iter().map(|item| item.role).collect();
            assert_eq!(found, roles, "{words:?}");
        }
    }
}
