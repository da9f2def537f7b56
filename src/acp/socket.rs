//! The protocol on a WebSocket: a text frame for each message.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures::{SinkExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::agent::{self, INCOMING, OUTGOING, TooLong};
use crate::connection::LastActivity;
use crate::session::UserSessions;
use crate::telemetry::metrics;

const PING_EVERY: Duration = Duration::from_secs(20);

/// How long a client has to read why its socket is about to be closed.
const LINGER: Duration = Duration::from_secs(1);

/// Serves a socket until either side ends it. `activity` is noted by whoever reads its connection.
pub(crate) async fn socket(
    socket: WebSocket,
    activity: Arc<LastActivity>,
    sessions: UserSessions,
    stop: CancellationToken,
) {
    metrics::connected();
    let _counted = metrics::CONNECTIONS.enter();
    let (mut sink, mut stream) = socket.split();
    let (taken, lines) = mpsc::channel(INCOMING);
    let (out, mut to_write) = mpsc::channel::<String>(OUTGOING);
    // Ends the other two where one of them ends.
    let ended = stop.child_token();
    let granted = sessions.clone();
    let stopping = ended.clone();
    let reading = async move {
        loop {
            match activity.unless_silent(stream.next()).await.flatten() {
                Some(Ok(Message::Text(text))) => {
                    if taken.send(Ok(text.to_string())).await.is_err() {
                        break;
                    }
                }
                // Binary frames are none of the protocol's.
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
                // Nothing can be read behind it; the client hears why, and the end of what there is to take ends the rest.
                Some(Err(error)) if is_too_long(&error) => {
                    drop(taken.send(Err(TooLong)).await);
                    // A socket that is closed with something unread is reset, and what was sent last is lost.
                    tokio::time::sleep(LINGER).await;
                    return;
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
            }
        }
        stopping.cancel();
    };
    let writing = async {
        let mut ping = tokio::time::interval(PING_EVERY);
        loop {
            let sent = tokio::select! {
                line = to_write.recv() => match line {
                    Some(line) => sink.send(Message::Text(line.into())).await,
                    None => break,
                },
                _ = ping.tick() => sink.send(Message::Ping(bytes::Bytes::new())).await,
                over = granted.grant().over() => {
                    let (code, reason) = over.close();
                    let reason = reason.into();
                    let frame = CloseFrame { code, reason };
                    sink.send(Message::Close(Some(frame))).await.ok();
                    break;
                }
            };
            if sent.is_err() {
                break;
            }
        }
        ended.cancel();
        // A client that does not read is not waited for.
        drop(tokio::time::timeout(Duration::from_secs(2), sink.close()).await);
    };
    let serving = agent::serve(sessions, lines, out, ended.clone());
    let reading = ended.run_until_cancelled(reading);
    tokio::join!(serving, reading, writing);
}

/// Returns whether a frame has more bytes than are taken (`server.max_frame_bytes`).
fn is_too_long(error: &axum::Error) -> bool {
    // The library's own error is not named by axum's.
    let mut causes = std::iter::successors(Some(error as &dyn std::error::Error), |it| it.source());
    causes.any(|cause| cause.to_string().contains("too long"))
}
