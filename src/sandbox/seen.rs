//! What a conversation has seen of files, so that it does not overwrite what it never read.

/// The state of each file as the conversation last read or wrote it.
#[derive(Debug, Default)]
pub struct SeenFiles;
