//! A baseline as a sealed file of memory: what was noted, then the contents, which a helper reads only where it needs
//! them.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags};

use super::{Baseline, Content};

/// Holds the length of the description.
const PREFIX: usize = size_of::<u64>();

/// Contents that can be read again.
#[derive(Debug)]
pub(crate) struct Kept {
    file: File,
    start: u64,
}

/// Writes a baseline into memory that nobody can change any more.
///
/// # Errors
///
/// The system's, for want of memory or descriptors.
pub(crate) fn hand_over(baseline: &Baseline, contents: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = rustix::fs::memfd_create("outrigger-baseline", flags)?;
    let mut file = File::from(memory);
    let described = serde_json::to_vec(baseline)?;
    file.write_all(&(described.len() as u64).to_le_bytes())?;
    file.write_all(&described)?;
    file.write_all(contents)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

impl Kept {
    /// Reads what [`hand_over`] wrote.
    pub(crate) fn receive(memory: OwnedFd) -> io::Result<(Baseline, Self)> {
        let file = File::from(memory);
        let mut prefix = [0; PREFIX];
        file.read_exact_at(&mut prefix, 0)?;
        let length = u64::from_le_bytes(prefix);
        let size = file.metadata()?.len();
        let start = length
            .checked_add(PREFIX as u64)
            .filter(|start| *start <= size)
            .ok_or(io::ErrorKind::InvalidData)?;
        let mut described = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        file.read_exact_at(&mut described, PREFIX as u64)?;
        Ok((serde_json::from_slice(&described)?, Self { file, start }))
    }

    /// The content of a file.
    pub(crate) fn content(&self, content: &Content) -> io::Result<Vec<u8>> {
        match content {
            Content::Here(bytes) => Ok(bytes.clone()),
            Content::Kept { start, length } => {
                let mut bytes = vec![0; *length];
                self.file
                    .read_exact_at(&mut bytes, self.start + *start as u64)?;
                Ok(bytes)
            }
        }
    }
}
