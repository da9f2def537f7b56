//! Connections out of a pod: made by the daemon, where they may be made at all.
//!
//! The tests run in a network of their own, where 203.0.113.0/24 is another machine: what listens there is this process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::{Command as System, Stdio};
use std::sync::{Arc, Mutex};

use outrigger_sandbox::{
    Command, HostAnswer, HostQuestion, IdRange, Mode, Network, Pod, Ports, Sandbox, Settings,
};

use crate::support::{
    World, as_ordinary_user, folder, in_pod, is_own_process, output, own_process,
};

/// Makes other machines of addresses of this one, and goes on as another program.
const OTHER_MACHINES: &str = include_str!("../../../../fixtures/other-machines.pl");

/// Runs a test once more in a network of its own.
fn in_own_network(test: &str) {
    in_own_network_of(test, &["--user", "--map-root-user"]);
}

/// The same in a user namespace of its own, or with what the machine's root may.
fn in_own_network_of(test: &str, user: &[&str]) {
    let place = folder();
    let resolver = place.path().join("resolv.conf");
    std::fs::write(
        &resolver,
        "options timeout:1 attempts:1\nnameserver 203.0.113.53\n",
    )
    .unwrap();
    let program = own_process(test);
    let envs = program
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let output = System::new("unshare")
        .args(user)
        .args(["--net", "--mount", "sh", "-c"])
        .arg("mount --bind \"$0\" /etc/resolv.conf && exec perl -e \"$@\"")
        .arg(&resolver)
        .arg(OTHER_MACHINES)
        .arg(program.get_program())
        .args(program.get_args())
        .envs(envs)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(
        output.status.success() && text[0].contains("1 passed"),
        "{}",
        text.join("\n")
    );
}

/// Answers each line that comes in with itself in capitals.
fn shouting(address: &str) -> u16 {
    shouts(TcpListener::bind(address).unwrap())
}

fn shouting_at(address: &str, port: u16) {
    shouts(TcpListener::bind((address, port)).unwrap());
}

fn shouts(listener: TcpListener) -> u16 {
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
                    (&stream)
                        .write_all(line.to_uppercase().as_bytes())
                        .unwrap_or_default();
                    line.clear();
                }
            });
        }
    });
    port
}

/// Answers each question for a name with 203.0.113.7, but with other addresses where they are the first label, such as in
/// `10-0-0-7.example`, and the second question for a name that begins with `rebound` with 127.0.0.1; returns the names.
fn name_server() -> Arc<Mutex<Vec<String>>> {
    let socket = UdpSocket::bind("203.0.113.53:53").unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut question = [0; 512];
        let mut was_asked = false;
        while let Ok((length, from)) = socket.recv_from(&mut question) {
            let end = 12 + question[12..length].iter().position(|it| *it == 0).unwrap() + 5;
            let name = String::from_utf8_lossy(&question[13..end - 5])
                .replace(|it: char| it.is_control(), ".");
            let is_v4 = question[end - 3] == 1;
            seen.lock().unwrap().push(name.clone());
            let may_rebind = is_v4 && name.starts_with("rebound");
            let is_rebound = may_rebind && std::mem::replace(&mut was_asked, true);
            let mut answer = question[..2].to_vec();
            answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0]);
            answer.extend(&question[12..end]);
            if is_v4 {
                let numbers = name.split('.').next().unwrap().split('-');
                let numbers: Vec<u8> = numbers.filter_map(|it| it.parse().ok()).collect();
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4]);
                let usual = match is_rebound {
                    true => [127, 0, 0, 1],
                    false => [203, 0, 113, 7],
                };
                answer.extend(<[u8; 4]>::try_from(numbers).unwrap_or(usual));
            }
            socket.send_to(&answer, from).unwrap();
        }
    });
    asked
}

fn with(world: &World, pod: &Pod, network: Network, line: &str) -> Command {
    let mut command = in_pod(world, pod, line);
    command.network = network;
    command
}

