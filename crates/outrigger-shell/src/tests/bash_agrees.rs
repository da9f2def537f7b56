//! Bash itself says what the words of a line are: every program is a stub that records its arguments.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::{SimpleCommand, Word};
use super::{judge, rows, some};
use crate::DangerLevel;

/// Builtins that are switched off so that their stubs are run instead.
const BUILTINS: &str = "enable -n echo printf pwd true false test [ type";

const PROGRAMS: [&str; 26] = [
    "ls", "cat", "head", "tail", "wc", "grep", "find", "sort", "uniq", "cut", "tr", "echo",
    "printf", "pwd", "true", "false", "test", "[", "type", "rg", "sed", "jq", "du", "stat", "git",
    "date",
];

/// What stands for each of them. A file of the repository: one that a test writes itself may still be open in a process
/// that another test starts, and no program runs that is open for writing.
const RECORDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recorder");

struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(bench.path("bin")).unwrap();
        fs::create_dir(bench.path("work")).unwrap();
        fs::create_dir(bench.path("work/src")).unwrap();
        for name in ["f", "input.txt", "a.txt", "work/a"] {
            fs::write(
                bench.path("work").join(name.trim_start_matches("work/")),
                "x",
            )
            .unwrap();
        }
        for program in PROGRAMS {
            symlink(RECORDER, bench.path("bin").join(program)).unwrap();
        }
        bench
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Runs the line and returns what each program was given.
    fn run(&self, line: &str) -> Vec<Vec<String>> {
        let records = self.path("records");
        fs::create_dir(&records).unwrap();
        let status = Command::new("/bin/bash")
            .args(["--noprofile", "--norc", "-c"])
            .arg(format!("{BUILTINS}\n{line}"))
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("RECORDS", &records)
            .env("HOME", "/home/ada")
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.code().is_some(), "{line:?} was killed");
        let mut seen: Vec<Vec<String>> = fs::read_dir(&records)
            .unwrap()
            .map(|entry| recorded(&entry.unwrap().path()))
            .collect();
        fs::remove_dir_all(&records).unwrap();
        seen.sort();
        seen
    }
}

fn recorded(path: &Path) -> Vec<String> {
    let bytes = fs::read(path).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let mut words: Vec<String> = text.split('\0').map(str::to_owned).collect();
    words.pop();
    words
}

fn matches(command: &[Word], seen: &[String]) -> bool {
    let literal = command.iter().all(|word| matches!(word, Word::Literal(_)));
    let same = |(word, seen): (&Word, &String)| match word {
        Word::Literal(text) => text == seen,
        Word::Dynamic(_) => true,
    };
    if literal {
        command.len() == seen.len() && command.iter().zip(seen).all(same)
    } else {
        // A dynamic word may become several words or none: only what is before it is compared.
        let before = command.iter().zip(seen);
        before
            .take_while(|(word, _)| matches!(word, Word::Literal(_)))
            .all(same)
    }
}

/// Compares a line that is called safe with what bash makes of it; returns whether it was compared.
fn compare(bench: &Bench, line: &str) -> bool {
    let verdict = judge(line);
    let runs_own = |command: &SimpleCommand| {
        let program = command.first();
        program.is_some_and(|word| {
            PROGRAMS
                .iter()
                .any(|name| *word == Word::Literal((*name).to_owned()))
        })
    };
    if verdict.level != DangerLevel::Safe || !verdict.commands.iter().all(runs_own) {
        return false;
    }
    let seen = bench.run(line);
    for words in &seen {
        assert!(
            verdict
                .commands
                .iter()
                .any(|command| matches(command, words)),
            "{line:?}: bash ran {words:?}, we saw {:?}",
            verdict.commands
        );
    }
    if !line.contains("||") && !line.contains('<') {
        assert_eq!(seen.len(), verdict.commands.len(), "{line:?}: {seen:?}");
    }
    true
}

/// Pieces that are joined to words, and words to lines.
const PIECES: [&str; 44] = [
    "a",
    "src",
    "-l",
    "-n5",
    "--all",
    "''",
    "\"\"",
    "'a b'",
    "\"a b\"",
    "a\\ b",
    "\\$x",
    "\\\\",
    "'\\'",
    "\"\\\"\"",
    "\"\\a\"",
    "\"\\\\\"",
    "\"\\$x\"",
    "'$x'",
    "\"'\"",
    "'\"'",
    "#",
    "a#b",
    "\\#",
    "=",
    "a=b",
    "%",
    "^",
    "!",
    "é",
    "{}",
    "x{1}",
    "@{1}",
    "}",
    "+",
    ",",
    ":",
    "\\\n",
    "\"a\\\nb\"",
    "'a\nb'",
    "\\'",
    "\\*",
    "'*'",
    "[",
    "]",
];

const EXPANDING: [&str; 8] = [
    "$HOME",
    "\"$HOME\"",
    "${HOME}",
    "*",
    "~",
    "a?",
    "\"$x y\"",
    "[ab]",
];

const JOINTS: [&str; 11] = [
    " | ",
    " && ",
    "; ",
    "\n",
    " || ",
    " 2>/dev/null | ",
    " 2>&1 | ",
    " > /dev/null; ",
    " # c\n",
    " \\\n| ",
    "|",
];

fn line() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        9 => prop::sample::select(&PIECES[..]),
        1 => prop::sample::select(&EXPANDING[..]),
    ];
    let word = prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat());
    let command = (
        prop::sample::select(vec![
            "ls",
            "cat",
            "echo",
            "l's'",
            "\\wc",
            "\"grep\" -e a",
            "tr",
            "du",
            "printf x",
        ]),
        prop::collection::vec(word, 0..4),
        prop::sample::select(vec!["", " 2>/dev/null", " >/dev/null", " 2>&1", " < f"]),
    )
        .prop_map(|(program, words, redirect)| {
            let words: String = words.iter().map(|word| format!(" {word}")).collect();
            format!("{program}{words}{redirect}")
        });
    (
        prop::collection::vec((command.clone(), prop::sample::select(&JOINTS[..])), 0..3),
        command,
    )
        .prop_map(|(parts, last)| {
            let parts: String = parts
                .into_iter()
                .map(|(command, joint)| format!("{command}{joint}"))
                .collect();
            parts + &last
        })
}

#[test]
fn on_the_safe_lines_of_the_corpus() {
    let bench = Bench::new();
    let rows = rows(include_str!("../../fixtures/lines.tsv"));
    let compared = some(rows.iter()).filter(|(_, line)| compare(&bench, line));
    let compared = compared.count();
    assert!(compared > 50, "only {compared} lines were compared");
}

#[test]
fn on_lines_made_of_quotes_and_escapes() {
    let bench = Bench::new();
    let mut runner = TestRunner::new(Config::default());
    let compared = std::cell::Cell::new(0);
    runner
        .run(&line(), |line| {
            compared.set(compared.get() + i32::from(compare(&bench, &line)));
            Ok(())
        })
        .unwrap();
    assert!(
        compared.get() > 10,
        "only {} lines were compared",
        compared.get()
    );
}
