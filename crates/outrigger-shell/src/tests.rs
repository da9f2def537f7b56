use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use outrigger_sandbox::deny;
use proptest::prelude::*;

use super::{Classification, Pattern, PatternError, Secrets, Surroundings, classify};
use crate::DangerLevel;

#[cfg(unix)]
mod bash_agrees;
mod disguise;
mod edges;
mod properties;
mod specified;

/// The list of the program.
pub(super) fn secrets() -> &'static Secrets {
    static SECRETS: LazyLock<Secrets> =
        LazyLock::new(|| Secrets::new(deny::names_of_secrets(), deny::is_shared, deny::fold));
    &SECRETS
}

pub(super) fn judge(line: &str) -> Classification {
    judge_where(line, None)
}

/// Returns each row where `OUTRIGGER_FULL_TESTS` is set, as `.ci/full` does, and one of four else.
pub(super) fn some<T>(rows: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let all = std::env::var_os("OUTRIGGER_FULL_TESTS").is_some();
    rows.step_by(if all { 1 } else { 4 })
}

fn judge_where(line: &str, unhidden: Option<&dyn Fn(&Path) -> bool>) -> Classification {
    classify(
        line,
        &Surroundings {
            project_root: Path::new("/home/ada/project"),
            central_root: Path::new("/home/ada/outrigger/projects/project"),
            home: Some(Path::new("/home/ada")),
            trusted_program: &|_| true,
            unhidden,
            secrets: secrets(),
        },
    )
}

fn level(name: &str) -> DangerLevel {
    match name {
        "safe" => DangerLevel::Safe,
        "warning" => DangerLevel::Warning,
        "dangerous" => DangerLevel::Dangerous,
        "blocked" => DangerLevel::Blocked,
        other => panic!("unknown level {other}"),
    }
}

/// Reads `level TAB command TAB why` rows; `␤` stands for a newline.
fn rows(text: &str) -> Vec<(DangerLevel, String)> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut fields = line.split('\t');
            let name = fields.next().unwrap();
            let command = fields.next().unwrap().replace('␤', "\n");
            (level(name), command)
        })
        .collect()
}

/// Asserts that no row is judged milder, and at most one in twenty stricter.
fn check_corpus(text: &str) {
    let rows = rows(text);
    let mut milder = Vec::new();
    let mut stricter = Vec::new();
    for (wanted, command) in &rows {
        let given = judge(command);
        let line = format!(
            "{wanted:?} -> {:?}: {command:?} {:?}",
            given.level,
            given.reasons()
        );
        match given.level.cmp(wanted) {
            std::cmp::Ordering::Less => milder.push(line),
            std::cmp::Ordering::Greater => stricter.push(line),
            std::cmp::Ordering::Equal => {}
        }
    }
    assert!(
        milder.is_empty(),
        "milder than the table:\n{}\nstricter:\n{}",
        milder.join("\n"),
        stricter.join("\n")
    );
    println!(
        "{} rows, {} stricter:\n{}",
        rows.len(),
        stricter.len(),
        stricter.join("\n")
    );
    assert!(
        stricter.len() * 20 <= rows.len(),
        "too strict:\n{}",
        stricter.join("\n")
    );
}

#[test]
fn shared_corpus() {
    let path = std::env::var_os("OUTRIGGER_CLASSIFIER_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/classifier_corpus.tsv"),
        PathBuf::from,
    );
    match std::fs::read_to_string(&path) {
        Ok(text) => check_corpus(&text),
        Err(error) => eprintln!(
            "*** SKIPPED: shared_corpus: {}: {error} ***",
            path.display()
        ),
    }
}

#[test]
fn own_corpus() {
    check_corpus(include_str!("../fixtures/lines.tsv"));
}

