//! What is known about programs, read once from `tables/harm.toml` and `tables/safe.toml`.
//!
//! The tables are data; what cannot be said as data is in the modules beside this one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::expand::Arg;
use crate::DangerLevel;

/// The compiled-in tables.
pub(super) static TABLE: LazyLock<Table> = LazyLock::new(Table::read);

/// Most words between two words that name a wrapper, as in `docker compose -f x exec`.
const MAX_SUBCOMMAND: usize = 8;

/// Fewest letters of a long option that count as its abbreviation.
const SHORTEST_OPTION: usize = 3;

/// Everything that is known about programs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    rules: Vec<Rule>,
    wrappers: HashMap<String, Wrapper>,
    subwrappers: HashMap<String, Wrapper>,
    runners: HashMap<String, Vec<String>>,
    pub(super) programs: Programs,
    pub(super) writes: Writes,
    interpreters: HashMap<String, Vec<String>>,
    /// Words after which data is gone, and what must follow them; nothing: the word alone tells.
    pub(super) destroying: HashMap<String, Vec<String>>,
    pub(super) git: Git,
    pub(super) paths: Paths,
    #[serde(skip)]
    pub(super) safe: SafeTable,
    /// Rule and command of each program that is named without a star; there are hundreds.
    #[serde(skip)]
    by_program: HashMap<String, Vec<(usize, usize)>>,
    #[serde(skip)]
    pub(super) refused: Vec<String>,
    /// Rule and command of the programs whose name has a star.
    #[serde(skip)]
    by_wildcard: Vec<(usize, usize)>,
}

/// Commands of one kind and level.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) level: DangerLevel,
    pub(super) reason: String,
    commands: Vec<CommandPattern>,
}

/// How a program takes another command as its arguments.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Wrapper {
    pub(super) values: Vec<String>,
    pub(super) code: Vec<String>,
    pub(super) plain: Vec<String>,
    pub(super) operands: usize,
    pub(super) separator: String,
    pub(super) assignments: bool,
    pub(super) text: bool,
    pub(super) ends: bool,
    pub(super) safe: bool,
    /// The program that is given the rest as its arguments.
    pub(super) runs: String,
    /// `-5` is an option.
    pub(super) number: bool,
}

/// Programs by what they do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Programs {
    pub(super) shells: Vec<String>,
    pub(super) fetchers: HashSet<String>,
    pub(super) decoders: HashSet<String>,
    pub(super) senders: HashSet<String>,
    pub(super) telling: HashSet<String>,
    pub(super) databases: HashSet<String>,
    pub(super) unrememberable: Vec<String>,
    pub(super) builtins: Vec<String>,
    /// Environment variables whose value is run or loaded.
    pub(super) variables: Vec<String>,
    /// Calls in programs of other languages that remove, send or start something.
    pub(super) calls: Vec<String>,
    /// Programs that unpack archives, and commands that bring whole trees from elsewhere.
    pub(super) unpackers: HashSet<String>,
    brings: Vec<CommandPattern>,
}

/// What git's words mean.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Git {
    /// Options before the subcommand that take the next word.
    pub(super) global_values: Vec<String>,
    /// The same of `git config`, and the words that ask it for a value.
    pub(super) config_values: Vec<String>,
    pub(super) config_reads: Vec<String>,
    /// Settings that name a program or a place from which code is loaded.
    pub(super) running_keys: Vec<String>,
    /// Subcommands that no alias replaces.
    pub(super) own: Vec<String>,
}

/// Names of files and directories that matter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paths {
    /// Protected with everything in them, with what is directly in them, and alone.
    pub(super) system_trees: Vec<String>,
    pub(super) shared_parents: Vec<String>,
    pub(super) system_roots: Vec<String>,
    /// What is in `/dev` without being a disk.
    pub(super) harmless_devices: Vec<String>,
    /// What is run later by something else, alone and in a directory.
    pub(super) run_later: Vec<String>,
    pub(super) run_later_below: Vec<[String; 2]>,
    /// Files for secrets, directories of such, and files that are secret in one directory.
    pub(super) secret_names: Vec<String>,
    pub(super) secret_directories: Vec<String>,
    pub(super) secret_below: Vec<[String; 2]>,
}

