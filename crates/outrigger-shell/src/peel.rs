//! Finds the command inside a wrapper such as `env`, `timeout` or `xargs`, and text that a program runs.

use super::Word;
use super::expand::{Arg, UNKNOWN};
use super::flow::Feed;
use super::plain::is_name;
use super::table::{TABLE, Wrapper, cluster, has, is_option};

#[derive(Debug)]
pub(super) enum Peeled {
    Command(Vec<Arg>),
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
    let stem = name.strip_suffix(".exe");
    // A file may be named `.exe`.
    let name = stem.filter(|it| !it.is_empty()).unwrap_or(&name);
    let name = without_g(name);
    // python3.11 is python and gsed-4.8 is sed, but base64 is not base.
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let plain = without_g(plain);
    let versioned =
        !TABLE.interpreters.contains_key(name) && TABLE.interpreters.contains_key(plain);
    let name = if versioned { plain } else { name };
    Some((name.to_owned(), rest))
}

/// Returns the name that a program of GNU has where it is the system's own.
fn without_g(name: &str) -> &str {
    let own = name.strip_prefix('g');
    own.filter(|own| TABLE.programs.gnu.contains(*own))
        .unwrap_or(name)
}

/// Returns what the command wraps; empty if it is no wrapper.
pub(super) fn peel(program: &str, args: &[Arg], input: &Feed) -> Vec<Peeled> {
    let mut found = Vec::new();
    if let Some((wrapper, skipped)) = TABLE.wrapper(program, args) {
        let args = args.get(skipped..).unwrap_or_default();
        unwrap(program, wrapper, args, input, &mut found);
    }
    for option in TABLE.runners.get(program).into_iter().flatten() {
        found.extend(option_values(args, option).map(Peeled::Text));
    }
    if program == "find" {
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
    let fills = program == "xargs" || program == "parallel" && input.connected;
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
    let texts: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
    let mut text = Arg::default().with(texts.join(" "));
    args.iter().for_each(|arg| text.absorb(arg));
    text
}

/// Returns where the inner command may start: after options, assignments and operands.
///
/// An option that is not in the table may or may not take a value; both starts are returned.
fn starts<'a>(wrapper: &Wrapper, args: &'a [Arg]) -> Vec<&'a [Arg]> {
    let mut rest = args;
    let mut doubtful = false;
    while let Some((first, after)) = rest.split_first() {
        let text = first.text.as_str();
        if !text.starts_with('-') || text == "-" {
            break;
        }
        let valued = takes_next(wrapper, text);
        rest = after.get(usize::from(valued)..).unwrap_or_default();
        doubtful = !valued && !text.contains('=') && !has_value(wrapper, text);
        if text == "--" {
            doubtful = false;
            break;
        }
    }
    let mut found = vec![after_operands(wrapper, rest)];
    if let Some((value, after)) = rest.split_first()
        && doubtful
        && !value.text.starts_with('-')
    {
        found.push(after_operands(wrapper, after));
    }
    found
}

fn after_operands<'a>(wrapper: &Wrapper, args: &'a [Arg]) -> &'a [Arg] {
    let assigns = |arg: &&Arg| wrapper.assignments && is_assignment(&arg.text);
    let before = args.iter().take_while(assigns).count() + wrapper.operands;
    let inner = args.get(before..).unwrap_or_default();
    let is_option = |arg: &&Arg| arg.text.starts_with('-') && arg.text.len() > 1;
    let options = inner.iter().take_while(is_option).count();
    let options = if wrapper.operands > 0 { options } else { 0 };
    inner.get(options..).unwrap_or_default()
}

pub(super) fn is_assignment(text: &str) -> bool {
    let name = text.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(is_name))
}

/// Whether the option's value is joined to it: `-I{}`.
fn has_value(wrapper: &Wrapper, text: &str) -> bool {
    let letters = cluster(text).filter(|letters| letters.chars().count() > 1);
    let first = letters.and_then(|letters| letters.chars().next());
    first.is_some_and(|letter| has(&wrapper.values, &format!("-{letter}")))
}

