use std::collections::HashMap;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::command::HostAnswer;

/// Hosts that can be connected to, and those that were asked for.
#[derive(Default, Clone)]
struct Hosts {
    known: HashMap<&'static str, SocketAddr>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Hosts {
    fn of(known: impl IntoIterator<Item = (&'static str, SocketAddr)>) -> Self {
        Self {
            known: known.into_iter().collect(),
            asked: Arc::default(),
        }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

impl WayOut for Hosts {
    async fn connect(&self, host: Host, port: u16) -> io::Result<TcpStream> {
        let asked = format!("{host} {port}");
        let known = self.known.get(asked.as_str()).copied();
        self.asked.lock().push(asked);
        TcpStream::connect(known.ok_or(io::ErrorKind::PermissionDenied)?).await
    }
}

/// A server that answers each line with itself in capitals.
async fn shouting() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = [0; 1024];
                while let Ok(length @ 1..) = stream.read(&mut bytes).await {
                    let loud = bytes[..length].to_ascii_uppercase();
                    stream.write_all(&loud).await.unwrap();
                }
            });
        }
    });
    address
}

/// A server that answers each request with what it read of it, and hangs up.
async fn mirror() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let answer = format!(
                "HTTP/1.1 200 OK\r\nkeep-alive: timeout=5\r\ncontent-length: {}\r\n\r\n",
                head.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.write_all(&head).await.unwrap();
        }
    });
    address
}

