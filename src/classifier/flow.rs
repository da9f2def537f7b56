//! What text goes from one command to the next: literal, downloaded, decoded, secret or unknown.

use super::ansi::unescape;
use super::expand::{Arg, expand_all, expand_text};
use super::paths;
use super::peel::{self, Peeled};
use super::scope::{Scope, Taint};
use super::script::{Redirect, Script, Stage};
use super::table::{TABLE, has};

/// Most wrappers around a command that are followed to its output.
const MAX_WRAPPERS: usize = 8;

/// What a command reads from its standard input or writes to its standard output.
#[derive(Clone, Debug, Default)]
pub(super) struct Feed {
    /// The text itself, where the line tells it.
    pub(super) text: Option<String>,
    pub(super) taint: Taint,
    /// Something is connected at all.
    pub(super) connected: bool,
    /// Directories whose whole content it lists.
    pub(super) lists: Vec<Arg>,
}

/// Returns what a whole script writes, as far as it is known.
pub(super) fn output_of(script: &Script, scope: &Scope) -> Feed {
    let mut taint = Taint::default();
    let mut text = Some(String::new());
    for statement in &script.statements {
        let mut feed = Feed::default();
        for stage in &statement.stages {
            feed = stage_output(stage, &feed, scope);
        }
        taint = taint.join(feed.taint);
        match (&mut text, feed.text) {
            (Some(text), Some(more)) => text.push_str(&more),
            (text, _) => *text = None,
        }
    }
    let text = text
        .filter(|_| !script.statements.is_empty())
        .map(|text| text.trim_end_matches('\n').to_owned());
    Feed {
        text,
        taint,
        connected: true,
        lists: Vec::new(),
    }
}

/// Returns what one part of a pipeline writes.
pub(super) fn stage_output(stage: &Stage, feed: &Feed, scope: &Scope) -> Feed {
    match stage {
        Stage::Simple(simple) => {
            let args = expand_all(&simple.words, scope);
            let input = input_of(&simple.redirects, feed, scope);
            command_output(&args, &input, scope)
        }
        Stage::Compound(compound) => {
            let own = output_of(&compound.body, scope);
            let input = input_of(&compound.redirects, feed, scope);
            Feed {
                taint: own.taint.join(input.taint),
                ..own
            }
        }
        Stage::Function { .. } => Feed::default(),
    }
}

/// Returns what a command reads once its own redirections are applied.
pub(super) fn input_of(redirects: &[Redirect], feed: &Feed, scope: &Scope) -> Feed {
    let mut input = feed.clone();
    for redirect in redirects {
        match redirect {
            Redirect::Text(body) => {
                let arg = body
                    .get()
                    .map(|token| expand_text(token, scope))
                    .unwrap_or_default();
                input = Feed {
                    text: (!arg.unknown).then_some(arg.text),
                    taint: arg.taint,
                    connected: true,
                    lists: Vec::new(),
                };
            }
            Redirect::Read(target) => {
                let arg = expand_text(target, scope);
                input = Feed {
                    taint: arg.taint.join(file_taint(&arg, scope)),
                    connected: true,
                    ..Feed::default()
                };
            }
            Redirect::Write(_) | Redirect::Duplicate => {}
        }
    }
    input
}

/// Returns what kind of text the file holds.
pub(super) fn file_taint(arg: &Arg, scope: &Scope) -> Taint {
    Taint {
        fetched: scope
            .downloads
            .iter()
            .any(|name| paths::same_name(name, &arg.text)),
        decoded: false,
        secret: paths::denied(arg, scope).is_some(),
    }
}

/// Returns what one command writes.
pub(super) fn command_output(args: &[Arg], input: &Feed, scope: &Scope) -> Feed {
    unwrapped_output(args, input, scope, MAX_WRAPPERS)
}

fn unwrapped_output(args: &[Arg], input: &Feed, scope: &Scope, wrappers: usize) -> Feed {
    let unknown = || Feed {
        taint: taint_of(args).join(input.taint),
        connected: true,
        ..Feed::default()
    };
    let Some((program, rest)) = peel::program(args) else {
        return unknown();
    };
    let wrapped = peel::peel(&program, rest, input).into_iter().next();
    if let Some(wrapped) = wrapped.filter(|_| !matches!(program.as_str(), "find" | "gfind")) {
        return match wrapped {
            Peeled::Command(inner) if wrappers > 0 => {
                unwrapped_output(&inner, input, scope, wrappers - 1)
            }
            _ => unknown(),
        };
    }
    let programs = &TABLE.programs;
    let passed = input.taint.join(taint_of(rest));
    let (text, taint) = match program.as_str() {
        "echo" => (echo(rest), taint_of(rest)),
        "printf" => (printf(rest), taint_of(rest)),
        "cat" if rest.iter().all(|arg| arg.text.starts_with('-')) => {
            (input.text.clone(), input.taint)
        }
        "tee" | "sponge" | "pv" => (input.text.clone(), input.taint),
        name if has(&programs.fetchers, name) => (
            None,
            Taint {
                fetched: true,
                ..passed
            },
        ),
        name if has(&programs.decoders, name) => (
            None,
            Taint {
                decoded: true,
                ..passed
            },
        ),
        _ => (
            None,
            rest.iter()
                .fold(passed, |taint, arg| taint.join(file_taint(arg, scope))),
        ),
    };
    let lists = match program.as_str() {
        "find" | "gfind" => peel::find_roots(rest),
        _ => input.lists.clone(),
    };
    Feed {
        text,
        taint,
        connected: true,
        lists,
    }
}

/// Joins where the words came from.
pub(super) fn taint_of(args: &[Arg]) -> Taint {
    args.iter()
        .fold(Taint::default(), |taint, arg| taint.join(arg.taint))
}

fn known_texts(args: &[Arg]) -> Option<Vec<&str>> {
    args.iter().map(Arg::as_known).collect()
}

fn echo(args: &[Arg]) -> Option<String> {
    let words = known_texts(args)?;
    let options = words
        .iter()
        .take_while(|word| {
            word.strip_prefix('-')
                .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| "neE".contains(c)))
        })
        .count();
    let (options, words) = words.split_at_checked(options)?;
    let text = words.join(" ");
    let escapes = options.iter().any(|option| option.contains('e'));
    let text = if escapes { unescape(&text, 3) } else { text };
    Some(format!("{text}\n"))
}

/// Fills a `printf` format in once, or again while there are words left.
fn printf(args: &[Arg]) -> Option<String> {
    let mut words = known_texts(args)?.into_iter().peekable();
    words.next_if_eq(&"--");
    let format = unescape(words.next()?, 2);
    let mut text = String::new();
    loop {
        let before = words.len();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            let conversion = chars.find(|c| c.is_ascii_alphabetic() || *c == '%');
            match conversion {
                Some('%') => text.push('%'),
                Some('b') => text.push_str(&unescape(words.next().unwrap_or_default(), 3)),
                Some(_) => text.push_str(words.next().unwrap_or_default()),
                None => break,
            }
        }
        if words.len() == 0 || words.len() == before {
            return Some(text);
        }
    }
}
