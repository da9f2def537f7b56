//! Loopback of a command's own, and what the commands of a pod share.

use std::net::TcpListener;

use outrigger_sandbox::{Mode, Network, Ports};
use rustix::fs::StatVfsMountFlags;
use tokio::io::{AsyncBufReadExt, AsyncReadExt};

use crate::support::{World, as_ordinary_user, eventually, finish, in_pod, is_empty, output, run};

/// Listens on a port of loopback and says which, answers one client.
const SERVER: &str = "perl -MIO::Socket::INET -e '$|=1; my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1:0\") or die $!; print $s->sockport, \"\\n\"; my $c = $s->accept; print $c \"hello\\n\"; close $c; sleep 100'";

#[tokio::test]
async fn a_command_has_a_loopback_of_its_own_and_no_way_out() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let connect = |address: &str, port: u16| {
        format!(
            "perl -MIO::Socket::IP -e 'IO::Socket::IP->new(PeerHost => \"{address}\", PeerPort => {port}) or print $!'"
        )
    };
    let listen = |family: &str, address: &str, kind: &str| {
        format!(
            "perl -MSocket=:all -e 'socket(my $s, {family}, {kind}, 0) or die \"socket $!\"; my (undef, @a) = getaddrinfo(\"{address}\", 0, {{flags => AI_NUMERICHOST}}); bind($s, $a[0]{{addr}}) or die \"bind $!\"; {kind} == SOCK_STREAM and (listen($s, 5) or die \"listen $!\"); socket(my $c, {family}, {kind}, 0); connect($c, getsockname($s)) or die \"connect $!\"; print \"done\"'"
        )
    };
    let low = |address: &str, port: u16| {
        format!(
            "perl -MIO::Socket::IP -e 'IO::Socket::IP->new(Listen => 1, LocalHost => \"{address}\", LocalPort => {port}) or die $!; print \"done\"'"
        )
    };
    let mut cases = vec![
        (listen("PF_INET", "127.0.0.1", "SOCK_STREAM"), "done"),
        (listen("PF_INET", "127.0.0.1", "SOCK_DGRAM"), "done"),
        (listen("PF_INET6", "::1", "SOCK_STREAM"), "done"),
        (listen("PF_INET", "0.0.0.0", "SOCK_STREAM"), "done"),
        (
            "getent ahosts localhost | grep -q STREAM && echo found".to_owned(),
            "found\n",
        ),
        (connect("127.0.0.1", port), "Connection refused"),
        (connect("192.0.2.1", 80), "Network is unreachable"),
        (connect("169.254.169.254", 80), "Network is unreachable"),
        (connect("2001:db8::1", 80), "Network is unreachable"),
        (
            "perl -MSocket -e 'socket(my $s, PF_INET, SOCK_RAW, 1) or print $!'".to_owned(),
            "Operation not permitted",
        ),
        (
            "perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 132) or print $!'".to_owned(),
            "Operation not permitted",
        ),
        (
            "perl -MSocket -e 'socket(my $s, 17, SOCK_RAW, 0) or print $!'".to_owned(),
            "Operation not permitted",
        ),
        (
            "perl -MSocket -e 'socket(my $s, 40, SOCK_STREAM, 0) or print $!'".to_owned(),
            "Operation not permitted",
        ),
        (
            "perl -MSocket -e 'socket(my $s, 16, SOCK_RAW, 12) or print $!'".to_owned(),
            "Operation not permitted",
        ),
    ];
    let system = rustix::fs::statvfs("/proc/sys").unwrap();
    match system.f_flag.contains(StatVfsMountFlags::RDONLY) {
        true => eprintln!("*** SKIPPED: ports below 1024: /proc/sys cannot be written here ***"),
        false => cases.extend([(low("127.0.0.1", 80), "done"), (low("::1", 443), "done")]),
    }
    for (line, expected) in cases {
        assert_eq!(
            output(&sandbox, &world.bash(&line)).await,
            expected,
            "{line}"
        );
    }
}

