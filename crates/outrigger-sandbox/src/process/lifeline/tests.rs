//! With real processes: the lifeline is this program of tests, executed again for the one test that runs [`main`].

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};

use rustix::process::{getsid, kill_process};

use super::*;

const KILLED: Option<i32> = Some(Signal::KILL.as_raw());

/// Not a test by itself: with this argument it is the lifeline.
#[test]
fn as_a_program() {
    if std::env::args().any(|argument| argument == HELPER_ARGUMENT) {
        main();
    }
}

fn lifeline() -> Lifeline {
    let name = format!("{}::as_a_program", module_path!());
    let name = name.split_once("::").unwrap().1;
    let arguments = ["--quiet", "--exact", name].map(OsString::from);
    Lifeline::new(std::env::current_exe().unwrap(), arguments.into())
}

/// A group of two processes that would run for long.
struct Group(Child);

impl Group {
    fn start() -> Self {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "sleep 6000 & echo; wait"]);
        let started = shell.stdout(Stdio::piped()).process_group(0).spawn();
        let mut group = Self(started.unwrap());
        // The second one is there.
        let mut byte = [0];
        group
            .0
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut byte)
            .unwrap();
        group
    }

    fn number(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// Waits until the first process has ended, and returns by which signal; and until none has the pipe any more.
    fn end(&mut self) -> Option<i32> {
        let status = self.0.wait().unwrap();
        let mut rest = Vec::new();
        let mut stdout = self.0.stdout.take().unwrap();
        stdout.read_to_end(&mut rest).unwrap();
        status.signal()
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.runs() {
            kill_process_group(self.number(), Signal::KILL).unwrap();
            self.0.wait().unwrap();
        }
    }
}

/// What the daemon's death is to the lifeline; returns when that has ended. Its exit code is the tests', which cannot say any more
/// how they ended.
fn daemon_dies(lifeline: &Lifeline) {
    let Running(mut process) = lifeline.held.lock().running.take().unwrap();
    drop(process.stdin.take());
    process.wait().unwrap();
}

fn number_of(lifeline: &Lifeline) -> Pid {
    Pid::from_child(&lifeline.held.lock().running.as_ref().unwrap().0)
}

#[test]
fn lines_say_which_groups_there_are() {
    for (lines, expected) in [
        ("", &[][..]),
        ("+12\n+13\n", &[12, 13]),
        ("+12\n+13\n-12\n", &[13]),
        ("+12\n-12\n+12\n", &[12]),
        ("+12\n+12\n-12\n", &[]),
        ("-12\n+12\n", &[12]),
        ("+2147483647\n", &[2_147_483_647]),
        // What is no line of these.
        ("12\n+\n-\n\n*5\n+x\n+-5\n++5\n+ 5\n+5 \n+5\r\n+5.0\n", &[]),
        ("+2147483648\n+99999999999\n", &[]),
        // Every process of the user, or this one's own.
        ("+1\n+0\n+00001\n", &[]),
        // It was cut off.
        ("+12\n+13", &[12]),
        ("+12\n-12", &[12]),
        // Of one that is too long, no part is a line.
        ("xxxxxxxxxxxxxxxx+12\n+13\n", &[13]),
        ("+000000000000000000012\n+13\n", &[13]),
    ] {
        let mut groups: Vec<i32> = left(lines.as_bytes())
            .iter()
            .map(|group| group.as_raw_pid())
            .collect();
        groups.sort_unstable();
        assert_eq!(groups, expected, "{lines:?}");
    }
    let bytes = left(&b"\xff\xfe\n+\xff\n+12\n"[..]);
    assert_eq!(bytes.len(), 1);
}

#[test]
fn no_more_groups_are_noted_than_there_is_room_for() {
    let one_too_many = 2..=i32::try_from(MAX_GROUPS).unwrap() + 2;
    let lines: String = one_too_many.map(|group| format!("+{group}\n")).collect();
    assert_eq!(left(lines.as_bytes()).len(), MAX_GROUPS);
    let room = left(format!("{lines}-2\n+1000000\n").as_bytes());
    assert!(room.len() == MAX_GROUPS && room.contains(&Pid::from_raw(1_000_000).unwrap()));
}

#[test]
fn the_groups_that_are_left_end_with_the_daemon() {
    let lifeline = lifeline();
    lifeline.prepare();
    // They have nothing of the pipe, whose end would not come otherwise.
    let (mut left, mut removed) = (Group::start(), Group::start());
    lifeline.add(left.number());
    lifeline.add(removed.number());
    lifeline.remove(removed.number());
    daemon_dies(&lifeline);
    assert_eq!(left.end(), KILLED);
    assert!(removed.runs());
}

#[test]
fn nobody_reaches_it_by_the_terminal() {
    let lifeline = lifeline();
    lifeline.prepare();
    let number = number_of(&lifeline);
    assert_eq!(getsid(Some(number)).unwrap(), number);
    // One for the daemon's whole life.
    lifeline.prepare();
    let group = Group::start();
    lifeline.add(group.number());
    lifeline.remove(group.number());
    assert_eq!(number_of(&lifeline), number);
    daemon_dies(&lifeline);
}

#[test]
fn one_that_somebody_ended_is_replaced_and_knows_all_groups() {
    let lifeline = lifeline();
    lifeline.prepare();
    let (mut before, mut after, mut gone) = (Group::start(), Group::start(), Group::start());
    lifeline.add(before.number());
    lifeline.add(gone.number());
    let first = number_of(&lifeline);
    kill_process(first, Signal::KILL).unwrap();
    let mut held = lifeline.held.lock();
    held.running.as_mut().unwrap().0.wait().unwrap();
    drop(held);
    lifeline.remove(gone.number());
    lifeline.add(after.number());
    assert_ne!(number_of(&lifeline), first);
    daemon_dies(&lifeline);
    assert_eq!((before.end(), after.end()), (KILLED, KILLED));
    assert!(gone.runs());
}

#[test]
fn one_that_reads_no_more_is_replaced_and_kills_nothing_then() {
    let lifeline = lifeline();
    lifeline.prepare();
    let mut group = Group::start();
    lifeline.add(group.number());
    let first = number_of(&lifeline);
    kill_process(first, Signal::STOP).unwrap();
    // Until the pipe is full.
    while number_of(&lifeline) == first {
        lifeline.add(group.number());
    }
    assert!(group.runs());
    daemon_dies(&lifeline);
    assert_eq!(group.end(), KILLED);
}

#[test]
fn without_one_commands_are_counted_all_the_same() {
    for program in ["/bin/sh", "/no/such/program"] {
        let lifeline = Lifeline::new(program.into(), ["-c", ":"].map(OsString::from).into());
        lifeline.prepare();
        let mut group = Group::start();
        lifeline.add(group.number());
        assert!(lifeline.held.lock().running.is_none());
        lifeline.remove(group.number());
        assert!(group.runs() && lifeline.held.lock().groups.is_empty());
    }
}