/// Each of these was refused once, though nothing in it is run that was downloaded or decoded.
#[test]
fn a_program_whose_path_is_made_is_asked_for() {
    for line in [
        "./dist/$(uname -s | tr A-Z a-z)/tool --version",
        r#""$HOME/.cache/$(hostname | tr -d .)/bin/lint" src"#,
        "$(curl -s x)/bin/tool",
        ".exe",
        "./.exe -v",
        r"ls | grep -E '(\.exe|\.dll)' (",
    ] {
        let given = judge(line);
        assert_eq!(given.level, DangerLevel::Warning, "{line}: {given:?}");
    }
    for line in ["curl -o b/tool x; b/tool", "x=$(curl x); $x", "sudo.exe id"] {
        assert_eq!(judge(line).level, DangerLevel::Blocked, "{line}");
    }
}

/// The second reader's scanner once read foreign memory at such a character behind a brace.
#[test]
fn distant_characters_are_letters() {
    for c in ['\u{e9}', '\u{20ac}', '\u{1f980}', '\u{e0001}', '\u{10ffff}'] {
        for line in [
            format!("echo {{{c}"),
            format!("echo {{{c}..2}}"),
            format!("echo ${{{c}}}"),
        ] {
            assert_ne!(judge(&line).level, DangerLevel::Blocked, "{line}");
        }
    }
    assert_eq!(judge("echo caf\u{e9}").level, DangerLevel::Safe);
}

#[test]
fn names_of_secrets_are_folded() {
    for (file, secret) in [
        (".env", true),
        (".ENV", true),
        ("\u{17f}ecret.txt", true),
        (".\u{200b}env", true),
        (".env.example", false),
        ("notes.txt", false),
    ] {
        let level = judge(&format!("cat {file}")).level;
        assert_eq!(level > DangerLevel::Safe, secret, "{file}");
    }
}

