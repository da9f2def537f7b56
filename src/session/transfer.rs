//! Sessions as files: read in pieces by `session:export`, made of pieces by `session:import`.
//!
//! Either file has no name and lies beside the store. An export is made whole, of the session as it is then, and read from
//! there; what is imported is gathered there, looked at whole, and only then written.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::Session;
use super::counted::{count_request, room};
use super::imports::{Incoming, Place};
use super::kept::{failed, unchanged};
use super::projects;
use super::resolve::invalid;
use crate::message::SessionId;
use crate::protocol::command::{SessionExport, SessionFormat, SessionImport};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::{RequestId, SessionCode, answer};
use crate::store::transfer::{Export, Import, MAX_BYTES};
use crate::store::{Store as _, UserStore, updated};

/// Bytes of a piece where the request does not say, and the most.
const PIECE: u64 = 256 * 1024;
const MAX_PIECE: u64 = 1024 * 1024;

/// The longest character, in bytes.
const CHARACTER: u64 = 4;

/// Files on their way.
#[derive(Default)]
pub(super) struct Transfers {
    export: Arc<Mutex<Option<Exported>>>,
    import: Option<Arc<Place>>,
}

/// The session that was exported last.
struct Exported {
    session: SessionId,
    format: SessionFormat,
    file: File,
    bytes: u64,
}

impl Session {
    pub(super) fn export_session(&self, wanted: &SessionExport, id: Option<&RequestId>) {
        if wanted.limit == Some(0) {
            let problem = invalid("session:export: field `limit` must be 1 at least");
            return self.answer(id, Event::SessionError(problem));
        }
        let session_id = self.or_this(wanted.session_id.clone());
        let (format, offset) = (wanted.format, wanted.offset);
        let limit = wanted.limit.unwrap_or(PIECE).min(MAX_PIECE);
        let export = Arc::clone(&self.transfers.export);
        self.with_store(id, async move |store| {
            let mut export = export.lock().await;
            if offset == 0 {
                // Two are never there at once.
                *export = None;
                *export = Some(exported(&store, session_id.clone(), format).await?);
            }
            let is_it = |it: &Exported| it.session == session_id && it.format == format;
            let Some(whole) = export.take().filter(is_it) else {
                return Err(invalid(
                    "session:export: field `offset`: another export was begun, or this one was read to its end; begin with 0",
                ));
            };
            let read = blocking(move || Ok((whole.piece(offset, limit)?, whole)));
            let ((offset, text), whole) = read.await.map_err(|it| unreadable(&it))?;
            let end = offset + text.len() as u64;
            let total_bytes = whole.bytes;
            let next_offset = (end < total_bytes).then_some(end);
            if next_offset.is_some() {
                *export = Some(whole);
            }
            Ok(Event::SessionExportResult(answer::SessionExported {
                session_id,
                format,
                text,
                offset,
                next_offset,
                total_bytes,
            }))
        });
    }

    /// Takes a piece of a file; the last one makes the session.
    pub(super) async fn import_session(&mut self, wanted: SessionImport, id: Option<&RequestId>) {
        let (part, has_more) = (wanted.part, wanted.more);
        // One that went wrong is begun anew.
        let before = self.transfers.import.take();
        match self.gathered(before, wanted).await {
            Ok((incoming, place)) if has_more => {
                place.wait(incoming);
                self.transfers.import = Some(place);
                let taken = answer::SessionImported {
                    part,
                    session_id: None,
                    messages: None,
                };
                self.answer(id, Event::SessionImportResult(taken));
            }
            Ok((incoming, place)) => self.import(incoming, place, part, id),
            Err(problem) => self.answer(id, Event::SessionError(problem)),
        }
    }

    async fn gathered(
        &self,
        before: Option<Arc<Place>>,
        wanted: SessionImport,
    ) -> Result<(Incoming, Arc<Place>), SessionError> {
        let Some(store) = self.store() else {
            let problem = "sessions are not kept here (store.enabled)";
            return Err(SessionError::new(SessionCode::Forbidden, problem));
        };
        let (mut incoming, place) = match before.filter(|_| wanted.part > 0) {
            Some(place) => {
                let incoming = place.take().ok_or_else(|| {
                    let problem = "nothing came of this import for so long that another one took its place; send the file anew, from part 0";
                    SessionError::new(SessionCode::RateLimited, problem)
                })?;
                (incoming, place)
            }
            None => {
                // Before a long file is on its way for nothing.
                count_request(&self.daemon, Some(&store), &self.services.quota).await?;
                let place = self.daemon.imports.begin().ok_or_else(|| {
                    let problem = "too many sessions are being imported at once; try again";
                    SessionError::new(SessionCode::RateLimited, problem)
                })?;
                let file = blocking(move || unnamed(&store)).await;
                let incoming = Incoming {
                    file: file.map_err(|error| unwritable(&error))?,
                    next: 0,
                    bytes: 0,
                };
                (incoming, place)
            }
        };
        if wanted.part != incoming.next {
            return Err(invalid(format!(
                "session:import: field `part`: {} would be next, not {}; send the file anew, from part 0",
                incoming.next, wanted.part
            )));
        }
        incoming.next += 1;
        incoming.bytes += wanted.text.len() as u64;
        if incoming.bytes > MAX_BYTES {
            return Err(invalid(format!(
                "session:import: a session has {} MiB at most",
                MAX_BYTES >> 20
            )));
        }
        let written = blocking(move || {
            incoming.file.write_all(wanted.text.as_bytes())?;
            Ok((incoming, place))
        });
        written.await.map_err(|error| unwritable(&error))
    }

