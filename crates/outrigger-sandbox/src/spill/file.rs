//! The file of outputs, its blocks, and whose they are.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use super::super::output::Stream;
use super::{Gone, Range};

/// The file is used in pieces of this size: little is lost with the small outputs that most are.
pub(super) const BLOCK_BYTES: usize = 16 * 1024;

/// How often an output may change between its two streams before they are no longer told apart: 1 MiB of index.
const MAX_PIECES: usize = 64 * 1024;

/// What the thread has. The file is made with the first output, and closed when none is kept.
#[derive(Debug, Default)]
pub(super) struct State {
    folder: PathBuf,
    most_blocks: usize,
    pub(super) file: Option<File>,
    /// Blocks of the file so far, and those of them that are free again.
    pub(super) blocks: usize,
    pub(super) free: Vec<usize>,
    kept: BTreeMap<u64, Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    owner: u64,
    blocks: VecDeque<usize>,
    /// How many blocks before these were given back, and the most that are kept.
    dropped: usize,
    most_blocks: Option<usize>,
    bytes: u64,
    pieces: Vec<(u64, Stream)>,
    whole: bool,
}

impl State {
    pub(super) fn new(folder: PathBuf, quota: u64) -> Self {
        Self {
            folder,
            most_blocks: usize::try_from(quota / BLOCK_BYTES as u64).unwrap_or(usize::MAX),
            ..Self::default()
        }
    }

    /// Begins an output, of which the last `most` bytes are kept, rounded up to whole blocks; all where there is none.
    pub(super) fn begin(&mut self, number: u64, owner: u64, most: Option<u64>) {
        let kept = Kept {
            owner,
            // One more, so that so many are kept while the last one fills.
            most_blocks: most.map(|most| usize_of(most.div_ceil(BLOCK_BYTES as u64)) + 1),
            ..Kept::default()
        };
        self.kept.insert(number, kept);
    }

    pub(super) fn finish(&mut self, number: u64) {
        if let Some(kept) = self.kept.get_mut(&number) {
            kept.whole = true;
        }
    }

    /// Appends text to an output that is kept; forgets one for which there is no room.
    pub(super) fn append(&mut self, number: u64, stream: Stream, text: &str) {
        let Some(kept) = self.kept.get_mut(&number) else {
            return;
        };
        let changed = kept.pieces.last().is_none_or(|(_, last)| *last != stream);
        if changed && !text.is_empty() && kept.pieces.len() < MAX_PIECES {
            if kept.pieces.is_empty() {
                // Most outputs are of one stream.
                kept.pieces.reserve_exact(1);
            }
            kept.pieces.push((kept.bytes, stream));
        }
        if let Err(error) = self.write(number, text.as_bytes()) {
            tracing::warn!(%error, "an output is not kept");
            self.forget(number);
        }
    }

