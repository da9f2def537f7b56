//! Names of the commands that a call runs, for records and sums: never their arguments, which may hold secrets. Pure.

use crate::classifier::{SimpleCommand, Word};
use crate::telemetry::Redactor;

/// Most names of one call.
const MOST: usize = 8;

/// Longest name of a program, and of a subcommand, in bytes.
const PROGRAM: usize = 32;
const SUBCOMMAND: usize = 20;

/// What stands for a program that is known only when it runs, or whose name is none.
const OTHER: &str = "other";

/// Programs whose first word says what they do.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "apt-get",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "conda",
    "deno",
    "docker",
    "dotnet",
    "gem",
    "gh",
    "git",
    "go",
    "helm",
    "kubectl",
    "mix",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
];

/// Programs that run the rest of their words, where no option of theirs comes between; `timeout` after a time.
const WRAPPERS: &[&str] = &[
    "command", "env", "exec", "nice", "nohup", "sudo", "time", "timeout",
];

/// Returns the names of commands, each once: `cargo test` of `cargo test --lib`, `python3` of `/usr/bin/python3 a.py`.
pub(super) fn of(commands: &[SimpleCommand], redactor: &Redactor) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for command in commands {
        let name = name(command).filter(|name| redactor.redact_counted(name).1 == 0);
        let name = name.unwrap_or_else(|| OTHER.to_owned());
        if names.len() < MOST && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn name(command: &[Word]) -> Option<String> {
    let (program, rest) = command.split_first()?;
    let program = literal(program)?.rsplit('/').next()?;
    if WRAPPERS.contains(&program)
        && let Some(wrapped) = wrapped(rest)
    {
        return name(wrapped);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '[');
    if program.is_empty() || program.len() > PROGRAM || !program.chars().all(is_plain) {
        return None;
    }
    let subcommand = rest.first().and_then(literal).filter(|word| {
        WITH_SUBCOMMANDS.contains(&program)
            && word.len() <= SUBCOMMAND
            && word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    });
    Some(match subcommand {
        Some(subcommand) => format!("{program} {subcommand}"),
        None => program.to_owned(),
    })
}

/// Returns what a wrapper runs that is given nothing but variables and a time before it.
fn wrapped(words: &[Word]) -> Option<&[Word]> {
    let is_before = |word: &&Word| {
        literal(word)
            .is_none_or(|it| it.contains('=') || it.starts_with(|c: char| c.is_ascii_digit()))
    };
    let before = words.iter().take_while(is_before).count();
    let wrapped = words.get(before..)?;
    let is_option = |word: &Word| literal(word).is_some_and(|it| it.starts_with('-'));
    (!wrapped.first().is_none_or(is_option)).then_some(wrapped)
}

fn literal(word: &Word) -> Option<&str> {
    match word {
        Word::Literal(text) => Some(text),
        Word::Dynamic(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::classifier::{Secrets, Surroundings, classify};

    #[test]
    fn a_name_is_the_program_and_never_an_argument() {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let secrets = Secrets::default();
        let surroundings = Surroundings {
            project_root: Path::new("/work"),
            central_root: Path::new("/central"),
            home: None,
            trusted_program: &|_| true,
            unhidden: None,
            secrets: &secrets,
        };
        let many: Vec<String> = (0..20).map(|number| format!("program{number}")).collect();
        for (line, expected) in [
            ("cargo test --lib", vec!["cargo test"]),
            ("cd a && cargo test; cargo test", vec!["cd", "cargo test"]),
            ("/usr/bin/python3 a.py", vec!["python3"]),
            ("git -C x status", vec!["git"]),
            ("git status", vec!["git status"]),
            ("npm run build", vec!["npm run"]),
            (
                "TOKEN=hunter2-hunter2 curl -H hunter2-hunter2 x",
                vec!["curl"],
            ),
            ("timeout 60 cargo test", vec!["cargo test"]),
            ("env TOKEN=hunter2-hunter2 A=$B npm run x", vec!["npm run"]),
            ("sudo -u hunter2-hunter2 ls", vec!["sudo"]),
            ("nohup", vec!["nohup"]),
            ("for i in a; do make $i | tee x; done", vec!["make", "tee"]),
            ("bash -c 'hunter2x'; xargs hunter2x", vec!["bash", "xargs"]),
            ("echo 'unclosed hunter2x", vec![]),
            ("mysql -phunter2-hunter2", vec!["mysql"]),
            ("gh hunter2-hunter2", vec!["gh"]),
            ("hunter2-hunter2", vec!["other"]),
            ("ghp_0123456789abcdefghijABCDEFGHIJ012345", vec!["other"]),
            ("$X", vec!["other"]),
            ("'=cmd|x' a", vec!["other"]),
            ("", vec![]),
        ] {
            let commands = classify(line, &surroundings).written;
            assert_eq!(of(&commands, &redactor), expected, "{line}");
        }
        let commands = classify(&many.join("; "), &surroundings).written;
        assert_eq!(of(&commands, &redactor).len(), MOST);
    }
}
