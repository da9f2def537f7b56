//! With the network on: the allowed ports, and not the daemon's own. Without it: the loopback that is reported.

use std::net::TcpListener;

use outrigger_sandbox::{Mode, Network, Ports};

use crate::support::{World, as_ordinary_user, run};

#[tokio::test]
async fn only_the_named_ports_can_be_reached_and_never_the_daemons() {
    let world = World::new();
    let named = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    for mode in [Mode::Full, Mode::Fallback] {
        let sandbox = world.sandbox(mode);
        sandbox.keep_off_port(port(&own));
        for (listener, reached) in [(&named, true), (&other, false), (&own, false)] {
            let mut command =
                world.bash(&format!("echo x > /dev/tcp/127.0.0.1/{}", port(listener)));
            command.network = Network::Host(Ports::Only(vec![port(&named), port(&own)]));
            let output = run(&sandbox, &command).await;
            assert_eq!(output.exit.code == Some(0), reached, "{mode} {output:?}");
        }
        let mut listening = world.bash("perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0) or die; bind($s, sockaddr_in(0, INADDR_LOOPBACK)) or die $!'");
        listening.network = Network::Host(Ports::Only(vec![443]));
        let output = run(&sandbox, &listening).await;
        assert!(
            output.stderr.text.contains("Permission denied"),
            "{mode} {output:?}"
        );
    }
}

#[tokio::test]
async fn names_can_be_looked_up_with_the_network_on() {
    let world = World::new();
    for mode in [Mode::Full, Mode::Fallback] {
        let mut command = world.bash(
            "getent hosts localhost > /dev/null && cat /etc/resolv.conf > /dev/null && echo found",
        );
        command.network = Network::Host(Ports::Only(vec![443]));
        let output = run(&world.sandbox(mode), &command).await;
        assert_eq!(output.stdout.text, "found\n", "{mode} {output:?}");
    }
}

/// Says whether it could make a socket, listen on loopback, and reach a port that somebody listens on outside.
const LOOK: &str = r#"
use Socket;
$| = 1;
socket(my $server, PF_INET, SOCK_STREAM, 0) or print("no socket\n"), exit;
bind($server, sockaddr_in(0, INADDR_LOOPBACK)) or die "bind $!";
listen($server, 1) or die "listen $!";
socket(my $client, PF_INET, SOCK_STREAM, 0) or die "socket $!";
connect($client, getsockname($server)) or die "connect $!";
socket(my $outward, PF_INET, SOCK_STREAM, 0) or die "socket $!";
my $reached = connect($outward, sockaddr_in($ARGV[0], INADDR_LOOPBACK));
print $reached ? "reached\n" : "listens\n";
"#;

#[tokio::test]
async fn the_loopback_that_is_reported_is_the_one_that_a_command_has() {
    let world = World::new();
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits, Mode::None] {
        let sandbox = world.sandbox(mode);
        let reported = sandbox.report().await.loopback;
        let command = world.bash(&format!("perl -e '{LOOK}' {port}"));
        let output = run(&sandbox, &command).await;
        let has = match output.stdout.text.as_str() {
            "listens\n" => "own",
            "no socket\n" => "none",
            "reached\n" => "machine",
            _ => panic!("{mode} {output:?}"),
        };
        assert_eq!(has, reported, "{mode} {output:?}");
        let expected = match mode {
            Mode::Full => "own",
            Mode::Fallback | Mode::Limits => "none",
            Mode::Unverified | Mode::None => "machine",
        };
        assert_eq!(has, expected, "{mode}");
    }
}

#[test]
fn loopback_as_an_ordinary_user() {
    as_ordinary_user(&["network::the_loopback_that_is_reported_is_the_one_that_a_command_has"]);
}