/// What programs do to the files they are given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Writes {
    /// Options of any program whose value is written.
    pub(super) options: Vec<String>,
    /// Programs all of whose operands are written or changed.
    pub(super) all: HashSet<String>,
    /// Programs whose last operand is written.
    pub(super) last: HashSet<String>,
    /// Programs whose last operand is written if it is not the only one.
    pub(super) second: HashSet<String>,
    /// Programs that only read or run the files they are given.
    reads: HashSet<String>,
    /// Options of single programs whose value is written.
    pub(super) by_program: HashMap<String, Vec<String>>,
}

/// What may be called safe.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SafeTable {
    /// No option of these writes or runs anything, so their arguments need not be known.
    pub(super) agnostic: BTreeMap<String, Agnostic>,
    /// Safe without any argument.
    pub(super) bare: Vec<String>,
    /// Options that may be used with programs whose arguments matter.
    pub(super) options: HashMap<String, Options>,
    /// Predicates of `find`.
    pub(super) find: FindPredicates,
    /// Reading subcommands of git.
    pub(super) git: HashMap<String, Options>,
}

/// How an argument-agnostic program takes its operands.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Agnostic {
    /// Its operands are text, not names of files.
    pub(super) text: bool,
    /// That many operands come before the names of files: a pattern, a filter.
    pub(super) leading: usize,
    /// Options that replace the leading operands.
    pub(super) instead: Vec<String>,
    /// Options that are not allowed after all.
    pub(super) except: Vec<String>,
    /// It only looks at names, sizes and dates, so a device may be among its operands.
    pub(super) looks: bool,
    /// Words of its filters that write out the environment.
    pub(super) telling: Vec<String>,
}

/// Options that are allowed; anything else is not.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    /// Letters of options without a value.
    pub(super) flags: String,
    /// Letters of options that take a value, joined or as the next word.
    pub(super) values: String,
    /// Letters of options whose value is joined if there is one.
    pub(super) joined: String,
    /// Long options, without their dashes; with or without `=value`.
    pub(super) long: Vec<String>,
    /// Long options that take the next word as their value if they have no `=`.
    pub(super) long_values: Vec<String>,
    /// Most operands.
    pub(super) operands: Option<usize>,
    /// One of these must be there for operands to be allowed.
    pub(super) listing: Vec<String>,
    /// `-5` is an option.
    pub(super) number: bool,
    /// The first operand, if it must be one of these.
    pub(super) first: Vec<String>,
}

/// Predicates of `find` by how many words follow them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindPredicates {
    pub(super) alone: Vec<String>,
    pub(super) with_value: Vec<String>,
}

