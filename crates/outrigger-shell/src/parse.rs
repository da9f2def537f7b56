//! Parses a text with tree-sitter-bash, within bounds and around the faults of that grammar.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

/// How often tree-sitter may report progress (every hundred steps) however short the text is.
const CHECKS_AT_LEAST: usize = 1_000;

/// And once more for so many bytes; the same for chunks. Error recovery may take time quadratic in the text: it is counted,
/// not timed.
const BYTES_PER_CHECK: usize = 16;

/// How many bytes the parser is given at once.
const CHUNK: usize = 1_024;

/// How often it may ask for a chunk however short the text is. The grammar's scanner may go through all of the text for
/// each token, which no step counts.
const CHUNKS_AT_LEAST: usize = 4_000;

/// Most `<<` of a text. The grammar's scanner copies all here-documents that are open at each of them, which no step
/// counts: 64 KiB of `<` took it twelve seconds.
const MAX_HERE_DOCUMENTS: usize = 2_048;

/// Parses the text; `None` if that takes too many steps, or the grammar cannot be loaded.
pub(super) fn parse(text: &str) -> Option<Tree> {
    let pairs = text.as_bytes().windows(2).filter(|pair| pair == b"<<");
    if pairs.count() > MAX_HERE_DOCUMENTS {
        return None;
    }
    let mut parser = Parser::new();
    let bash = tree_sitter_bash::LANGUAGE.into();
    parser.set_language(&bash).ok()?;
    let mut checks = CHECKS_AT_LEAST + text.len() / BYTES_PER_CHECK;
    let mut progress = |_: &ParseState| {
        checks = checks.saturating_sub(1);
        if checks == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let ascii = adapted(text);
    let mut chunks = CHUNKS_AT_LEAST + text.len() / BYTES_PER_CHECK;
    let mut input = |at: usize, _| {
        chunks = chunks.saturating_sub(1);
        let rest = ascii.get(at..).filter(|_| chunks > 0).unwrap_or_default();
        rest.get(..CHUNK).unwrap_or(rest)
    };
    let tree = parser.parse_with_options(&mut input, None, Some(options))?;
    (chunks > 0).then_some(tree)
}

/// Returns the text as the grammar reads it right, byte for byte; the words are taken from the text itself.
///
/// The scanner of tree-sitter-bash 0.25.1 looks code points up in a table of 256 (`isdigit` in scanner.c), so `{` before a
/// distant one reads foreign memory. To bash they are letters, and so are carriage returns and their like. A line that
/// begins with a backslash is taken for a part of the line before, `$ name` for `$name`, and `! {`, `time {`, `coproc {`
/// for commands.
fn adapted(text: &str) -> Vec<u8> {
    let letter = |byte: u8| match byte {
        b'\n' | b'\t' => byte,
        byte if byte.is_ascii() && !byte.is_ascii_control() => byte,
        _ => b'x',
    };
    let mut bytes: Vec<u8> = text.bytes().map(letter).collect();
    let behind = bytes.iter().skip(1).copied().chain([b'\n']);
    let literal: Vec<bool> = behind.map(|byte| byte.is_ascii_whitespace()).collect();
    for (byte, literal) in bytes.iter_mut().zip(literal) {
        if *byte == b'$' && literal {
            *byte = b'x';
        }
    }
    let (mut at, mut begins_line) = (0, true);
    while let Some(first) = bytes.get(at).copied() {
        if first.is_ascii_whitespace() {
            begins_line |= first == b'\n';
            at += 1;
            continue;
        }
        let word = bytes.get(at..).unwrap_or_default();
        let letter = word.get(1).is_some_and(u8::is_ascii_alphanumeric);
        let escaped = begins_line && first == b'\\' && letter;
        let ends = |c: &u8| c.is_ascii_whitespace() || b";&|()`".contains(c);
        let length = word.iter().position(ends).unwrap_or(word.len()).max(1);
        let blanked = before_compound(word);
        let changed = if escaped { (1, b'x') } else { (blanked, b' ') };
        let word = bytes.iter_mut().skip(at).take(changed.0);
        word.for_each(|byte| *byte = changed.1);
        at += length;
        begins_line = false;
    }
    bytes
}

/// Returns how long a keyword is that stands before a compound command; `coproc` may be followed by a name.
fn before_compound(text: &[u8]) -> usize {
    let is_keyword = |keyword: &&str| {
        let behind = text.strip_prefix(keyword.as_bytes());
        behind.is_some_and(|behind| behind.starts_with(b" ") || behind.starts_with(b"\t"))
    };
    let mut keywords = ["!", "time", "coproc"].into_iter();
    let Some(keyword) = keywords.find(is_keyword) else {
        return 0;
    };
    let next = behind_word(text);
    let named = (keyword == "coproc").then(|| behind_word(next));
    let begins = |rest: &&[u8]| COMPOUND.iter().any(|it| rest.starts_with(it.as_bytes()));
    let found = [next].into_iter().chain(named).find(begins);
    found.map_or(0, |rest| text.len() - rest.len())
}

fn behind_word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(u8::is_ascii_whitespace);
    let rest = end.and_then(|end| text.get(end..));
    rest.unwrap_or_default().trim_ascii_start()
}

const COMPOUND: [&str; 10] = [
    "{ ", "{\n", "{\t", "(", "if ", "for ", "while ", "until ", "case ", "[[ ",
];
