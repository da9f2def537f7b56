//! What is known about programs, read once from `tables/harm.toml` and `tables/safe.toml`.
//!
//! The tables are data, and say what their keys mean; what cannot be said as data is in the modules beside this one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::expand::Arg;
use crate::DangerLevel;

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(Table::read);

const ANY: &str = "*";

/// Most words between two words that name a wrapper, as in `docker compose -f x exec`.
const MAX_SUBCOMMAND: usize = 8;

/// Fewest letters of a long option that count as its abbreviation.
const SHORTEST_OPTION: usize = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    rules: Vec<Rule>,
    pub(super) wrappers: HashMap<String, Wrapper>,
    subwrappers: HashMap<String, Wrapper>,
    pub(super) runners: HashMap<String, Vec<String>>,
    pub(super) marks: HashMap<String, Vec<String>>,
    pub(super) programs: Programs,
    pub(super) sends: Sends,
    pub(super) writes: Writes,
    pub(super) interpreters: HashMap<String, Vec<String>>,
    pub(super) destroying: HashMap<String, Vec<String>>,
    pub(super) git: Git,
    pub(super) paths: Paths,
    #[serde(skip)]
    pub(super) safe: SafeTable,
    /// Rule and command of each program, as there are hundreds; those whose name has a star are under [`ANY`].
    #[serde(skip)]
    by_program: HashMap<String, Vec<(usize, usize)>>,
    #[serde(skip)]
    pub(super) refused: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) level: DangerLevel,
    pub(super) reason: String,
    commands: Vec<CommandPattern>,
}

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
    pub(super) runs: String,
    pub(super) number: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Programs {
    pub(super) shells: Vec<String>,
    pub(super) gnu: HashSet<String>,
    pub(super) fetchers: HashSet<String>,
    pub(super) decoders: HashSet<String>,
    pub(super) senders: HashSet<String>,
    pub(super) revealing: HashSet<String>,
    pub(super) databases: HashSet<String>,
    pub(super) unrememberable: Vec<String>,
    pub(super) changing: Vec<String>,
    pub(super) builtins: Vec<String>,
    pub(super) evaluating: HashSet<String>,
    pub(super) variables: Vec<String>,
    pub(super) calls: Vec<String>,
    pub(super) unpackers: HashSet<String>,
    brings: Vec<CommandPattern>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sends {
    pub(super) body: Vec<String>,
    pub(super) files: Vec<String>,
    pub(super) input: Vec<String>,
    pub(super) scripted: Vec<String>,
    pub(super) stores: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Git {
    pub(super) global_values: Vec<String>,
    pub(super) config_values: Vec<String>,
    pub(super) config_reads: Vec<String>,
    pub(super) running_keys: Vec<String>,
    pub(super) own: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paths {
    pub(super) system_trees: Vec<String>,
    pub(super) shared_parents: Vec<String>,
    pub(super) system_roots: Vec<String>,
    pub(super) harmless_devices: Vec<String>,
    pub(super) run_later: Vec<String>,
    pub(super) run_later_below: Vec<[String; 2]>,
    pub(super) secret_names: Vec<String>,
    pub(super) secret_directories: Vec<String>,
    pub(super) secret_below: Vec<[String; 2]>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Writes {
    pub(super) options: Vec<String>,
    pub(super) all: HashSet<String>,
    pub(super) last: HashSet<String>,
    pub(super) second: HashSet<String>,
    reads: HashSet<String>,
    pub(super) by_program: HashMap<String, Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SafeTable {
    pub(super) agnostic: BTreeMap<String, Agnostic>,
    pub(super) bare: Vec<String>,
    pub(super) options: HashMap<String, Options>,
    pub(super) find: FindPredicates,
    pub(super) git: HashMap<String, Options>,
    pub(super) git_alone: HashMap<String, Options>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Agnostic {
    pub(super) text: bool,
    pub(super) leading: usize,
    pub(super) instead: Vec<String>,
    pub(super) except: Vec<String>,
    pub(super) looks: bool,
    pub(super) revealing: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    pub(super) flags: String,
    pub(super) values: String,
    pub(super) joined: String,
    pub(super) long: Vec<String>,
    pub(super) long_values: Vec<String>,
    pub(super) operands: Option<usize>,
    pub(super) listing: Vec<String>,
    pub(super) number: bool,
    pub(super) first: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindPredicates {
    pub(super) alone: Vec<String>,
    pub(super) with_value: Vec<String>,
}

impl Table {
    #[expect(clippy::expect_used, reason = "compiled in, and a test reads them")]
    fn read() -> Self {
        let harm = toml::from_str(include_str!("../tables/harm.toml"));
        let mut table: Self = harm.expect("the compiled-in table is valid");
        let safe = toml::from_str(include_str!("../tables/safe.toml"));
        table.safe = safe.expect("the compiled-in table is valid");
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
                    let starred = name.contains(['*', '?']);
                    let name = if starred { ANY } else { name.as_str() };
                    let places = self.by_program.entry(name.to_owned()).or_default();
                    places.push((rule_at, command_at));
                }
            }
        }
        self
    }

    /// Whether it is known what the program does with its operands.
    pub(super) fn knows(&self, program: &str) -> bool {
        let writes = &self.writes;
        let lists = [&writes.all, &writes.last, &writes.second, &writes.reads];
        lists.iter().any(|programs| programs.contains(program))
            || self.safe.agnostic.contains_key(program)
            || self.safe.options.contains_key(program)
            || self.interpreters.contains_key(program)
            || self.wrappers.contains_key(program)
            || has(&self.programs.shells, program)
            || has(&self.programs.builtins, program)
            || program.starts_with("git-")
    }

    pub(super) fn rules(&self, program: &str, args: &[Arg]) -> Vec<&Rule> {
        let named = [program, ANY].into_iter();
        let places = named.filter_map(|name| self.by_program.get(name)).flatten();
        let rules = places.filter_map(|(rule, command)| {
            let rule = self.rules.get(*rule)?;
            let command = rule.commands.get(*command)?;
            let meant = command.program.0 != [ANY] || !self.knows(program);
            (meant && command.matches(program, args)).then_some(rule)
        });
        rules.collect()
    }

    /// Whether the command brings a whole tree from elsewhere.
    pub(super) fn brings(&self, program: &str, args: &[Arg]) -> bool {
        let mut brings = self.programs.brings.iter();
        brings.any(|command| command.matches(program, args))
    }

    /// Returns how this command wraps another one and how many words name the wrapper.
    pub(super) fn wrapper(&self, program: &str, args: &[Arg]) -> Option<(&Wrapper, usize)> {
        // The loader of shared libraries runs the program it is given.
        let mut loaders = ["ld-", "ld.so", "ld64.so"].iter();
        let loads = loaders.any(|prefix| program.starts_with(prefix));
        let name = if loads { "ld.so" } else { program };
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
        let short = self.subwrappers.get(&name);
        longer.chain(short.map(|it| (it, first + 1))).next()
    }
}

pub(super) fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|item| item == name)
}

#[derive(Debug, Default, Deserialize)]
#[serde(from = "String")]
struct CommandPattern {
    program: Alternatives,
    words: Vec<Step>,
    options: Vec<Alternatives>,
    absent: Vec<Alternatives>,
}

#[derive(Debug)]
enum Step {
    Gap,
    Word(Alternatives),
}

#[derive(Debug, Default)]
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
        let program = words.next().unwrap_or_default();
        let mut pattern = Self {
            program: Alternatives::new(&program.to_ascii_lowercase()),
            ..Self::default()
        };
        for word in words {
            if let Some(option) = word.strip_prefix('!') {
                pattern.absent.push(Alternatives::new(option));
            } else if word.starts_with(['-', '/']) {
                pattern.options.push(Alternatives::new(word));
            } else if word == "**" {
                pattern.words.push(Step::Gap);
            } else {
                let word = Alternatives::new(&word.to_ascii_lowercase());
                pattern.words.push(Step::Word(word));
            }
        }
        pattern
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
    // Where the next word may be.
    let mut reached = BTreeSet::from([0]);
    for step in steps {
        let mut next = BTreeSet::new();
        match step {
            Step::Gap => next.extend(reached.first().into_iter().flat_map(|at| *at..=args.len())),
            Step::Word(word) => {
                while let Some(at) = reached.pop_first() {
                    let Some(arg) = args.get(at) else { continue };
                    if word.matches(&arg.text.to_ascii_lowercase()) {
                        next.insert(at + 1);
                    }
                    if arg.text.starts_with(['-', '+']) {
                        // The word after an option may be its value or the one that is looked for.
                        reached.extend([at + 1, at + 2]);
                    }
                }
            }
        }
        reached = next;
    }
    !reached.is_empty()
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

/// Whether the text matches a pattern in which `*` is any text and `?` any character; linear but for the text after the
/// last star.
pub(super) fn wildcard(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == text;
    }
    let (mut wanted, mut given) = (pattern.chars(), text.chars());
    // What follows the last star, and where that was looked for.
    let mut star = None;
    loop {
        let from = given.clone();
        match (wanted.next(), given.next()) {
            (Some('*'), _) => {
                star = Some((wanted.clone(), from.clone()));
                given = from;
            }
            (Some(wanted), Some(c)) if wanted == '?' || wanted == c => {}
            (None, None) => return true,
            (Some(_), None) => return false,
            (_, Some(_)) => {
                let Some((after, from)) = &mut star else {
                    return false;
                };
                from.next();
                (wanted, given) = (after.clone(), from.clone());
            }
        }
    }
}
