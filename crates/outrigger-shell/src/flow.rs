//! What text goes from one command to the next: literal, downloaded, decoded, secret or unknown.

use super::ansi::unescape;
use super::command::set_parameters;
use super::expand::{Arg, expand_all, expand_text};
use super::listing;
use super::paths;
use super::peel::{self, Peeled};
use super::scope::{Scope, Taint};
use super::script::{Redirect, Script, Stage};
use super::stored;
use super::table::TABLE;

/// Most calls of functions in one line whose output is followed.
const MAX_OUTPUTS: usize = 64;

/// Most patterns of listed names, and most parts of a text, that are kept.
const MAX_PARTS: usize = 64;

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
    /// Something is connected at all.
    pub(super) connected: bool,
    /// Texts that may be a part of it, where the whole is not known.
    pub(super) parts: Vec<String>,
    /// Patterns of the names it lists, where it is a list of names.
    pub(super) lists: Vec<Arg>,
}

impl Feed {
    /// Returns the text, or what may be a part of it.
    pub(super) fn texts(&self) -> impl Iterator<Item = &String> {
        self.text.iter().chain(&self.parts)
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
    let mut text = Some(String::new());
    let mut lists = Vec::new();
    let mut parts = Vec::new();
    for statement in &script.statements {
        let mut feed = input.clone();
        for stage in &statement.stages {
            feed = stage_output(stage, &feed, scope);
        }
        taint = taint.join(feed.taint);
        lists.extend(feed.lists);
        parts.extend(feed.text.iter().cloned().chain(feed.parts));
        match (&mut text, feed.text) {
            (Some(text), Some(more)) => text.push_str(&more),
            (text, _) => *text = None,
        }
    }
    let text = text
        .filter(|_| !script.statements.is_empty())
        .map(|text| text.trim_end_matches('\n').to_owned());
    if text.is_some() {
        parts.clear();
    }
    lists.truncate(MAX_PARTS);
    parts.truncate(MAX_PARTS);
    Feed {
        text,
        parts,
        taint,
        connected: true,
        lists,
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
            let input = input_of(&compound.redirects, feed, scope);
            let own = output_from(&compound.body, &input, scope);
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
                    ..Feed::default()
                };
            }
            Redirect::Read(target) => {
                let arg = expand_text(target, scope);
                if STANDARD_INPUT.contains(&arg.text.as_str()) {
                    continue;
                }
                input = Feed {
                    text: stored::text(&arg, scope),
                    taint: arg.taint.join(file_taint(&arg, scope)),
                    connected: true,
                    ..Feed::default()
                };
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

/// Returns what kind of text the file holds.
pub(super) fn file_taint(arg: &Arg, scope: &Scope) -> Taint {
    let downloaded = scope.files.is_download(&arg.text);
    Taint {
        fetched: downloaded || stored::unpacked(arg, scope),
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
    if let Some(output) = function_output(args, input, scope) {
        return output;
    }
    let Some((program, rest)) = peel::program(args) else {
        return unknown();
    };
    let program = match args.first().filter(|arg| arg.glob) {
        // A pattern may be any program: one that hides what it writes comes first.
        Some(first) => hiding(first).unwrap_or(program),
        None => program,
    };
    let looked_up = program == "command"
        && rest
            .first()
            .is_some_and(|arg| matches!(arg.text.as_str(), "-v" | "-V"));
    let wrapped = if looked_up {
        None
    } else {
        peel::peel(&program, rest, input).into_iter().next()
    };
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
    let read = rest
        .iter()
        .fold(passed, |taint, arg| taint.join(named_taint(arg, scope)));
    let (text, taint) = match program.as_str() {
        "echo" => (echo(rest), taint_of(rest)),
        "printf" => (printf(rest), taint_of(rest)),
        "cat" | "head" | "tail" | "sort" | "uniq"
            if rest.iter().all(|arg| arg.text.starts_with('-')) =>
        {
            (input.text.clone(), input.taint)
        }
        "cat" | "head" | "tail" | "sort" | "uniq" => (
            rest.iter()
                .filter(|arg| !arg.text.starts_with('-'))
                .map(|arg| stored::text(arg, scope))
                .collect(),
            read,
        ),
        "which" | "realpath" | "readlink" | "basename" | "whence" => (located(rest), passed),
        "type" | "command" => (located(rest), passed),
        "dirname" => (parents(rest), passed),
        "pwd" => {
            let here = scope.directory.as_ref();
            (here.map(|path| path.to_string_lossy().into_owned()), passed)
        }
        "tee" | "sponge" | "pv" => (input.text.clone(), input.taint),
        name if programs.fetchers.contains(name) => (
            None,
            Taint {
                fetched: true,
                ..read
            },
        ),
        name if programs.decoders.contains(name) => (
            None,
            Taint {
                decoded: true,
                ..read
            },
        ),
        name if programs.telling.contains(name) => (
            None,
            Taint {
                secret: true,
                ..read
            },
        ),
        _ => (None, read),
    };
    let lists = listing::of(&program, rest, input);
    // What goes through a filter may come out of it.
    let passes = text.is_none() && !matches!(program.as_str(), "echo" | "printf");
    let parts = input.texts().filter(|_| passes).cloned().collect();
    Feed {
        text,
        parts,
        taint,
        connected: true,
        lists,
    }
}

/// Returns what a call of a function of the line writes.
fn function_output(args: &[Arg], input: &Feed, scope: &Scope) -> Option<Feed> {
    let name = &args.first()?.text;
    let body = scope.function(name)?;
    let followed = scope.outputs.get();
    if followed >= MAX_OUTPUTS {
        // More than can be followed counts as hidden.
        let taint = Taint {
            decoded: true,
            ..input.taint
        };
        return Some(Feed {
            taint,
            connected: true,
            ..Feed::default()
        });
    }
    scope.outputs.set(followed + 1);
    let mut inner = scope.clone();
    set_parameters(&mut inner, args);
    inner.enter(name);
    Some(output_from(&body, input, &inner))
}

/// Joins where the words came from.
pub(super) fn taint_of(args: &[Arg]) -> Taint {
    args.iter()
        .fold(Taint::default(), |taint, arg| taint.join(arg.taint))
}

/// Returns what kind of text a file holds that the word names: `x`, `--in=x`, `if=x`, `open('x')`.
fn named_taint(arg: &Arg, scope: &Scope) -> Taint {
    // A quoted pattern, as `find -name` has it, may match what a glob would.
    let glob = arg.glob || arg.text.contains(['*', '?', '[']);
    let taint = file_taint(
        &Arg {
            glob,
            ..arg.clone()
        },
        scope,
    );
    let pieces = arg.text.split(|c: char| "='\"()<>, ".contains(c)).skip(1);
    let secret = pieces
        .filter(|piece| !piece.is_empty())
        .any(|piece| paths::denied(&Arg::literal(piece), scope).is_some());
    Taint {
        secret: taint.secret || secret,
        ..taint
    }
}

/// Returns a fetcher or decoder that the pattern may stand for.
fn hiding(first: &Arg) -> Option<String> {
    let programs = &TABLE.programs;
    super::names::candidates(first)
        .find(|name| programs.fetchers.contains(*name) || programs.decoders.contains(*name))
        .map(str::to_owned)
}

/// What `which` and its kin write is the name they are given, or a path to it.
fn located(args: &[Arg]) -> Option<String> {
    let names = args.iter().filter(|arg| !arg.text.starts_with('-'));
    let names: Vec<&str> = names.map(Arg::as_known).collect::<Option<_>>()?;
    Some(names.join("\n"))
}

/// What `dirname` writes.
fn parents(args: &[Arg]) -> Option<String> {
    let paths = known_texts(args)?;
    let parent = |path: &&str| match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((parent, _)) => parent.to_owned(),
        None if path.starts_with('/') => "/".to_owned(),
        None => ".".to_owned(),
    };
    let parents: Vec<String> = paths.iter().map(parent).collect();
    Some(parents.join("\n"))
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
pub(super) fn printf(args: &[Arg]) -> Option<String> {
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
