//! Which submodules git's index names, whichever way git reads it: front to back, or in parts at once.
//!
//! It is a command that wrote it, maybe to be read differently here and there. What is not as git writes it is broken.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::noted::{Stamp, stamp};
use super::references::text_at;

/// Its name below git's directory.
pub(crate) const INDEX: &str = "index";

/// Most bytes of an index that are read: one of 400,000 files has 50 MB.
const MAX_BYTES: u64 = 128 * 1024 * 1024;

/// Most bytes that are read of all that are followed in one look.
const MAX_LOOK_BYTES: u64 = 2 * MAX_BYTES;

/// Most bytes of an index in which one file is looked for: one of 120,000 files.
const MAX_LOOKED_IN: u64 = 16 * 1024 * 1024;

/// Most submodules that one may name.
const MAX_LINKS: usize = 16 * 1_024;

/// What stands before the entries: the mark, the version, the number.
const HEADER: usize = 12;

/// Where an entry has its mode, and its hash.
const MODE: usize = 24;
const HASH: usize = 40;

/// Lengths of a hash, in bytes.
const SHA1: usize = 20;
const SHA256: usize = 32;

const KIND_MASK: u32 = 0o170_000;
const SUBMODULE: u32 = 0o160_000;
const EXTENDED: u16 = 0x4000;
const LENGTH_MASK: u16 = 0xfff;

/// What an index names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Index {
    /// Nothing where it was too young to be trusted.
    stamp: Option<Stamp>,
    /// Submodules by their path below the work tree; of an odd index also other entries.
    pub(crate) links: Vec<OsString>,
    pub(crate) state: State,
}

/// How far an index is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    Read,
    /// With folders in the place of what is in them: what it names besides is known.
    Sparse,
    /// Of a later version, or too large.
    Unknown,
    /// Not as git writes it.
    Broken,
}

/// The entries of one file.
#[derive(Debug, Default)]
struct Entries {
    links: Vec<OsString>,
    /// Every name, where these are asked for.
    names: Vec<OsString>,
    /// Whether a submodule has its name in the shared index.
    nameless: bool,
    /// The hash of the shared index, where that has the rest.
    shared: Option<String>,
    is_sparse: bool,
}

/// How much may still be read in one look.
#[derive(Debug)]
pub(super) struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Self(MAX_LOOK_BYTES)
    }
}

impl Index {
    /// Reads the index in a directory of git; `before` is what was read there earlier.
    pub(super) fn read(git: &Path, before: Option<&Self>, budget: &mut Budget) -> Self {
        let without = |state| Self {
            stamp: None,
            links: Vec::new(),
            state,
        };
        let Ok(dir) = Dir::open_ambient_dir(git, ambient_authority()) else {
            return without(State::Read);
        };
        let now = match stamp(&dir, OsStr::new(INDEX)) {
            Ok(None) => return without(State::Read),
            Ok(Some((FileType::RegularFile, now))) => now,
            _ => return without(State::Broken),
        };
        if let Some(before) = before
            && before.stamp == Some(now)
        {
            return before.clone();
        }
        let Some(hash) = hash_length(git) else {
            return without(State::Broken);
        };
        let own = content(&dir, INDEX, budget).and_then(|bytes| entries(&bytes, hash, false));
        let own = match own {
            Ok(own) => own,
            Err(state) => return without(state),
        };
        // Of the shared one git looks at no more than its last bytes, and the stamp says nothing of it.
        let is_whole = own.shared.is_none();
        let state = if own.is_sparse {
            State::Sparse
        } else {
            State::Read
        };
        match links(&dir, own, hash, budget) {
            Ok(links) => Self {
                stamp: (is_whole && now.is_settled()).then_some(now),
                links,
                state,
            },
            Err(state) => without(state),
        }
    }
}

