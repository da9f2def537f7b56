//! Programs whose name the line does not spell out: patterns, outputs, and what is taken out of variables.

use super::command::{Setting, shown};
use super::expand::{Arg, UNKNOWN};
use super::paths::plain_glob;
use super::scope::Scope;
use super::table::{TABLE, wildcard};
use super::walk::Walk;
use crate::DangerLevel::{Blocked, Dangerous};

/// Most programs that a pattern is taken for.
const MAX_CANDIDATES: usize = 32;

/// Most programs of one line that are named by patterns and followed.
const MAX_PATTERNS: usize = 8;

/// Shortest name that is looked for inside other text; `su` is in too many words.
const SHORTEST_INSIDE: usize = 4;

/// Returns the programs of the tables that a pattern such as `/bin/b?sh` may stand for.
///
/// None where the pattern is nothing but wildcards: that may be anything, and is dangerous as such.
pub(super) fn candidates(first: &Arg) -> impl Iterator<Item = &'static str> {
    let name = first.text.rsplit('/').next().unwrap_or_default();
    let pattern = plain_glob(&name.to_ascii_lowercase());
    let spells = pattern.contains(|c: char| c.is_ascii_alphanumeric());
    TABLE
        .known
        .iter()
        .map(String::as_str)
        .filter(move |known| spells && wildcard(&pattern, known))
        .take(MAX_CANDIDATES)
}

impl Walk<'_> {
    /// A command whose program is a pattern: it may be any that matches.
    pub(super) fn matched(&mut self, args: &[Arg], setting: &Setting, scope: &mut Scope) {
        let Some((first, rest)) = args.split_first().filter(|(first, _)| first.glob) else {
            return;
        };
        // A lone `*` is more often arithmetic or a list of columns in text that cannot be read.
        if !first.made
            && !first
                .text
                .contains(|c: char| c.is_alphanumeric() || c == '/')
        {
            return;
        }
        if self.patterns >= MAX_PATTERNS {
            let reason = "names more programs by patterns than can be followed";
            return self.find(Blocked, "limit-work", &shown(args), reason);
        }
        self.patterns += 1;
        for name in candidates(first) {
            self.count(args.len());
            self.named(name, args, rest, setting, scope);
        }
        self.find(
            Dangerous,
            "dynamic-program",
            &shown(args),
            "runs a program that is only known when it runs",
        );
    }

    /// A command whose program is not known.
    pub(super) fn unnamed(&mut self, args: &[Arg], setting: &Setting, scope: &mut Scope) {
        let Some(first) = args.first() else { return };
        if first.taint.hidden() || first.made && scope.files.is_download(&first.text) {
            self.hidden(args);
        }
        // What comes over a connection may be what it runs.
        self.signs.shell |= first.unknown;
        if first.made {
            self.made(args, scope);
        }
        // Unquoted words may turn out empty: then the first that cannot is the program.
        let empty = args.iter().take_while(|arg| arg.loose).count();
        if empty > 0 {
            self.command(args.get(empty..).unwrap_or_default(), setting, scope);
        }
        // So may a part of the name: `su$@do`.
        let name = first.text.replace(UNKNOWN, "");
        if name.ends_with(|c: char| c.is_alphanumeric()) {
            let known = Arg {
                text: name,
                word: first.word.clone(),
                ..Arg::default()
            };
            let args = [&[known], args.get(1..).unwrap_or_default()].concat();
            self.command(&args, setting, scope);
        }
    }

    /// The line itself makes the name: what it has set tells what that may be.
    fn made(&mut self, args: &[Arg], scope: &Scope) {
        let revealed = scope.texts().any(|text| {
            let text = text.to_ascii_lowercase();
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
            words.any(|word| {
                TABLE.refused.iter().any(|name| {
                    word == name || (name.len() >= SHORTEST_INSIDE && word.contains(name.as_str()))
                })
            })
        });
        if revealed {
            let reason = "runs a program that the line hides, and names one that is refused";
            self.find(Blocked, "hidden-program", &shown(args), reason);
        } else {
            let reason = "runs a program that is only known when it runs";
            self.find(Dangerous, "dynamic-program", &shown(args), reason);
        }
    }
}
