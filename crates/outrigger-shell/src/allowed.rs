//! Options against their allow-lists, and scripts of `sed` that only print.

use super::safe::{Item, Proof};
use super::table::{Options, cluster, has};

/// Checks every option against the allowed ones and returns the operands; all words must be literal.
pub(super) fn operands<'i>(
    items: &'i [Item],
    options: &Options,
    program: &Item,
) -> Proof<Vec<&'i Item>> {
    let mut operands: Vec<&Item> = Vec::new();
    let mut listing = options.listing.is_empty();
    let mut rest = items.iter();
    while let Some(item) = rest.next() {
        let text = item.literal()?;
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        listing |= has(&options.listing, name);
        if text == "--" {
            for operand in rest.by_ref() {
                operand.literal()?;
                operands.push(operand);
            }
            break;
        }
        let valued = if let Some(long) = name.strip_prefix("--") {
            let valued = has(&options.long_values, long);
            if !valued && !has(&options.long, long) {
                return Err(item.not_allowed());
            }
            valued && !text.contains('=')
        } else if let Some(letters) = cluster(text).filter(|letters| !letters.is_empty()) {
            letters_need_value(letters, options).ok_or_else(|| item.not_allowed())?
        } else {
            operands.push(item);
            false
        };
        if valued && let Some(value) = rest.next() {
            value.literal()?;
        }
    }
    let too_many = options.operands.is_some_and(|most| operands.len() > most);
    if too_many && (options.listing.is_empty() || !listing) {
        return Err(program.unproven("operands", "is given more than it may read"));
    }
    if !options.first.is_empty() {
        // What stands behind an option need not be what is done: `git stash -p list` stashes.
        let first = items.first().and_then(|item| item.literal.as_deref());
        let first = first.filter(|word| !word.starts_with('-'));
        if !has(&options.first, first.unwrap_or_default()) {
            return Err(program.unproven("operands", "is not asked to list"));
        }
    }
    Ok(operands)
}

/// Whether the last letter takes the next word; `None` if a letter is not allowed.
fn letters_need_value(letters: &str, options: &Options) -> Option<bool> {
    if options.number && letters.chars().all(|c| c.is_ascii_digit()) {
        return Some(false);
    }
    let mut rest = letters.chars();
    while let Some(letter) = rest.next() {
        if options.joined.contains(letter) {
            return Some(false);
        }
        if options.values.contains(letter) {
            return Some(rest.as_str().is_empty());
        }
        if !options.flags.contains(letter) {
            return None;
        }
    }
    Some(false)
}

/// Whether a filter has one of these names as a word of its own, not as a field or a string: `env`, `$ENV`.
pub(super) fn reveals(filter: &str, names: &[String]) -> bool {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '"');
    let alone = |(at, name): (usize, &str)| {
        let (before, after) = (filter.get(..at), filter.get(at + name.len()..));
        let before = before.and_then(|text| text.chars().next_back());
        let after = after.and_then(|text| text.chars().next());
        !before.is_some_and(|c| joins(c) || matches!(c, '.' | '$'))
            && !after.is_some_and(|c| joins(c) || c == ':')
    };
    let mut names = names.iter();
    names.any(|name| filter.match_indices(name.as_str()).any(alone))
}

/// Whether a sed script is one address or range and `p`: `5p`, `1,20p`, `$p`, `/a/p`, `/a/,/b/p`.
pub(super) fn only_prints(script: &str) -> bool {
    let Some(addresses) = script.strip_suffix('p') else {
        return false;
    };
    if addresses.chars().any(char::is_control) {
        return false;
    }
    let second = |rest: &str| rest.strip_prefix(',').and_then(address) == Some("");
    address(addresses).is_some_and(|rest| rest.is_empty() || second(rest))
}

fn address(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('$') {
        return Some(rest);
    }
    if let Some(expression) = text.strip_prefix('/') {
        let mut escaped = false;
        for (at, c) in expression.char_indices() {
            match c {
                '/' if !escaped => return expression.get(at + 1..),
                _ => escaped = c == '\\' && !escaped,
            }
        }
        return None;
    }
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < text.len()).then_some(rest)
}
