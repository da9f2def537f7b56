//! A reader of a session's log, which goes at its own pace.

use axum::extract::ws::Utf8Bytes;

use super::Handle;
use super::log::ReadResult;
use crate::protocol::roles::SocketId;

/// What of a session's log was read.
#[derive(Debug)]
pub(crate) struct Reader {
    session: Handle,
    /// The number of the last event that was read.
    after: u64,
    /// Its socket, where that has a name.
    socket: Option<SocketId>,
}

impl Reader {
    /// Returns a reader that has everything up to this number.
    pub(crate) fn new(session: Handle, after: u64) -> Self {
        Self::of(session, after, None)
    }

    /// Returns the same for a socket that may have a name.
    pub(crate) fn of(session: Handle, after: u64, socket: Option<SocketId>) -> Self {
        Self {
            session,
            after,
            socket,
        }
    }

    /// Copies the next frames to `frames`, about `most` bytes of them; none where all was read. Where what follows is no
    /// longer kept, goes on with a resync. Returns false where the session ended before that.
    pub(crate) async fn read(&mut self, most: usize, frames: &mut Vec<Utf8Bytes>) -> bool {
        loop {
            match self
                .session
                .feed
                .read(self.after, most, self.socket, frames)
            {
                ReadResult::UpTo(seq) => {
                    self.after = seq;
                    return true;
                }
                ReadResult::Gap => match self.session.resync(self.after, self.socket).await {
                    Some(before) => self.after = before,
                    None => return false,
                },
            }
        }
    }
}
