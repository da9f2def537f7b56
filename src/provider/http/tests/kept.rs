//! Connections that are kept for the next request, and what becomes of one that is dead by then.

use super::*;

/// Clients that keep connections to this machine as they do those to others.
fn keeping() -> Clients {
    Clients {
        http: crate::http::Clients::keeping_loopback().unwrap(),
        gates: Gates::default(),
    }
}

/// A server of which each connection answers `answers` requests, announces to be kept, and breaks at the next one.
async fn breaking(answers: usize) -> (Server, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let accepted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            accepted.fetch_add(1, Ordering::SeqCst);
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                for answer in 0..=answers {
                    if read_request(&mut socket).await.is_none() {
                        return;
                    }
                    counted.fetch_add(1, Ordering::SeqCst);
                    if answer < answers {
                        write(
                            &mut socket,
                            "HTTP/1.1 200 OK\r\nkeep-alive: timeout=5, max=100\r\n",
                        )
                        .await;
                        write(&mut socket, "content-type: text/event-stream\r\n").await;
                        write(&mut socket, "transfer-encoding: chunked\r\n\r\n").await;
                        write_chunk(&mut socket, "data: \"a\"\n\ndata: [DONE]\n\n").await;
                        write(&mut socket, "0\r\n\r\n").await;
                    }
                }
            });
        }
    });
    (Server { url, connections }, asked)
}

#[tokio::test]
async fn a_turn_goes_out_whole_and_the_connection_serves_the_next() {
    let server = Server::start(|mut socket, request| async move {
        write(&mut socket, EVENTS).await;
        let seen = Value::from(request.to_lowercase().replace("\r\n", "|"));
        write_chunk(&mut socket, &format!("data: {seen}\n\ndata: [DONE]\n\n")).await;
        // The end of the body comes in a write of its own, as servers do it.
        tokio::task::yield_now().await;
        write(&mut socket, "0\r\n\r\n").await;
        Some(socket)
    })
    .await;
    let endpoint = Endpoint::new(Arc::new(config(Some(" key-0123456789 \n"))), keeping());
    for _ in 0..3 {
        let found = texts(&ask(&endpoint, &server.url).await.unwrap());
        assert_eq!(found.len(), 2, "{found:?}");
        for part in [
            "post /v1?secret=query http/1.1",
            "|authorization: bearer key-0123456789|",
            "|accept: text/event-stream|",
            "|accept-encoding: identity|",
            "|content-type: application/json|",
            "|user-agent: outrigger/",
            "|x-extra: more|",
            "||{\"a\":1}",
        ] {
            assert!(found[0].contains(part), "{part} in {}", found[0]);
        }
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_request_on_a_dead_connection_is_sent_again_unseen() {
    let (server, asked) = breaking(1).await;
    let endpoint = Endpoint::new(Arc::new(config(Some("key"))), keeping());
    for turn in 0..5 {
        let found = texts(&ask(&endpoint, &server.url).await.unwrap());
        assert_eq!(found, ["a", "end"], "{turn}");
        assert!(endpoint.gate.permit("m").is_ok());
    }
    // All but the first were asked twice: on the connection of the one before, and on a new one.
    assert_eq!(asked.load(Ordering::SeqCst), 9);
    assert_eq!(server.connections.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_request_on_a_new_connection_is_sent_once() {
    let (server, asked) = breaking(0).await;
    let endpoint = Endpoint::new(Arc::new(config(Some("key"))), keeping());
    let error = ask(&endpoint, &server.url).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect);
    assert!(
        error.message.contains("broke before the answer"),
        "{}",
        error.message
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_connection_to_this_machine_is_kept() {
    let (server, asked) = breaking(1).await;
    let endpoint = Endpoint::new(Arc::new(config(Some("key"))), Clients::default());
    for _ in 0..5 {
        let found = texts(&ask(&endpoint, &server.url).await.unwrap());
        assert_eq!(found, ["a", "end"]);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 5);
    assert_eq!(server.connections.load(Ordering::SeqCst), 5);
}
