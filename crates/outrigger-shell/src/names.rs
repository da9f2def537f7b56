//! Programs whose name the line does not spell out: patterns, outputs, and what is taken out of variables.

use super::command::Invocation;
use super::expand::{Arg, UNKNOWN};
use super::paths::plain_glob;
use super::scope::Scope;
use super::table::{TABLE, wildcard};
use super::walk::Walk;

const UNKNOWN_PROGRAM: &str = "runs a program that is only known when it runs";

impl Walk<'_> {
    /// A command whose program is a pattern: it may be any that matches.
    pub(super) fn matched(&mut self, it: &Invocation<'_>) {
        // A lone `*` is more often arithmetic or a list of columns in text that cannot be read.
        let spells = |c: char| c.is_alphanumeric() || c == '/';
        if !it.first.glob || !it.first.made && !it.first.text.contains(spells) {
            return;
        }
        let name = it.first.text.rsplit('/').next().unwrap_or_default();
        let pattern = plain_glob(&name.to_ascii_lowercase());
        let names = |known: &String| pattern.contains(spells) && wildcard(&pattern, known);
        if TABLE.refused.iter().any(names) {
            let reason = "may run a program that is refused";
            self.blocked(it.args, "hidden-program", reason);
        } else if it.input.taint.hidden() {
            self.hidden(it.args);
        }
        self.dangerous(it.args, "dynamic-program", UNKNOWN_PROGRAM);
    }

    pub(super) fn unnamed(&mut self, it: &Invocation<'_>, scope: &mut Scope) {
        let first = it.first;
        if first.taint.hidden() || first.made && scope.files.taint(&first.text).fetched {
            self.hidden(it.args);
        }
        // What comes over a connection may be what it runs.
        self.signs.shell |= first.unknown;
        if first.made {
            self.dangerous(it.args, "dynamic-program", UNKNOWN_PROGRAM);
        }
        // Unquoted words may turn out empty: then the first that cannot is the program.
        let empty = it.args.iter().take_while(|arg| arg.loose).count();
        if empty > 0 {
            let args = it.args.get(empty..).unwrap_or_default();
            self.command(args, it.input, scope);
        }
        // So may a part of the name: `su$@do`.
        let name = first.text.replace(UNKNOWN, "");
        if name.ends_with(|c: char| c.is_alphanumeric()) {
            let mut known = Arg::literal(name);
            known.word.clone_from(&first.word);
            let args = [&[known], it.rest].concat();
            self.command(&args, it.input, scope);
        }
    }
}
