//! The daemon is killed while it writes, and runs without rights it may not count on.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// How many writers are killed; `OUTRIGGER_KILLS` asks for more.
const KILLS: usize = 20;

/// Names the folder to the process that is to be killed.
const CHILD: &str = "OUTRIGGER_TEST_WRITER";

/// Starts this test program again with one test and one variable.
fn again(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            &format!("{}::{test}", module_path!().split_once("::").unwrap().1),
        ])
        .args(["--nocapture", "--test-threads=1"])
        .env(CHILD, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn open(folder: &Path) -> Roots {
    Roots::open(&folder.join("proj"), &folder.join("central"), None).unwrap()
}

fn write_for_ever(folder: &Path) -> ! {
    let roots = open(folder);
    let contents = ["a".repeat(100_000), "b".repeat(100_000)];
    let target = roots.map("file", Access::Write).unwrap();
    loop {
        for content in &contents {
            let located = roots.locate(&target, Access::Write).unwrap();
            located.replace(content.as_bytes()).unwrap();
        }
    }
}

#[test]
fn a_killed_writer_leaves_the_old_or_the_new_file() {
    if let Some(folder) = std::env::var_os(CHILD) {
        write_for_ever(Path::new(&folder));
    }
    let kills = std::env::var("OUTRIGGER_KILLS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(KILLS);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("proj/file");
    fs::create_dir_all(dir.path().join("proj")).unwrap();
    let mut spin = 0_u64;
    for round in 0..kills {
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let mut child = again("a_killed_writer_leaves_the_old_or_the_new_file", dir.path())
            .spawn()
            .unwrap();
        // Killed at a point of its work that differs from round to round: after the first write
        // was seen, and a number of further looks at the file.
        while fs::read(&file).unwrap() == b"old" {
            assert!(child.try_wait().unwrap().is_none(), "the writer ended");
        }
        for _ in 0..(round * 7) % 50 {
            spin += fs::metadata(&file).unwrap().len();
        }
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        let content = fs::read(&file).unwrap();
        let first = content[0];
        assert!(content.len() == 100_000 && content.iter().all(|byte| *byte == first));
        let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o640, "round {round}");
        open(dir.path()).sweep();
        let left: Vec<_> = fs::read_dir(dir.path().join("proj")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
    assert!(spin > 0);
}

#[test]
fn sweeping_spares_a_file_that_is_being_written() {
    let world = World::new();
    let dir = &world.roots.project.dir;
    fs::write(world.at("proj/.outrigger-0123456789abcdef.tmp"), "stale").unwrap();
    let busy = fs::File::create(world.at("proj/sub/.outrigger-1123456789abcdef.tmp")).unwrap();
    rustix::fs::flock(&busy, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(world.roots.sweep(), 1);
    assert!(!dir.exists(".outrigger-0123456789abcdef.tmp"));
    // Not by closing it alone: a program that another test starts at this moment has it open, too, until it is executed.
    rustix::fs::flock(&busy, rustix::fs::FlockOperation::Unlock).unwrap();
    drop(busy);
    assert_eq!(world.roots.sweep(), 1);
}

fn act_without_rights(folder: &Path) {
    // As the daemon does: what is in /proc/self then belongs to root.
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable).unwrap();
    let roots = open(folder);
    let read = |path: &str| {
        let target = roots.map(path, Access::Read)?;
        roots.locate(&target, Access::Read)?.read()
    };
    let write = |path: &str| {
        let target = roots.map(path, Access::Write)?;
        roots.locate(&target, Access::Write)?.replace(b"new")
    };
    assert_eq!(read("sub/../link/file").unwrap(), b"old");
    write("sub/file").unwrap();
    write("made/by/it").unwrap();
    let refused = |result: Result<(), PathError>| match result {
        Err(PathError::Failed(text)) => assert!(text.contains("no permission"), "{text}"),
        other => panic!("{other:?}"),
    };
    refused(read("unreadable").map(drop));
    refused(read("closed/file").map(drop));
    refused(write("read-only"));
    refused(write("foreign/new"));
    // What is in a closed folder of settings is not known; that it is there is.
    let settings = roots.settings().changed_since(&Settings::default());
    assert!(settings.iter().any(|it| it == ".vscode"), "{settings:?}");
    // One of several names of a file: whose it is decides.
    let own = fs::metadata(folder.join("proj/twin")).unwrap().uid()
        == rustix::process::geteuid().as_raw();
    match read("hard") {
        Ok(_) => assert!(own, "another user's file was read"),
        Err(PathError::Failed(_)) => assert!(!own, "the user's own file was refused"),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn an_ordinary_user_gets_told_what_it_may_not() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return act_without_rights(Path::new(&folder));
    }
    const USER: u32 = 54321;
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    let mode = |path: &str, mode| {
        fs::set_permissions(at(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    for folder in [
        "central",
        "proj/sub",
        "proj/closed",
        "proj/.vscode",
        "proj/foreign",
    ] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for file in ["sub/file", "unreadable", "read-only", "closed/file", "twin"] {
        fs::write(at("proj").join(file), "old").unwrap();
    }
    symlink(at("proj/sub"), at("proj/link")).unwrap();
    fs::hard_link(at("proj/twin"), at("proj/hard")).unwrap();
    let mut child = again("an_ordinary_user_gets_told_what_it_may_not", dir.path());
    // Rights mean nothing to root, so it becomes somebody else; others are somebody already.
    if rustix::process::geteuid().is_root() {
        for path in [
            "",
            "central",
            "proj",
            "proj/sub",
            "proj/sub/file",
            "proj/unreadable",
            "proj/read-only",
        ] {
            std::os::unix::fs::chown(at(path), Some(USER), Some(USER)).unwrap();
        }
        // The program itself may lie where only root looks. What another test starts while this process writes a file
        // holds it open for a moment, and no program runs that is open for writing. So `cp` writes it.
        let copy = at("program");
        let copied = Command::new("cp")
            .arg(std::env::current_exe().unwrap())
            .arg(&copy)
            .status();
        assert!(copied.unwrap().success());
        let arguments: Vec<_> = child.get_args().map(ToOwned::to_owned).collect();
        child = Command::new(copy);
        child
            .args(arguments)
            .env(CHILD, dir.path())
            .uid(USER)
            .gid(USER);
    }
    mode("proj/unreadable", 0o000);
    mode("proj/read-only", 0o444);
    mode("proj/closed", 0o000);
    mode("proj/.vscode", 0o000);
    mode("proj/foreign", 0o555);
    let output = child.output().unwrap();
    mode("proj/closed", 0o755);
    mode("proj/.vscode", 0o755);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
