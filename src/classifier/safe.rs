//! Proves that a line only reads: known programs, allowed options, no file of the deny list.
//!
//! What is not proven is no accusation; it is a warning with the first thing that stood in the way.

use std::path::Path;

use super::Surroundings;
use super::allowed::{only_prints, operands};
use super::expand::{Arg, expand, expand_text};
use super::paths;
use super::peel::is_assignment;
use super::scope::Scope;
use super::script::{Redirect, Script, Simple, Stage, Token};
use super::table::{Agnostic, Options, TABLE, cluster, has, is_option};

/// Why a line is not called safe.
#[derive(Debug)]
pub(super) struct Unproven {
    pub(super) rule: &'static str,
    pub(super) words: String,
    pub(super) reason: String,
}

type Proof = Result<(), Unproven>;

/// One word: what it is if the shell expands nothing in it, and what it may become.
pub(super) struct Item {
    pub(super) literal: Option<String>,
    pub(super) args: Vec<Arg>,
    pub(super) source: String,
}

impl Item {
    fn new(token: &Token, scope: &Scope) -> Self {
        Self {
            literal: token.literal(),
            args: expand(token, scope),
            source: token.source.clone(),
        }
    }

    pub(super) fn unproven(&self, rule: &'static str, reason: impl Into<String>) -> Unproven {
        Unproven {
            rule,
            words: self.source.clone(),
            reason: reason.into(),
        }
    }

    pub(super) fn literal(&self) -> Result<&str, Unproven> {
        self.literal
            .as_deref()
            .ok_or_else(|| self.unproven("dynamic-word", "is only known when it runs"))
    }
}

/// Proves that a script of plain commands, pipes and lists only reads.
pub(super) fn prove(script: &Script, surroundings: &Surroundings<'_>) -> Proof {
    let mut prover = Prover {
        surroundings,
        scope: Scope::new(surroundings),
    };
    for statement in &script.statements {
        for stage in &statement.stages {
            match stage {
                Stage::Simple(simple) => prover.simple(simple)?,
                Stage::Compound(_) | Stage::Function { .. } => {
                    return Err(Unproven {
                        rule: "grammar",
                        words: String::new(),
                        reason: "is more than plain commands".to_owned(),
                    });
                }
            }
        }
    }
    Ok(())
}

struct Prover<'a> {
    surroundings: &'a Surroundings<'a>,
    scope: Scope,
}

