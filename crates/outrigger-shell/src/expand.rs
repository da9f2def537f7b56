//! Words as the shell would pass them on, as far as the line itself tells.
//!
//! Braces, tildes, variables set in the same line and the output of a literal `echo` are followed; anything else leaves
//! [`UNKNOWN`] in the text. Where a word may become several, all of them are returned: the worst decides.

use super::Word;
use super::flow::{output_of, taint_of};
use super::scope::{Scope, Taint, Value};
use super::types::{Atom, Operator, Script, Token, globs, has_braces, value_of_assignment};

/// Stands for text that the line does not tell.
pub(super) const UNKNOWN: char = '\u{1a}';

/// Most words that one word is followed into; beyond, it counts as unknown.
const MAX_ALTERNATIVES: usize = 64;

/// Most brace groups in one word that are expanded.
const MAX_BRACES: usize = 32;

/// Most words that one command is followed to; one that has so many is not judged but refused.
pub(super) const MAX_WORDS: usize = 64 * 1024;

/// Longest text, in bytes, that a word is followed to: `a=$a$a` doubles with each use.
const MAX_TEXT: usize = super::MAX_READ;

#[derive(Clone, Debug, Default)]
pub(super) struct Arg {
    pub(super) text: String,
    /// The shell looks for matching file names.
    pub(super) glob: bool,
    /// It is not known what is in it; it may be several words or none.
    pub(super) loose: bool,
    pub(super) unknown: bool,
    /// What is not known comes from the line itself, not from the environment: an output, an operator.
    pub(super) made: bool,
    /// What can be read from it, where it is a `<(…)` with a known text.
    pub(super) content: Option<String>,
    pub(super) taint: Taint,
    /// How the user sees it.
    pub(super) word: Option<Word>,
}

impl Arg {
    pub(super) fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            word: Some(Word::Literal(text.clone())),
            text,
            ..Self::default()
        }
    }

    pub(super) fn with(&self, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..self.clone()
        }
    }

    /// Returns the word as a pattern if it looks like one: a program may take quoted ones, as `find -name` does.
    pub(super) fn as_pattern(&self) -> Self {
        Self {
            glob: self.glob || self.text.contains(['*', '?', '[']),
            ..self.clone()
        }
    }

    /// Takes over what another word, which becomes a part of this one, came from.
    pub(super) fn absorb(&mut self, other: &Self) {
        self.unknown |= other.unknown;
        self.loose |= other.loose;
        self.made |= other.made;
        self.taint = self.taint.join(other.taint);
    }

    /// Returns the text where every part of it is known.
    pub(super) fn as_known(&self) -> Option<&str> {
        (!self.glob && !self.unknown).then_some(&*self.text)
    }

    /// Counts the word as text that was hidden: it is more than can be followed.
    fn give_up(&mut self) {
        self.unknown = true;
        self.loose = true;
        self.made = true;
        self.taint.decoded = true;
    }
}

pub(super) fn expand_all(tokens: &[Token], scope: &Scope) -> Vec<Arg> {
    let words = tokens.iter().flat_map(|token| expand(token, scope));
    words.take(MAX_WORDS).collect()
}

pub(super) fn expand(token: &Token, scope: &Scope) -> Vec<Arg> {
    let atoms: Vec<&Atom> = token.atoms.iter().collect();
    let mut variants = Vec::new();
    let groups = atoms.iter().filter(|atom| atom.bare() == Some('{')).count();
    let overflow =
        has_braces(&token.atoms) && (groups > MAX_BRACES || !braces(atoms, &mut variants));
    if variants.is_empty() {
        variants.push(token.atoms.iter().collect());
    }
    let expand = |atoms: &Vec<&Atom>| Expansion::new(scope, globs(&token.atoms)).run(atoms);
    let mut args: Vec<Arg> = variants.iter().flat_map(expand).collect();
    for arg in &mut args {
        if overflow {
            arg.give_up();
        }
        arg.word = Some(token.word());
    }
    args
}

/// Expands atoms that are one value: an assigned value, the fallback of a parameter.
pub(super) fn expand_value(atoms: &[Atom], scope: &Scope) -> Value {
    let args = expand_whole(atoms, scope);
    let mut value = Value::of(&args);
    value.choices.extend(args.is_empty().then(String::new));
    value.spread = false;
    value
}

