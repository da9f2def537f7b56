//! Ports of servers in the background: told of, and exposed on the machine's own loopback where a client asks for it.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

/// Answers each line with itself in capitals; listens where it is told.
const SERVER: &str = "use IO::Socket::INET; my $s = IO::Socket::INET->new(Listen => 9, ReuseAddr => 1, LocalAddr => $ARGV[0]) or die $@; while (my $c = $s->accept) { next if fork; print $c uc $_ while <$c>; exit }";

/// A daemon with `expose` as its setting, and a server of the conversation's on this address; `None` where there is no full
/// sandbox.
async fn serving(provider: &Provider, expose: &str, address: &str) -> Option<(Daemon, Client)> {
    serving_with(provider, expose, address, "10m").await
}

/// The same with a daemon whose sessions go on for so long without a client.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
async fn serving_with(
    provider: &Provider,
    expose: &str,
    address: &str,
    grace: &str,
) -> Option<(Daemon, Client)> {
    let more = json!({
        "chat": {"trust_level": "autonomous"},
        "session": {"resume_grace": grace},
        "tools": {"bash": {"expose": expose}},
    });
    let daemon = Daemon::with(provider, more).await;
    let mut client = daemon.connect().await;
    if client.seen[0]["payload"]["sandbox"]["mode"] != "full" {
        eprintln!("*** SKIPPED: exposed ports: the sandbox is not full here ***");
        return None;
    }
    daemon.file("server.pl", SERVER);
    start(&mut client, provider, address).await;
    Some((daemon, client))
}

async fn start(client: &mut Client, provider: &Provider, address: &str) {
    let line = format!("exec perl server.pl {address}");
    let input = json!({"command": line, "background": true});
    provider
        .then(Turn::call("bash", &input))
        .then(Turn::text("done"));
    client.say("go").await;
    client.until("chat:stream-end").await;
}

/// Waits until a command listens on a port, which it returns.
async fn port(client: &mut Client) -> u16 {
    let told = match client.all("tool:port-open").pop() {
        Some(told) => told,
        None => client.until("tool:port-open").await["payload"].clone(),
    };
    let port = u16::try_from(told["port"].as_u64().unwrap()).unwrap();
    assert_eq!(
        (&told["background"]["id"], &told["background"]["ports"]),
        (&json!("b1"), &json!([{"port": port}])),
        "{told}"
    );
    port
}

async fn expose(client: &mut Client, port: u16, close: bool) -> Value {
    let ask = json!({"type": "tool:expose", "port": port, "close": close});
    client.ask(ask).await["payload"].clone()
}

/// The address in `http://127.0.0.1:5173/`.
fn address(url: &Value) -> String {
    let url = url.as_str().expect("a URL");
    let rest = url.strip_prefix("http://").unwrap();
    rest.strip_suffix('/').unwrap().to_owned()
}