#[tokio::test]
async fn commands_of_a_pod_share_loopback_home_and_temporary_files_and_others_do_not() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    let (pod, other) = (sandbox.pod(), sandbox.pod());
    let mut server = sandbox.spawn(&in_pod(&world, &pod, SERVER)).await.unwrap();
    let mut lines = tokio::io::BufReader::new(server.stdout.take().unwrap()).lines();
    let port = lines.next_line().await.unwrap().expect("a port");
    let connect = format!("cat < /dev/tcp/127.0.0.1/{port}");
    let refused = run(&sandbox, &in_pod(&world, &other, &connect)).await;
    assert!(
        refused.stderr.text.contains("Connection refused"),
        "{refused:?}"
    );
    let refused = run(&sandbox, &world.bash(&connect)).await;
    assert!(
        refused.stderr.text.contains("Connection refused"),
        "{refused:?}"
    );
    assert_eq!(
        output(&sandbox, &in_pod(&world, &pod, &connect)).await,
        "hello\n"
    );
    server.kill();
    server.wait().await;

    let home = world.home();
    let leave = "echo a > ~/kept; echo b > /tmp/kept; echo c > /var/tmp/kept; echo d > $TMPDIR/too; echo e > $XDG_RUNTIME_DIR/run";
    assert_eq!(output(&sandbox, &in_pod(&world, &pod, leave)).await, "");
    let look = "cat ~/kept /tmp/kept /var/tmp/kept $TMPDIR/too $XDG_RUNTIME_DIR/run; ls -A ~";
    assert_eq!(
        output(&sandbox, &in_pod(&world, &pod, look)).await,
        "a\nb\nc\nd\ne\nkept\nproject\n"
    );
    assert_eq!(
        output(&sandbox, &in_pod(&world, &other, "ls -A ~; ls -A /tmp")).await,
        "project\n.runtime\n"
    );
    assert!(!home.join("kept").exists());
    // Neither can be reached by its path on the machine.
    let around = format!("ls {}", world.temporary().display());
    assert!(
        output(&sandbox, &in_pod(&world, &other, &around))
            .await
            .contains("No such file")
    );
    drop((pod, other));
    eventually("the folders are gone", || is_empty(&world.temporary()));
}

#[tokio::test]
async fn below_full_mode_a_pod_is_folders() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Fallback);
    let (pod, other) = (sandbox.pod(), sandbox.pod());
    assert_eq!(
        output(
            &sandbox,
            &in_pod(
                &world,
                &pod,
                "echo a > ~/kept; echo b > $TMPDIR/kept; echo $HOME"
            )
        )
        .await
        .trim(),
        std::fs::read_dir(world.temporary())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
            .join("home")
            .display()
            .to_string()
    );
    let home = output(
        &sandbox,
        &in_pod(&world, &pod, "cat ~/kept $TMPDIR/kept; echo $HOME"),
    )
    .await;
    let home = home.strip_prefix("a\nb\n").expect("both files").trim();
    let denied = output(&sandbox, &in_pod(&world, &other, &format!("ls {home}"))).await;
    assert!(denied.contains("Permission denied"), "{denied}");
    drop((pod, other));
    eventually("the folders are gone", || is_empty(&world.temporary()));
}

#[tokio::test]
async fn where_nothing_is_hidden_a_pod_is_a_folder_for_temporary_files() {
    for mode in [Mode::Limits, Mode::None] {
        let world = World::new();
        let sandbox = world.sandbox(mode);
        let (pod, other) = (sandbox.pod(), sandbox.pod());
        let leave = "echo a > $TMPDIR/kept; echo b > $XDG_RUNTIME_DIR/kept; echo $HOME";
        let home = output(&sandbox, &in_pod(&world, &pod, leave)).await;
        assert_eq!(home.trim(), world.home().display().to_string(), "{mode}");
        let look = "cat $TMPDIR/kept $XDG_RUNTIME_DIR/kept";
        let kept = output(&sandbox, &in_pod(&world, &pod, look)).await;
        assert_eq!(kept, "a\nb\n", "{mode}");
        let others = "ls $TMPDIR $XDG_RUNTIME_DIR; [[ $TMPDIR != $HOME* ]] && echo own";
        let others = output(&sandbox, &in_pod(&world, &other, others)).await;
        assert!(
            !others.contains("kept") && others.ends_with("own\n"),
            "{mode}: {others}"
        );
        // A command that removes them has the next one begin with empty ones.
        output(&sandbox, &in_pod(&world, &pod, "rm -rf $TMPDIR")).await;
        let anew = "ls -A $TMPDIR $XDG_RUNTIME_DIR; touch $(mktemp) && echo made";
        let anew = output(&sandbox, &in_pod(&world, &pod, anew)).await;
        assert!(
            anew.ends_with("made\n") && !anew.contains("kept"),
            "{mode}: {anew}"
        );
        drop((pod, other));
        eventually("the folders are gone", || is_empty(&world.temporary()));
    }
}

