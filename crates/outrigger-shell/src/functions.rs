//! Functions of the line: what a call does with its words and its input, and what starts itself again and again.

use std::rc::Rc;

use super::command::{Invocation, set_parameters};
use super::expand::Arg;
use super::flow::Feed;
use super::peel;
use super::scope::Scope;
use super::table::{TABLE, has};
use super::types::{Atom, Script, Token};
use super::walk::Walk;
use crate::DangerLevel;

/// Most calls of functions that are followed with their words.
const MAX_CALLS: usize = 64;

/// Parameters that name the script that is running.
const ITSELF: [&str; 3] = ["0", "BASH_SOURCE", "BASH_SOURCE[]"];

#[derive(Clone, Debug)]
pub(super) struct Running {
    name: String,
    /// What is read now runs beside the rest of the body: in a pipe, in the background, in a substitution.
    beside: bool,
}

impl Scope {
    pub(super) fn enter(&mut self, name: &str) {
        self.set("FUNCNAME", name);
        self.running.push(Running {
            name: name.to_owned(),
            beside: false,
        });
    }

    pub(super) fn fork(&mut self) {
        for function in &mut self.running {
            function.beside = true;
        }
    }

    /// Returns the body of the function that is called and its scope, unless it is being read already.
    pub(super) fn called(&self, args: &[Arg]) -> Option<(Rc<Script>, Self)> {
        let name = &args.first()?.text;
        let running = self.running.iter().any(|function| function.name == *name);
        let body = self.bodies.get(name).filter(|_| !running)?;
        let mut inner = self.clone();
        set_parameters(&mut inner, args);
        inner.enter(name);
        Some((Rc::clone(body), inner))
    }
}

impl Walk<'_> {
    pub(super) fn define(&mut self, name: &str, body: &Rc<Script>, scope: &mut Scope, feed: &Feed) {
        scope.enter(name);
        self.deeper(name, |walk| walk.script(body, scope, feed));
        scope.running.pop();
        scope.bodies.insert(name.to_owned(), Rc::clone(body));
    }

    pub(super) fn called(&mut self, it: &Invocation<'_>, scope: &mut Scope) {
        let name = &it.first.text;
        let mut running = scope.running.iter();
        if running.any(|function| function.beside && function.name == *name) {
            self.starts_itself(name);
        }
        let Some((body, mut inner)) = scope.called(it.args) else {
            return;
        };
        if self.calls >= MAX_CALLS {
            let reason = "calls functions more often than can be followed";
            return self.dangerous(it.args, "limit-work", reason);
        }
        self.calls += 1;
        self.deeper(name, |walk| walk.script(&body, &mut inner, it.input));
        scope.keep(inner);
    }

    /// A script that starts itself beside itself or in a loop: `$0 &`, `bash "$0" &`.
    pub(super) fn script_itself(&mut self, words: &[Token], args: &[Arg]) {
        let is_itself =
            |atom: &Atom| matches!(atom, Atom::Parameter { name, .. } if ITSELF.contains(&&**name));
        let names_itself = |token: &Token| token.atoms.last().is_some_and(is_itself);
        let runs_words = peel::program(args).is_some_and(|(program, rest)| {
            has(&TABLE.programs.shells, &program)
                || matches!(program.as_str(), "source" | ".")
                || TABLE.wrapper(&program, rest).is_some()
        });
        let count = if runs_words { words.len() } else { 1 };
        if words.iter().take(count).any(names_itself) {
            self.starts_itself("$0");
        }
    }

    pub(super) fn starts_itself(&mut self, words: &str) {
        let reason = "starts itself again and again";
        self.find(DangerLevel::Blocked, "fork-bomb", words, reason);
    }
}

/// Whether the text defines a function that pipes itself into itself, blanks or not.
///
/// Without its blanks the well-known one cannot be read, and would not run; one more may make it.
pub(super) fn looks_like_fork_bomb(text: &str) -> bool {
    let dense: String = text.split_whitespace().collect();
    dense.match_indices("(){").any(|(at, _)| {
        let (before, after) = dense.split_at_checked(at).unwrap_or_default();
        let name = before.rsplit([';', '&', '|', '(', '{']).next();
        name.is_some_and(|name| !name.is_empty() && after.contains(&format!("{name}|{name}")))
    })
}