async fn shout(stream: &mut TcpStream, line: &str) -> String {
    stream.write_all(line.as_bytes()).await.unwrap();
    let mut answer = vec![0; line.len()];
    stream.read_exact(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_port_is_told_of_exposed_on_loopback_and_closed_again() {
    let provider = Provider::start().await;
    let Some((_daemon, mut client)) = serving(&provider, "ask", "127.0.0.1:0").await else {
        return;
    };
    let port = port(&mut client).await;
    let exposed = expose(&mut client, port, false).await;
    let at = address(&exposed["url"]);
    assert!(at.starts_with("127.0.0.1:"), "{exposed}");
    let told = client.all("tool:background").pop().unwrap();
    assert_eq!(
        told["background"]["ports"],
        json!([{"port": port, "url": exposed["url"]}])
    );
    // Again is the same, and many at a time are served.
    assert_eq!(expose(&mut client, port, false).await, exposed);
    let mut streams = Vec::new();
    for _ in 0..40 {
        streams.push(TcpStream::connect(&at).await.unwrap());
    }
    for stream in &mut streams {
        assert_eq!(shout(stream, "hello\n").await, "HELLO\n");
    }
    let closed = expose(&mut client, port, true).await;
    assert_eq!(closed, json!({"conversationId": "default", "port": port}));
    eventually("the end of what leads there", async || {
        TcpStream::connect(&at).await.is_err()
    })
    .await;
    // What was connected goes with it.
    assert_eq!(streams[0].read(&mut [0]).await.unwrap_or_default(), 0);
    let told = client.all("tool:background").pop().unwrap();
    assert_eq!(told["background"]["ports"], json!([{"port": port}]));
    // And it goes with the command.
    let at = address(&expose(&mut client, port, false).await["url"]);
    client
        .ask(json!({"type": "tool:cancel", "toolId": "t1"}))
        .await;
    eventually("the end of what leads to it", async || {
        TcpStream::connect(&at).await.is_err()
    })
    .await;
    let state = client.ask(json!({"type": "session:state"})).await;
    let background = &state["payload"]["conversations"][0]["background"][0];
    assert_eq!(background["status"], "killed", "{background}");
    assert!(background.get("ports").is_none(), "{background}");
    let refused = expose(&mut client, port, false).await;
    assert_eq!(refused["code"], "invalid_payload", "{refused}");
}

#[tokio::test]
async fn a_port_that_is_taken_outside_has_another_number_there() {
    let provider = Provider::start().await;
    // Taken on the machine, where the server of the conversation does not meet it.
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let number = taken.local_addr().unwrap().port();
    let server = format!("0.0.0.0:{number}");
    let Some((_daemon, mut client)) = serving(&provider, "ask", &server).await else {
        return;
    };
    assert_eq!(port(&mut client).await, number);
    let exposed = expose(&mut client, number, false).await;
    let at = address(&exposed["url"]);
    assert_ne!(at, format!("127.0.0.1:{number}"));
    let mut stream = TcpStream::connect(at).await.unwrap();
    assert_eq!(shout(&mut stream, "hello\n").await, "HELLO\n");
}

/// An address of this machine that other machines know it by, where it has one. Nothing is sent to find out.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// Exposes the server's port, and shows that it can be reached there.
async fn reached(client: &mut Client) -> String {
    let port = port(client).await;
    let at = address(&expose(client, port, false).await["url"]);
    let mut stream = TcpStream::connect(&at).await.unwrap();
    assert_eq!(shout(&mut stream, "hello\n").await, "HELLO\n");
    at
}

#[tokio::test]
async fn an_exposed_port_is_on_no_other_address_of_the_machine() {
    let provider = Provider::start().await;
    let Some((_daemon, mut client)) = serving(&provider, "ask", "127.0.0.1:0").await else {
        return;
    };
    let at = reached(&mut client).await;
    let number: u16 = at.strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
    let own = own_address();
    if own.is_none() {
        eprintln!("*** SKIPPED: exposed ports: the machine has no address but loopback ***");
    }
    // All of 127.0.0.0/8 is this machine's.
    for other in own.into_iter().chain([IpAddr::from([127, 0, 0, 2])]) {
        let refused = TcpStream::connect((other, number)).await;
        let kind = refused.map_err(|error| error.kind());
        let refused = matches!(kind, Err(ErrorKind::ConnectionRefused));
        assert!(refused, "{other}:{number} {kind:?}");
    }
}

#[tokio::test]
async fn an_exposed_port_ends_with_its_session() {
    let provider = Provider::start().await;
    let served = serving_with(&provider, "ask", "127.0.0.1:0", "1ms").await;
    let Some((_daemon, mut client)) = served else {
        return;
    };
    let at = reached(&mut client).await;
    drop(client);
    eventually("the end of what leads there", async || {
        TcpStream::connect(&at).await.is_err()
    })
    .await;
}

#[tokio::test]
async fn an_exposed_port_ends_with_a_daemon_that_is_killed() {
    let provider = Provider::start().await;
    let served = serving(&provider, "ask", "127.0.0.1:0").await;
    let Some((mut daemon, mut client)) = served else {
        return;
    };
    let at = reached(&mut client).await;
    daemon.kill().await;
    eventually("the end of what leads there", async || {
        TcpStream::connect(&at).await.is_err()
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_exposed_is_refused_with_the_reason() {
    let provider = Provider::start().await;
    let Some((_daemon, mut client)) = serving(&provider, "ask", "127.0.0.1:0").await else {
        return;
    };
    let port = port(&mut client).await;
    let ask = json!({"type": "tool:expose", "port": port, "conversationId": "other"});
    let other = client.ask(ask).await["payload"].clone();
    assert_eq!(other["code"], "conversation_not_found", "{other}");
    let none = expose(&mut client, 1, false).await;
    assert_eq!(none["code"], "invalid_payload", "{none}");
    let message = none["message"].as_str().unwrap();
    assert!(message.contains(&port.to_string()), "{message}");
    for bad in [json!(0), json!(65_536), json!("x"), json!(null)] {
        let refused = client
            .ask(json!({"type": "tool:expose", "port": bad}))
            .await;
        assert_eq!(refused["payload"]["code"], "invalid_payload", "{refused}");
    }
    let provider = Provider::start().await;
    let (_off, mut client) = serving(&provider, "off", "127.0.0.1:0").await.unwrap();
    let refused = expose(&mut client, port, false).await;
    assert_eq!(refused["code"], "forbidden", "{refused}");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("tools.bash.expose")
    );
}
