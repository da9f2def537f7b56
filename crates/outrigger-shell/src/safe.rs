//! Proves that a line only reads: known programs, allowed options, no file of the deny list.
//!
//! What is not proven is no accusation; it is a warning with the first thing that stood in the way.

use std::path::Path;

use super::allowed::{only_prints, operands, tells};
use super::characters::visible;
use super::expand::{Arg, expand, expand_text};
use super::paths;
use super::scope::Scope;
use super::table::{Agnostic, Options, TABLE, cluster, has, is_option};
use super::types::{Redirect, Script, Simple, Stage, Token};
use crate::{DangerLevel, Finding, Surroundings};

mod git;
mod wrapped;

/// The finding is why the line is not called safe.
pub(super) type Proof<T = ()> = Result<T, Finding>;

fn unproven(rule: &'static str, words: &str, reason: impl Into<String>) -> Finding {
    Finding {
        level: DangerLevel::Warning,
        rule,
        words: visible(words),
        reason: reason.into(),
    }
}

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

    pub(super) fn unproven(&self, rule: &'static str, reason: impl Into<String>) -> Finding {
        unproven(rule, &self.source, reason)
    }

    pub(super) fn literal(&self) -> Proof<&str> {
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
    for statement in script {
        for stage in &statement.stages {
            match stage {
                Stage::Simple(simple) => prover.simple(simple)?,
                Stage::Compound(_) | Stage::Function { .. } => {
                    return Err(unproven("grammar", "", "is more than plain commands"));
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
                Redirect::Write(_) | Redirect::Duplicate | Redirect::Descriptor(_) => {}
            }
        }
        let agnostic = items
            .first()
            .and_then(|item| item.literal.as_deref())
            .is_some_and(|name| TABLE.safe.agnostic.contains_key(name));
        if text && !agnostic {
            let reason = "feeds a text to a program that may run it";
            return Err(unproven("here-document", "<<", reason));
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
        if self.surroundings.unhidden.is_some() {
            whole_folders(first, rest)?;
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
                    self.named_files(rest)?;
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
        for item in rest {
            let mut args = item.args.iter();
            if args.any(|arg| tells(&arg.text, &agnostic.telling)) {
                return secret(&item.source, "writes out the environment");
            }
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
                if agnostic.looks && !option {
                    self.not_denied(arg, &item.source)?;
                } else {
                    self.operand_readable(arg, &item.source)?;
                }
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
            Some(value) => self.readable(&arg.with(value), source),
            None => Ok(()),
        }
    }

    /// What a program reads and may show.
    fn readable(&self, arg: &Arg, source: &str) -> Proof {
        self.harmless(arg, source)?;
        if let Some(shows) = self.surroundings.unhidden {
            let found = arg.as_known().map(|text| self.scope.resolve(text));
            match found {
                Some(Some(path)) if !shows(&path) => {}
                Some(Some(_)) => return secret(source, "leads to files that nothing hides here"),
                _ => return secret(source, "may name a secret, which nothing hides here"),
            }
        }
        Ok(())
    }

    /// What a program opens, without showing all that is in it.
    fn harmless(&self, arg: &Arg, source: &str) -> Proof {
        self.not_denied(arg, source)?;
        let device = self.scope.resolve(&arg.text).is_some_and(|path| {
            path.starts_with("/dev") && !matches!(path.to_str(), Some("/dev/null" | "/dev/stdin"))
        });
        if device {
            return secret(source, "reads a device");
        }
        Ok(())
    }

    fn not_denied(&self, arg: &Arg, source: &str) -> Proof {
        match paths::denied(&arg.as_pattern(), &self.scope) {
            Some(reason) => secret(source, reason),
            None => Ok(()),
        }
    }

    fn all_readable(&self, items: &[&Item]) -> Proof {
        for item in items {
            for arg in &item.args {
                self.readable(arg, &item.source)?;
            }
        }
        Ok(())
    }

    fn all_harmless(&self, item: &Item) -> Proof {
        let mut args = item.args.iter();
        args.try_for_each(|arg| self.harmless(arg, &item.source))
    }

    /// Files that an option names by the next word: `-f list`.
    fn named_files(&self, rest: &[Item]) -> Proof {
        for pair in rest.windows(2) {
            let [option, value] = pair else { continue };
            let reads = cluster(&option.source)
                .is_some_and(|letters| letters.ends_with(['f', 'm']))
                || option.source.starts_with("--") && option.source.contains("file");
            if reads {
                self.all_readable(&[value])?;
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
                    if text.contains("newer") || text == "-samefile" {
                        self.all_harmless(value)?;
                    }
                }
            } else if text.starts_with(['-', '(', ')', '!', ',']) {
                if !has(&predicates.alone, text) {
                    return Err(item.unproven("option", "is a predicate that is not allowed"));
                }
            } else {
                self.all_harmless(item)?;
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
            self.all_harmless(item)?;
        }
        Ok(())
    }
}

/// Refuses what reads every file of a folder, or files that nobody names: nothing hides the secrets among them.
fn whole_folders(program: &Item, rest: &[Item]) -> Proof {
    let options = |letters: &str, long: &[&str]| {
        rest.iter().flat_map(|item| &item.args).any(|arg| {
            cluster(&arg.text).is_some_and(|given| given.contains(|c| letters.contains(c)))
                || long.iter().any(|option| is_option(&arg.text, option))
        })
    };
    let reads_all = match program.literal()? {
        "grep" | "egrep" | "fgrep" => options(
            "rRd",
            &["--recursive", "--dereference-recursive", "--directories"],
        ),
        "diff" => options("r", &["--recursive", "--from-file", "--to-file"]),
        "rg" | "xargs" => true,
        // What is in the work tree and is not committed.
        "git" => {
            let word = |item: &Item, texts: &[&str]| {
                item.literal().is_ok_and(|text| texts.contains(&text))
            };
            let compares = rest.first().is_some_and(|item| word(item, &["diff"]));
            compares
                && !rest
                    .iter()
                    .any(|item| word(item, &["--cached", "--staged"]))
        }
        _ => false,
    };
    if reads_all {
        let reason = "reads files that are not named, and nothing hides secrets here";
        return Err(program.unproven("secret", reason));
    }
    Ok(())
}

fn secret(source: &str, reason: &str) -> Proof {
    Err(unproven("secret", source, reason))
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
    if format.literal()? == "--" {
        return rest
            .get(1)
            .map_or(Ok(()), |format| format.literal().map(drop));
    }
    if format.literal()?.starts_with('-') {
        return Err(format.unproven("printf", "is an option that is not allowed"));
    }
    Ok(())
}
