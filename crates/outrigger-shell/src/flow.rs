//! What text goes from one command to the next: literal, downloaded, decoded, secret or unknown.

use super::ansi;
use super::expand::{Arg, expand_all, expand_text};
use super::paths;
use super::peel::{self, Peeled};
use super::scope::{Scope, Taint};
use super::table::TABLE;
use super::types::{Redirect, Script, Stage};

/// Most calls of functions in one line whose output is followed.
const MAX_OUTPUTS: usize = 64;

/// Files that are what is read anyway.
const STANDARD_INPUT: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Most wrappers around a command that are followed to its output.
const MAX_WRAPPERS: usize = 8;

/// What a command reads from its standard input or writes to its standard output.
#[derive(Clone, Debug, Default)]
pub(super) struct Feed {
    /// The text itself, where the line tells it.
    pub(super) text: Option<String>,
    pub(super) taint: Taint,
    pub(super) connected: bool,
    /// A text that went into it, where what came out is not known.
    pub(super) passed: Option<String>,
}

impl Feed {
    fn connected(text: Option<String>, taint: Taint) -> Self {
        Self {
            text,
            taint,
            connected: true,
            ..Self::default()
        }
    }

    /// Returns the text, or one that may be a part of it.
    pub(super) fn likely(&self) -> Option<&str> {
        self.text.as_deref().or(self.passed.as_deref())
    }
}

/// Returns what the script of a substitution writes, as far as it is known.
pub(super) fn output_of(script: &Script, scope: &Scope) -> Feed {
    let input = Feed {
        taint: scope.input,
        ..Feed::default()
    };
    output_from(script, &input, scope)
}

/// Returns what a whole script writes, whose commands read `input`.
fn output_from(script: &Script, input: &Feed, scope: &Scope) -> Feed {
    let mut taint = Taint::default();
    let mut text = Some(String::new()).filter(|_| !script.is_empty());
    let mut passed = None;
    for statement in script {
        let mut feed = input.clone();
        for stage in &statement.stages {
            feed = stage_output(stage, &feed, scope);
        }
        taint = taint.join(feed.taint);
        passed = passed.or_else(|| feed.likely().map(str::to_owned));
        text = text.zip(feed.text).map(|(text, more)| text + &more);
    }
    let text = text.map(|text| text.trim_end_matches('\n').to_owned());
    Feed {
        passed,
        ..Feed::connected(text, taint)
    }
}

pub(super) fn stage_output(stage: &Stage, feed: &Feed, scope: &Scope) -> Feed {
    if stage.defines() {
        return Feed::default();
    }
    let input = input_of(&stage.redirects, feed, scope);
    let Some(compound) = &stage.compound else {
        let args = expand_all(&stage.words, scope);
        return command_output(&args, &input, scope);
    };
    let own = output_from(&compound.body, &input, scope);
    Feed {
        taint: own.taint.join(input.taint),
        ..own
    }
}

pub(super) fn input_of(redirects: &[Redirect], feed: &Feed, scope: &Scope) -> Feed {
    let mut input = feed.clone();
    for redirect in redirects {
        match redirect {
            Redirect::Text(token) => {
                let arg = expand_text(token, scope);
                let text = (!arg.unknown).then_some(arg.text);
                input = Feed::connected(text, arg.taint);
            }
            Redirect::Read(target) => {
                let arg = expand_text(target, scope);
                if !STANDARD_INPUT.contains(&arg.text.as_str()) {
                    let taint = arg.taint.join(file_taint(&arg, scope));
                    input = Feed::connected(arg.content, taint);
                }
            }
            Redirect::Descriptor(target) => {
                let arg = expand_text(target, scope);
                input.taint = input.taint.join(arg.taint).join(scope.opened);
                input.connected = true;
            }
            Redirect::Write(_) | Redirect::Duplicate => {}
        }
    }
    input
}

pub(super) fn file_taint(arg: &Arg, scope: &Scope) -> Taint {
    Taint {
        secret: paths::denied(arg, scope).is_some(),
        ..scope.files.taint(&arg.text)
    }
}

pub(super) fn command_output(args: &[Arg], input: &Feed, scope: &Scope) -> Feed {
    unwrapped_output(args, input, scope, MAX_WRAPPERS)
}