#[tokio::test]
async fn what_a_killed_daemon_left_is_removed_and_what_is_in_use_stays() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    let left = world.temporary().join("outrigger-pod-0123456789abcdef");
    std::fs::create_dir_all(left.join("home/deep")).unwrap();
    let other = world.temporary().join("outrigger-pod-fedcba9876543210");
    std::fs::create_dir_all(&other).unwrap();
    let another = world.temporary().join("another");
    std::fs::create_dir(&another).unwrap();
    let pod = sandbox.pod();
    assert_eq!(
        output(&sandbox, &in_pod(&world, &pod, "echo a > ~/kept")).await,
        ""
    );
    sandbox.sweep().await;
    assert!(!left.exists() && !other.exists());
    assert_eq!(
        output(&sandbox, &in_pod(&world, &pod, "cat ~/kept")).await,
        "a\n"
    );
    assert!(another.exists());
}

#[tokio::test]
async fn a_command_of_a_pod_ends_with_its_processes() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    let pod = sandbox.pod();
    let mut process = sandbox
        .spawn(&in_pod(
            &world,
            &pod,
            "setsid sleep 1000 & echo started; exit 3",
        ))
        .await
        .unwrap();
    let ended = finish(&mut process).await;
    assert_eq!(
        (ended.exit.code, ended.stdout.text.as_str()),
        (Some(3), "started\n")
    );
    // Its own processes only: another command of the pod sees none.
    assert_eq!(
        output(
            &sandbox,
            &in_pod(&world, &pod, "grep -h -e sleep -e grep /proc/[0-9]*/comm")
        )
        .await,
        "grep\n"
    );
}

/// Says `hello` to whoever connects, at an address of IPv4 or IPv6; prints its port.
fn server(address: &str) -> String {
    format!(
        "perl -MIO::Socket::IP -e '$| = 1; my $s = IO::Socket::IP->new(Listen => 5, LocalHost => \"{address}\", LocalPort => 0) or die $@; print $s->sockport, \"\\n\"; while (my $c = $s->accept) {{ print $c \"hello\\n\" }}'"
    )
}

#[tokio::test]
async fn ports_on_which_a_command_listens_are_told_and_lead_to_it() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    let (pod, other) = (sandbox.pod(), sandbox.pod());
    let nobody = pod.connect(1).await.unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::NotConnected);
    let mut addresses = vec!["127.0.0.1", "0.0.0.0"];
    match std::path::Path::new("/proc/net/if_inet6").exists() {
        true => addresses.push("::1"),
        false => eprintln!("*** SKIPPED: a server on ::1: the kernel has no IPv6 ***"),
    }
    for address in addresses {
        let (sender, mut listening) = tokio::sync::mpsc::channel(1);
        let mut command = in_pod(&world, &pod, &server(address));
        command.listening = Some(sender);
        let mut running = sandbox.spawn(&command).await.unwrap();
        command.listening = None;
        let mut lines = tokio::io::BufReader::new(running.stdout.take().unwrap()).lines();
        let port = lines.next_line().await.unwrap().expect("a port");
        let told = listening.recv().await.expect("the port");
        assert_eq!(told.to_string(), port, "{address}");
        // More than a helper makes sockets at a time.
        for _ in 0..20 {
            let mut stream = pod.connect(told).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, "hello\n", "{address}");
        }
        assert_eq!(output(&sandbox, &in_pod(&world, &other, "true")).await, "");
        let elsewhere = other.connect(told).await.unwrap_err();
        assert_eq!(elsewhere.kind(), std::io::ErrorKind::ConnectionRefused);
        running.kill();
        running.wait().await;
        let gone = pod.connect(told).await.unwrap_err();
        assert_eq!(gone.kind(), std::io::ErrorKind::ConnectionRefused);
        assert_eq!(listening.recv().await, None, "{address}");
    }
}

