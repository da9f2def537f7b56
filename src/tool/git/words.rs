//! The words of a call of git, each with what git takes it for, by the table `words.toml`. Pure.
//!
//! Git has hundreds of options, and some take the next word. Where that is not known for certain a word counts as one
//! that names something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

/// What is known; where it could not be read, no subcommand is run.
pub(super) static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("words.toml")).unwrap_or_default());

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) texts: BTreeSet<String>,
    searches: BTreeSet<String>,
    files: Vec<String>,
    patches: Vec<String>,
    reflog: BTreeSet<String>,
    pub(super) running: Vec<String>,
    pub(super) harmless: BTreeSet<String>,
    pub(super) strategies: BTreeSet<String>,
    subcommands: BTreeMap<String, Subcommand>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Subcommand {
    pub(super) shows: bool,
    pub(super) excludes: bool,
    compares: bool,
    pub(super) adds: Vec<String>,
    pub(super) files: String,
    values: String,
    pub(super) runs: String,
    pub(super) converts: Vec<String>,
}

impl Table {
    /// Whether the value of a long option is a file that git reads, or an object: any clear beginning of a name is taken.
    pub(super) fn is_file(&self, option: &str) -> bool {
        option.len() > 3 && self.files.iter().any(|name| name.starts_with(option))
    }
}

impl Subcommand {
    /// Splits `-abcVALUE` behind the first letter that takes a value.
    pub(super) fn cluster<'w>(&self, option: &'w str) -> Option<(&'w str, &'w str)> {
        let letters = option.strip_prefix('-')?;
        let takes_value = |letter| self.files.contains(letter) || self.values.contains(letter);
        let end = letters.find(takes_value).map_or(letters.len(), |at| at + 1);
        letters
            .split_at_checked(end)
            .filter(|_| !letters.starts_with('-'))
    }

    /// What an option makes of the next word.
    fn value_of(&self, name: &str, option: &str) -> Option<Role> {
        let is_file = |letter| self.files.contains(letter);
        match (name, self.cluster(option)) {
            ("log" | "show" | "blame" | "annotate" | "reflog" | "format-patch", _)
                if option == "-L" =>
            {
                Some(Role::Range)
            }
            ("grep", _) => (option == "-e").then_some(Role::Text),
            _ if self.shows => TABLE.searches.contains(option).then_some(Role::Text),
            (_, Some((letters, ""))) if letters.ends_with(is_file) => Some(Role::File),
            (_, None) if TABLE.is_file(option) => Some(Role::File),
            // `-am`: the last letter takes it.
            (_, Some((letters, ""))) if letters.ends_with('m') && self.values.contains('m') => {
                Some(Role::Text)
            }
            _ => TABLE.texts.contains(option).then_some(Role::Text),
        }
    }
}

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

#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'w> {
    pub(super) word: &'w str,
    pub(super) role: Role,
}

impl<'w> Item<'w> {
    /// The range of lines it names, by whichever of the two forms.
    pub(super) fn range(&self) -> Option<&'w str> {
        match self.role {
            Role::Range => Some(self.word),
            Role::Option => self.word.strip_prefix("-L"),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Words<'w> {
    /// Empty where there is none.
    pub(super) subcommand: &'w str,
    pub(super) is_known: bool,
    /// What the table says of it; nothing of one that is not run.
    pub(super) about: &'static Subcommand,
    pub(super) items: Vec<Item<'w>>,
}

impl<'w> Words<'w> {
    pub(super) fn read(words: &'w [String]) -> Self {
        static UNKNOWN: LazyLock<Subcommand> = LazyLock::new(Subcommand::default);

        let mut words = words.iter().map(String::as_str);
        let subcommand = words.next().unwrap_or_default();
        let known = TABLE.subcommands.get(subcommand);
        let mut read = Self {
            subcommand,
            is_known: known.is_some(),
            about: known.unwrap_or(&UNKNOWN),
            items: Vec::new(),
        };
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
                next = read.about.value_of(subcommand, word);
                options = word != "--end-of-options";
            }
            paths |= role == Role::Separator;
            read.items.push(Item { word, role });
        }
        read.find_pattern();
        read
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

    pub(super) fn first(&self) -> &'w str {
        self.items.first().map_or("", |item| item.word)
    }

    /// Whether it compares contents, for which the repository may name converters.
    pub(super) fn compares(&self) -> bool {
        self.about.compares
            && !self.changes_reflog()
            && (self.subcommand != "stash" || self.shows_stash())
    }

    /// Whether it is a `reflog` that takes none of the options of `log`.
    fn changes_reflog(&self) -> bool {
        self.subcommand == "reflog" && TABLE.reflog.contains(self.first())
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
        let shows = |option: &str| TABLE.patches.iter().any(|start| option.starts_with(start));
        !self.changes_reflog() && self.options().any(shows)
    }

    pub(super) fn options(&self) -> impl Iterator<Item = &'w str> {
        self.items
            .iter()
            .filter(|item| item.role == Role::Option)
            .map(|item| item.word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read() {
        let table: Result<Table, _> = toml::from_str(include_str!("words.toml"));
        assert!(table.unwrap().subcommands.contains_key("status"));
    }

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