#[test]
fn limits_fall_upwards() {
    let long = format!("echo {}", "a".repeat(super::MAX_LENGTH));
    assert_eq!(judge(&long).level, DangerLevel::Warning);
    assert_eq!(judge(&"ls;".repeat(65)).level, DangerLevel::Warning);
    assert_eq!(judge(&"ls;".repeat(64)).level, DangerLevel::Safe);
    let endless = "a".repeat(super::MAX_READ + 1);
    assert_eq!(judge(&endless).level, DangerLevel::Blocked);
    let deep = format!("{}ls{}", "(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(judge(&deep).level, DangerLevel::Warning);
}

#[test]
fn a_program_must_be_trusted() {
    let surroundings = Surroundings {
        project_root: Path::new("/p"),
        central_root: Path::new("/c"),
        home: None,
        trusted_program: &|name| name == "cat",
        unhidden: None,
        secrets: secrets(),
    };
    assert_eq!(classify("cat a", &surroundings).level, DangerLevel::Safe);
    assert_eq!(classify("echo a", &surroundings).level, DangerLevel::Safe);
    assert_eq!(classify("ls a", &surroundings).level, DangerLevel::Warning);
    assert_eq!(
        classify("timeout 5 cat a", &surroundings).level,
        DangerLevel::Warning
    );
    assert_eq!(
        classify("rm -rf ~", &surroundings).level,
        DangerLevel::Blocked
    );
}

/// Judges a line where nothing hides files for secrets.
fn judge_unhidden(line: &str) -> Classification {
    let shows = |path: &Path| path.ends_with("src") || path.ends_with("leads-away");
    judge_where(line, Some(&shows))
}

#[test]
fn where_nothing_hides_secrets_only_named_files_are_read_safely() {
    for line in [
        "grep -r K",
        "grep -rn '' .",
        "grep -R S",
        "grep -nR S src",
        "grep --recurs S",
        "grep -d recurse S",
        "grep --directories=recurse S",
        "egrep -ri S",
        "timeout 5 grep -r K",
        "find . -type f | xargs cat",
        "find . -type f -print0 | xargs -0 grep K",
        "ls -a | xargs cat",
        "ls -a | xargs head -n 5",
        "rg K",
        "diff -r a b",
        "diff src b",
        "diff --from-file=a b",
        "cat *",
        "cat src/*.rs",
        "head -n1 */*",
        "cat $X",
        "wc *",
        "wc -l < src",
        "cat leads-away",
        "cd docs && cat leads-away",
        "git diff",
        "git diff HEAD -- src",
    ] {
        assert_eq!(judge(line).level, DangerLevel::Safe, "{line}");
        let unhidden = judge_unhidden(line);
        assert_eq!(unhidden.level, DangerLevel::Warning, "{line}");
        assert_eq!(unhidden.findings[0].rule, "secret", "{line}");
    }
    for line in [
        "cat README.md",
        "grep -n K README.md docs/a.md",
        "grep 'a.*b' README.md",
        "ls -la src *",
        "find . -name '*.rs'",
        "find src -type f | wc -l",
        "test -d src",
        "du -sh *",
        "echo $X *",
        "cat README.md | grep K | sort",
        "git status",
        "git log --oneline -- src",
        "git diff --cached",
        "git show HEAD~1 --stat",
        "cd src && ls",
    ] {
        assert_eq!(judge_unhidden(line).level, DangerLevel::Safe, "{line}");
    }
}

#[test]
fn commands_inside_wrappers_and_strings_are_listed() {
    let pattern = Pattern::parse("git push **").unwrap();
    for line in [
        "git push",
        "ls; git push -u origin main",
        "env A=1 git push",
        "bash -c 'git push origin'",
        "echo $(git push)",
        "echo 'git push' | sh",
        "timeout 5 nice git push",
    ] {
        let commands = judge(line).commands;
        assert!(
            commands.iter().any(|command| pattern.matches(command)),
            "{line}"
        );
    }
}

#[test]
fn patterns() {
    let matching = |pattern: &str, line: &str| {
        let pattern = Pattern::parse(pattern).unwrap();
        judge(line)
            .commands
            .iter()
            .all(|command| pattern.matches(command))
    };
    for (pattern, line, wanted) in [
        ("cargo test", "cargo test", true),
        ("cargo test", "cargo test x", false),
        ("cargo test **", "cargo test", true),
        ("cargo test **", "cargo test --lib x", true),
        ("cargo test **", "cargo 'te'st", true),
        ("cargo test **", "cargo $X", false),
        ("cargo test **", "cargo test $X", true),
        ("cargo test *", "cargo test x", true),
        ("cargo test *", "cargo test", false),
        ("cargo test *", "cargo test $X", false),
        ("cargo test **", "cargo test; rm x", false),
        ("echo 'a b'", "echo a\\ b", true),
        ("**", "anything at all", true),
    ] {
        assert_eq!(matching(pattern, line), wanted, "{pattern} / {line}");
    }
    let error = |text: &str| Pattern::parse(text).unwrap_err();
    assert_eq!(error(""), PatternError::Empty);
    assert_eq!(error("a ** b"), PatternError::RestNotLast);
    assert_eq!(error("a $x"), PatternError::NotLiteral("$x".to_owned()));
    assert_eq!(error("a; b"), PatternError::NotLiteral("a; b".to_owned()));
}

#[test]
fn findings_show_what_is_there() {
    let verdict = judge("rm -rf \u{202e}src\u{200b}; sudo id");
    let reasons = verdict.reasons();
    assert_eq!(reasons[0], "`sudo id` changes privileges");
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("\\u{202e}src\\u{200b}"))
    );
    assert!(
        reasons
            .iter()
            .all(|reason| !reason.contains(['\u{202e}', '\u{200b}']))
    );
}

