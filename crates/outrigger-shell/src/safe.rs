//! Proves that a line only reads: known programs, allowed options, no file of the deny list.
//!
//! What is not proven is no accusation; it is a warning with the first thing that stood in the way.

use super::allowed::{only_prints, operands, reveals};
use super::expand::{Arg, expand, expand_text};
use super::paths;
use super::scope::Scope;
use super::table::{Agnostic, TABLE, cluster, has, is_option};
use super::types::{Redirect, Script, Stage, Token};
use crate::{DangerLevel, Finding, Surroundings};

mod git;
mod wrapped;

/// The finding is why the line is not called safe.
pub(super) type Proof<T = ()> = Result<T, Finding>;

/// The reason is why a word may show a secret.
type Harmless = Result<(), &'static str>;

fn unproven(rule: &'static str, words: &str, reason: impl Into<String>) -> Finding {
    Finding::new(DangerLevel::Warning, rule, words, reason)
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

    pub(super) fn not_allowed(&self) -> Finding {
        self.unproven("option", "is an option that is not known to only read")
    }

    pub(super) fn literal(&self) -> Proof<&str> {
        let dynamic = || self.unproven("dynamic-word", "is only known when it runs");
        self.literal.as_deref().ok_or_else(dynamic)
    }

    fn is(&self, words: &[&str]) -> bool {
        let literal = self.literal.as_deref();
        literal.is_some_and(|text| words.contains(&text))
    }

    fn is_option<T: AsRef<str>>(&self, options: &[T]) -> bool {
        let is = |arg: &Arg| options.iter().any(|it| is_option(&arg.text, it.as_ref()));
        self.args.iter().any(is)
    }
}

pub(super) fn prove(script: &Script, surroundings: &Surroundings<'_>, alone: bool) -> Proof {
    let mut prover = Prover {
        surroundings,
        scope: Scope::new(surroundings),
        alone,
    };
    let mut stages = script.iter().flat_map(|statement| &statement.stages);
    stages.try_for_each(|stage| prover.stage(stage))
}

struct Prover<'a> {
    surroundings: &'a Surroundings<'a>,
    scope: Scope,
    alone: bool,
}

