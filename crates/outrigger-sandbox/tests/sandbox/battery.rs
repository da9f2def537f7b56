//! Attempts to get out. Each must succeed without the sandbox, or its failure inside would show nothing.

use outrigger_sandbox::{Mode, Network, Ports};

use crate::attempts::{Attempt, Targets, on_files, on_processes, on_sockets};
use crate::support::{World, as_ordinary_user, in_pod, ready, run};

async fn escapes(attempt: &Attempt, mode: Mode, how: How) -> (bool, String) {
    let mut targets = Targets::new();
    let sandbox = targets.world.sandbox(mode);
    assert_eq!(sandbox.report().await.mode, mode);
    let line = targets.aim(attempt);
    let mut command = targets.world.bash(&line);
    match how {
        How::Alone => {}
        How::Ready => {
            let pod = sandbox.pod();
            run(&sandbox, &in_pod(&targets.world, &pod, ":")).await;
            ready(&pod).await;
            command.pod = Some(pod);
        }
        How::Online => {
            command.pod = Some(sandbox.pod());
            command.network = Network::Outgoing(Ports::Any);
        }
    }
    command.hidden = vec![targets.project(".env"), targets.project("missing")];
    let output = run(&sandbox, &command).await;
    let all = output.stdout.text + &output.stderr.text;
    ((attempt.escaped)(&mut targets, &all), all)
}

/// How an attempt is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Alone,
    /// As a second command of a pod, in what was made ready after the first one. It did not know what would be hidden.
    Ready,
    /// In a pod, with the network.
    Online,
}

pub(crate) async fn judge(attempts: Vec<Attempt>) {
    let mut wrong = Vec::new();
    for attempt in attempts {
        let (escaped, output) = escapes(&attempt, Mode::None, How::Alone).await;
        if !escaped {
            wrong.push(format!(
                "{}: fails even without a sandbox: {output}",
                attempt.name
            ));
        }
        for (mode, how) in [
            (Mode::Limits, How::Alone),
            (Mode::Fallback, How::Alone),
            (Mode::Full, How::Alone),
            (Mode::Full, How::Ready),
            (Mode::Full, How::Online),
        ] {
            let (escaped, output) = escapes(&attempt, mode, how).await;
            if escaped && mode >= attempt.stopped_from {
                wrong.push(format!("{} gets through in {mode}: {output}", attempt.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn files() {
    judge(on_files()).await;
}

#[tokio::test]
async fn processes() {
    judge(on_processes()).await;
}

#[tokio::test]
async fn sockets() {
    judge(on_sockets()).await;
}

/// Root is the harder case for files, an ordinary user for namespaces: what holds for one need not for the other.
#[test]
fn all_of_it_as_an_ordinary_user() {
    as_ordinary_user(&[
        "battery::files",
        "battery::processes",
        "battery::sockets",
        "longer::further_attempts",
        "longer::calls_off_the_list_are_refused",
        "control::output_and_exit_code_come_back_in_every_mode",
        "control::what_a_command_leaves_running_dies_with_it_and_holds_nobody_up",
        "repositories::with_write_access_settings_and_hooks_stay_what_they_are",
        "work::ordinary_work_goes_on_in_every_mode",
    ]);
}

/// The filter itself answers, not a kernel that happens to lack the family.
#[tokio::test]
async fn families_off_the_list_are_refused() {
    const NOT_PERMITTED: i32 = 1;
    let world = World::new();
    // PACKET, ALG, VSOCK, and one there is not; INET, INET6 and NETLINK where the network is the machine's.
    let (everywhere, shared) = ([17, 38, 40, 45], [2, 10, 16]);
    for mode in [Mode::Limits, Mode::Fallback, Mode::Full] {
        let shared = shared.into_iter().filter(|_| mode < Mode::Full);
        for family in everywhere.into_iter().chain(shared) {
            let line = format!("perl -e 'socket(my $s, {family}, 2, 0); print $! + 0'");
            let sandbox = world.sandbox(mode);
            let offline = world.bash(&line);
            let mut online = in_pod(&world, &sandbox.pod(), &line);
            online.network = Network::Outgoing(Ports::Any);
            for command in [offline, online] {
                // In the weaker modes it has the machine's network then.
                if command.network != Network::Off && mode < Mode::Full {
                    continue;
                }
                let output = run(&sandbox, &command).await;
                assert_eq!(
                    output.stdout.text,
                    NOT_PERMITTED.to_string(),
                    "{family} in {mode}, {:?}: {output:?}",
                    command.network
                );
            }
        }
    }
}
