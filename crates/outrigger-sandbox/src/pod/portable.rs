//! Other systems: commands are not confined, and share what the user has.

use std::io;

use tokio::net::TcpStream;

/// What its commands share: nothing of their own here.
#[derive(Debug, Clone, Default)]
pub struct Pod(());

impl Pod {
    /// Returns how many bytes are its own: none.
    #[expect(clippy::unused_async, reason = "asynchronous on Linux")]
    pub async fn held(&self) -> u64 {
        0
    }

    /// Connects to a port of the pod's loopback, which there is none of here.
    ///
    /// # Errors
    /// Always.
    #[expect(clippy::unused_async, reason = "asynchronous on Linux")]
    pub async fn connect(&self, _port: u16) -> io::Result<TcpStream> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns whether something was made ready for its next command: never here.
    pub fn is_ready(&self) -> bool {
        false
    }
}
