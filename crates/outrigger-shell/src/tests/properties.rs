//! What holds for any line; the fuzz target `classify` checks the same for longer.

use proptest::prelude::*;

use super::{judge, rows, some};
use crate::DangerLevel;

/// Pieces of shell that meet in every order.
const PIECES: [&str; 48] = [
    "'",
    "\"",
    "`",
    "$(",
    "))",
    ")",
    "(",
    "{",
    "}",
    "${",
    "$",
    "\\",
    "\n",
    ";",
    "&",
    "|",
    "<",
    ">",
    "<<E",
    "<<<",
    "<(",
    "a=(",
    "${a[@]}",
    "${a[0]}",
    "x=",
    "$x",
    "IFS=,",
    "read x",
    "printf -v x",
    "coproc",
    "exec 3<",
    "<&3",
    "f() {",
    "f a",
    "cat",
    "sh",
    "curl x",
    "xargs",
    "make -f -",
    "git clone x",
    "> x.sh",
    "./x.sh",
    "sudo",
    "rm -rf /",
    "/usr/bin/s?do",
    "find -exec",
    " ",
    " ",
];

fn check(line: &str) -> Result<(), TestCaseError> {
    let alone = judge(line);
    prop_assert_eq!(&alone, &judge(line));
    // What cannot be read to its end may go on in what is added: an open quote, a backslash.
    if alone
        .findings
        .iter()
        .any(|finding| finding.rule == "syntax")
    {
        return Ok(());
    }
    for more in ["; sudo x", "\nsudo x"] {
        let both = judge(&format!("{line}{more}"));
        prop_assert!(
            both.level >= alone.level,
            "{line:?} is milder with {more:?}"
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_level_only_rises(
        pieces in prop::collection::vec((prop::sample::select(PIECES.to_vec()), any::<bool>()), 0..40)
    ) {
        let line: String = pieces
            .iter()
            .flat_map(|(piece, blank)| [*piece, if *blank { " " } else { "" }])
            .collect();
        check(&line)?;
    }

    #[test]
    fn the_level_of_any_text_only_rises(line in any::<String>()) {
        check(&line)?;
    }
}

#[test]
fn the_level_of_each_known_line_only_rises() {
    let rows = rows(include_str!("../../fixtures/lines.tsv"));
    for (_, line) in some(rows.iter()) {
        check(line).unwrap();
    }
}

/// The parser takes time quadratic in what these repeat, so it gives up. What the line may do is not known then.
#[test]
fn a_line_that_takes_too_many_steps_is_dangerous() {
    for unit in ["<", "cat <<E ", ")", ")("] {
        let line = format!("ls; {}", unit.repeat(32 * 1024 / unit.len()));
        assert_eq!(judge(&line).level, DangerLevel::Dangerous, "{unit:?}");
    }
}
