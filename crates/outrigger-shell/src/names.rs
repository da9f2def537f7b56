//! Programs whose name the line does not spell out: patterns, outputs, and what is taken out of variables.

use super::expand::{Arg, UNKNOWN};
use super::flow::Feed;
use super::paths::plain_glob;
use super::scope::Scope;
use super::table::{TABLE, wildcard};
use super::walk::Walk;

const UNKNOWN_PROGRAM: &str = "runs a program that is only known when it runs";

impl Walk<'_> {
    /// A command whose program is a pattern: it may be any that matches.
    pub(super) fn matched(&mut self, args: &[Arg], input: &Feed) {
        let Some(first) = args.first().filter(|first| first.glob) else {
            return;
        };
        // A lone `*` is more often arithmetic or a list of columns in text that cannot be read.
        let spells = |c: char| c.is_alphanumeric() || c == '/';
        if !first.made && !first.text.contains(spells) {
            return;
        }
        let name = first.text.rsplit('/').next().unwrap_or_default();
        let pattern = plain_glob(&name.to_ascii_lowercase());
        let names = |known: &String| pattern.contains(spells) && wildcard(&pattern, known);
        if TABLE.refused.iter().any(names) {
            let reason = "may run a program that is refused";
            self.blocked(args, "hidden-program", reason);
        } else if input.taint.hidden() {
            self.hidden(args);
        }
        self.dangerous(args, "dynamic-program", UNKNOWN_PROGRAM);
    }

    /// A command whose program is not known.
    pub(super) fn unnamed(&mut self, args: &[Arg], input: &Feed, scope: &mut Scope) {
        let Some(first) = args.first() else { return };
        if first.taint.hidden() || first.made && scope.files.taint(&first.text).fetched {
            self.hidden(args);
        }
        // What comes over a connection may be what it runs.
        self.signs.shell |= first.unknown;
        if first.made {
            self.dangerous(args, "dynamic-program", UNKNOWN_PROGRAM);
        }
        // Unquoted words may turn out empty: then the first that cannot is the program.
        let empty = args.iter().take_while(|arg| arg.loose).count();
        if empty > 0 {
            self.command(args.get(empty..).unwrap_or_default(), input, scope);
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
            self.command(&args, input, scope);
        }
    }
}
