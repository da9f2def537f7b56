//! What the folders of a pod may hold together.

use outrigger_sandbox::{Command, Mode, Overfull, Pod, Sandbox, Settings};

use crate::support::{Output, World, as_ordinary_user, eventually, finish, is_empty};

const LIMIT: u64 = 16 << 20;

struct Place {
    world: World,
    sandbox: Sandbox,
    pod: Pod,
}

impl Place {
    fn new(mode: Mode) -> Self {
        let world = World::new();
        let sandbox = Sandbox::new(Settings {
            pod_bytes: LIMIT,
            ..world.settings(mode)
        });
        let pod = sandbox.pod();
        Self {
            world,
            sandbox,
            pod,
        }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.world.bash(line);
        command.pod = Some(self.pod.clone());
        command
    }

    /// Waits until its folders are gone, which nobody but another process may be able to remove.
    fn end(self) {
        drop(self.pod);
        eventually("the folders are gone", || is_empty(&self.world.temporary()));
    }

    async fn run(&self, line: &str) -> (Output<()>, Option<Overfull>) {
        let mut process = self.sandbox.spawn(&self.command(line)).await.unwrap();
        let output = finish(&mut process).await;
        (output, process.overfull())
    }
}

#[tokio::test]
async fn a_writer_is_ended_and_what_makes_room_goes_on() {
    for mode in [Mode::Full, Mode::Fallback] {
        let place = Place::new(mode);
        let (output, overfull) = place
            .run("truncate -s 1G ~/sparse; head -c 8M /dev/zero > $TMPDIR/a")
            .await;
        assert_eq!((output.exit.code, overfull), (Some(0), None), "{mode}");
        // Both folders count together.
        let (output, overfull) = place.run("head -c 9M /dev/zero > ~/b; sleep 1000").await;
        let overfull = overfull.expect("too much");
        assert!(
            overfull.is_killed && overfull.limit == LIMIT,
            "{mode} {overfull:?}"
        );
        assert!(
            overfull.bytes.is_some_and(|bytes| bytes > LIMIT),
            "{mode} {overfull:?}"
        );
        assert_eq!(output.exit.code, None, "{mode}");
        // It is too full, and what adds nothing is none of its concern.
        let (output, overfull) = place.run("cat ~/b > /dev/null; echo read").await;
        let read = (output.stdout.text.as_str(), overfull);
        assert_eq!(read, ("read\n", None), "{mode}");
        let (_, overfull) = place.run("head -c 1M /dev/zero > ~/c; sleep 1000").await;
        assert!(
            overfull.is_some_and(|it| it.is_killed),
            "{mode} {overfull:?}"
        );
        let (output, overfull) = place.run("rm -f ~/b ~/c; echo freed").await;
        assert_eq!(
            (output.stdout.text.as_str(), overfull),
            ("freed\n", None),
            "{mode}"
        );
        let (output, overfull) = place.run("head -c 4M /dev/zero > ~/b; echo fits").await;
        assert_eq!(
            (output.stdout.text.as_str(), overfull),
            ("fits\n", None),
            "{mode}"
        );
        place.end();
    }
}

/// A command that has ended before anybody looked is told at least.
#[tokio::test]
async fn a_short_writer_reads_that_there_is_too_much() {
    let place = Place::new(Mode::Full);
    let (_, overfull) = place.run("head -c 17M /dev/zero > /var/tmp/a").await;
    assert!(overfull.is_some_and(|it| it.limit == LIMIT), "{overfull:?}");
    place.end();
}

/// Neither a closed folder nor deep ones hide what they hold.
#[tokio::test]
async fn nothing_is_hidden_from_the_count() {
    for line in [
        "mkdir ~/d; head -c 17M /dev/zero > ~/d/a; chmod 000 ~/d; sleep 1000",
        "cd; for i in $(seq 300); do mkdir d; cd d; done; head -c 17M /dev/zero > a; sleep 1000",
    ] {
        let place = Place::new(Mode::Full);
        let (_, overfull) = place.run(line).await;
        assert!(
            overfull.is_some_and(|it| it.is_killed),
            "{line} {overfull:?}"
        );
        place.end();
    }
}

#[test]
fn the_quota_as_an_ordinary_user() {
    as_ordinary_user(&[
        "quota::a_writer_is_ended_and_what_makes_room_goes_on",
        "quota::nothing_is_hidden_from_the_count",
    ]);
}