/// Whether the index in a directory of git names a file; `None` where that cannot be told.
pub(super) fn holds(git: &Path, path: &str) -> Option<bool> {
    let dir = Dir::open_ambient_dir(git, ambient_authority()).ok()?;
    match stamp(&dir, OsStr::new(INDEX)) {
        Ok(None) => return Some(false),
        Ok(Some((FileType::RegularFile, _))) => {}
        _ => return None,
    }
    let hash = hash_length(git)?;
    let mut budget = Budget(MAX_LOOKED_IN);
    let own = entries(&content(&dir, INDEX, &mut budget).ok()?, hash, true).ok()?;
    let is_named = own.names.iter().any(|name| name == path);
    // A shared or sparse index has names elsewhere.
    let is_whole = own.shared.is_none() && !own.is_sparse;
    (is_named || is_whole).then_some(is_named)
}

/// How long a hash is, by the settings; `None` where they may be read in more than one way.
fn hash_length(git: &Path) -> Option<usize> {
    let common = text_at(&git.join("commondir")).unwrap_or_default();
    let config = text_at(&git.join(common.trim()).join("config")).unwrap_or_default();
    let config = config.to_ascii_lowercase();
    if !config.contains("objectformat") {
        return Some(SHA1);
    }
    let mut section = "";
    let mut length = None;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        }
        // As git itself writes it, and once.
        let said = match line {
            "objectformat = sha1" => SHA1,
            "objectformat = sha256" => SHA256,
            _ if line.contains("objectformat") => return None,
            _ => continue,
        };
        if section != "[extensions]" || length.is_some() {
            return None;
        }
        length = Some(said);
    }
    length
}

/// The submodules that the index names, by itself and in the file it shares with earlier ones.
fn links(
    git: &Dir,
    own: Entries,
    hash: usize,
    budget: &mut Budget,
) -> Result<Vec<OsString>, State> {
    let mut links = own.links;
    if let Some(shared) = own.shared {
        let name = format!("sharedindex.{shared}");
        let shared = entries(&content(git, &name, budget)?, hash, own.nameless)?;
        links.extend(shared.links);
        // Any of them may be the one.
        links.extend(shared.names);
    }
    links.sort();
    links.dedup();
    Ok(links)
}

fn content(git: &Dir, name: &str, budget: &mut Budget) -> Result<Vec<u8>, State> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(git, name, flags | OFlags::NOCTTY, Mode::empty());
    let file = std::fs::File::from(opened.map_err(|_| State::Broken)?);
    let metadata = file.metadata().map_err(|_| State::Broken)?;
    if !metadata.is_file() {
        return Err(State::Broken);
    }
    let most = budget.0.min(MAX_BYTES);
    if metadata.len() > most {
        return Err(State::Unknown);
    }
    let mut bytes = Vec::new();
    let length = file.take(most + 1).read_to_end(&mut bytes);
    budget.0 = budget.0.saturating_sub(bytes.len() as u64);
    match length {
        Ok(length) if length as u64 <= most => Ok(bytes),
        _ => Err(State::Unknown),
    }
}

/// Reads one file; gitformat-index(5).
fn entries(bytes: &[u8], hash: usize, all: bool) -> Result<Entries, State> {
    let broken = State::Broken;
    if !bytes.starts_with(b"DIRC") {
        return Err(broken);
    }
    let version = number(bytes, 4).ok_or(broken)?;
    if !(2..=4).contains(&version) {
        return Err(State::Unknown);
    }
    let count = number(bytes, 8).ok_or(broken)?;
    let mut found = Entries::default();
    let mut name = Vec::new();
    // Where each entry is, and whether its name is whole.
    let mut starts = Vec::new();
    let mut at = HEADER;
    for _ in 0..count {
        let entry = entry(bytes, at, hash, version == 4, &mut name).ok_or(broken)?;
        starts.push((at, entry.is_whole));
        at = entry.end;
        let shown = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let shown = OsStr::from_bytes(shown);
        if entry.is_link && shown.is_empty() {
            found.nameless = true;
        } else if entry.is_link {
            // Another spelling of a path would be another submodule to us.
            let mut parts = shown.as_bytes().split(|byte| *byte == b'/');
            let is_odd = parts.any(|part| matches!(part, b"" | b"." | b".."));
            if is_odd || found.links.len() >= MAX_LINKS {
                return Err(broken);
            }
            found.links.push(shown.to_owned());
        } else if all {
            found.names.push(shown.to_owned());
        }
    }
    extensions(bytes, at, hash, &starts, &mut found)?;
    Ok(found)
}

