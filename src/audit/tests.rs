use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn entry(tool_id: &str) -> Entry {
    Entry {
        time: "2026-11-20T18:00:00.000Z".to_owned(),
        user: String::new(),
        session: "s".to_owned(),
        conversation: "default".to_owned(),
        exchange: "m1".to_owned(),
        tool_id: tool_id.to_owned(),
        tool: "bash".to_owned(),
        provider: "test".to_owned(),
        model: "m".to_owned(),
        level: "safe".to_owned(),
        decision: Decision::Run,
        decided_by: By::Policy,
        scope: None,
        hosts: Vec::new(),
        edited: false,
        status: "success".to_owned(),
        sandbox: None,
        exit_code: Some(0),
        duration_ms: 1,
        queued_ms: 0,
        command: None,
        path: None,
        input: Digested::of(b"{}"),
        output: Digested::of(b""),
    }
}

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn each_record_is_a_line_for_the_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/audit.log");
    let audit = Audit::open(&path, 1 << 20, 3).unwrap();
    for id in ["t1", "t2"] {
        audit.record(entry(id));
    }
    audit.flush();
    let found = lines(&path);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["toolId"], "t1");
    assert_eq!(found[0]["decidedBy"], "policy");
    assert_eq!(
        found[0]["output"]["sha256"],
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

#[test]
fn a_restart_goes_on_where_it_was_also_after_half_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    fs::write(&path, "{\"time\":\"be").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    for id in ["t1", "t2"] {
        let audit = Audit::open(&path, 1 << 20, 3).unwrap();
        audit.record(entry(id));
        audit.flush();
    }
    let text = fs::read_to_string(&path).unwrap();
    let ids: Vec<bool> = text.lines().map(|line| line.contains("toolId")).collect();
    assert_eq!(ids, [false, true, true], "{text}");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn long_files_are_put_aside_and_so_many_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let audit = Audit::open(&path, 1_000, 2).unwrap();
    for number in 0..12 {
        audit.record(entry(&format!("t{number}")));
    }
    audit.flush();
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["audit.log", "audit.log.1", "audit.log.2"]);
    let newest = lines(&path).pop().unwrap();
    assert_eq!(newest["toolId"], "t11");
    for name in names {
        let path = folder.path().join(name);
        assert!(fs::metadata(&path).unwrap().len() <= 1_000);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        lines(&path);
    }
}

#[test]
fn a_file_that_was_moved_away_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let audit = Audit::open(&path, 1 << 20, 2).unwrap();
    audit.record(entry("t1"));
    audit.flush();
    fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    audit.record(entry("t2"));
    audit.flush();
    assert_eq!(lines(&path)[0]["toolId"], "t2");
}

#[test]
fn a_full_disk_is_said_once() {
    let audit = Audit::open(Path::new("/dev/full"), 1 << 20, 2).unwrap();
    for number in 0..5 {
        audit.record(entry(&format!("t{number}")));
    }
    audit.flush();
    let news = audit.news().unwrap();
    assert!(news.contains("No space left"), "{news}");
    assert_eq!(audit.news(), None);
}

#[test]
fn a_gap_is_marked_when_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let audit = Audit::open(&path, 1 << 20, 2).unwrap();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    audit.record(entry("t1"));
    audit.record(entry("t2"));
    audit.flush();
    assert!(audit.news().is_some());
    fs::remove_dir(&path).unwrap();
    audit.record(entry("t3"));
    audit.record(entry("t4"));
    audit.flush();
    let found = lines(&path);
    assert_eq!(found[0]["lost"], 2);
    let ids: Vec<_> = found[1..]
        .iter()
        .map(|line| line["toolId"].clone())
        .collect();
    assert_eq!(ids, ["t3", "t4"]);
    assert_eq!(audit.news(), None);
}

#[test]
fn what_others_prepared_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "").unwrap();
    symlink(at("file"), at("link")).unwrap();
    fs::write(at("one"), "").unwrap();
    fs::hard_link(at("one"), at("two")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status();
    assert!(made.unwrap().success());
    for name in ["link", "one", "folder", "pipe", "file/below"] {
        assert!(Audit::open(&at(name), 1 << 20, 2).is_err(), "{name}");
    }
}

#[test]
fn names_that_others_chose_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let audit = Audit::open(&path, 1 << 20, 2).unwrap();
    audit.record(Entry {
        tool: "ü".repeat(5_000),
        conversation: "c\n\"".repeat(5_000),
        ..entry("t1")
    });
    audit.flush();
    let line = &lines(&path)[0];
    assert_eq!(line["tool"], "ü".repeat(64));
    assert!(line["conversation"].as_str().unwrap().len() <= 128);
}

#[test]
fn without_a_file_nothing_happens() {
    let audit = Audit::default();
    assert!(!audit.is_on());
    audit.record(entry("t1"));
    audit.flush();
    assert_eq!(audit.news(), None);
}