/// Sends a text to the proxy; returns all that comes back until it hangs up.
async fn say(proxy: &Proxy, text: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port()))
        .await
        .unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // It may hang up before it read all.
    stream.read_to_end(&mut answer).await.unwrap_or_default();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_tunnel_leads_to_the_host_that_was_asked_for() {
    let hosts = Hosts::of([("example.org 443", shouting().await)]);
    let proxy = Proxy::start(hosts.clone()).await.unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port()))
        .await
        .unwrap();
    let asks = "CONNECT Example.org.:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\nearly ";
    stream.write_all(asks.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nEARLY ") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    // Not a request any more, whatever it looks like.
    stream
        .write_all(b"GET http://other.example/ HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let mut loud = [0; 38];
    stream.read_exact(&mut loud).await.unwrap();
    assert_eq!(&loud, b"GET HTTP://OTHER.EXAMPLE/ HTTP/1.1\r\n\r\n");
    assert_eq!(hosts.asked(), ["example.org 443"]);
    // With the command all of it ends.
    drop(proxy);
    assert!(matches!(stream.read(&mut loud).await, Ok(0) | Err(_)));
}

#[tokio::test]
async fn each_request_is_connected_to_what_it_names() {
    let (one, two) = (mirror().await, mirror().await);
    let hosts = Hosts::of([("one.example 80", one), ("10.0.0.7 8080", two)]);
    let proxy = Proxy::start(hosts.clone()).await.unwrap();
    // Both on one connection to the proxy; the header names somebody else.
    let requests = "GET http://one.example/a?b HTTP/1.1\r\nHost: evil.example\r\nProxy-Connection: keep-alive\r\nConnection: X-Hop, keep-alive\r\nX-Hop: hop\r\nX-Own: 1\r\n\r\n\
         GET http://me@10.0.0.7:8080 HTTP/1.1\r\nHost: one.example\r\nProxy-Authorization: Basic eDp5\r\nConnection: close\r\n\r\n";
    let answers = say(&proxy, requests).await;
    for part in [
        "GET /a?b HTTP/1.1\r\nhost: one.example\r\nx-own: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: 10.0.0.7:8080\r\n\r\n",
    ] {
        assert!(
            answers
                .to_ascii_lowercase()
                .contains(&part.to_ascii_lowercase()),
            "{answers}"
        );
    }
    for part in ["evil", "Basic", "keep-alive", "hop"] {
        assert!(!answers.contains(part), "{part}: {answers}");
    }
    assert_eq!(hosts.asked(), ["one.example 80", "10.0.0.7 8080"]);
}

#[tokio::test]
async fn what_is_refused_is_said_and_what_follows_is_not_read() {
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let hosts = Hosts::of([
        ("one.example 80", mirror().await),
        ("gone.example 443", nobody),
    ]);
    let proxy = Proxy::start(hosts.clone()).await.unwrap();
    let smuggled = "GET http://one.example/ HTTP/1.1\r\nHost: one.example\r\n\r\n";
    let long = format!("CONNECT {}.example:443 HTTP/1.1\r\n\r\n", "a".repeat(260));
    for (request, status, says, asked) in [
        (
            "CONNECT other.example:443 HTTP/1.1\r\n\r\n",
            "403",
            "may not connect to other.example",
            &["other.example 443"][..],
        ),
        (
            "GET http://other.example/ HTTP/1.1\r\nHost: one.example\r\n\r\n",
            "403",
            "tools.bash.hosts",
            &["other.example 80"],
        ),
        // The forms of an address stand for the address.
        (
            "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
            "403",
            "::1",
            &["::1 443"],
        ),
        (
            "CONNECT 127.0.0.1.:22 HTTP/1.1\r\n\r\n",
            "403",
            "127.0.0.1",
            &["127.0.0.1 22"],
        ),
        (
            "CONNECT 0x7f.1:22 HTTP/1.1\r\n\r\n",
            "403",
            "0x7f.1",
            &["0x7f.1 22"],
        ),
        (
            "CONNECT gone.example:443 HTTP/1.1\r\n\r\n",
            "502",
            "refused",
            &["gone.example 443"],
        ),
        (
            "CONNECT one.example HTTP/1.1\r\n\r\n",
            "400",
            "no host and port",
            &[],
        ),
        (
            "CONNECT a!b.example:443 HTTP/1.1\r\n\r\n",
            "400",
            "no host and port",
            &[],
        ),
        (&long, "400", "no host and port", &[]),
        (
            "GET / HTTP/1.1\r\nHost: one.example\r\n\r\n",
            "400",
            "http:// addresses",
            &[],
        ),
        (
            "GET https://one.example/ HTTP/1.1\r\n\r\n",
            "400",
            "http:// addresses",
            &[],
        ),
        ("nonsense\r\n\r\n", "400", "", &[]),
        ("\u{5}\u{1}\0", "400", "", &[]),
    ] {
        let answer = say(&proxy, &format!("{request}{smuggled}")).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {answer}"
        );
        assert!(answer.contains(says), "{request}: {answer}");
        assert_eq!(
            answer.matches("HTTP/1.1 ").count(),
            1,
            "{request}: {answer}"
        );
        assert_eq!(hosts.asked(), asked, "{request}");
    }
    let endless = format!(
        "GET http://one.example/ HTTP/1.1\r\nX: {}",
        "x".repeat(4 * MAX_HEAD)
    );
    // What it says may be lost, since it hangs up before all is read.
    let answer = say(&proxy, &format!("{endless}\r\n\r\n")).await;
    assert!(!answer.contains("HTTP/1.1 200 "), "{answer}");
    assert!(hosts.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn whoever_says_nothing_loses_the_place() {
    let proxy = Proxy::start(Hosts::default()).await.unwrap();
    let silent: Vec<_> = {
        let connect = |_| TcpStream::connect(("127.0.0.1", proxy.port()));
        futures::future::try_join_all((0..MAX_CONNECTIONS).map(connect))
            .await
            .unwrap()
    };
    let answer = say(&proxy, "CONNECT other.example:443 HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    drop(silent);
}

#[tokio::test]
async fn programs_are_told_where_it_is() {
    let proxy = Proxy::start(Hosts::default()).await.unwrap();
    let address = format!("http://127.0.0.1:{}", proxy.port());
    let variables: HashMap<_, _> = proxy.variables().collect();
    for name in ["HTTPS_PROXY", "https_proxy", "http_proxy", "ALL_PROXY"] {
        assert_eq!(variables[name], address);
    }
    assert_eq!(variables["no_proxy"], "localhost,127.0.0.1,::1");
    assert_eq!(variables["NODE_USE_ENV_PROXY"], "1");
}

#[tokio::test]
async fn what_goes_by_rules_never_leads_to_this_machine() {
    let (hosts, mut questions) = tokio::sync::mpsc::channel::<crate::HostQuestion>(1);
    let ports = crate::Ports::Only(vec![443]);
    let way = ByRules::new(Destinations::new(
        ports,
        None,
        Some(hosts),
        crate::RefusedPorts::default(),
    ));
    let proxy = Proxy::start(way).await.unwrap();
    let asking = tokio::spawn(async move {
        let mut asked = Vec::new();
        while let Some(question) = questions.recv().await {
            asked.push(question.host.to_string());
            let private = Vec::new();
            question
                .answer
                .send(HostAnswer::Allowed { private })
                .unwrap();
        }
        asked
    });
    for request in [
        "localhost:443",
        "0x7f.1:443",
        "127.0.0.1:443",
        "203.0.113.7:80",
    ] {
        let answer = say(&proxy, &format!("CONNECT {request} HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{request}: {answer}");
    }
    // Nobody can ask any more.
    drop(proxy);
    assert_eq!(asking.await.unwrap(), ["localhost", "0x7f.1", "127.0.0.1"]);
}