proptest! {
    #[test]
    fn random_text_never_panics(line in any::<String>()) {
        judge(&line);
    }

    #[test]
    fn random_shell_text_never_panics(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "'", "\"", "`", "$(", "$((", "))", ")", "(", "{", "}", "${", "$", "\\", "\n", ";", ";;", "&", "|", "<", ">",
            "<<", "<<<", "<(", ">&", "EOF", "[[", "]]", "if", "then", "fi", "for", "in", "do", "done", "case", "esac",
            "while", "function", "a", "rm -rf", "sudo", "xargs", "env", "=", "[", "]", "*", "~", "-c", "bash", " ", " ", " ", "\0", "é", "#", "!", ",", "..", "1",
            "find", "-exec", "{}", "sed", "awk", "git", "-I", "echo", "printf", "%", "eval", "$@", "$IFS",
        ]), 0..60)
    ) {
        judge(&pieces.concat());
    }
}
/// Each of these once took time or memory out of proportion, or recursion without end.
#[test]
fn hostile_lines_end() {
    for piece in [
        "xargs ",
        "env ",
        "a=$a$a;",
        "{a,b}",
        "coproc ",
        "npm -a ",
        "docker -a ",
        "$a ",
        "$((",
        "`",
        "<<a ",
        "sudo 1; ",
        "x=$(ls);",
        "[[ a ",
        "case a in ",
        "'a'",
        "a;",
        "if ",
        "${a:-",
        "f()",
        "!",
        "{ ",
        "<(",
        "cat .e* ",
        "a|",
        "echo ",
        "find . -exec ",
        "sh -c ",
        "for a in b; do ",
    ] {
        judge(&format!("a=x; {}", piece.repeat(1_000 / piece.len())));
    }
    let many = format!("x='{}'; {}", "a ".repeat(1_000), "$x ".repeat(100));
    assert_eq!(judge(&many).level, DangerLevel::Blocked);
    judge(&format!(
        "echo {} | xargs -I% echo {}",
        "a ".repeat(500),
        "% ".repeat(500)
    ));
}

/// Compared with the rest of the text, the words of this are 10^10 steps.
#[test]
fn many_words_are_read_once() {
    const WORDS: usize = 1 << 18;
    let text = "a ".repeat(WORDS);
    let mut reader = super::plain::Reader::new(&text);
    let words = std::iter::from_fn(|| {
        reader.skip_blanks();
        reader.word().unwrap()
    });
    assert_eq!(words.filter(|word| word.source == "a").count(), WORDS);
}

/// Any other corpus, named by the environment; for trying one without adding it.
#[test]
fn another_corpus() {
    if let Some(path) = std::env::var_os("OUTRIGGER_OTHER_CORPUS") {
        check_corpus(&std::fs::read_to_string(path).unwrap());
    }
}

#[test]
fn a_project_is_no_system_directory_wherever_it_lies() {
    let level = |root: &str, line: &str| {
        let surroundings = Surroundings {
            project_root: Path::new(root),
            central_root: Path::new("/var/lib/outrigger/app"),
            home: Some(Path::new("/home/ada")),
            trusted_program: &|_| true,
            unhidden: None,
            secrets: secrets(),
        };
        classify(line, &surroundings).level
    };
    for root in [
        "/var/www/app",
        "/usr/src/app",
        "/opt/app",
        "/root/app",
        "/etc/app",
    ] {
        for line in [
            "touch a",
            "echo x > a",
            "mkdir -p b/c",
            "echo x > /var/lib/outrigger/app/a",
        ] {
            let here = level("/home/ada/app", line);
            assert_eq!(level(root, line), here, "{root}: {line}");
            assert!(here <= DangerLevel::Warning, "{line}");
        }
        assert_eq!(
            level(root, "rm -rf build"),
            DangerLevel::Dangerous,
            "{root}"
        );
        for line in [
            "echo x > /var/log/a",
            "echo x > /etc/a",
            "rm -rf /usr/bin",
            "rm -rf /var",
        ] {
            assert!(
                level(root, line) >= DangerLevel::Dangerous,
                "{root}: {line}"
            );
        }
    }
    // A folder at the top is the system's, whoever works in it.
    for root in ["/", "/etc", "/var"] {
        assert!(
            level(root, "echo x > /etc/passwd") >= DangerLevel::Dangerous,
            "{root}"
        );
    }
}