fn block_on(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(test);
}

const SAY: &str = "say() { exec 3<>/dev/tcp/$1/$2 && echo \"$3\" >&3 && head -1 <&3; }; ";

#[test]
fn connections_out_are_made_where_they_may_be() {
    const NAME: &str = "outgoing::connections_out_are_made_where_they_may_be";
    if !is_own_process() {
        return in_own_network(NAME);
    }
    block_on(async {
        let (world, names) = (World::new(), name_server());
        let sandbox = world.sandbox(Mode::Full);
        let pod = sandbox.pod();
        let port = shouting("203.0.113.7:0");
        let other = shouting("203.0.113.7:0");
        let (host, own) = (shouting("127.0.0.1:0"), shouting("198.51.100.7:0"));
        let ports = || Network::Outgoing(Ports::Only(vec![port, host, own]));
        let perl = format!(
            "perl -MIO::Socket::IP -e 'my $s = IO::Socket::IP->new(PeerHost => \"203.0.113.7\", PeerPort => {port}, Timeout => 20) or die $@; print $s \"slow\\n\"; print scalar <$s>'"
        );
        // A socket that has an address already.
        let bound = format!(
            "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(LocalPort => 4711, PeerAddr => \"203.0.113.7\", PeerPort => {port}) or die $@; print $s \"bound\\n\"; print scalar <$s>'"
        );
        // It stays where it is connected to, and nothing is connected elsewhere.
        let twice = format!(
            "perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0); sub to {{ connect($s, sockaddr_in(shift, inet_aton(\"203.0.113.7\"))) or print \"$!\\n\" }} to({port}); to({port}); syswrite $s, \"first\\n\"; sysread $s, my $said, 99; print $said'"
        );
        let local = "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1:0\"); IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $s->sockport) and print \"local\"'";
        let unix = "perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Listen => 1, Local => \"/tmp/s\"); IO::Socket::UNIX->new(Peer => \"/tmp/s\") and print \"unix\"'";
        for (line, expected) in [
            (format!("{SAY} say 203.0.113.7 {port} hello"), "HELLO\n"),
            (
                format!("{SAY} say ::ffff:203.0.113.7 {port} mapped"),
                "MAPPED\n",
            ),
            (format!("{SAY} say shop.example {port} named"), "NAMED\n"),
            (perl, "SLOW\n"),
            (local.to_owned(), "local"),
            (unix.to_owned(), "unix"),
            (bound, "BOUND\n"),
            (twice, "already connected\nFIRST\n"),
            (
                format!("{SAY} say 203.0.113.7 {other} hello"),
                "Permission denied",
            ),
            (
                format!("{SAY} say 127.0.0.1 {host} hello"),
                "Connection refused",
            ),
            (
                format!("{SAY} say 198.51.100.7 {own} hello"),
                "Permission denied",
            ),
            (
                format!("{SAY} say 169.254.169.254 {port} hello"),
                "Permission denied",
            ),
        ] {
            let said = output(&sandbox, &with(&world, &pod, ports(), &line)).await;
            assert!(said.contains(expected), "{line}: {said}");
        }
        assert!(
            names.lock().unwrap().contains(&"shop.example".to_owned()),
            "{names:?}"
        );
        if std::path::Path::new("/proc/net/if_inet6").exists() {
            let six = shouting("[::]:0");
            let line = format!("{SAY} say 2001:db8::7 {six} six; say ::1 {six} hello");
            let command = with(
                &world,
                &pod,
                Network::Outgoing(Ports::Only(vec![six])),
                &line,
            );
            let said = output(&sandbox, &command).await;
            assert!(
                said.starts_with("SIX\n") && said.contains("refused"),
                "{said}"
            );
        } else {
            eprintln!("*** SKIPPED: connections out over IPv6: the kernel has none ***");
        }
        // Any port.
        let line = format!("{SAY} say 203.0.113.7 {other} any");
        let any = with(&world, &pod, Network::Outgoing(Ports::Any), &line);
        assert_eq!(output(&sandbox, &any).await, "ANY\n");
    });
}