impl Table {
    #[expect(
        clippy::expect_used,
        reason = "the files are compiled in and a test reads them"
    )]
    fn read() -> Self {
        let mut table: Self = toml::from_str(include_str!("../tables/harm.toml"))
            .expect("the compiled-in table is valid");
        table.safe = toml::from_str(include_str!("../tables/safe.toml"))
            .expect("the compiled-in table is valid");
        table.indexed()
    }

    fn indexed(mut self) -> Self {
        for (rule_at, rule) in self.rules.iter().enumerate() {
            for (command_at, command) in rule.commands.iter().enumerate() {
                let bare = command.words.is_empty() && command.options.is_empty();
                for name in &command.program.0 {
                    if bare && rule.level == DangerLevel::Blocked {
                        self.refused.push(name.replace(['*'], ""));
                    }
                    let place = (rule_at, command_at);
                    if name.contains(['*', '?']) {
                        self.by_wildcard.push(place);
                    } else {
                        self.by_program.entry(name.clone()).or_default().push(place);
                    }
                }
            }
        }
        self
    }

    /// Whether it is known what the program does with its operands.
    pub(super) fn knows(&self, program: &str) -> bool {
        let writes = &self.writes;
        [&writes.all, &writes.last, &writes.second, &writes.reads]
            .iter()
            .any(|programs| programs.contains(program))
            || self.safe.agnostic.contains_key(program)
            || self.safe.options.contains_key(program)
            || self.interpreters.contains_key(program)
            || self.wrappers.contains_key(program)
            || has(&self.programs.shells, program)
            || has(&self.programs.builtins, program)
            || program.starts_with("git-")
    }

    /// Returns each rule that names this command.
    pub(super) fn rules(&self, program: &str, args: &[Arg]) -> Vec<&Rule> {
        let named = self.by_program.get(program).into_iter().flatten();
        named
            .chain(&self.by_wildcard)
            .filter_map(|(rule, command)| {
                let rule = self.rules.get(*rule)?;
                let command = rule.commands.get(*command)?;
                let meant = !command.any || !self.knows(program);
                (meant && command.matches(program, args)).then_some(rule)
            })
            .collect()
    }

    /// Whether the command brings a whole tree from elsewhere.
    pub(super) fn brings(&self, program: &str, args: &[Arg]) -> bool {
        let mut brings = self.programs.brings.iter();
        brings.any(|command| command.matches(program, args))
    }

    /// Returns how this command wraps another one and how many words name the wrapper.
    pub(super) fn wrapper(&self, program: &str, args: &[Arg]) -> Option<(&Wrapper, usize)> {
        // The loader of shared libraries runs the program it is given.
        let loader = ["ld-", "ld.so", "ld64.so"]
            .iter()
            .any(|prefix| program.starts_with(prefix));
        let name = if loader { "ld.so" } else { program };
        if let Some(wrapper) = self.wrappers.get(name) {
            return Some((wrapper, 0));
        }
        let first = args.iter().position(|arg| !arg.text.starts_with('-'))?;
        let name = format!("{program} {}", args.get(first)?.text);
        let longer = args.iter().enumerate().skip(first + 1).take(MAX_SUBCOMMAND);
        let longer = longer.filter_map(|(at, arg)| {
            let wrapper = self.subwrappers.get(&format!("{name} {}", arg.text))?;
            Some((wrapper, at + 1))
        });
        let short = self
            .subwrappers
            .get(&name)
            .map(|wrapper| (wrapper, first + 1));
        longer.chain(short).next()
    }

    /// Returns the options of the program that name another program.
    pub(super) fn runner(&self, program: &str) -> &[String] {
        self.runners.get(program).map_or(&[], Vec::as_slice)
    }

    /// Returns the options that hold program text, if this is an interpreter.
    pub(super) fn interpreter(&self, program: &str) -> Option<&Vec<String>> {
        self.interpreters.get(program)
    }
}

/// Whether the list has the name.
pub(super) fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|item| item == name)
}

/// One entry of `commands`.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
struct CommandPattern {
    /// `*`: any program that is not known otherwise.
    any: bool,
    program: Alternatives,
    words: Vec<Step>,
    options: Vec<Alternatives>,
    /// Options that must not be there.
    absent: Vec<Alternatives>,
}

#[derive(Debug)]
enum Step {
    Gap,
    Word(Alternatives),
}

#[derive(Debug)]
struct Alternatives(Vec<String>);

impl Alternatives {
    fn new(text: &str) -> Self {
        Self(text.split('|').map(str::to_owned).collect())
    }

    fn matches(&self, word: &str) -> bool {
        self.0.iter().any(|pattern| wildcard(pattern, word))
    }
}

