use std::path::{Path, PathBuf};

use super::{Classification, Surroundings, classify};
use crate::message::DangerLevel;

fn judge(line: &str) -> Classification {
    classify(
        line,
        &Surroundings {
            project_root: Path::new("/home/ada/project"),
            central_root: Path::new("/home/ada/outrigger/projects/project"),
            home: Some(Path::new("/home/ada")),
            trusted_program: &|_| true,
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
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/classifier_corpus.tsv"),
        PathBuf::from,
    );
    match std::fs::read_to_string(&path) {
        Ok(text) => check_corpus(&text),
        Err(error) => eprintln!("skipped: {}: {error}", path.display()),
    }
}

#[test]
fn own_corpus() {
    check_corpus(include_str!("../../fixtures/classifier.tsv"));
}