    /// Returns a range of one stream, or `across` both.
    pub(super) fn read(
        &mut self,
        number: u64,
        offset: u64,
        limit: usize,
        across: bool,
    ) -> Result<Range, Gone> {
        let kept = self.kept.get(&number).ok_or(Gone)?;
        let (total, whole) = (kept.bytes, kept.whole);
        let oldest = kept.oldest();
        let offset = offset.clamp(oldest, total);
        let after = kept.pieces.partition_point(|(start, _)| *start <= offset);
        let (start, stream) = match after.checked_sub(1).and_then(|at| kept.pieces.get(at)) {
            Some(piece) => *piece,
            None => (0, Stream::Stdout),
        };
        let next = kept.pieces.get(after).filter(|_| !across);
        let end = next.map_or(total, |(start, _)| *start);
        // Up to three bytes before and after belong to characters at the ends.
        let from = offset
            .saturating_sub(3)
            .max(if across { oldest } else { start.max(oldest) });
        let wanted = offset.saturating_add(limit.max(1) as u64).saturating_add(3);
        let bytes = self.copy(number, from, wanted.min(end)).map_err(|error| {
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

    fn write(&mut self, number: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // It may have been the oldest itself.
            let gone = || io::Error::from(io::ErrorKind::StorageFull);
            let at = self.kept.get(&number).ok_or_else(gone)?.bytes;
            if at.is_multiple_of(BLOCK_BYTES as u64) {
                // Its own at once: where nothing can be written, it is given back with the others.
                let block = match self.kept.get_mut(&number).and_then(Kept::drop_oldest) {
                    Some(block) => block,
                    None => self.block(number)?,
                };
                let kept = self.kept.get_mut(&number).ok_or_else(gone)?;
                kept.blocks.push_back(block);
            }
            let (file, room) = self.seek(number, at)?;
            let (now, later) = bytes.split_at(bytes.len().min(room));
            file.write_all(now)?;
            let kept = self.kept.get_mut(&number).ok_or_else(gone)?;
            kept.bytes += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Returns the file at a byte of an output, and how much of the block is left there.
    fn seek(&mut self, number: u64, at: u64) -> io::Result<(&mut File, usize)> {
        let (block, within) = (usize_of(at) / BLOCK_BYTES, usize_of(at) % BLOCK_BYTES);
        let kept = self.kept.get(&number);
        let block = kept.and_then(|kept| {
            let block = block.checked_sub(kept.dropped)?;
            kept.blocks.get(block).copied()
        });
        let block = block.ok_or(io::ErrorKind::UnexpectedEof)?;
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.seek(SeekFrom::Start((block * BLOCK_BYTES + within) as u64))?;
        Ok((file, BLOCK_BYTES - within))
    }

    fn first_to_go(&self) -> Option<u64> {
        let mut blocks = BTreeMap::new();
        for kept in self.kept.values() {
            *blocks.entry(kept.owner).or_insert(0) += kept.blocks.len();
        }
        let (most, _) = blocks.into_iter().max_by_key(|(_, blocks)| *blocks)?;
        let theirs = |(_, kept): &(&u64, &Kept)| kept.owner == most && !kept.blocks.is_empty();
        let mut outputs = self.kept.iter().filter(theirs);
        // What still comes is read again and again, so it goes last.
        let first = outputs.clone().find(|(_, kept)| kept.whole);
        first.or_else(|| outputs.next()).map(|(number, _)| *number)
    }

    /// Takes a block for an output; where there is none left, another output gives up its own.
    fn block(&mut self, number: u64) -> io::Result<usize> {
        loop {
            // Each time: an output that had all blocks takes the file with it.
            if self.file.is_none() {
                self.file = Some(tempfile::tempfile_in(&self.folder)?);
            }
            if let Some(block) = self.free.pop() {
                return Ok(block);
            }
            if self.blocks < self.most_blocks {
                self.blocks += 1;
                return Ok(self.blocks - 1);
            }
            match self.first_to_go() {
                Some(first) if first != number => self.forget(first),
                _ => return Err(io::ErrorKind::StorageFull.into()),
            }
        }
    }

    pub(super) fn forget(&mut self, number: u64) {
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
            let (file, room) = self.seek(number, at)?;
            let count = (to - at).min(room as u64);
            if file.take(count).read_to_end(&mut bytes)? as u64 != count {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            at += count;
        }
        Ok(bytes)
    }
}

impl Kept {
    /// The first byte that is kept.
    fn oldest(&self) -> u64 {
        (self.dropped * BLOCK_BYTES) as u64
    }

    /// Takes the oldest block, where there are as many as may be.
    fn drop_oldest(&mut self) -> Option<usize> {
        if self.blocks.len() < self.most_blocks? {
            return None;
        }
        let block = self.blocks.pop_front()?;
        self.dropped += 1;
        let oldest = self.oldest();
        let later = self.pieces.partition_point(|(start, _)| *start <= oldest);
        self.pieces.drain(..later.saturating_sub(1));
        Some(block)
    }
}

/// Finds the whole characters from the one that byte `at` lies in, up to `limit` bytes but one at least; returns
/// where they begin. The bytes are of a text, and may begin and end in the middle of a character.
fn characters(bytes: &[u8], at: usize, limit: usize) -> (usize, String) {
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let cut = bytes.iter().take_while(is_continuation).count();
    let mut whole = bytes.split_at(cut).1.utf8_chunks();
    let text = whole.next().map_or("", |chunk| chunk.valid());
    let first = text.floor_char_boundary(at.saturating_sub(cut));
    let end = text.floor_char_boundary(first.saturating_add(limit));
    let end = end.max(text.ceil_char_boundary(first + 1));
    let text = text.get(first..end).unwrap_or_default();
    (cut + first, text.to_owned())
}

/// What is kept is far smaller than any address space but the smallest, where a read then fails.
fn usize_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