impl From<String> for CommandPattern {
    fn from(text: String) -> Self {
        let mut words = text.split(' ');
        let program = Alternatives::new(&words.next().unwrap_or_default().to_ascii_lowercase());
        let (absent, words): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with('!'));
        let (options, words): (Vec<_>, Vec<_>) = words
            .into_iter()
            .partition(|word| word.starts_with(['-', '/']));
        let absent = absent
            .into_iter()
            .map(|word| Alternatives::new(word.trim_start_matches('!')));
        Self {
            any: text.starts_with("* "),
            program,
            words: words
                .into_iter()
                .map(|word| match word {
                    "**" => Step::Gap,
                    word => Step::Word(Alternatives::new(&word.to_ascii_lowercase())),
                })
                .collect(),
            options: options.into_iter().map(Alternatives::new).collect(),
            absent: absent.collect(),
        }
    }
}

impl CommandPattern {
    fn matches(&self, program: &str, args: &[Arg]) -> bool {
        let given = |wanted: &Alternatives| {
            let mut options = wanted.0.iter();
            options.any(|option| args.iter().any(|arg| is_option(&arg.text, option)))
        };
        self.program.matches(program)
            && steps_match(&self.words, args)
            && self.options.iter().all(given)
            && !self.absent.iter().any(given)
    }
}

/// Whether the words follow in this order; options, each with one value at most, may be between.
fn steps_match(steps: &[Step], args: &[Arg]) -> bool {
    // `reached[n]`: the next word may be the one at `n`.
    let mut reached = vec![false; args.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for step in steps {
        let mut next = vec![false; args.len() + 1];
        let mut gap = false;
        for at in 0..reached.len() {
            let here = reached.get(at).copied().unwrap_or_default();
            match step {
                Step::Gap => gap |= here,
                Step::Word(word) if here => {
                    let Some(arg) = args.get(at) else { continue };
                    if word.matches(&arg.text.to_ascii_lowercase()) {
                        reach(&mut next, at + 1);
                    }
                    if arg.text.starts_with(['-', '+']) {
                        // The word after an option may be its value or the one that is looked for.
                        reach(&mut reached, at + 1);
                        reach(&mut reached, at + 2);
                    }
                }
                Step::Word(_) => {}
            }
            if gap {
                reach(&mut next, at);
            }
        }
        reached = next;
    }
    reached.contains(&true)
}

fn reach(positions: &mut [bool], at: usize) {
    if let Some(position) = positions.get_mut(at) {
        *position = true;
    }
}

/// Whether the word is this option: alone, in a cluster of letters, abbreviated, or with a value.
pub(super) fn is_option(word: &str, option: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    if wildcard(option, word) || wildcard(option, name) {
        return true;
    }
    if let Some(long) = option.strip_prefix("--") {
        let given = name.strip_prefix("--").unwrap_or_default();
        return given.len() >= SHORTEST_OPTION && !long.contains('=') && long.starts_with(given);
    }
    let mut letters = option.chars().skip(1);
    match (letters.next(), letters.next()) {
        (Some(letter), None) => cluster(word).is_some_and(|cluster| cluster.contains(letter)),
        _ => name.strip_prefix('-') == Some(option),
    }
}

/// Returns the letters of `-abc`.
pub(super) fn cluster(word: &str) -> Option<&str> {
    word.strip_prefix('-')
        .filter(|letters| !letters.starts_with('-'))
}

/// Whether the text matches a pattern in which `*` is any text and `?` any character.
pub(super) fn wildcard(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == text;
    }
    if pattern.is_ascii() && text.is_ascii() {
        return matches(pattern.as_bytes(), text.as_bytes(), [b'*', b'?']);
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    matches(&pattern, &text, ['*', '?'])
}

/// Two-pointer matching: linear but for the text after the last star.
fn matches<T: PartialEq>(pattern: &[T], text: &[T], [any, one]: [T; 2]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while let Some(c) = text.get(t) {
        match pattern.get(p) {
            Some(wanted) if *wanted == any => {
                star = Some((p, t));
                p += 1;
            }
            Some(wanted) if *wanted == one || wanted == c => {
                p += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    p = *at + 1;
                    t = *from;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == any)
}