/// Expands a word as text, with [`UNKNOWN`] where it is not known.
pub(super) fn expand_text(token: &Token, scope: &Scope) -> Arg {
    let mut args = expand_whole(&token.atoms, scope).into_iter();
    let mut joined = args.next().unwrap_or_default();
    joined.glob = false;
    for arg in args {
        joined.text.push('\n');
        joined.text.push_str(&arg.text);
        joined.absorb(&arg);
        joined.content = joined.content.or(arg.content);
    }
    joined
}

/// Expands atoms that the shell does not split into words.
fn expand_whole(atoms: &[Atom], scope: &Scope) -> Vec<Arg> {
    let atoms: Vec<&Atom> = atoms.iter().collect();
    let mut expansion = Expansion::new(scope, false);
    expansion.splits = false;
    expansion.run(&atoms)
}

/// Expands the first brace group, then the rest; `false` if there were too many.
fn braces<'t>(atoms: Vec<&'t Atom>, variants: &mut Vec<Vec<&'t Atom>>) -> bool {
    if variants.len() >= MAX_ALTERNATIVES {
        return false;
    }
    let Some((open, close, commas)) = brace_group(&atoms) else {
        variants.push(atoms);
        return true;
    };
    let mut whole = true;
    let mut from = open + 1;
    for end in commas.into_iter().chain([close]) {
        let part = atoms.get(from..end).unwrap_or_default();
        let mut variant: Vec<&Atom> = atoms.iter().take(open).copied().collect();
        variant.extend(part);
        variant.extend(atoms.iter().skip(close + 1));
        whole &= braces(variant, variants);
        from = end + 1;
    }
    whole
}

/// Finds the first balanced `{…,…}`: its braces and the commas between them.
fn brace_group(atoms: &[&Atom]) -> Option<(usize, usize, Vec<usize>)> {
    let bare = || atoms.iter().map(|atom| atom.bare()).enumerate();
    let opens = bare().filter(|(_, c)| *c == Some('{'));
    opens.map(|(open, _)| open).find_map(|open| {
        let (mut depth, mut commas) = (0_usize, Vec::new());
        for (index, c) in bare().skip(open) {
            match c {
                Some('{') => depth += 1,
                Some('}') if depth == 1 => {
                    return (!commas.is_empty()).then_some((open, index, commas));
                }
                Some('}') => depth -= 1,
                Some(',') if depth == 1 => commas.push(index),
                _ => {}
            }
        }
        None
    })
}

/// One run over the atoms of a word; `current` holds every form the word may have so far.
struct Expansion<'s> {
    scope: &'s Scope,
    glob: bool,
    splits: bool,
    finished: Vec<Arg>,
    current: Vec<Arg>,
    /// Whether the word is there even if it is empty.
    present: bool,
}

impl<'s> Expansion<'s> {
    fn new(scope: &'s Scope, glob: bool) -> Self {
        Self {
            scope,
            glob,
            splits: true,
            finished: Vec::new(),
            current: vec![Arg::default()],
            present: false,
        }
    }

    fn run(mut self, atoms: &[&Atom]) -> Vec<Arg> {
        let value = value_of_assignment(atoms.iter().copied());
        let (name, value_atoms) = atoms.split_at(value.unwrap_or(0));
        name.iter().for_each(|atom| self.atom(atom));
        // In what looks like an assignment each part of a list of paths may have one.
        let ends: &[char] = if value.is_some() { &['/', ':'] } else { &['/'] };
        let mut rest = self.tilde(value_atoms, ends);
        while let Some((first, left)) = rest.split_first() {
            self.atom(first);
            rest = match first.bare() {
                Some(':') if value.is_some() => self.tilde(left, ends),
                _ => left,
            };
        }
        self.end_word();
        let glob = self.glob;
        self.finished.iter_mut().for_each(|arg| arg.glob |= glob);
        self.finished
    }

