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
    if matches!(program, "find" | "gfind") {
        find_commands(args, &mut found);
    }
    found
}

fn unwrap(program: &str, wrapper: &Wrapper, args: &[Arg], input: &Feed, found: &mut Vec<Peeled>) {
    for option in &wrapper.code {
        found.extend(option_values(args, option).map(Peeled::Text));
    }
    let separators = || wrapper.separator.split('|').filter(|it| !it.is_empty());
    let separates = |arg: &Arg| separators().any(|separator| arg.text == separator);
    let at = args.iter().position(separates);
    let (before, behind) = match at.and_then(|at| args.split_at_checked(at)) {
        Some((before, [_, behind @ ..])) => (before, behind),
        _ => (args, &[][..]),
    };
    if !wrapper.runs.is_empty() {
        let words = [&[Arg::literal(&wrapper.runs)], behind].concat();
        return found.push(Peeled::Command(words));
    }
    if at.is_some() && !wrapper.ends {
        return found.push(Peeled::Command(behind.to_vec()));
    }
    let fills = matches!(program, "xargs" | "gxargs") || program == "parallel" && input.connected;
    for inner in starts(wrapper, before) {
        let words = match inner {
            // Without a command it only prints.
            [] => continue,
            inner if fills => with_items(args, inner, input),
            inner => [inner, behind].concat(),
        };
        found.push(if wrapper.text {
            Peeled::Text(joined(&words))
        } else {
            Peeled::Command(words)
        });
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
        text.absorb(arg);
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
        } else if !text.contains('=') && !has_value(wrapper, text) {
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

/// Whether the option's value is joined to it: `-I{}`.
fn has_value(wrapper: &Wrapper, text: &str) -> bool {
    let mut letters = cluster(text).unwrap_or_default().chars();
    let first = letters.next();
    first.is_some_and(|letter| has(&wrapper.values, &format!("-{letter}")))
        && letters.next().is_some()
}

/// Whether the option's value is the next word; in a cluster such as `-rn` the last letter may take it.
fn takes_next(wrapper: &Wrapper, text: &str) -> bool {
    let last = cluster(text).and_then(|letters| letters.chars().last());
    has(&wrapper.values, text)
        || has(&wrapper.code, text)
        || last.is_some_and(|last| has(&wrapper.values, &format!("-{last}")))
            && !has_value(wrapper, text)
}

/// Returns each value of an option: the next word, what follows `=`, or the rest of a cluster.
pub(super) fn option_values<'a>(
    args: &'a [Arg],
    option: &'a str,
) -> impl Iterator<Item = Arg> + 'a {
    let suffix = |arg: &Arg, text: &str| Arg {
        word: None,
        ..arg.with(text)
    };
    args.iter().enumerate().filter_map(move |(index, arg)| {
        let text = arg.text.as_str();
        let next = args.get(index + 1);
        if let Some(value) = text.strip_prefix(option)
            && (option.ends_with('=') || value.starts_with('='))
        {
            return Some(suffix(arg, value.strip_prefix('=').unwrap_or(value)));
        }
        if let Some((name, value)) = option.split_once('=') {
            // `--checkpoint-action exec=…`
            let next = next.filter(|_| text == name && !value.is_empty())?;
            let rest = next.text.strip_prefix(value)?.strip_prefix('=')?;
            return Some(suffix(next, rest));
        }
        if text == option || is_long_prefix(text, option) {
            return next.cloned();
        }
        if let Some((name, value)) = text.split_once('=')
            && is_long_prefix(name, option)
        {
            return Some(suffix(arg, value));
        }
        let letter = option.strip_prefix('-').filter(|rest| rest.len() == 1)?;
        let (before, value) = cluster(text)?.split_once(letter)?;
        if !before.chars().all(|c| c.is_ascii_alphabetic()) {
            return None;
        }
        if value.is_empty() {
            next.cloned()
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
    let mut items = items_of(input.likely().unwrap_or_default(), args);
    if input.text.is_none() {
        items.push(Arg {
            text: UNKNOWN.to_string(),
            unknown: true,
            loose: true,
            made: true,
            taint: input.taint,
            ..Arg::default()
        });
    }
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
                glob: arg.glob || item.glob,
                unknown: arg.unknown || item.unknown,
                made: arg.made || item.made,
                loose: arg.loose || item.loose,
                taint: arg.taint.join(item.taint),
                ..arg.with(arg.text.replace(&placeholder.text, &item.text))
            };
            items.iter().map(filled).collect()
        })
        .collect()
}

/// Splits what `xargs` reads: at blanks, ends of lines, NUL and what `-d` names; quotes are taken off.
fn items_of(text: &str, args: &[Arg]) -> Vec<Arg> {
    let delimiters: String = option_values(args, "-d")
        .chain(option_values(args, "--delimiter"))
        .map(|value| value.text)
        .collect();
    text.split(|c: char| c.is_whitespace() || c == '\0' || delimiters.contains(c))
        .map(|item| item.replace(['"', '\'', '\\'], ""))
        .filter(|item| !item.is_empty())
        .map(Arg::literal)
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
            .take_while(|arg| !matches!(arg.text.as_str(), ";" | "+"))
            .cloned()
            .collect::<Vec<Arg>>();
        let inner = words.iter().flat_map(|arg| filled(arg, &roots)).collect();
        found.push(Peeled::Command(inner));
    }
}

/// Everything under a directory, as `{}` of `find -exec` is.
fn everything_under(root: &Arg) -> Arg {
    Arg {
        text: format!("{}/*", root.text),
        glob: true,
        word: Some(super::Word::Dynamic("{}".to_owned())),
        ..root.clone()
    }
}

/// Puts what `find` finds in the place of `{}`; in the text of a script that is all of it at once.
fn filled(arg: &Arg, roots: &[Arg]) -> Vec<Arg> {
    let found = roots.iter().map(everything_under);
    if arg.text == "{}" {
        return found.collect();
    }
    if !arg.text.contains("{}") {
        return vec![arg.clone()];
    }
    let names: Vec<String> = found.map(|arg| arg.text).collect();
    vec![Arg {
        text: arg.text.replace("{}", &names.join(" ")),
        ..arg.clone()
    }]
}