struct Entry {
    is_link: bool,
    is_whole: bool,
    end: usize,
}

/// Reads one entry; `name` is that of the one before, of which a compressed one keeps a part.
fn entry(
    bytes: &[u8],
    start: usize,
    hash: usize,
    is_compressed: bool,
    name: &mut Vec<u8>,
) -> Option<Entry> {
    let mode = number(bytes, start + MODE)?;
    let mut at = start + HASH + hash;
    let flags = u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
    at += if flags & EXTENDED == 0 { 2 } else { 4 };
    let mut kept = 0;
    let before = at;
    if is_compressed {
        let stripped;
        (stripped, at) = variable(bytes, at)?;
        kept = name.len().checked_sub(stripped)?;
    }
    let rest = bytes.get(at..)?;
    let length = match flags & LENGTH_MASK {
        LENGTH_MASK => rest.iter().position(|byte| *byte == 0)?,
        known => usize::from(known).checked_sub(kept)?,
    };
    name.truncate(kept);
    name.extend_from_slice(rest.get(..length)?);
    let end = if is_compressed {
        at + length + 1
    } else {
        start + ((before - start + length + 8) & !7)
    };
    Some(Entry {
        is_link: mode & KIND_MASK == SUBMODULE,
        is_whole: kept == 0,
        end,
    })
}

/// Reads what stands behind the entries: that they are what git finds too where it begins in their midst.
fn extensions(
    bytes: &[u8],
    entries_end: usize,
    hash: usize,
    starts: &[(usize, bool)],
    found: &mut Entries,
) -> Result<(), State> {
    let broken = State::Broken;
    let end = bytes.len().checked_sub(hash).ok_or(broken)?;
    let mut at = entries_end;
    // The one that is last says where the entries end, and is looked for from behind.
    let last = end.checked_sub(HEADER + hash);
    let says_end = last.filter(|last| bytes.get(*last..).is_some_and(|it| it.starts_with(b"EOIE")));
    if let Some(last) = says_end
        && number(bytes, last + 8) != u32::try_from(entries_end).ok()
    {
        return Err(broken);
    }
    while at + 8 <= end {
        let length = number(bytes, at + 4).ok_or(broken)? as usize;
        let data = bytes.get(at + 8..).and_then(|rest| rest.get(..length));
        let data = data.ok_or(broken)?;
        match bytes.get(at..at + 4) {
            Some(b"sdir") => found.is_sparse = true,
            Some(b"link") => {
                let named = data.get(..hash).ok_or(broken)?;
                let has_base = named.iter().any(|byte| *byte != 0);
                found.shared = has_base.then(|| hex(named));
            }
            Some(b"IEOT") if !are_blocks(data, starts) => return Err(broken),
            _ => {}
        }
        at += 8 + length;
    }
    Ok(())
}

/// Whether blocks of entries begin where entries with whole names do, and are all there are.
fn are_blocks(data: &[u8], starts: &[(usize, bool)]) -> bool {
    let mut passed = 0;
    let blocks = data.get(4..).unwrap_or_default().chunks(8);
    for block in blocks {
        let (Some(offset), Some(count)) = (number(block, 0), number(block, 4)) else {
            return false;
        };
        let is_start = starts.get(passed) == Some(&(offset as usize, true));
        if count > 0 && !is_start {
            return false;
        }
        passed += count as usize;
    }
    passed == starts.len()
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A number in as many bytes as it needs, and where it ends.
fn variable(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        value = value.checked_mul(128)? + usize::from(byte & 127);
        if byte & 128 == 0 {
            return Some((value, at));
        }
        value = value.checked_add(1)?;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