#[tokio::test]
async fn a_call_of_listen_does_what_it_does_elsewhere() {
    let world = World::new();
    let sandbox = world.sandbox(Mode::Full);
    let pod = sandbox.pod();
    for (line, expected, ports) in [
        // Sockets that are not TCP's, and what is none.
        (
            "socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un(\"/tmp/s\")); print listen(S, 1)",
            "1",
            0,
        ),
        (
            "socket(S, PF_INET, SOCK_DGRAM, 0); listen(S, 1) or print $!",
            "Operation not supported",
            0,
        ),
        (
            "open(S, \"<\", \"/dev/null\"); listen(S, 1) or print $!",
            "Socket operation on non-socket",
            0,
        ),
        ("syscall(50, 77, 1); print $!", "Bad file descriptor", 0),
        // Twice, and without an address: the kernel gives it one.
        (
            "socket(S, PF_INET, SOCK_STREAM, 0); print listen(S, 1), listen(S, 5)",
            "11",
            1,
        ),
        // Where another one listens.
        (
            "for my $s (*S, *T) { socket($s, PF_INET, SOCK_STREAM, 0); setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1); bind($s, sockaddr_in(4711, INADDR_ANY)) or print $! } listen(S, 1); listen(T, 1) or print $!",
            "Address already in use",
            1,
        ),
    ] {
        let (sender, mut listening) = tokio::sync::mpsc::channel(8);
        let mut command = in_pod(&world, &pod, &format!("perl -MSocket -e '{line}'"));
        command.listening = Some(sender);
        let said = output(&sandbox, &command).await;
        assert_eq!(said, expected, "{line}");
        drop(command);
        let mut told = std::collections::BTreeSet::new();
        while let Some(port) = listening.recv().await {
            told.insert(port);
        }
        assert_eq!(told.len(), ports, "{line}: {told:?}");
    }
}

/// A client would ask the proxy of the machine for what listens on the command's own loopback.
#[tokio::test]
async fn what_has_a_network_of_its_own_knows_no_proxy_of_the_machine() {
    let world = World::new();
    let proxy = "http://127.0.0.1:7890";
    for (mode, network, knows) in [
        (Mode::Full, Network::Off, false),
        (Mode::Full, Network::Outgoing(Ports::Any), false),
        (Mode::Full, Network::Host(Ports::Any), true),
        (Mode::Fallback, Network::Outgoing(Ports::Any), true),
    ] {
        let sandbox = world.sandbox(mode);
        let mut command = in_pod(&world, &sandbox.pod(), "env | grep -ci _proxy=");
        command.network = network.clone();
        for name in ["HTTPS_PROXY", "all_proxy"] {
            command.env.insert(name.to_owned(), proxy.to_owned());
        }
        let said = output(&sandbox, &command).await;
        let expected = if knows { "2\n" } else { "0\n" };
        assert_eq!(said, expected, "{mode} {network:?}");
    }
}

#[test]
fn pods_as_an_ordinary_user() {
    as_ordinary_user(&[
        "pods::a_command_has_a_loopback_of_its_own_and_no_way_out",
        "pods::commands_of_a_pod_share_loopback_home_and_temporary_files_and_others_do_not",
        "pods::below_full_mode_a_pod_is_folders",
        "pods::what_a_killed_daemon_left_is_removed_and_what_is_in_use_stays",
        "pods::a_command_of_a_pod_ends_with_its_processes",
        "pods::ports_on_which_a_command_listens_are_told_and_lead_to_it",
        "pods::a_call_of_listen_does_what_it_does_elsewhere",
        "pods::what_has_a_network_of_its_own_knows_no_proxy_of_the_machine",
    ]);
}
