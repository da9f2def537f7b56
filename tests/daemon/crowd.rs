//! Many connections that never show a token do not keep out one that does.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

#[tokio::test]
async fn half_heads_and_wrong_tokens_keep_nobody_out() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut early = daemon.connect().await;
    let mut crowd = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(("127.0.0.1", daemon.port))
            .await
            .unwrap();
        let half: &[u8] = if number % 2 == 0 {
            b"GET /ws HTTP/1.1\r\nHost: loc"
        } else {
            b""
        };
        stream.write_all(half).await.unwrap();
        crowd.push(stream);
    }
    // One that comes after them gets in, and one that was there before goes on.
    provider.then(Turn::text("hello")).then(Turn::text("hello"));
    for client in [&mut early, &mut daemon.connect().await] {
        client.say("hi").await;
        client.until("chat:stream-end").await;
        assert_eq!(client.text_said(), "hello");
    }
    // The first of the crowd had to make room.
    let mut rest = Vec::new();
    let ended = crowd[0].read_to_end(&mut rest).await;
    assert!(ended.is_err() || rest.is_empty(), "{rest:?}");
}