    /// Makes a session of a file that is all there.
    fn import(&self, incoming: Incoming, place: Arc<Place>, part: u64, id: Option<&RequestId>) {
        let Incoming { file, bytes, .. } = incoming;
        let (daemon, quota) = (Arc::clone(&self.daemon), Arc::clone(&self.services.quota));
        let (config, grant) = (self.daemon.services.config(), Arc::clone(&self.grant));
        let here = projects::root(&self.shared.workspace);
        // Another machine's folder is none to work in here.
        let project = move |named: Option<&str>| {
            let named = named.filter(|named| {
                config.project.may_be(named) && grant.allows_folder(Path::new(named))
            });
            named.map(str::to_owned).or_else(|| here.clone())
        };
        let updates = self.updates();
        self.with_store(id, async move |store| {
            let _place = place;
            room(&daemon, Some(&store), &quota, bytes).await?;
            let wrong = |problem: String| invalid(format!("session:import: {problem}"));
            let checked = tokio::task::spawn_blocking(move || {
                let again = file.try_clone().map_err(|error| error.to_string())?;
                let messages = Import::new(file, project.clone())?.check()?;
                Ok((messages, Import::new(again, project)?))
            });
            let checked: Result<_, String> = checked.await.unwrap_or_else(|it| Err(it.to_string()));
            let (messages, changes) = checked.map_err(wrong)?;
            let session_id = SessionId::random().ok_or_else(|| {
                SessionError::new(SessionCode::Internal, "no random numbers for an id")
            })?;
            let made = store.import(session_id.as_str(), Box::new(changes));
            made.await.map_err(|error| unchanged(&error))?;
            updates.send(updated(&session_id));
            Ok(Event::SessionImportResult(answer::SessionImported {
                part,
                session_id: Some(session_id),
                messages: Some(messages),
            }))
        });
    }
}

/// Makes the file of a session as it is now.
async fn exported(
    store: &UserStore,
    session: SessionId,
    format: SessionFormat,
) -> Result<Exported, SessionError> {
    let beside = store.clone();
    let made = blocking(move || {
        let file = unnamed(&beside)?;
        let export = Export::new(format, file.try_clone()?);
        Ok((file, export))
    });
    let (file, export) = made.await.map_err(|error| unwritable(&error))?;
    let found = store.export(session.as_str(), export.each()).await;
    if !found.map_err(|error| failed(&error))? {
        return Err(super::kept::unknown(&session));
    }
    let written = blocking(move || {
        export.end()?;
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    });
    let (file, bytes) = written.await.map_err(|error| unwritable(&error))?;
    Ok(Exported {
        session,
        format,
        file,
        bytes,
    })
}

impl Exported {
    /// Reads whole characters from a byte on, that one's among them; at least one, where it is not the end.
    fn piece(&self, offset: u64, limit: u64) -> io::Result<(u64, String)> {
        let offset = offset.min(self.bytes);
        let from = offset.saturating_sub(CHARACTER - 1);
        let most = offset - from + limit + CHARACTER - 1;
        let mut file = &self.file;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        let place = |byte: u64| usize::try_from(byte - from).unwrap_or(usize::MAX);
        let (begin, end) = whole(&bytes, place(offset), place(offset + limit));
        let piece = bytes.get(begin..end).unwrap_or_default();
        Ok((
            from + begin as u64,
            String::from_utf8_lossy(piece).into_owned(),
        ))
    }
}

/// Returns the range of whole characters that begins with the one at `begin` and ends at `end` or before it, and has one
/// at least.
fn whole(bytes: &[u8], begin: usize, end: usize) -> (usize, usize) {
    let is_begin = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    let begin = (0..=begin.min(bytes.len()))
        .rev()
        .find(is_begin)
        .unwrap_or(0);
    let end = (begin + 1..=end.min(bytes.len())).rev().find(is_begin);
    let first = || (begin + 1..=bytes.len()).find(is_begin).unwrap_or(begin);
    (begin, end.unwrap_or_else(first))
}

/// Makes a file without a name beside the store, where there is room for it and nobody else looks; in the folder for
/// temporary files where the store is in a database.
fn unnamed(store: &UserStore) -> io::Result<File> {
    let Some(file) = store.file() else {
        return tempfile::tempfile();
    };
    let folder = file.parent();
    tempfile::tempfile_in(folder.unwrap_or_else(|| Path::new(".")))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn unwritable(error: &io::Error) -> SessionError {
    let problem = format!("the file cannot be written beside the store: {error}");
    SessionError::new(SessionCode::Internal, problem)
}

fn unreadable(error: &io::Error) -> SessionError {
    let problem = format!("the exported file cannot be read: {error}");
    SessionError::new(SessionCode::Internal, problem)
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn a_piece_has_whole_characters() {
        let text = "aé🦀b";
        let bytes = text.as_bytes();
        for (begin, end, expected) in [
            (0, 1, "a"),
            (0, 2, "a"),
            (0, 3, "aé"),
            (1, 2, "é"),
            // From within a character, and one that is longer than is wanted.
            (2, 3, "é"),
            (3, 4, "🦀"),
            (5, 8, "🦀b"),
            (8, 8, ""),
            (7, 900, "b"),
        ] {
            let (from, to) = whole(bytes, begin, end);
            assert_eq!(text.get(from..to), Some(expected), "{begin}..{end}");
        }
    }
}
