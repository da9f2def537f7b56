//! With the network on: the allowed ports, and not the daemon's own.

use std::net::TcpListener;

use outrigger_sandbox::{Mode, Network, Ports};

use crate::support::{World, run};

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