fn unwrapped_output(args: &[Arg], input: &Feed, scope: &Scope, wrappers: usize) -> Feed {
    let unknown = || Feed::connected(None, taint_of(args).join(input.taint));
    if let Some(output) = function_output(args, input, scope) {
        return output;
    }
    let Some((program, rest)) = peel::program(args) else {
        return unknown();
    };
    let program = program.as_str();
    let first = rest.first().map_or("", |arg| arg.text.as_str());
    let looks = program == "command" && matches!(first, "-v" | "-V") || program == "find";
    let wrapped = peel::peel(program, rest, input).into_iter().next();
    match wrapped.filter(|_| !looks) {
        Some(Peeled::Command(inner)) if wrappers > 0 => {
            return unwrapped_output(&inner, input, scope, wrappers - 1);
        }
        Some(_) => return unknown(),
        None => {}
    }
    let mut taint = input.taint.join(taint_of(rest));
    let text = match program {
        "echo" => return Feed::connected(echo(rest), taint_of(rest)),
        "printf" => return Feed::connected(printf(rest), taint_of(rest)),
        "which" | "realpath" | "readlink" | "basename" | "type" | "command" => located(rest),
        _ => {
            for arg in rest {
                taint = taint.join(named_taint(arg, scope));
            }
            let plain = ["cat", "head", "tail", "sort", "uniq", "tee", "sponge", "pv"];
            let passes = plain.contains(&program);
            let content = rest.iter().find_map(|arg| arg.content.clone());
            content.or_else(|| input.text.clone()).filter(|_| passes)
        }
    };
    let programs = &TABLE.programs;
    taint.fetched |= programs.fetchers.contains(program);
    taint.decoded |= programs.decoders.contains(program);
    taint.secret |= programs.revealing.contains(program);
    // What goes through a filter may come out of it.
    let passed = input.likely().map(str::to_owned);
    Feed {
        passed,
        ..Feed::connected(text, taint)
    }
}

fn function_output(args: &[Arg], input: &Feed, scope: &Scope) -> Option<Feed> {
    let (body, inner) = scope.called(args)?;
    let followed = scope.outputs.get();
    if followed >= MAX_OUTPUTS {
        // More than can be followed counts as hidden.
        let mut taint = input.taint;
        taint.decoded = true;
        return Some(Feed::connected(None, taint));
    }
    scope.outputs.set(followed + 1);
    Some(output_from(&body, input, &inner))
}

pub(super) fn taint_of(args: &[Arg]) -> Taint {
    let taints = args.iter().map(|arg| arg.taint);
    taints.fold(Taint::default(), Taint::join)
}

/// Returns what kind of text a file holds that the word names: `x`, `--in=x`, `if=x`, `open('x')`.
fn named_taint(arg: &Arg, scope: &Scope) -> Taint {
    let mut taint = file_taint(&arg.as_pattern(), scope);
    let pieces = arg.text.split(|c: char| "='\"()<>, ".contains(c)).skip(1);
    let mut pieces = pieces.filter(|piece| !piece.is_empty()).map(Arg::literal);
    taint.secret |= pieces.any(|piece| paths::denied(&piece, scope).is_some());
    taint
}

/// What `which` and its kin write is the name they are given, or a path to it.
fn located(args: &[Arg]) -> Option<String> {
    let names = args.iter().filter(|arg| !arg.text.starts_with('-'));
    let names: Vec<&str> = names.map(Arg::as_known).collect::<Option<_>>()?;
    Some(names.join("\n"))
}

fn echo(args: &[Arg]) -> Option<String> {
    let mut words: Vec<&str> = args.iter().map(Arg::as_known).collect::<Option<_>>()?;
    let is_option = |word: &&&str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|c| "neE".contains(c))
    };
    let options = words.iter().take_while(is_option).count();
    let options: String = words.drain(..options).collect();
    let mut text = words.join(" ");
    if options.contains('e') {
        text = ansi::unescape(&text, 3);
    }
    Some(text + "\n")
}

/// Fills a `printf` format in once, or again while there are words left.
pub(super) fn printf(args: &[Arg]) -> Option<String> {
    let words: Vec<&str> = args.iter().map(Arg::as_known).collect::<Option<_>>()?;
    let mut words = words.into_iter().peekable();
    words.next_if_eq(&"--");
    let format = ansi::unescape(words.next()?, 2);
    let mut text = String::new();
    loop {
        let before = words.len();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            match chars.find(|c| c.is_ascii_alphabetic() || *c == '%') {
                Some('%') => text.push('%'),
                Some('b') => text.push_str(&ansi::unescape(words.next().unwrap_or_default(), 3)),
                Some(_) => text.push_str(words.next().unwrap_or_default()),
                None => break,
            }
        }
        if words.len() == 0 || words.len() == before {
            return Some(text);
        }
    }
}