impl Prover<'_> {
    fn simple(&mut self, simple: &Simple) -> Proof {
        let items: Vec<Item> = simple
            .words
            .iter()
            .map(|token| Item::new(token, &self.scope))
            .collect();
        let mut text = false;
        for redirect in &simple.redirects {
            match redirect {
                Redirect::Read(token) => {
                    let arg = expand_text(token, &self.scope);
                    self.readable(&arg, &token.source)?;
                }
                Redirect::Text(_) => text = true,
                Redirect::Write(_) | Redirect::Duplicate => {}
            }
        }
        let agnostic = items
            .first()
            .and_then(|item| item.literal.as_deref())
            .is_some_and(|name| TABLE.safe.agnostic.contains_key(name));
        if text && !agnostic {
            return Err(Unproven {
                rule: "here-document",
                words: "<<".to_owned(),
                reason: "feeds a text to a program that may run it".to_owned(),
            });
        }
        self.command(&items)
    }

    fn command(&mut self, items: &[Item]) -> Proof {
        let Some((first, rest)) = items.split_first() else {
            return Ok(());
        };
        let name = first.literal()?;
        if name.contains('/') {
            return Err(first.unproven("program-path", "is named by a path, not looked up"));
        }
        let builtin = has(&TABLE.programs.builtins, name) || name == "time";
        if !builtin && !(self.surroundings.trusted_program)(name) {
            return Err(first.unproven("untrusted-program", "is not a program of the system"));
        }
        if rest.is_empty() && has(&TABLE.safe.bare, name) {
            return Ok(());
        }
        if let Some(agnostic) = TABLE.safe.agnostic.get(name) {
            return self.agnostic(agnostic, rest);
        }
        match name {
            "cd" => self.cd(first, rest),
            "find" => self.find(rest),
            "sed" => self.sed(first, rest),
            "printf" => printf(first, rest),
            "test" | "[" => self.test(rest),
            "git" => self.git(first, rest),
            "command" if lookup(rest) => Ok(()),
            _ => match TABLE.safe.options.get(name) {
                Some(options) => {
                    let operands = operands(rest, options, first)?;
                    let files = match name {
                        "rg" => operands.get(1..).unwrap_or_default(),
                        _ => &operands,
                    };
                    self.all_readable(files)?;
                    self.option_files(rest)
                }
                None => self.wrapper(name, first, rest),
            },
        }
    }

    /// Programs of which no option writes or runs anything.
    fn agnostic(&self, agnostic: &Agnostic, rest: &[Item]) -> Proof {
        for item in rest {
            if agnostic.except.is_empty() {
                break;
            }
            let text = item.literal()?;
            if agnostic.except.iter().any(|option| is_option(text, option)) {
                return Err(item.unproven("option", "is an option that is not allowed"));
            }
        }
        if agnostic.text {
            return Ok(());
        }
        let replaced = rest.iter().any(|item| {
            item.args.iter().any(|arg| {
                agnostic
                    .instead
                    .iter()
                    .any(|option| is_option(&arg.text, option))
            })
        });
        let mut leading = if replaced { 0 } else { agnostic.leading };
        let mut pattern = false;
        for item in rest {
            let option = item.source.starts_with('-');
            if pattern {
                pattern = false;
                continue;
            }
            pattern = agnostic.leading > 0 && item.source == "-e";
            if !option && leading > 0 {
                leading -= 1;
                continue;
            }
            for arg in &item.args {
                self.operand_readable(arg, &item.source)?;
            }
        }
        Ok(())
    }

    fn operand_readable(&self, arg: &Arg, source: &str) -> Proof {
        self.readable(arg, source)?;
        // `--file=x` and `-fx` name files, too.
        let attached = arg
            .text
            .split_once('=')
            .map(|(_, value)| value)
            .or_else(|| arg.text.get(2..).filter(|_| cluster(&arg.text).is_some()));
        match attached {
            Some(value) => self.readable(
                &Arg {
                    text: value.to_owned(),
                    ..arg.clone()
                },
                source,
            ),
            None => Ok(()),
        }
    }

    fn readable(&self, arg: &Arg, source: &str) -> Proof {
        let unproven = |reason: &str| {
            Err(Unproven {
                rule: "secret",
                words: source.to_owned(),
                reason: reason.to_owned(),
            })
        };
        if let Some(reason) = paths::denied(arg, &self.scope) {
            return unproven(reason);
        }
        let device = self.scope.resolve(&arg.text).is_some_and(|path| {
            path.starts_with("/dev") && !matches!(path.to_str(), Some("/dev/null" | "/dev/stdin"))
        });
        if device {
            return unproven("reads a device");
        }
        Ok(())
    }

    fn all_readable(&self, items: &[&Item]) -> Proof {
        for item in items {
            for arg in &item.args {
                self.readable(arg, &item.source)?;
            }
        }
        Ok(())
    }

    fn option_files(&self, rest: &[Item]) -> Proof {
        for item in rest.iter().filter(|item| item.source.starts_with('-')) {
            for arg in &item.args {
                self.operand_readable(arg, &item.source)?;
            }
        }
        Ok(())
    }

    fn cd(&mut self, first: &Item, rest: &[Item]) -> Proof {
        let [target] = rest else {
            return Err(first.unproven("directory", "does not name one directory"));
        };
        let text = target.literal()?;
        let roots: [&Path; 2] = [
            self.surroundings.project_root,
            self.surroundings.central_root,
        ];
        let inside = self
            .scope
            .resolve(text)
            .is_some_and(|path| roots.iter().any(|root| path.starts_with(root)));
        if text.starts_with('-') || text.is_empty() || !inside {
            return Err(target.unproven("directory", "leaves the project"));
        }
        self.scope.change_directory(Some(text));
        Ok(())
    }

    fn find(&self, rest: &[Item]) -> Proof {
        let predicates = &TABLE.safe.find;
        let mut items = rest.iter();
        while let Some(item) = items.next() {
            let text = item.literal()?;
            if has(&predicates.with_value, text) {
                if let Some(value) = items.next() {
                    value.literal()?;
                }
            } else if text.starts_with(['-', '(', ')', '!', ',']) {
                if !has(&predicates.alone, text) {
                    return Err(item.unproven("option", "is a predicate that is not allowed"));
                }
            } else {
                self.all_readable(&[item])?;
            }
        }
        Ok(())
    }

    /// `sed -n` with one script that only prints.
    fn sed(&self, first: &Item, rest: &[Item]) -> Proof {
        let options = Options {
            flags: "nErsuz".to_owned(),
            long: ["quiet", "silent", "regexp-extended"]
                .map(str::to_owned)
                .to_vec(),
            ..Options::default()
        };
        let operands = operands(rest, &options, first)?;
        let quiet = rest
            .iter()
            .filter_map(|item| item.literal.as_deref())
            .any(|text| {
                cluster(text).is_some_and(|letters| letters.contains('n'))
                    || matches!(text, "--quiet" | "--silent")
            });
        match operands.split_first() {
            Some((script, files)) if quiet && only_prints(script.literal()?) => {
                self.all_readable(files)
            }
            Some((script, _)) => {
                Err(script.unproven("sed-script", "is more than a range to print"))
            }
            None => Err(first.unproven("sed-script", "has no script")),
        }
    }

    fn test(&self, rest: &[Item]) -> Proof {
        for item in rest {
            let text = item.literal()?;
            let subscript = text.contains('[');
            if matches!(text, "-v" | "-R") || subscript {
                return Err(item.unproven("test-operand", "may be evaluated"));
            }
            self.all_readable(&[item])?;
        }
        Ok(())
    }

    fn git(&self, first: &Item, rest: &[Item]) -> Proof {
        let Some((subcommand, rest)) = rest.split_first() else {
            return Err(first.unproven("git", "has no subcommand"));
        };
        let name = subcommand.literal()?;
        let Some(options) = TABLE.safe.git.get(name) else {
            let reason = if name.starts_with('-') {
                "is an option for all of git"
            } else {
                "is not a subcommand that only reads"
            };
            return Err(subcommand.unproven("git", reason));
        };
        for item in rest {
            // `%G…` in a format has signatures checked, which runs a program.
            if item.literal()?.contains("%G") {
                return Err(item.unproven("git", "runs the signature checker"));
            }
        }
        let operands = operands(rest, options, subcommand)?;
        for item in &operands {
            for arg in &item.args {
                self.readable(arg, &item.source)?;
                if let Some((_, path)) = arg.text.split_once(':') {
                    self.readable(&Arg::literal(path), &item.source)?;
                }
            }
        }
        Ok(())
    }

    /// Wrappers that add nothing of their own around a command that is safe itself.
    fn wrapper(&mut self, name: &str, first: &Item, rest: &[Item]) -> Proof {
        let unknown = || first.unproven("unknown-program", "is not known to only read");
        let args: Vec<Arg> = Vec::new();
        let (wrapper, _) = TABLE
            .wrapper(name, &args)
            .filter(|(wrapper, _)| wrapper.safe)
            .ok_or_else(unknown)?;
        let mut rest = rest;
        while let Some((item, after)) = rest.split_first() {
            let text = item.literal()?;
            if !text.starts_with('-') {
                break;
            }
            let allowed = wrapper.plain.iter().find(|option| {
                *option == text
                    || (option.len() == 2 && !text.starts_with("--") && text.starts_with(*option))
            });
            let Some(option) = allowed else {
                return Err(item.unproven("option", "is an option that is not allowed"));
            };
            rest = if option == text && has(&wrapper.values, text) {
                if let Some(value) = after.first() {
                    value.literal()?;
                }
                after.get(1..).unwrap_or_default()
            } else if option == text || has(&wrapper.values, option) {
                after
            } else {
                return Err(item.unproven("option", "is an option that is not allowed"));
            };
        }
        for operand in rest.iter().take(wrapper.operands) {
            operand.literal()?;
        }
        let inner = rest.get(wrapper.operands..).unwrap_or_default();
        let Some(program) = inner.first() else {
            return match name {
                "xargs" | "time" => Ok(()),
                _ => Err(first.unproven("wrapper", "has no command")),
            };
        };
        let inner_name = program.literal()?;
        if wrapper.assignments && is_assignment(inner_name) {
            return Err(program.unproven("assignment", "changes the environment of a command"));
        }
        let agnostic = TABLE.safe.agnostic.get(inner_name);
        if name == "xargs" && agnostic.is_none_or(|program| !program.except.is_empty()) {
            return Err(program.unproven("xargs", "is given arguments that are not known"));
        }
        if name == "builtin" && !has(&TABLE.programs.builtins, inner_name) {
            return Err(program.unproven("builtin", "is not a builtin that only reads"));
        }
        self.command(inner)
    }
}

/// `command -v name`: a lookup, nothing is run.
fn lookup(rest: &[Item]) -> bool {
    rest.first()
        .is_some_and(|item| matches!(item.literal.as_deref(), Some("-v" | "-V")))
}

fn printf(first: &Item, rest: &[Item]) -> Proof {
    let Some(format) = rest.first() else {
        return Err(first.unproven("printf", "has no format"));
    };
    if format.literal()?.starts_with('-') {
        return Err(format.unproven("printf", "is an option that is not allowed"));
    }
    Ok(())
}