/// Whether the option's value is the next word; in a cluster such as `-rn` the last letter may take it.
fn takes_next(wrapper: &Wrapper, text: &str) -> bool {
    let last = cluster(text).and_then(|letters| letters.chars().last());
    let valued = last.is_some_and(|last| has(&wrapper.values, &format!("-{last}")));
    has(&wrapper.values, text) || has(&wrapper.code, text) || valued && !has_value(wrapper, text)
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
        let letters = before.chars().all(|c| c.is_ascii_alphabetic());
        match value {
            _ if !letters => None,
            "" => next.cloned(),
            value => Some(suffix(arg, value)),
        }
    })
}

fn is_long_prefix(name: &str, option: &str) -> bool {
    option.starts_with("--") && name.starts_with("--") && is_option(name, option)
}

/// Most words that a placeholder is followed into; beyond, what would be in its place is appended.
const MAX_FILLED: usize = 4_096;

/// Puts each item in the place of the placeholder; behind the words where there is none.
fn filled(words: &[Arg], placeholder: Option<&str>, items: &[Arg]) -> Vec<Arg> {
    let followed = words.len() * items.len() <= MAX_FILLED;
    let Some(placeholder) = placeholder.filter(|_| followed) else {
        return [words, items].concat();
    };
    let fill = |word: &Arg, item: &Arg| {
        let mut arg = word.with(word.text.replace(placeholder, &item.text));
        arg.glob |= item.glob;
        arg.absorb(item);
        arg
    };
    let filled = words.iter().flat_map(|word| {
        if placeholder.is_empty() || !word.text.contains(placeholder) {
            return vec![word.clone()];
        }
        items.iter().map(|item| fill(word, item)).collect()
    });
    filled.collect()
}

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
    let mut placeholders = option_values(args, "-I").chain(option_values(args, "--replace"));
    let placeholder = placeholders.next().map(|arg| arg.text);
    filled(inner, placeholder.as_deref(), &items)
}

/// Splits what `xargs` reads: at blanks, ends of lines, NUL and what `-d` names; quotes are taken off.
fn items_of(text: &str, args: &[Arg]) -> Vec<Arg> {
    let delimiters = option_values(args, "-d").chain(option_values(args, "--delimiter"));
    let delimiters: String = delimiters.map(|value| value.text).collect();
    let ends = |c: char| c.is_whitespace() || c == '\0' || delimiters.contains(c);
    let items = text
        .split(ends)
        .map(|item| item.replace(['"', '\'', '\\'], ""));
    let items = items.filter(|item| !item.is_empty());
    items.map(Arg::literal).collect()
}

/// Returns the operands of `find` that name where it starts.
pub(super) fn find_roots(args: &[Arg]) -> Vec<Arg> {
    let is_option = |arg: &&Arg| matches!(&*arg.text, "-H" | "-L" | "-P");
    let is_root = |arg: &&Arg| !arg.text.starts_with('-') && !matches!(&*arg.text, "!" | "(");
    let roots = args.iter().skip_while(is_option).take_while(is_root);
    let mut roots: Vec<Arg> = roots.cloned().collect();
    if roots.is_empty() {
        roots.push(Arg::literal("."));
    }
    roots
}

/// Returns the commands of `-exec` and its kin.
///
/// `{}` is everything under each of the roots; in the text of a script that is all of it at once.
fn find_commands(args: &[Arg], found: &mut Vec<Peeled>) {
    let everything = |root: Arg| Arg {
        glob: true,
        word: Some(Word::Dynamic("{}".to_owned())),
        ..root.with(format!("{}/*", root.text))
    };
    let everything: Vec<Arg> = find_roots(args).into_iter().map(everything).collect();
    let all = [joined(&everything)];
    let fill = |word: &Arg| match word.text.as_str() {
        "{}" => everything.clone(),
        _ => filled(std::slice::from_ref(word), Some("{}"), &all),
    };
    let mut rest = args.iter();
    let runs = |arg: &Arg| matches!(&*arg.text, "-exec" | "-execdir" | "-ok" | "-okdir");
    while rest.by_ref().any(runs) {
        let words = rest.by_ref();
        let words = words.take_while(|arg| !matches!(arg.text.as_str(), ";" | "+"));
        found.push(Peeled::Command(words.flat_map(fill).collect()));
    }
}
