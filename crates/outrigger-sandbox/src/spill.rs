//! The whole output of executions, on disk, for as long as there is room.
//!
//! One file for the daemon, of mode 0600 and without a name: it is unlinked as soon as it is open, so no command
//! finds it in any mode of the sandbox (and the daemon's descriptors are closed to others, see `process::harden`),
//! and nothing stays behind however the daemon ends, `kill -9` included. It is made with the first output, used in
//! blocks, and closed when no output is kept. Where the blocks run out, the oldest output goes of the owner who has
//! most, so that one session's flood does not push out another's.
//!
//! What is kept is text that its writer has cleaned of secrets; how calls are named is not known here.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::output::Stream;

/// Most bytes on disk for one daemon: twice what the longest output may have.
pub const QUOTA_BYTES: u64 = 256 * 1024 * 1024;

/// The file is used in pieces of this size: little is lost with the small outputs that most are.
const BLOCK_BYTES: usize = 16 * 1024;

/// How often an output may change between its two streams before they are no longer told apart: 1 MiB of index.
const MAX_PIECES: usize = 64 * 1024;

/// The place where outputs are kept, for one owner. Clones share it.
#[derive(Clone, Debug)]
pub struct Spill {
    shared: Arc<Shared>,
    owner: u64,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    most_blocks: usize,
    /// Held for one read or write of the file, which is one copy from or to the system's cache.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<File>,
    /// Blocks of the file so far, and those of them that are free again.
    blocks: usize,
    free: Vec<usize>,
    /// By age.
    kept: BTreeMap<u64, Kept>,
    next: u64,
    owners: u64,
}

#[derive(Debug, Default)]
struct Kept {
    owner: u64,
    blocks: Vec<usize>,
    bytes: u64,
    /// Where the stream changes.
    pieces: Vec<(u64, Stream)>,
    whole: bool,
}

/// One output that is kept; forgotten when dropped.
#[derive(Debug)]
pub struct Recorded {
    spill: Spill,
    number: u64,
}

/// A piece of an output, of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Where it was written.
    pub stream: Stream,
    /// The text, cut between characters.
    pub text: String,
    /// Its first byte.
    pub offset: u64,
    /// Where the next piece begins; absent at the end of an output that is whole.
    pub next: Option<u64>,
    /// Bytes of the output so far.
    pub total: u64,
}

/// The output is no longer kept, because newer ones needed the room or the disk had none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the output is no longer kept")]
pub struct Gone;

impl Spill {
    /// Will keep outputs of up to `quota` bytes in a file in `folder`, which has to exist by then.
    pub fn new(folder: PathBuf, quota: u64) -> Self {
        Self {
            shared: Arc::new(Shared {
                folder,
                most_blocks: usize::try_from(quota / BLOCK_BYTES as u64).unwrap_or(usize::MAX),
                state: Mutex::default(),
            }),
            owner: 0,
        }
    }

    /// The same place for another owner.
    #[must_use]
    pub fn for_another(&self) -> Self {
        let mut state = self.lock();
        state.owners += 1;
        Self {
            shared: Arc::clone(&self.shared),
            owner: state.owners,
        }
    }

