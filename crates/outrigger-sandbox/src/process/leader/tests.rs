use std::process::Stdio;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;

use super::*;

/// Notes what it is told, and whether the group's first process was then one that had ended and was not reaped.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<(&'static str, Unreaped)>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unreaped {
    Running,
    Ended,
    Reaped,
}

fn look(child: Pid) -> Unreaped {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(child), options) {
        Ok(None) => Unreaped::Running,
        Ok(Some(_)) => Unreaped::Ended,
        Err(_) => Unreaped::Reaped,
    }
}

impl Register for Notes {
    fn add(&self, group: Pid) {
        self.0.lock().push(("add", look(group)));
    }

    fn remove(&self, group: Pid) {
        self.0.lock().push(("remove", look(group)));
    }
}

fn start(line: &str) -> (Leader, Arc<Notes>, Pid) {
    let notes = Arc::new(Notes::default());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line]).stdout(Stdio::piped());
    let leader = Leader::start(&mut shell, Arc::clone(&notes) as _).unwrap();
    let number = leader.group.unwrap();
    (leader, notes, number)
}

/// Reads until no process has the pipe any more.
async fn rest(stdout: Option<ChildStdout>) -> String {
    let mut text = String::new();
    stdout.unwrap().read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_number_is_forgotten_before_it_may_be_another_ones() {
    let (mut leader, notes, number) = start("sleep 6000 & exit 3");
    let (_, stdout, _) = leader.pipes();
    assert_eq!(leader.wait().await.unwrap().code(), Some(3));
    // It is the last time that it was to be seen.
    assert_eq!(look(number), Unreaped::Reaped);
    let [added, removed] = *notes.0.lock().as_slice() else {
        panic!("{notes:?}");
    };
    assert_eq!((added.0, removed), ("add", ("remove", Unreaped::Ended)));
    assert_ne!(added.1, Unreaped::Reaped);
    // What it left in its group has ended, too.
    assert_eq!(rest(stdout).await, "");
    assert_eq!(leader.wait().await.unwrap().code(), Some(3));
    // Nobody is sent anything, whoever has the number now.
    leader.signal(Signal::KILL);
    drop(leader);
    assert_eq!(notes.0.lock().len(), 2);
}

#[tokio::test]
async fn waiting_may_be_given_up_and_begun_again() {
    let (mut leader, notes, _) = start("exec sleep 6000");
    let waited = futures::poll!(std::pin::pin!(leader.wait()));
    assert!(waited.is_pending());
    leader.signal(Signal::TERM);
    let status = leader.wait().await.unwrap();
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    assert_eq!(signal, Some(Signal::TERM.as_raw()));
    assert_eq!(
        notes.0.lock().last().copied(),
        Some(("remove", Unreaped::Ended))
    );
}

#[tokio::test]
async fn nothing_is_left_of_a_group_whose_owner_is_gone() {
    let (mut leader, notes, _) = start("sleep 6000 & echo there; wait");
    let (_, stdout, _) = leader.pipes();
    let mut stdout = stdout.unwrap();
    let mut line = [0; 6];
    stdout.read_exact(&mut line).await.unwrap();
    drop(leader);
    let removed = notes.0.lock().last().copied().unwrap();
    assert!(
        removed.0 == "remove" && removed.1 != Unreaped::Reaped,
        "{removed:?}"
    );
    assert_eq!(rest(Some(stdout)).await, "");
}