    /// Replaces `~`, `~/…` and `~user`, up to one of `ends`; returns the atoms that are left.
    fn tilde<'t>(&mut self, atoms: &'t [&'t Atom], ends: &[char]) -> &'t [&'t Atom] {
        let Some((first, rest)) = atoms.split_first() else {
            return atoms;
        };
        let user = rest.iter().map_while(|atom| atom.bare());
        let user: String = user.take_while(|c| !ends.contains(c)).collect();
        let rest = rest.get(user.chars().count()..).unwrap_or_default();
        let ends_here = |atom: &&Atom| atom.bare().is_some_and(|c| ends.contains(&c));
        let whole = rest.first().is_none_or(ends_here);
        if first.bare() != Some('~') || !whole {
            return atoms;
        }
        match user.as_str() {
            "" => self.push(&self.scope.home),
            "+" => self.parameter("PWD", true),
            "-" => self.unknown(true, Taint::default(), true),
            "root" => self.push("/root"),
            user => self.push(&format!("/home/{user}")),
        }
        rest
    }

    fn atom(&mut self, atom: &Atom) {
        match atom {
            Atom::Bare(c) => self.push(c.encode_utf8(&mut [0; 4])),
            Atom::Quoted(text) => {
                self.present = true;
                self.push(text);
            }
            Atom::Parameter {
                name,
                operator,
                inner,
                quoted,
            } => {
                let set = *operator != Operator::Instead && self.scope.value(name).is_some();
                if *operator == Operator::Opaque {
                    let taint = taint_of(&expand_whole(inner, self.scope));
                    self.unknown(*quoted, taint, true);
                } else if set || inner.is_empty() {
                    self.parameter(name, *quoted);
                } else {
                    inner.iter().for_each(|atom| self.atom(atom));
                }
            }
            Atom::Output { script, quoted } => self.output(script, *quoted),
            Atom::Stream { script, .. } => {
                let feed = output_of(script, self.scope);
                self.unknown(true, feed.taint, true);
                for arg in &mut self.current {
                    arg.content.clone_from(&feed.text);
                }
            }
        }
    }

    fn output(&mut self, script: &Script, quoted: bool) {
        let feed = output_of(script, self.scope);
        match feed.text {
            Some(text) if !feed.taint.hidden() => self.value(&[text], quoted, feed.taint),
            _ => self.unknown(quoted, feed.taint, true),
        }
    }

    fn parameter(&mut self, name: &str, quoted: bool) {
        match self.scope.value(name) {
            Some(value) if value.choices.is_empty() => self.unknown(quoted, value.taint, true),
            Some(value) => {
                self.glob |= value.spread;
                self.value(&value.choices, quoted, value.taint);
            }
            None => self.unknown(quoted, Taint::default(), false),
        }
    }

    fn value(&mut self, choices: &[String], quoted: bool, taint: Taint) {
        self.present |= quoted;
        for arg in &mut self.current {
            arg.taint = arg.taint.join(taint);
        }
        if let [text] = choices {
            if quoted || !self.splits {
                self.push(text);
            } else {
                self.split(text);
            }
        } else if self.current.len() * choices.len() <= MAX_ALTERNATIVES {
            let with = |arg: &Arg, choice| arg.with(format!("{}{choice}", arg.text));
            let forms = self.current.iter();
            let forms = forms.flat_map(|arg| choices.iter().map(move |it| with(arg, it)));
            self.current = forms.collect();
        } else {
            self.unknown(quoted, taint, true);
        }
    }

    /// Appends an unquoted value: blanks in it end the word, stars in it are globs.
    fn split(&mut self, text: &str) {
        let separators = self.scope.value("IFS").unwrap_or_default();
        let also = |c| separators.choices.iter().any(|choice| choice.contains(c));
        for c in text.chars() {
            if c.is_ascii_whitespace() || also(c) {
                self.end_word();
            } else {
                self.glob |= matches!(c, '*' | '?');
                self.push(c.encode_utf8(&mut [0; 4]));
            }
        }
    }

    /// Appends a text, which may hold the character that stands for what is not known.
    fn push(&mut self, text: &str) {
        for arg in &mut self.current {
            if arg.text.len() + text.len() > MAX_TEXT {
                arg.give_up();
            } else {
                arg.text.push_str(text);
                arg.unknown |= text.contains(UNKNOWN);
            }
        }
    }

    fn unknown(&mut self, quoted: bool, taint: Taint, made: bool) {
        for arg in &mut self.current {
            arg.made |= made;
            arg.text.push(UNKNOWN);
            arg.unknown = true;
            arg.loose |= !quoted;
            arg.taint = arg.taint.join(taint);
        }
    }

    fn end_word(&mut self) {
        let words = std::mem::replace(&mut self.current, vec![Arg::default()]);
        let words = words.into_iter();
        let kept = words.filter(|arg| self.present || !arg.text.is_empty());
        self.finished.extend(kept);
        self.present = false;
    }
}