#[test]
fn a_command_without_the_network_finds_no_way_beside_one_that_has_it() {
    const NAME: &str =
        "outgoing::a_command_without_the_network_finds_no_way_beside_one_that_has_it";
    if !is_own_process() {
        return in_own_network(NAME);
    }
    block_on(async {
        let (world, names) = (World::new(), name_server());
        let sandbox = world.sandbox(Mode::Full);
        let pod = sandbox.pod();
        let port = shouting("203.0.113.7:0");
        let line = format!(
            "{SAY} say shop.example {port} hello; exec 4<>/dev/tcp/203.0.113.7/{port}; cat <&4"
        );
        let network = Network::Outgoing(Ports::Only(vec![port]));
        let mut online = sandbox
            .spawn(&with(&world, &pod, network, &line))
            .await
            .unwrap();
        let mut lines = {
            use tokio::io::AsyncBufReadExt;
            tokio::io::BufReader::new(online.stdout.take().unwrap()).lines()
        };
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("HELLO"));
        for (line, expected) in [
            (format!("{SAY} say 203.0.113.7 {port} hello"), "Network is unreachable"),
            ("getent hosts other.example || echo none".to_owned(), "none"),
            // The relays are there, and nothing that they say comes from outside.
            ("perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(PeerAddr => \"127.0.0.1:53\", Proto => \"udp\"); print $s pack(\"nnnnnn\", 7, 256, 1, 0, 0, 0), pack(\"C/aC/aCnn\", \"secret\", \"example\", 0, 1, 1) and print \"asked\"'".to_owned(), "asked"),
            ("for p in $(awk '$4 == \"0A\" {print substr($2, 10)}' /proc/net/tcp); do timeout 20 cat < /dev/tcp/127.0.0.1/$((16#$p)) && echo closed; done".to_owned(), "closed\n"),
        ] {
            let said = output(&sandbox, &with(&world, &pod, Network::Off, &line)).await;
            assert!(said.contains(expected), "{line}: {said}");
        }
        online.kill();
        online.wait().await;
        let line = format!("{SAY} say last.example {port} again");
        let again = with(&world, &pod, Network::Outgoing(Ports::Any), &line);
        assert_eq!(output(&sandbox, &again).await, "AGAIN\n");
        let names = names.lock().unwrap();
        assert!(names.contains(&"last.example".to_owned()), "{names:?}");
        assert!(
            !names
                .iter()
                .any(|name| name.contains("secret") || name.contains("other")),
            "{names:?}"
        );
    });
}

#[test]
fn hosts_are_decided_by_name() {
    const NAME: &str = "outgoing::hosts_are_decided_by_name";
    if !is_own_process() {
        return in_own_network(NAME);
    }
    block_on(hosts_by_name(None));
}

#[test]
fn they_are_for_a_user_of_the_system_too() {
    const NAME: &str = "outgoing::they_are_for_a_user_of_the_system_too";
    if !is_own_process() {
        match rustix::process::geteuid().is_root() {
            true => in_own_network_of(NAME, &[]),
            false => eprintln!("*** not tried: users of the system, which takes root"),
        }
        return;
    }
    block_on(hosts_by_name(Some("1200000-1265535".parse().unwrap())));
}

