//! Builtins that set variables from what they read or are given.

use std::rc::Rc;

use super::command::Setting;
use super::expand::Arg;
use super::flow::Feed;
use super::reader::Reader;
use super::scope::{Scope, Value};
use super::table::{TABLE, has};
use super::walk::Walk;

/// Most words of what is read that a variable is taken to hold one of.
const MAX_FIELDS: usize = 32;

impl Walk<'_> {
    /// `read a b`: each variable holds one of the words, or all of them.
    pub(super) fn reads(&mut self, rest: &[Arg], setting: &Setting, scope: &mut Scope) {
        let names = rest.iter().filter(|arg| !arg.text.starts_with('-'));
        let several = names.clone().count() > 1;
        for name in names {
            let mut choices: Vec<String> = setting.input.text.iter().cloned().collect();
            if let Some(text) = setting.input.text.as_deref().filter(|_| several) {
                let separators = scope.value("IFS");
                let between = |c: char| {
                    c.is_whitespace()
                        || separators
                            .iter()
                            .flat_map(|value| &value.choices)
                            .any(|choice| choice.contains(c))
                };
                let fields = text.split(between).filter(|field| !field.is_empty());
                choices.extend(fields.take(MAX_FIELDS).map(str::to_owned));
            }
            let lines = setting.input.text.iter().flat_map(|text| text.lines());
            choices.extend(lines.take(MAX_FIELDS).map(str::to_owned));
            choices.dedup();
            // A list of names: any of them.
            let listed = &setting.input.lists;
            let unknown = setting.input.text.is_none();
            choices.extend(
                listed
                    .iter()
                    .filter(|_| unknown)
                    .map(|name| name.text.clone()),
            );
            let value = Value {
                spread: unknown && !choices.is_empty(),
                choices,
                taint: setting.input.taint,
            };
            scope.bind(&name.text, value);
        }
    }

    /// `NAME=value` as an argument.
    pub(super) fn definition(&mut self, program: &str, arg: &Arg, scope: &mut Scope) {
        let Some((name, value)) = arg.text.split_once('=') else {
            return;
        };
        let text = Arg {
            text: value.to_owned(),
            ..arg.clone()
        };
        if program == "alias" {
            alias(name, value, scope);
        }
        if program == "alias" || has(&TABLE.environment.runs, name) {
            self.code(&text, scope, &Feed::default());
        }
        let choices = if arg.unknown {
            Vec::new()
        } else {
            vec![value.to_owned()]
        };
        let value = Value {
            choices,
            taint: arg.taint,
            spread: false,
        };
        scope.bind(name, value);
    }
}

/// Keeps an alias as the function that does the same; one that is called by its own name is no function.
fn alias(name: &str, value: &str, scope: &mut Scope) {
    let mut words = value.split(|c: char| c.is_whitespace() || ";|&()".contains(c));
    if words.any(|word| word == name) {
        return;
    }
    let body = Reader::new(&format!("{value} \"$@\""), 0).whole_script();
    if let Ok(body) = body {
        scope.bodies.insert(name.to_owned(), Rc::new(body));
    }
}