impl Prover<'_> {
    fn stage(&mut self, stage: &Stage) -> Proof {
        let items = stage.words.iter().map(|it| Item::new(it, &self.scope));
        let items: Vec<Item> = items.collect();
        for redirect in &stage.redirects {
            if let Redirect::Read(token) = redirect {
                let arg = expand_text(token, &self.scope);
                self.readable(&arg)
                    .map_err(|reason| unproven("secret", &token.source, reason))?;
            }
        }
        self.command(&items)
    }

    fn command(&mut self, items: &[Item]) -> Proof {
        let Some((first, rest)) = items.split_first() else {
            return Err(unproven("grammar", "", "has no command"));
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
        if self.surroundings.unhidden.is_some() && reads_unnamed(name, rest) {
            let reason = "reads files that are not named, and nothing hides secrets here";
            return Err(first.unproven("secret", reason));
        }
        if let Some(agnostic) = TABLE.safe.agnostic.get(name) {
            return self.agnostic(agnostic, rest);
        }
        if let Some(options) = TABLE.safe.options.get(name) {
            let operands = operands(rest, options, first)?;
            if name == "sed" {
                return self.sed(first, rest, &operands);
            }
            let files = operands.get(usize::from(name == "rg")..);
            self.all_readable(files.unwrap_or_default())?;
            self.named_files(rest)?;
            return self.option_files(rest);
        }
        match name {
            "cd" => self.cd(first, rest),
            "find" => self.find(rest),
            "printf" => printf(first, rest),
            "test" | "[" => self.test(rest),
            "git" => self.git(first, rest),
            // A lookup: nothing is run.
            "command" if rest.first().is_some_and(|it| it.is(&["-v", "-V"])) => Ok(()),
            _ => self.wrapper(name, first, rest),
        }
    }

    /// Programs of which no option writes or runs anything.
    fn agnostic(&self, agnostic: &Agnostic, rest: &[Item]) -> Proof {
        for item in rest.iter().filter(|_| !agnostic.except.is_empty()) {
            item.literal()?;
            if item.is_option(&agnostic.except) {
                return Err(item.not_allowed());
            }
        }
        if agnostic.text {
            return Ok(());
        }
        for item in rest {
            let mut args = item.args.iter();
            if args.any(|arg| reveals(&arg.text, &agnostic.revealing)) {
                return Err(item.unproven("secret", "writes out the environment"));
            }
        }
        let replaced = rest.iter().any(|item| item.is_option(&agnostic.instead));
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
            } else if agnostic.looks && !option {
                self.each(item, Self::not_denied)?;
            } else {
                self.each(item, Self::operand_readable)?;
            }
        }
        Ok(())
    }

    fn each(&self, item: &Item, check: impl Fn(&Self, &Arg) -> Harmless) -> Proof {
        let mut args = item.args.iter();
        args.try_for_each(|arg| check(self, arg))
            .map_err(|reason| item.unproven("secret", reason))
    }

    fn operand_readable(&self, arg: &Arg) -> Harmless {
        self.readable(arg)?;
        // `--file=x` and `-fx` name files, too.
        let text = &arg.text;
        let value = text.split_once('=').map(|(_, value)| value);
        let joined = || text.get(2..).filter(|_| cluster(text).is_some());
        match value.or_else(joined) {
            Some(value) => self.readable(&arg.with(value)),
            None => Ok(()),
        }
    }

    /// What a program reads and may show.
    fn readable(&self, arg: &Arg) -> Harmless {
        self.harmless(arg)?;
        let Some(shows) = self.surroundings.unhidden else {
            return Ok(());
        };
        match arg.as_known().and_then(|text| self.scope.resolve(text)) {
            Some(path) if !shows(&path) => Ok(()),
            Some(_) => Err("leads to files that nothing hides here"),
            None => Err("may name a secret, which nothing hides here"),
        }
    }

    /// What a program opens, without showing all that is in it.
    fn harmless(&self, arg: &Arg) -> Harmless {
        self.not_denied(arg)?;
        let device = self.scope.resolve(&arg.text).is_some_and(|path| {
            path.starts_with("/dev") && !matches!(path.to_str(), Some("/dev/null" | "/dev/stdin"))
        });
        if device {
            Err("reads a device")
        } else {
            Ok(())
        }
    }

    fn not_denied(&self, arg: &Arg) -> Harmless {
        paths::denied(&arg.as_pattern(), &self.scope).map_or(Ok(()), Err)
    }

    fn all_readable(&self, items: &[&Item]) -> Proof {
        let mut items = items.iter();
        items.try_for_each(|item| self.each(item, Self::readable))
    }

    /// Files that an option names by the next word: `-f list`.
    fn named_files(&self, rest: &[Item]) -> Proof {
        for (option, value) in rest.iter().zip(rest.iter().skip(1)) {
            let option = &option.source;
            let short = cluster(option).is_some_and(|letters| letters.ends_with(['f', 'm']));
            if short || option.starts_with("--") && option.contains("file") {
                self.each(value, Self::readable)?;
            }
        }
        Ok(())
    }

    fn option_files(&self, rest: &[Item]) -> Proof {
        let mut options = rest.iter().filter(|item| item.source.starts_with('-'));
        options.try_for_each(|item| self.each(item, Self::operand_readable))
    }

    fn cd(&mut self, first: &Item, rest: &[Item]) -> Proof {
        let [target] = rest else {
            return Err(first.unproven("directory", "does not name one directory"));
        };
        let text = target.literal()?;
        let known = self.surroundings;
        let inside = self.scope.resolve(text).is_some_and(|path| {
            path.starts_with(known.project_root) || path.starts_with(known.central_root)
        });
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
                let Some(value) = items.next() else { break };
                value.literal()?;
                if text.contains("newer") || text == "-samefile" {
                    self.each(value, Self::harmless)?;
                }
            } else if !text.starts_with(['-', '(', ')', '!', ',']) {
                self.each(item, Self::harmless)?;
            } else if !has(&predicates.alone, text) {
                return Err(item.unproven("option", "is a predicate that is not allowed"));
            }
        }
        Ok(())
    }

    /// `sed -n` with one script that only prints.
    fn sed(&self, first: &Item, rest: &[Item], operands: &[&Item]) -> Proof {
        let quiets = ["-n", "--quiet", "--silent"];
        let quiet = rest.iter().any(|item| item.is_option(&quiets));
        let Some((script, files)) = operands.split_first() else {
            return Err(first.unproven("sed-script", "has no script"));
        };
        if !quiet || !only_prints(script.literal()?) {
            return Err(script.unproven("sed-script", "is more than a range to print"));
        }
        self.all_readable(files)
    }

    fn test(&self, rest: &[Item]) -> Proof {
        for item in rest {
            let text = item.literal()?;
            if matches!(text, "-v" | "-R") || text.contains('[') {
                return Err(item.unproven("test-operand", "may be evaluated"));
            }
            self.each(item, Self::harmless)?;
        }
        Ok(())
    }
}

/// Whether it reads every file of a folder, or files that nobody names: nothing hides the secrets among them.
fn reads_unnamed(program: &str, rest: &[Item]) -> bool {
    let given = |options: &[&str]| rest.iter().any(|item| item.is_option(options));
    match program {
        "grep" | "egrep" | "fgrep" => given(&[
            "-r",
            "-R",
            "-d",
            "--recursive",
            "--dereference-recursive",
            "--directories",
        ]),
        "diff" => given(&["-r", "--recursive", "--from-file", "--to-file"]),
        "rg" | "xargs" => true,
        // What is in the work tree and is not committed.
        "git" => {
            rest.first().is_some_and(|item| item.is(&["diff"]))
                && !rest.iter().any(|item| item.is(&["--cached", "--staged"]))
        }
        _ => false,
    }
}

fn printf(first: &Item, rest: &[Item]) -> Proof {
    let Some(format) = rest.first() else {
        return Err(first.unproven("printf", "has no format"));
    };
    match format.literal()? {
        "--" => rest
            .iter()
            .skip(1)
            .take(1)
            .try_for_each(|it| it.literal().map(drop)),
        text if text.starts_with('-') => {
            Err(format.unproven("printf", "is an option that is not allowed"))
        }
        _ => Ok(()),
    }
}