async fn hosts_by_name(user_ids: Option<IdRange>) {
    let (world, names) = (World::new(), name_server());
    let sandbox = Sandbox::new(Settings {
        user_ids,
        ..world.settings(Mode::Full)
    });
    let pod = sandbox.pod_of("anna");
    let port = shouting("203.0.113.7:0");
    let host = shouting("127.0.0.1:0");
    for private in ["10.0.0.7", "10.0.0.9"] {
        shouting_at(private, port);
    }
    shouting_at("127.0.0.1", port);
    let (sender, mut questions) = tokio::sync::mpsc::channel::<HostQuestion>(1);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let why_not = Arc::new(Mutex::new(Vec::new()));
    let unreached = Arc::clone(&why_not);
    tokio::spawn(async move {
        while let Some(question) = questions.recv().await {
            let host = question.host.to_string();
            seen.lock().unwrap().push(host.clone());
            let is_allowed = !host.starts_with("evil") && host != "203.0.113.7";
            let answer = match is_allowed {
                true => HostAnswer::Allowed {
                    private: vec!["10.0.0.9".parse().unwrap()],
                },
                false => HostAnswer::Refused,
            };
            question.answer.send(answer).unwrap();
            let unreached = Arc::clone(&unreached);
            tokio::spawn(async move {
                if let Ok(why) = question.no_address.await {
                    unreached.lock().unwrap().push(format!("{host}: {why}"));
                }
            });
        }
    });
    // A resolver that asks from a socket that it did not connect, and another name than its neighbour's.
    let unconnected = format!(
        "perl -MSocket -e 'socket(my $s, PF_INET, SOCK_DGRAM, 0); send($s, pack(\"nnnnnn C/aC/aCnn\", 7, 256, 1, 0, 0, 0, \"plain\", \"example\", 0, 1, 1), 0, sockaddr_in(53, inet_aton(\"127.0.0.1\"))); recv($s, my $a, 512, 0); my $to = substr($a, -4); socket(my $t, PF_INET, SOCK_STREAM, 0); connect($t, sockaddr_in({port}, $to)) or die $!; syswrite $t, \"sent\\n\"; print scalar <$t>'"
    );
    for (line, expected) in [
            (format!("{SAY} say shop.example {port} named"), "NAMED\n"),
            (format!("{SAY} say SHOP.example. {port} again"), "AGAIN\n"),
            (unconnected, "SENT\n"),
            (format!("{SAY} say evil.example {port} hello"), "Permission denied"),
            (format!("{SAY} say 203.0.113.7 {port} hello"), "Permission denied"),
            (format!("{SAY} say shop.example {} hello", port ^ 1), "Permission denied"),
            (format!("{SAY} say 10-0-0-7.example {port} hello"), "Permission denied"),
            (format!("{SAY} say 10-0-0-9.example {port} listed"), "LISTED\n"),
            (format!("{SAY} say 127-0-0-1.example {host} hello"), "Permission denied"),
            // The same name leads elsewhere the second time.
            (format!("{SAY} say rebound.example {port} first; say rebound.example {port} second"), "FIRST\n"),
            (format!("{SAY} say rebound.example {port} third"), "Permission denied"),
            (format!("{SAY} say 169-254-169-254.example {port} hello"), "Permission denied"),
            (format!("{SAY} say 198.18.77.7 {port} hello"), "198.18.77.7"),
            ("perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => \"127.0.0.1:53\", Proto => \"tcp\") or print $@'".to_owned(), "Connection refused"),
        ] {
            let network = Network::Outgoing(Ports::Only(vec![port, host]));
            let mut command = with(&world, &pod, network, &line);
            command.hosts = Some(sender.clone());
            command.user = Some("anna".to_owned());
            let said = output(&sandbox, &command).await;
            assert!(said.contains(expected), "{line}: {said}");
        }
    let why_not = why_not.lock().unwrap();
    for expected in [
        "10-0-0-7.example: it leads to 10.0.0.7, an address of a private network",
        "127-0-0-1.example: it leads to 127.0.0.1, to which no command connects",
        "169-254-169-254.example: it leads to 169.254.169.254, to which no",
        "rebound.example: it leads to 127.0.0.1, to which no",
    ] {
        assert!(
            why_not.iter().any(|it| it.starts_with(expected)),
            "{expected}: {why_not:?}"
        );
    }
    let names = names.lock().unwrap();
    // No server heard of the name before somebody decided.
    assert!(
        !names.iter().any(|name| name.starts_with("evil")),
        "{names:?}"
    );
    assert!(names.contains(&"shop.example".to_owned()), "{names:?}");
    let asked = asked.lock().unwrap();
    for host in [
        "shop.example",
        "plain.example",
        "evil.example",
        "203.0.113.7",
    ] {
        assert!(asked.iter().any(|it| it == host), "{host}: {asked:?}");
    }
}

