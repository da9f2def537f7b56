use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use super::*;

/// Asks a server that reads a request, says `answer` and hangs up.
fn asked(answer: &'static str) -> (Result<(), String>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut chunk = [0; 256];
        while !request.ends_with(b"\r\n\r\n") {
            let count = stream.read(&mut chunk).unwrap();
            request.extend_from_slice(&chunk[..count]);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    });
    let outcome = ask(&authority).map_err(|error| error.to_string());
    (outcome, server.join().unwrap())
}

#[test]
fn only_status_200_is_alive() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Ok(())),
        ("HTTP/1.1 200\r\n\r\n", Ok(())),
        (
            "HTTP/1.1 503 Service Unavailable\r\n\r\n",
            Err("answered \"HTTP/1.1 503 Service Unavailable\""),
        ),
        ("SSH-2.0-OpenSSH\r\n", Err("answered \"SSH-2.0-OpenSSH\"")),
        ("", Err("answered \"\"")),
    ];
    for (answer, expected) in cases {
        let (outcome, request) = asked(answer);
        assert_eq!(outcome, expected.map_err(str::to_owned), "{answer:?}");
        assert!(request.starts_with("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:"));
    }
}

#[test]
fn where_nobody_listens_it_is_said_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    drop(listener);
    let text = unanswered(&authority, &ask(&authority).unwrap_err());
    assert!(
        text.starts_with(&format!("no daemon answers at http://{authority} ")),
        "{text}"
    );
    assert!(text.contains("--url"), "{text}");
}

#[test]
fn an_endless_first_line_is_given_up() {
    let endless: &'static str = Box::leak("x".repeat(4096).into_boxed_str());
    assert!(asked(endless).0.is_err());
}

#[test]
fn urls_name_host_and_port() {
    let cases = [
        ("http://127.0.0.1:4517", Ok("127.0.0.1:4517")),
        ("http://localhost:4517/healthz", Ok("localhost:4517")),
        ("ws://[::1]:4517/ws", Ok("[::1]:4517")),
        ("http://daemon", Ok("daemon:80")),
        ("https://daemon", Err("only http://")),
        ("daemon:4517", Err("expected an address such as http://")),
        ("4517", Err("expected an address such as http://")),
    ];
    for (url, expected) in cases {
        match (authority(url), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(words)) => assert!(found.contains(words), "{found}"),
            (found, _) => panic!("{url}: {found:?}"),
        }
    }
}

#[test]
fn a_daemon_that_listens_everywhere_is_asked_over_loopback() {
    let cases = [
        ("0.0.0.0:4517", "127.0.0.1:4517"),
        ("[::]:4517", "[::1]:4517"),
        ("192.0.2.7:4517", "192.0.2.7:4517"),
    ];
    for (listens, asked) in cases {
        assert_eq!(reachable(listens.parse().unwrap()).to_string(), asked);
    }
}
