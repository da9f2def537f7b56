//! The shape of a wire format's parser: frames in, chunks out.
//!
//! Pure: no clock, no socket. Frames come whole, whatever way the bytes were cut; who cuts them is
//! in the transport.

use super::{Chunk, ProviderError};

/// Turns the frames of one response into chunks.
pub trait Decoder: Send {
    /// Takes one frame of a stream: the data of a server-sent event with its event name (empty where
    /// it has none), or a line of NDJSON.
    ///
    /// # Errors
    ///
    /// The provider's own error where the frame is one, or [`super::ErrorKind::Protocol`]. After an
    /// error nothing more is fed.
    fn frame(
        &mut self,
        event: &str,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError>;

    /// Takes a whole JSON body: the answer of a server that did not stream.
    ///
    /// # Errors
    ///
    /// As [`Decoder::frame`].
    fn whole(&mut self, body: &str, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError>;

    /// Says that the bytes ended; pushes [`Chunk::End`] where it has not been pushed yet.
    ///
    /// # Errors
    ///
    /// [`super::ErrorKind::IncompleteStream`] where the end marker is missing. Calls still open are
    /// closed as truncated first.
    fn finish(&mut self, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError>;

    /// Whether the end marker was seen, so that the rest of the bytes need not be waited for.
    fn is_done(&self) -> bool;
}