#[test]
fn hosts_cannot_be_decided_about_without_namespaces() {
    block_on(async {
        let world = World::new();
        let sandbox = world.sandbox(Mode::Fallback);
        let port = shouting("127.0.0.1:0");
        let line = format!("{SAY} say 127.0.0.1 {port} hello");
        let network = Network::Outgoing(Ports::Any);
        let mut command = with(&world, &sandbox.pod(), network, &line);
        assert_eq!(output(&sandbox, &command).await, "HELLO\n");
        command.hosts = Some(tokio::sync::mpsc::channel(1).0);
        let said = output(&sandbox, &command).await;
        assert!(!said.contains("HELLO"), "{said}");
    });
}

#[test]
fn connections_end_with_their_command_and_are_bounded() {
    const NAME: &str = "outgoing::connections_end_with_their_command_and_are_bounded";
    if !is_own_process() {
        return in_own_network(NAME);
    }
    block_on(async {
        let world = World::new();
        let sandbox = world.sandbox(Mode::Full);
        let pod = sandbox.pod();
        let listener = TcpListener::bind("203.0.113.7:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let held = std::thread::spawn(move || {
            let mut streams: Vec<_> = listener.incoming().take(256).flatten().collect();
            // Each ends when the command does.
            for stream in &mut streams {
                assert_eq!(stream.read(&mut [0]).unwrap_or_default(), 0);
            }
            streams.len()
        });
        let line = format!(
            "perl -MIO::Socket::INET -e 'my @s; for (1..300) {{ my $s = IO::Socket::INET->new(PeerAddr => \"203.0.113.7\", PeerPort => {port}) or last; push @s, $s }} print scalar @s, \" $!\"'"
        );
        let network = || Network::Outgoing(Ports::Only(vec![port]));
        assert_eq!(
            output(&sandbox, &with(&world, &pod, network(), &line)).await,
            "256 No buffer space available"
        );
        assert_eq!(held.join().unwrap(), 256);
        // Sockets that would send their first bytes with the connection, and send none.
        let port = shouting("203.0.113.7:0");
        let network = || Network::Outgoing(Ports::Only(vec![port]));
        let line = format!(
            "perl -MSocket -e 'for (1..256) {{ socket(my $s, PF_INET, SOCK_STREAM, 0); setsockopt($s, 6, 30, 1); setsockopt($s, 6, 34, 1); connect($s, sockaddr_in({port}, inet_aton(\"203.0.113.7\"))) or die $! }} print \"done\"'"
        );
        assert_eq!(
            output(&sandbox, &with(&world, &pod, network(), &line)).await,
            "done"
        );
        let line = format!("{SAY} say 203.0.113.7 {port} free");
        assert_eq!(
            output(&sandbox, &with(&world, &pod, network(), &line)).await,
            "FREE\n"
        );
    });
}

#[test]
fn outgoing_as_an_ordinary_user() {
    as_ordinary_user(&[
        "outgoing::connections_out_are_made_where_they_may_be",
        "outgoing::a_command_without_the_network_finds_no_way_beside_one_that_has_it",
        "outgoing::hosts_are_decided_by_name",
        "outgoing::hosts_cannot_be_decided_about_without_namespaces",
        "outgoing::connections_end_with_their_command_and_are_bounded",
    ]);
}
