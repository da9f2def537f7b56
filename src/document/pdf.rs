//! The text of a PDF, page by page.
//!
//! The file may have been made to do harm. What is bounded: its size, pages, the text that is taken of it, how far each
//! of its compressed streams may be inflated (those of a whole page together), how much its objects are, how deep it is
//! nested, and how many files are read at once. A thread of its own reads it, so that a panic ends there, with a stack that the depth fits into.
//! The time is looked at with each object, page and operation; the work ends where it is over, and nobody waits longer.
//!
//! What is not bounded: a single step of the library, between two looks at the clock, which goes on alone and keeps its
//! slot; the time of a file that is encrypted with an empty password, while it is loaded, since nothing of ours is called
//! then; and what the library remembers of packed objects while it loads, beyond what it can unpack in the time.

mod font;
mod page;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use lopdf::{DecompressError, Dictionary, Document, Error, LoadOptions, Object, ObjectId};
use parking_lot::{Condvar, Mutex};

use super::{MAX_PAGES, MAX_TEXT_BYTES};

/// How long a file may take, with the wait for a slot.
pub(super) const TIME: Duration = Duration::from_secs(5);

/// How much longer its thread is waited for, which ends by itself as a rule.
const GRACE: Duration = Duration::from_secs(1);

/// Files that are read at once.
const SLOTS: usize = 2;

/// The stack of the thread: the library nests 128 deep and more, with large frames where it is not optimised.
const STACK: usize = 16 * 1024 * 1024;

/// The most bytes that a stream of objects or of cross-references is inflated to, which real ones have a tenth of.
const MAX_STREAM: usize = 4 * 1024 * 1024;

/// The most memory that all objects of a file take, roughly. Those of real files take little more than the file.
const MAX_OBJECTS: usize = 128 * 1024 * 1024;

/// How far into the file its mark may stand.
const MARK_WITHIN: usize = 1024;

/// Which pages are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pages {
    /// The first one, counted from 1.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// The most text, in bytes.
    pub(crate) max_bytes: usize,
}

/// The text of pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PdfText {
    /// Each page after a line that says its number, where the file has several; empty where none has any text.
    pub(crate) text: String,
    /// Pages of the whole file.
    pub(crate) pages: usize,
    /// How many were read in full.
    pub(crate) read: usize,
}

impl PdfText {
    /// Returns it where it is the text of the whole file.
    pub(super) fn whole(self) -> Result<Self, Unreadable> {
        match self.pages {
            pages if pages > MAX_PAGES => Err(Unreadable::TooManyPages { pages }),
            pages if pages > self.read => Err(Unreadable::TooLong),
            _ => Ok(self),
        }
    }
}

/// Why there is no text. It reads after the name of the document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("is no PDF; send it with the media type that it is of")]
    NoPdf,
    #[error("is protected by a password; send a copy without one")]
    Protected,
    #[error(
        "is damaged, or not as PDFs are; open it in a viewer, and print or save it as a new PDF"
    )]
    Damaged,
    #[error("unpacks to more than is read; print or save it as a new PDF, or send its text")]
    Bomb,
    #[error(
        "has {pages} pages, and {MAX_PAGES} are allowed; send a part of it, or put the file into the project, where the model can read it with file_read"
    )]
    TooManyPages { pages: usize },
    #[error(
        "has more than {MAX_TEXT_BYTES} bytes of text; send a part of it, or put the file into the project, where the model can read it with file_read"
    )]
    TooLong,
    #[error("could not be read within {} seconds; print or save it as a new PDF, or send its text", TIME.as_secs())]
    Overdue,
    #[error("could not be read, since others are being read; send it again in a moment")]
    Busy,
}

/// What ends the work where its time is over.
struct TimeIsOver;

/// What ends it where there are too many objects.
struct TooMuch;

/// Returns whether bytes are those of a PDF.
pub(crate) fn is_pdf(bytes: &[u8]) -> bool {
    let head = bytes.get(..MARK_WITHIN).unwrap_or(bytes);
    memchr::memmem::find(head, b"%PDF-").is_some()
}

/// Reads pages of a file. It blocks the thread, for [`TIME`] at most.
///
/// # Errors
///
/// Why it cannot be read.
pub(crate) fn read(bytes: Vec<u8>, pages: Pages) -> Result<PdfText, Unreadable> {
    let until = Instant::now() + TIME;
    let slot = Slot::take(until).ok_or(Unreadable::Busy)?;
    let (sender, outcome) = mpsc::sync_channel(1);
    let work = move || {
        let work = AssertUnwindSafe(|| text(&bytes, pages, until));
        let outcome = catch_unwind(work).unwrap_or_else(|reason| match reason.is::<TimeIsOver>() {
            true => Err(Unreadable::Overdue),
            false if reason.is::<TooMuch>() => Err(Unreadable::Bomb),
            false => Err(Unreadable::Damaged),
        });
        drop(slot);
        sender.send(outcome).ok();
    };
    let thread = std::thread::Builder::new()
        .name("document".to_owned())
        .stack_size(STACK);
    if let Err(error) = thread.spawn(work) {
        tracing::error!(%error, "the thread that reads a document could not be started");
        return Err(Unreadable::Busy);
    }
    match outcome.recv_timeout(TIME + GRACE) {
        Ok(outcome) => outcome,
        Err(_) => {
            let held = *READING.lock();
            tracing::error!(
                held,
                places = SLOTS,
                "a PDF is still being read though its time is over, and holds one of the places for PDFs until it ends; if all are held, no PDF is read: start the daemon anew, and keep the file from it (the model reads PDFs of the project with file_read, clients send them)"
            );
            Err(Unreadable::Overdue)
        }
    }
}

