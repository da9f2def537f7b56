//! Finds the command inside a wrapper such as `env`, `timeout` or `xargs`, and text that a program runs.

use super::expand::{Arg, UNKNOWN};
use super::flow::Feed;
use super::table::{TABLE, Wrapper, cluster, has, is_option};

/// What is inside a wrapper.
#[derive(Debug)]
pub(super) enum Peeled {
    /// A command of its own.
    Command(Vec<Arg>),
    /// Shell text.
    Text(Arg),
}

/// Returns the program's name, without its directory and in lower case, and its arguments.
///
/// `None` where there is no command or its name is not known.
pub(super) fn program(args: &[Arg]) -> Option<(String, &[Arg])> {
    let (first, rest) = args.split_first()?;
    let name = first.text.rsplit('/').next()?;
    if name.contains(UNKNOWN) || name.is_empty() {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    // python3.11 is python, but base64 is not base.
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let versioned = TABLE.interpreter(name).is_none() && TABLE.interpreter(plain).is_some();
    let name = if versioned { plain } else { name };
    Some((name.to_owned(), rest))
}

/// Returns what the command wraps; empty if it is no wrapper.
pub(super) fn peel(program: &str, args: &[Arg], input: &Feed) -> Vec<Peeled> {
    let mut found = Vec::new();
    if let Some((wrapper, skipped)) = TABLE.wrapper(program, args) {
        let args = args.get(skipped..).unwrap_or_default();
        unwrap(program, wrapper, args, input, &mut found);
    }
    for option in TABLE.runner(program) {
        found.extend(option_values(args, option).map(Peeled::Text));
    }
    match program {
        "find" | "gfind" => find_commands(args, &mut found),
        "fd" | "fdfind" => fd_commands(args, &mut found),
        _ => {}
    }
    found
}

fn unwrap(program: &str, wrapper: &Wrapper, args: &[Arg], input: &Feed, found: &mut Vec<Peeled>) {
    for option in &wrapper.code {
        found.extend(option_values(args, option).map(Peeled::Text));
    }
    if !wrapper.separator.is_empty()
        && let Some(at) = args.iter().position(|arg| arg.text == wrapper.separator)
    {
        let side = if wrapper.ends {
            args.get(..at)
        } else {
            args.get(at + 1..)
        };
        if !wrapper.ends {
            found.push(Peeled::Command(side.unwrap_or_default().to_vec()));
            return;
        }
        let items = args.get(at + 1..).unwrap_or_default();
        return starts(wrapper, side.unwrap_or_default())
            .into_iter()
            .for_each(|inner| {
                let inner = [inner, items].concat();
                found.push(inside(wrapper, &inner));
            });
    }
    for inner in starts(wrapper, args) {
        if program == "xargs" {
            found.push(Peeled::Command(with_items(args, inner, input)));
        } else if !inner.is_empty() {
            found.push(inside(wrapper, inner));
        }
    }
}

fn inside(wrapper: &Wrapper, inner: &[Arg]) -> Peeled {
    if wrapper.text {
        Peeled::Text(joined(inner))
    } else {
        Peeled::Command(inner.to_vec())
    }
}

/// Joins words to the text that a shell would be given.
pub(super) fn joined(args: &[Arg]) -> Arg {
    let mut text = Arg::default();
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            text.text.push(' ');
        }
        text.text.push_str(&arg.text);
        text.unknown |= arg.unknown;
        text.taint = text.taint.join(arg.taint);
    }
    text
}

/// Returns where the inner command may start: after options, assignments and operands.
///
/// An option that is not in the table may or may not take a value; both starts are returned.
fn starts<'a>(wrapper: &Wrapper, args: &'a [Arg]) -> Vec<&'a [Arg]> {
    let mut rest = args;
    let mut doubtful = None;
    while let Some((first, after)) = rest.split_first() {
        let text = first.text.as_str();
        if text == "--" {
            rest = after;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        rest = after;
        if takes_next(wrapper, text) {
            rest = rest.split_first().map_or(rest, |(_, after)| after);
        } else if !text.contains('=') {
            doubtful = Some(after);
        }
    }
    let mut found = vec![after_operands(wrapper, rest)];
    if let Some((value, after)) = doubtful.and_then(<[Arg]>::split_first)
        && std::ptr::eq(rest, doubtful.unwrap_or_default())
        && !value.text.starts_with('-')
    {
        found.push(after_operands(wrapper, after));
    }
    found
}

fn after_operands<'a>(wrapper: &Wrapper, args: &'a [Arg]) -> &'a [Arg] {
    let mut rest = args;
    if wrapper.assignments {
        while let Some((first, after)) = rest.split_first()
            && is_assignment(&first.text)
        {
            rest = after;
        }
    }
    let inner = rest.get(wrapper.operands..).unwrap_or_default();
    let options = inner
        .iter()
        .take_while(|arg| wrapper.operands > 0 && arg.text.starts_with('-') && arg.text.len() > 1);
    inner.get(options.count()..).unwrap_or_default()
}

/// Whether the word is `NAME=value`.
pub(super) fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
    })
}

/// Whether the option's value is the next word.
fn takes_next(wrapper: &Wrapper, text: &str) -> bool {
    if has(&wrapper.values, text) || has(&wrapper.code, text) {
        return true;
    }
    // In a cluster such as -rn the last letter may take the value.
    cluster(text)
        .and_then(|letters| letters.chars().last())
        .is_some_and(|last| has(&wrapper.values, &format!("-{last}")))
        && !text
            .chars()
            .nth(1)
            .is_some_and(|first| has(&wrapper.values, &format!("-{first}")))
}

