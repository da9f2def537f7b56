//! Interpreters of other languages and clients of databases, by what they are given.
//!
//! Their programs are not read: what comes from elsewhere is refused, and text that names a call which removes, sends or
//! starts something is asked for. Whoever wants to hide such a call can.

use super::command::Invocation;
use super::expand::Arg;
use super::flow::taint_of;
use super::paths::is_input;
use super::peel::{joined, option_values};
use super::plain::is_name;
use super::scope::Scope;
use super::table::{TABLE, has};
use super::walk::Walk;

impl Walk<'_> {
    pub(super) fn interpreter(&mut self, it: &Invocation<'_>, scope: &mut Scope) {
        if let Some(options) = TABLE.interpreters.get(it.program) {
            let texts = program_texts(it, options);
            let script = it.rest.iter().find(|arg| !arg.text.starts_with('-'));
            if taint_of(&texts).hidden() {
                self.hidden(it.args);
            }
            if let Some(script) = script {
                self.run_file(script, it.args, scope);
            }
            let module = it.rest.iter().position(|arg| arg.text == "-m");
            if let Some(inner) = module.and_then(|at| it.rest.get(at + 1..)) {
                self.command(inner, it.input, scope);
            }
            let reads = script.is_none_or(|arg| is_input(&arg.text)) || it.names(&["-"]);
            let mut given: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
            if texts.is_empty() && module.is_none() && reads {
                if it.input.taint.hidden() {
                    self.hidden(it.args);
                }
                given.extend(it.input.likely());
            }
            if given.into_iter().any(acts) {
                let reason = "runs code that removes, sends or starts something";
                self.dangerous(it.args, "code", reason);
            }
        }
        let runs = match it.program {
            "make" | "gmake" | "bmake" | "just" | "ninja" => it.input.taint.hidden(),
            "crontab" => it.input.taint.join(taint_of(it.rest)).hidden(),
            _ => false,
        };
        if runs {
            self.hidden(it.args);
        }
        if TABLE.programs.databases.contains(it.program) {
            self.statements(it);
        }
    }

    fn statements(&mut self, it: &Invocation<'_>) {
        let input = it.input.likely().unwrap_or_default();
        if destroys_data(&format!("{}\n{input}", joined(it.rest).text)) {
            self.dangerous(it.args, "database", "destroys data");
        }
        if it.rest.iter().any(|arg| arg.made) {
            let reason = "runs statements that are only known when it runs";
            self.dangerous(it.args, "database", reason);
        }
    }
}

fn program_texts(it: &Invocation<'_>, options: &[String]) -> Vec<Arg> {
    let named = options.iter().filter(|option| !option.is_empty());
    let texts = named.flat_map(|option| option_values(it.rest, option));
    let mut texts: Vec<Arg> = texts.collect();
    // `awk` and `sed` take it as the first operand.
    if texts.is_empty() && has(options, "") && !it.has("-f") && !it.has("--file") {
        let mut rest = it.rest.iter();
        let awk = it.program.ends_with("awk");
        while let Some(arg) = rest.next() {
            if !arg.text.starts_with('-') {
                texts.push(arg.clone());
                break;
            }
            if awk && matches!(arg.text.as_str(), "-F" | "-v") {
                rest.next();
            }
        }
    }
    texts
}

/// Whether a program text names a call that does more than compute.
fn acts(text: &str) -> bool {
    let dense = text.chars().filter(|c| !c.is_whitespace());
    let dense: String = dense.flat_map(char::to_lowercase).collect();
    let mut calls = TABLE.programs.calls.iter();
    calls.any(|call| dense.contains(call))
}

/// Whether the text holds a statement after which data is gone.
fn destroys_data(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let words = lower
        .split(|c: char| !is_name(c))
        .filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let updates = words.contains(&"update") && words.contains(&"set");
    let mut words_on = words.iter().enumerate();
    updates && !words.contains(&"where")
        || lower.contains(".drop(")
        || lower.contains(".remove(")
        || words_on.any(|(index, word)| {
            let next = words.get(index + 1);
            // `-tAcDROP …`: the letters of options may stand before it.
            TABLE.destroying.iter().any(|(verb, objects)| {
                word.ends_with(verb.as_str())
                    && (objects.is_empty() || next.is_some_and(|next| has(objects, next)))
            })
        })
}
