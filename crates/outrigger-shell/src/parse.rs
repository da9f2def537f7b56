//! Parses a text with tree-sitter-bash, within bounds and around the faults of that grammar.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

/// How often tree-sitter may report progress (every hundred steps) however short the text is.
const CHECKS_AT_LEAST: usize = 1_000;

/// And once more for so many bytes. Error recovery may take time quadratic in the text: it is counted, not timed.
const BYTES_PER_CHECK: usize = 16;

/// How many bytes the parser is given at once.
const CHUNK: usize = 1_024;

/// How often it may ask for a chunk however short the text is. The grammar's scanner may go through all of the text for
/// each token, which no step counts.
const CHUNKS_AT_LEAST: usize = 4_000;

/// And once more for so many bytes.
const BYTES_PER_CHUNK: usize = 16;

/// Most `<<` of a text. The grammar's scanner copies all here-documents that are open at each of them, which no step
/// counts: 64 KiB of `<` took it twelve seconds.
const MAX_HERE_DOCUMENTS: usize = 2_048;

/// Tells a text that would take the scanner too long.
fn has_too_many_here_documents(text: &str) -> bool {
    let pairs = text.as_bytes().windows(2).filter(|pair| pair == b"<<");
    pairs.take(MAX_HERE_DOCUMENTS + 1).count() > MAX_HERE_DOCUMENTS
}

/// Parses the text; `None` if that takes too many steps, or the grammar cannot be loaded.
pub(super) fn parse(text: &str) -> Option<Tree> {
    if has_too_many_here_documents(text) {
        return None;
    }
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
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
    let mut chunks = CHUNKS_AT_LEAST + text.len() / BYTES_PER_CHUNK;
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
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        let start = blanks.count();
        let word = rest.get(start..).unwrap_or_default();
        let new_line = rest.iter().take(start).any(|byte| *byte == b'\n') || at == 0;
        let escaped = word.starts_with(b"\\") && word.get(1).is_some_and(u8::is_ascii_alphanumeric);
        let blanked = before_compound(word);
        if let Some(byte) = bytes.get_mut(at + start).filter(|_| escaped && new_line) {
            *byte = b'x';
        }
        let keyword = bytes.iter_mut().skip(at + start).take(blanked);
        keyword.for_each(|byte| *byte = b' ');
        let rest = bytes.get(at + start..).unwrap_or_default();
        let ends = |c: &u8| c.is_ascii_whitespace() || b";&|()`".contains(c);
        at += start
            + rest
                .iter()
                .position(ends)
                .map_or(rest.len(), |to| to.max(1));
        // What ends a word is no part of the next one.
        at += usize::from(bytes.get(at).is_some_and(|c| b";&|()`".contains(c)));
    }
    bytes
}

/// Returns how long a keyword is that stands before a compound command; `coproc` may be followed by a name.
fn before_compound(text: &[u8]) -> usize {
    let behind_word = |text: &[u8], from: usize| {
        let rest = text.get(from..).unwrap_or_default().iter();
        let word = rest
            .clone()
            .take_while(|c| !c.is_ascii_whitespace())
            .count();
        let blanks = rest.skip(word).take_while(|c| c.is_ascii_whitespace());
        from + word + blanks.count()
    };
    let keyword = ["! ", "!\t", "time ", "time\t", "coproc ", "coproc\t"]
        .iter()
        .find(|keyword| text.starts_with(keyword.as_bytes()));
    let Some(keyword) = keyword else { return 0 };
    let next = behind_word(text, 0);
    let mut starts = vec![next];
    starts.extend(keyword.starts_with('c').then(|| behind_word(text, next)));
    let begins = |at: &usize| {
        let rest = text.get(*at..).unwrap_or_default();
        COMPOUND
            .iter()
            .any(|start| rest.starts_with(start.as_bytes()))
    };
    starts.into_iter().find(begins).unwrap_or_default()
}

/// How compound commands begin.
const COMPOUND: [&str; 10] = [
    "{ ", "{\n", "{\t", "(", "if ", "for ", "while ", "until ", "case ", "[[ ",
];
