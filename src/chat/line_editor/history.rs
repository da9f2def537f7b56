//! What was sent before, and the file that keeps it: messages and commands, never an answer to a question.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rustyline::Config;
use rustyline::history::{FileHistory, History as _};
use tokio::task::spawn_blocking;

/// The most entries: months of chatting.
const ENTRIES: usize = 1_000;

/// The longest entry, in bytes; what is longer was pasted, and is remembered nowhere.
const ENTRY_BYTES: usize = 16 * 1024;

/// The largest file that is read: as long as this program makes it, and what escaping adds.
const FILE_BYTES: u64 = 2 * (ENTRIES * ENTRY_BYTES) as u64;

/// The file's name in the user's state folder.
const NAME: &str = "chat-history";

#[derive(Default)]
pub(super) struct History {
    entries: VecDeque<String>,
    file: Option<Keeper>,
}

/// The file, which is read and written beside the chat. Several chats may have it.
#[derive(Clone)]
struct Keeper {
    path: PathBuf,
    file: Arc<Mutex<FileHistory>>,
}

impl History {
    /// Reads what earlier chats of this user have left; what cannot be read is as if it were not there.
    pub(super) async fn of_user() -> Self {
        let folder = dirs::state_dir().or_else(dirs::data_local_dir);
        let Some(folder) = folder.map(|folder| folder.join("outrigger")) else {
            return Self::default();
        };
        let read = spawn_blocking(move || Self::read(folder.join(NAME)));
        read.await.unwrap_or_default()
    }

    /// Reads a file.
    fn read(path: PathBuf) -> Self {
        let config = Config::builder()
            .max_history_size(ENTRIES)
            .map(rustyline::config::Builder::build);
        let mut file = FileHistory::with_config(&config.unwrap_or_default());
        let size = std::fs::metadata(&path).map_or(0, |facts| facts.len());
        if size > FILE_BYTES {
            tracing::debug!(path = %path.display(), size, "the history is too large to be read");
            return Self::default();
        }
        if size > 0
            && let Err(error) = file.load(&path)
        {
            tracing::debug!(path = %path.display(), %error, "the history could not be read");
        }
        Self {
            entries: file.iter().cloned().collect(),
            file: Some(Keeper {
                path,
                file: Arc::new(Mutex::new(file)),
            }),
        }
    }

    /// Keeps a line that was sent; none that begins with a blank, as shells do.
    pub(super) fn add(&mut self, line: &str) {
        let is_wanted = !line.trim().is_empty() && !line.starts_with(' ');
        if !is_wanted
            || line.len() > ENTRY_BYTES
            || self.entries.back().is_some_and(|last| last == line)
        {
            return;
        }
        if self.entries.len() == ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(line.to_owned());
        if let Some(keeper) = self.file.clone() {
            let line = line.to_owned();
            drop(spawn_blocking(move || keeper.add(&line)));
        }
    }

    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entry(&self, index: usize) -> Option<&str> {
        self.entries.get(index).map(String::as_str)
    }
}

impl Keeper {
    fn add(&self, line: &str) {
        let mut file = self.file.lock();
        let added = file.add(line).and_then(|_| {
            self.make()?;
            file.append(&self.path)
        });
        if let Err(error) = added {
            tracing::debug!(path = %self.path.display(), %error, "the history could not be written");
        }
    }

    /// Makes the file where there is none, readable for its owner alone from its first moment on.
    fn make(&self) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = std::fs::OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        drop(options.open(&self.path)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_bounded_and_not_doubled() {
        let mut history = History::default();
        let long = "x".repeat(ENTRY_BYTES + 1);
        for line in ["a", "a", "", "  ", " secret", &long, "b"] {
            history.add(line);
        }
        assert_eq!(history.entries, ["a", "b"]);
        for number in 0..ENTRIES {
            history.add(&number.to_string());
        }
        assert_eq!(history.count(), ENTRIES);
        assert_eq!(history.entry(0), Some("0"));
    }

    #[test]
    fn the_file_is_private_bounded_and_shared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").join(NAME);
        let chats = [History::read(path.clone()), History::read(path.clone())];
        let [first, second] = chats.map(|history| history.file.unwrap());
        first.add("one\nof two lines");
        second.add("two \\ 漢");
        first.add("three");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let again = History::read(path.clone());
        assert_eq!(again.entries, ["one\nof two lines", "two \\ 漢", "three"]);
        for number in 0..ENTRIES + 5 {
            let keeper = again.file.clone().unwrap();
            keeper.add(&number.to_string());
        }
        let again = History::read(path);
        assert_eq!(again.count(), ENTRIES);
        assert_eq!(again.entry(0), Some("5"));
    }
}