/// Returns each value of an option: the next word, what follows `=`, or the rest of a cluster.
pub(super) fn option_values<'a>(
    args: &'a [Arg],
    option: &'a str,
) -> impl Iterator<Item = Arg> + 'a {
    let suffix = |arg: &Arg, text: &str| Arg {
        text: text.to_owned(),
        word: None,
        ..arg.clone()
    };
    args.iter().enumerate().filter_map(move |(index, arg)| {
        let text = arg.text.as_str();
        if option.ends_with('=') {
            return text.strip_prefix(option).map(|value| suffix(arg, value));
        }
        if let Some((name, value)) = text.split_once('=')
            && (name == option
                || is_long_prefix(name, option)
                || (option.contains('=') && text.starts_with(option)))
        {
            let value = text
                .strip_prefix(option)
                .and_then(|rest| rest.strip_prefix('='))
                .unwrap_or(value);
            return Some(suffix(arg, value));
        }
        if let Some((name, value)) = option.split_once('=') {
            // `--checkpoint-action exec=…`
            return (text == name)
                .then(|| args.get(index + 1))
                .flatten()
                .and_then(|next| {
                    let rest = next.text.strip_prefix(value)?.strip_prefix('=')?;
                    Some(suffix(next, rest))
                });
        }
        if text == option || is_long_prefix(text, option) {
            return args.get(index + 1).cloned();
        }
        let letter = option
            .strip_prefix('-')
            .filter(|rest| rest.chars().count() == 1 && *rest != "-")?;
        let (before, value) = cluster(text)?.split_once(letter)?;
        if !before.chars().all(|c| c.is_ascii_alphabetic()) {
            return None;
        }
        if value.is_empty() {
            args.get(index + 1).cloned()
        } else {
            Some(suffix(arg, value))
        }
    })
}

fn is_long_prefix(name: &str, option: &str) -> bool {
    option.starts_with("--") && name.starts_with("--") && is_option(name, option)
}

/// Most words that a placeholder of `xargs -I` is followed into; beyond, the items are appended.
const MAX_FILLED: usize = 4_096;

/// Adds what `xargs` reads to the words of its command.
fn with_items(args: &[Arg], inner: &[Arg], input: &Feed) -> Vec<Arg> {
    let items: Vec<Arg> = match &input.text {
        Some(text) => text.split_whitespace().map(Arg::literal).collect(),
        None if !input.lists.is_empty() => input.lists.iter().map(listed_under).collect(),
        None => vec![Arg {
            text: UNKNOWN.to_string(),
            unknown: true,
            loose: true,
            taint: input.taint,
            ..Arg::default()
        }],
    };
    let placeholder = option_values(args, "-I")
        .chain(option_values(args, "--replace"))
        .next();
    let Some(placeholder) = placeholder else {
        return [inner, &items].concat();
    };
    if inner.len() * items.len() > MAX_FILLED {
        return [inner, &items].concat();
    }
    inner
        .iter()
        .flat_map(|arg| {
            if placeholder.text.is_empty() || !arg.text.contains(&placeholder.text) {
                return vec![arg.clone()];
            }
            let filled = |item: &Arg| Arg {
                text: arg.text.replace(&placeholder.text, &item.text),
                unknown: arg.unknown || item.unknown,
                loose: arg.loose || item.loose,
                taint: arg.taint.join(item.taint),
                ..arg.clone()
            };
            items.iter().map(filled).collect()
        })
        .collect()
}

/// Returns the operands of `find` that name where it starts.
pub(super) fn find_roots(args: &[Arg]) -> Vec<Arg> {
    let mut roots: Vec<Arg> = args
        .iter()
        .skip_while(|arg| matches!(arg.text.as_str(), "-H" | "-L" | "-P"))
        .take_while(|arg| !arg.text.starts_with('-') && !matches!(arg.text.as_str(), "!" | "("))
        .cloned()
        .collect();
    if roots.is_empty() {
        roots.push(Arg::literal("."));
    }
    roots
}

/// Returns the commands of `-exec` and its kin; `{}` becomes everything under the roots.
fn find_commands(args: &[Arg], found: &mut Vec<Peeled>) {
    let roots = find_roots(args);
    let mut rest = args.iter();
    while rest
        .by_ref()
        .any(|arg| matches!(arg.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir"))
    {
        let words = rest
            .by_ref()
            .take_while(|arg| !matches!(arg.text.as_str(), ";" | "+"));
        let inner = words
            .flat_map(|arg| {
                if arg.text == "{}" {
                    roots.iter().map(everything_under).collect()
                } else {
                    vec![arg.clone()]
                }
            })
            .collect();
        found.push(Peeled::Command(inner));
    }
}

fn everything_under(root: &Arg) -> Arg {
    Arg {
        text: format!("{}/*", root.text),
        glob: true,
        word: Some(super::Word::Dynamic("{}".to_owned())),
        ..root.clone()
    }
}

/// Any of the paths that a list of everything under a directory may hold.
fn listed_under(root: &Arg) -> Arg {
    Arg {
        unknown: true,
        ..everything_under(root)
    }
}

fn fd_commands(args: &[Arg], found: &mut Vec<Peeled>) {
    let at = args
        .iter()
        .position(|arg| matches!(arg.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
    if let Some(inner) = at.and_then(|at| args.get(at + 1..)) {
        let mut inner = inner.to_vec();
        inner.push(everything_under(&Arg::literal(".")));
        found.push(Peeled::Command(inner));
    }
}
