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
    if !wrapper.runs.is_empty() {
        let behind = args.iter().skip_while(|arg| arg.text != wrapper.separator);
        let given = behind.skip(1).cloned();
        let words = std::iter::once(Arg::literal(&wrapper.runs)).chain(given);
        return found.push(Peeled::Command(words.collect()));
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
        if matches!(program, "xargs" | "gxargs") {
            // Without a command it only prints.
            if inner.is_empty() {
                continue;
            }
            found.push(Peeled::Command(with_items(args, inner, input)));
        } else if program == "parallel" && input.connected {
            found.push(inside(wrapper, &with_items(args, inner, input)));
        } else if !inner.is_empty() {
            found.push(inside(wrapper, inner));
        }
    }
}

/// Returns the directories that a wrapper's own options name for the command inside.
pub(super) fn directories(program: &str, args: &[Arg]) -> Vec<Arg> {
    let Some((wrapper, skipped)) = TABLE.wrapper(program, args) else {
        return Vec::new();
    };
    let args = args.get(skipped..).unwrap_or_default();
    let inner = starts(wrapper, args).first().map_or(0, |inner| inner.len());
    let own = args.get(..args.len() - inner).unwrap_or_default();
    let options = wrapper.directory.iter();
    options
        .flat_map(|option| option_values(own, option))
        .collect()
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
        text.made |= arg.made;
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
    let Some(letter) = cluster(text).and_then(|letters| letters.chars().next()) else {
        return false;
    };
    text.chars().count() > 2 && has(&wrapper.values, &format!("-{letter}"))
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
    let mut items: Vec<Arg> = match &input.text {
        Some(text) => items_of(text, args),
        None => vec![Arg {
            text: UNKNOWN.to_string(),
            unknown: true,
            loose: true,
            made: true,
            taint: input.taint,
            ..Arg::default()
        }],
    };
    items.extend(input.parts.iter().flat_map(|text| items_of(text, args)));
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
                glob: arg.glob || item.glob,
                unknown: arg.unknown || item.unknown,
                made: arg.made || item.made,
                loose: arg.loose || item.loose,
                taint: arg.taint.join(item.taint),
                ..arg.clone()
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

fn fd_commands(args: &[Arg], found: &mut Vec<Peeled>) {
    let runs = |arg: &Arg| matches!(arg.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch");
    let at = args.iter().position(runs);
    if let Some(inner) = at.and_then(|at| args.get(at + 1..)) {
        let own = args.iter().take_while(|arg| !runs(arg));
        // The first operand is what is looked for.
        let operands = own.filter(|arg| !arg.text.starts_with('-')).skip(1);
        let roots: Vec<Arg> = std::iter::once(Arg::literal("."))
            .chain(operands.cloned())
            .collect();
        let names = roots.iter().map(everything_under);
        found.push(Peeled::Command(
            inner.iter().cloned().chain(names).collect(),
        ));
    }
}