    /// Begins to keep an output. Nothing is written yet.
    pub fn record(&self) -> Recorded {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let kept = Kept {
            owner: self.owner,
            ..Kept::default()
        };
        state.kept.insert(number, kept);
        Recorded {
            spill: self.clone(),
            number,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorded {
    /// Appends text. Where it cannot be kept the whole output is forgotten: half of one would be taken for the whole.
    pub fn push(&self, stream: Stream, text: &str) {
        let shared = &*self.spill.shared;
        let mut state = self.spill.lock();
        if let Err(error) = state.append(self.number, stream, text.as_bytes(), shared) {
            tracing::warn!(%error, "an output is not kept");
            state.forget(self.number);
        }
    }

    /// Says that nothing more will come.
    pub fn finish(&self) {
        if let Some(kept) = self.spill.lock().kept.get_mut(&self.number) {
            kept.whole = true;
        }
    }

    /// Returns the bytes so far; `None` where they are no longer kept.
    pub fn len(&self) -> Option<u64> {
        self.spill
            .lock()
            .kept
            .get(&self.number)
            .map(|kept| kept.bytes)
    }

    /// Whether nothing was kept.
    pub fn is_empty(&self) -> bool {
        self.len().is_none_or(|bytes| bytes == 0)
    }

    /// Returns up to `limit` bytes of one stream from `offset` on.
    ///
    /// A character is never cut: a range begins with the character that `offset` lies in, ends before one that would
    /// go beyond `limit`, and holds one at least. Past the end it is empty.
    ///
    /// # Errors
    ///
    /// [`Gone`].
    pub fn read(&self, offset: u64, limit: usize) -> Result<Range, Gone> {
        let mut state = self.spill.lock();
        let kept = state.kept.get(&self.number).ok_or(Gone)?;
        let (total, whole) = (kept.bytes, kept.whole);
        let offset = offset.min(total);
        let after = kept.pieces.partition_point(|(start, _)| *start <= offset);
        let (start, stream) = match after.checked_sub(1).and_then(|at| kept.pieces.get(at)) {
            Some(piece) => *piece,
            None => (0, Stream::Stdout),
        };
        let end = kept.pieces.get(after).map_or(total, |(start, _)| *start);
        // Up to three bytes before and after belong to characters at the ends.
        let from = offset.saturating_sub(3).max(start);
        let wanted = offset.saturating_add(limit.max(1) as u64).saturating_add(3);
        let bytes = state
            .copy(self.number, from, wanted.min(end))
            .map_err(|error| {
                tracing::warn!(%error, "a kept output cannot be read");
                Gone
            })?;
        let (first, text) = characters(&bytes, usize_of(offset - from), limit.max(1));
        let first = from + first as u64;
        let reached = first + text.len() as u64;
        Ok(Range {
            stream,
            next: (reached < total || !whole).then_some(reached),
            text,
            offset: first,
            total,
        })
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.spill.lock().forget(self.number);
    }
}

impl State {
    fn append(
        &mut self,
        number: u64,
        stream: Stream,
        mut bytes: &[u8],
        shared: &Shared,
    ) -> io::Result<()> {
        let Some(kept) = self.kept.get_mut(&number) else {
            return Ok(());
        };
        let changed = kept.pieces.last().is_none_or(|(_, last)| *last != stream);
        if changed && !bytes.is_empty() && kept.pieces.len() < MAX_PIECES {
            kept.pieces.push((kept.bytes, stream));
        }
        while !bytes.is_empty() {
            let (within, held) = match self.kept.get(&number) {
                Some(kept) => (
                    usize_of(kept.bytes) % BLOCK_BYTES,
                    kept.blocks.last().copied(),
                ),
                // It was the oldest itself.
                None => return Err(io::ErrorKind::StorageFull.into()),
            };
            let block = match held {
                Some(block) if within > 0 => block,
                _ => {
                    // Its own at once: where nothing can be written, it is given back with the others.
                    let block = self.block(number, shared)?;
                    if let Some(kept) = self.kept.get_mut(&number) {
                        kept.blocks.push(block);
                    }
                    block
                }
            };
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - within));
            let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
            file.seek(SeekFrom::Start((block * BLOCK_BYTES + within) as u64))?;
            file.write_all(now)?;
            let kept = self
                .kept
                .get_mut(&number)
                .ok_or(io::ErrorKind::StorageFull)?;
            kept.bytes += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// The oldest output of the owner who has most.
    fn first_to_go(&self) -> Option<u64> {
        let mut blocks = BTreeMap::new();
        for kept in self.kept.values() {
            *blocks.entry(kept.owner).or_insert(0) += kept.blocks.len();
        }
        let (most, _) = blocks.into_iter().max_by_key(|(_, blocks)| *blocks)?;
        let mut theirs = self
            .kept
            .iter()
            .filter(|(_, kept)| kept.owner == most && !kept.blocks.is_empty());
        theirs.next().map(|(number, _)| *number)
    }

    /// Takes a block for an output; where there is none left, another output gives up its own.
    fn block(&mut self, number: u64, shared: &Shared) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some(unnamed(&shared.folder)?);
        }
        loop {
            if let Some(block) = self.free.pop() {
                return Ok(block);
            }
            if self.blocks < shared.most_blocks {
                self.blocks += 1;
                return Ok(self.blocks - 1);
            }
            match self.first_to_go() {
                Some(first) if first != number => self.forget(first),
                _ => return Err(io::ErrorKind::StorageFull.into()),
            }
        }
    }

    fn forget(&mut self, number: u64) {
        let Some(kept) = self.kept.remove(&number) else {
            return;
        };
        self.free.extend(kept.blocks);
        if self.blocks > 0 && self.free.len() == self.blocks {
            self.free.clear();
            self.blocks = 0;
            // Closing it is what gives the room back: it has no name.
            self.file = None;
        }
    }

    fn copy(&mut self, number: u64, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(usize_of(to.saturating_sub(from)));
        let mut at = from;
        while at < to {
            let within = usize_of(at) % BLOCK_BYTES;
            let block = self
                .kept
                .get(&number)
                .and_then(|kept| kept.blocks.get(usize_of(at) / BLOCK_BYTES).copied())
                .ok_or(io::ErrorKind::UnexpectedEof)?;
            let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
            file.seek(SeekFrom::Start((block * BLOCK_BYTES + within) as u64))?;
            let count = (to - at).min((BLOCK_BYTES - within) as u64);
            if file.take(count).read_to_end(&mut bytes)? as u64 != count {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            at += count;
        }
        Ok(bytes)
    }
}

/// Finds the whole characters from the one that byte `at` lies in, up to `limit` bytes but one at least; returns
/// where they begin.
fn characters(bytes: &[u8], at: usize, limit: usize) -> (usize, String) {
    let continues = |at: usize| {
        bytes
            .get(at)
            .is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000)
    };
    let mut first = at;
    while first > 0 && continues(first) {
        first -= 1;
    }
    let mut end = first.saturating_add(limit).min(bytes.len());
    while end > first && continues(end) {
        end -= 1;
    }
    if end == first && first < bytes.len() {
        end = first + 1;
        while continues(end) {
            end += 1;
        }
    }
    let text = String::from_utf8_lossy(bytes.get(first..end).unwrap_or_default());
    (first, text.into_owned())
}

/// What is kept is far smaller than any address space but the smallest, where a read then fails.
fn usize_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Makes a file that has no name any more, so that only its descriptor leads to it.
fn unnamed(folder: &std::path::Path) -> io::Result<File> {
    let number = getrandom::u64().map_err(io::Error::other)?;
    let path = folder.join(format!("outrigger-{number:016x}.spill"));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests;