/// The right to read a file, given back when it is dropped.
struct Slot;

static READING: Mutex<usize> = Mutex::new(0);
static READ: Condvar = Condvar::new();

impl Slot {
    fn take(until: Instant) -> Option<Self> {
        let mut reading = READING.lock();
        while *reading >= SLOTS {
            if READ.wait_until(&mut reading, until).timed_out() {
                return None;
            }
        }
        *reading += 1;
        Some(Self)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *READING.lock() -= 1;
        READ.notify_one();
    }
}

thread_local! {
    /// When the time of this thread's file is over.
    static UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
    /// What its objects take so far, in bytes.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

/// Ends the work where its time is over: by unwinding, since the library that calls this while it loads cannot be told.
fn look_at_the_clock() {
    if UNTIL.get().is_some_and(|until| Instant::now() >= until) {
        resume_unwind(Box::new(TimeIsOver));
    }
}

fn text(bytes: &[u8], wanted: Pages, until: Instant) -> Result<PdfText, Unreadable> {
    UNTIL.set(Some(until));
    let document = load(bytes)?;
    let pages = document.page_iter().count();
    if pages == 0 {
        return Err(Unreadable::Damaged);
    }
    let mut found = PdfText {
        pages,
        ..PdfText::default()
    };
    let mut fonts = page::Fonts::new(&document);
    let (mut has_text, mut is_too_large, mut is_missing) = (false, false, false);
    let first = wanted.first.saturating_sub(1);
    let ids = document.page_iter().enumerate().skip(first);
    for (index, id) in ids.take(wanted.count) {
        look_at_the_clock();
        is_missing |= document.get_dictionary(id).is_err();
        if pages > 1 {
            let gap = if found.text.is_empty() { "" } else { "\n\n" };
            found.text.push_str(&format!("{gap}[page {}]\n", index + 1));
        }
        let start = found.text.len();
        let flow = page::read(&mut fonts, id, wanted.max_bytes, &mut found.text);
        let end = found.text.trim_end().len();
        has_text |= end > start;
        found.text.truncate(end);
        match flow {
            Ok(Flow::Continue(())) => {}
            Ok(Flow::Break(())) => break,
            Err(page::TooLarge) => {
                is_too_large = true;
                found.text.push_str("\n(this page is too large to be read)");
            }
        }
        found.read += 1;
    }
    if !has_text {
        found.text.clear();
    }
    match (has_text, is_too_large, is_missing) {
        (true, ..) | (false, false, false) => Ok(found),
        (false, true, _) => Err(Unreadable::Bomb),
        (false, false, true) => Err(Unreadable::Damaged),
    }
}

fn load(bytes: &[u8]) -> Result<Document, Unreadable> {
    let load = |force_reconstruct| {
        TAKEN.set(0);
        let options = LoadOptions {
            filter: Some(within_bounds),
            max_decompressed_size: Some(MAX_STREAM),
            force_reconstruct,
            ..LoadOptions::default()
        };
        Document::load_mem_with_options(bytes, options)
    };
    let document = match load(false) {
        // With a filter, the library does not look for objects where the table leads to none.
        Ok(document) if document.page_iter().next().is_none() && !is_locked(&document) => {
            load(true).unwrap_or(document)
        }
        loaded => loaded.map_err(|error| problem(&error))?,
    };
    match is_locked(&document) {
        true => Err(Unreadable::Protected),
        false => Ok(document),
    }
}

/// Whether the file is encrypted, with a password that is not empty.
fn is_locked(document: &Document) -> bool {
    document.trailer.has(b"Encrypt") && !document.was_encrypted()
}

/// Called by the library for each object that it loads.
fn within_bounds(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    look_at_the_clock();
    let taken = TAKEN.get().saturating_add(weight(object));
    TAKEN.set(taken);
    if taken > MAX_OBJECTS {
        resume_unwind(Box::new(TooMuch));
    }
    Some((id, object.clone()))
}

/// Returns about how many bytes an object takes. The library nests objects no deeper than it reads them.
fn weight(object: &Object) -> usize {
    let of = |dictionary: &Dictionary| -> usize {
        let entries = dictionary.iter();
        entries
            .map(|(key, value)| 3 * size_of::<usize>() + key.len() + weight(value))
            .sum()
    };
    let inner = match object {
        Object::Name(bytes) | Object::String(bytes, _) => bytes.len(),
        Object::Array(items) => items.iter().map(weight).sum(),
        Object::Dictionary(dictionary) => of(dictionary),
        Object::Stream(stream) => stream.content.len() + of(&stream.dict),
        Object::Null
        | Object::Boolean(_)
        | Object::Integer(_)
        | Object::Real(_)
        | Object::Reference(_) => 0,
    };
    size_of::<Object>() + inner
}

fn problem(error: &Error) -> Unreadable {
    match error {
        Error::InvalidPassword | Error::Decryption(_) | Error::UnsupportedSecurityHandler(_) => {
            Unreadable::Protected
        }
        Error::Decompress(DecompressError::MemoryLimitExceeded { .. }) => Unreadable::Bomb,
        _ => Unreadable::Damaged,
    }
}

/// What a step of the work comes to: it ends where there is as much text as is wanted.
type Flow = ControlFlow<()>;
