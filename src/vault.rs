//! Where the daemon keeps small secrets of its own, such as tokens of servers that somebody has signed in to: in the system's
//! keyring where it has one that a program without a desktop can open, else in a file each that its user alone may read, else in
//! memory. What they are is their owner's affair.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::config::TokenStore;
use crate::sandbox::private_directory;

/// The largest entry that is read, in bytes.
const MAX_ENTRY: u64 = 256 * 1024;

/// Keeps secrets; clones share them.
#[derive(Clone)]
pub(crate) struct Vault(Arc<Inner>);

struct Inner {
    /// `None` where there is no folder, or none is wanted.
    folder: Option<PathBuf>,
    uses_keyring: bool,
    /// What could not be kept elsewhere.
    memory: Mutex<HashMap<String, String>>,
}

impl Vault {
    pub(crate) fn new(store: TokenStore, folder: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner {
            folder: folder.filter(|_| store != TokenStore::Memory),
            uses_keyring: store == TokenStore::Auto,
            memory: Mutex::default(),
        }))
    }

    /// Returns what is kept under a name; nothing where it cannot be read, which the log says.
    pub(crate) async fn load(&self, name: &str) -> Option<String> {
        let (this, name) = (Arc::clone(&self.0), hashed(name));
        let text = tokio::task::spawn_blocking(move || this.read(&name));
        text.await.ok()?
    }

    /// Keeps a text; in memory where it cannot be kept for longer, which the log says.
    pub(crate) async fn save(&self, name: &str, text: String) {
        let (this, name) = (Arc::clone(&self.0), hashed(name));
        drop(tokio::task::spawn_blocking(move || this.write(&name, text)).await);
    }

    /// Whether other processes write into it, and a look costs nothing: a keyring may ask whoever is at the machine.
    pub(crate) fn is_worth_a_look(&self) -> bool {
        let asks = self.0.uses_keyring && keyring::IS_THERE;
        self.0.folder.is_some() && !asks
    }

    pub(crate) async fn remove(&self, name: &str) {
        let (this, name) = (Arc::clone(&self.0), hashed(name));
        drop(tokio::task::spawn_blocking(move || this.delete(&name)).await);
    }
}

/// Any name as one of a file.
fn hashed(name: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(name))
}

impl Inner {
    fn read(&self, name: &str) -> Option<String> {
        if let Some(text) = self.memory.lock().get(name) {
            return Some(text.clone());
        }
        if self.uses_keyring
            && let Some(text) = keyring::get(name)
        {
            return Some(text);
        }
        let path = self.path(name)?;
        let read = read_file(&path).inspect_err(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(%error, path = %path.display(), "a kept secret cannot be read");
            }
        });
        read.ok()
    }

    fn write(&self, name: &str, text: String) {
        if self.uses_keyring && keyring::set(name, &text) {
            // Not in two places, of which one would be forgotten.
            drop(self.path(name).map(std::fs::remove_file));
            return;
        }
        let written = match self.path(name) {
            Some(path) => write_file(&path, &text).inspect_err(|error| {
                tracing::warn!(%error, path = %path.display(), "a secret is not kept: it lasts until the daemon ends");
            }),
            None => Err(io::ErrorKind::Unsupported.into()),
        };
        let mut memory = self.memory.lock();
        match written {
            Ok(()) => drop(memory.remove(name)),
            Err(_) => drop(memory.insert(name.to_owned(), text)),
        }
    }

    fn delete(&self, name: &str) {
        self.memory.lock().remove(name);
        if self.uses_keyring {
            keyring::delete(name);
        }
        drop(self.path(name).map(std::fs::remove_file));
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(format!("{name}.json")))
    }
}

fn read_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    io::Read::read_to_string(&mut io::Read::take(file, MAX_ENTRY), &mut text)?;
    Ok(text)
}

/// Writes a file of mode 0600 by rename, so that nobody reads half of it, nor finds half of it after a loss of power.
fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    private_directory(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// The keyring of macOS and of Windows. On Linux there is none: the Secret Service would bring 31 crates more, a second
/// runtime among them, for a service that belongs to a desktop and is not there, or locked, where a daemon runs.
mod keyring {
    pub(super) const IS_THERE: bool = cfg!(any(target_os = "macos", windows));

    #[cfg(any(target_os = "macos", windows))]
    const SERVICE: &str = "outrigger-mcp";

    #[cfg(target_os = "macos")]
    fn store() -> keyring_core::Result<std::sync::Arc<keyring_core::CredentialStore>> {
        Ok(apple_native_keyring_store::keychain::Store::new()?)
    }

    #[cfg(windows)]
    fn store() -> keyring_core::Result<std::sync::Arc<keyring_core::CredentialStore>> {
        Ok(windows_native_keyring_store::Store::new()?)
    }

    #[cfg(any(target_os = "macos", windows))]
    fn entry(name: &str) -> keyring_core::Result<keyring_core::Entry> {
        store()?.build(SERVICE, name, None)
    }

    #[cfg(any(target_os = "macos", windows))]
    pub(super) fn get(name: &str) -> Option<String> {
        let secret = entry(name).and_then(|entry| entry.get_secret()).ok()?;
        String::from_utf8(secret).ok()
    }

    /// Whether it was taken; what is too long for Windows' is not.
    #[cfg(any(target_os = "macos", windows))]
    pub(super) fn set(name: &str, text: &str) -> bool {
        let set = entry(name).and_then(|entry| entry.set_secret(text.as_bytes()));
        if set.is_err() {
            // What it had before is over.
            delete(name);
        }
        set.inspect_err(|error| tracing::debug!(%error, "the keyring does not take a secret"))
            .is_ok()
    }

    #[cfg(any(target_os = "macos", windows))]
    pub(super) fn delete(name: &str) {
        drop(entry(name).and_then(|entry| entry.delete_credential()));
    }

    #[cfg(not(any(target_os = "macos", windows)))]
    pub(super) fn get(_: &str) -> Option<String> {
        None
    }

    #[cfg(not(any(target_os = "macos", windows)))]
    pub(super) fn set(_: &str, _: &str) -> bool {
        false
    }

    #[cfg(not(any(target_os = "macos", windows)))]
    pub(super) fn delete(_: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_name_has_a_file_that_nobody_else_may_read() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        let vault = Vault::new(TokenStore::File, Some(folder.clone()));
        vault.save("anna at one", "1".to_owned()).await;
        vault.save("anna at one", "11".to_owned()).await;
        vault.save("anna/../at two", "2".to_owned()).await;
        assert_eq!(vault.load("anna at one").await.as_deref(), Some("11"));
        assert_eq!(vault.load("ben at one").await, None);
        let files: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
        assert_eq!(files.len(), 2, "{files:?}");
        #[cfg(unix)]
        for file in files {
            let mode =
                std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
        vault.remove("anna at one").await;
        assert_eq!(vault.load("anna at one").await, None);
    }

    #[tokio::test]
    async fn what_cannot_be_written_lasts_as_long_as_the_daemon() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("no-folder");
        std::fs::write(&file, "").unwrap();
        for (store, folder) in [
            (TokenStore::File, Some(file)),
            (TokenStore::File, None),
            (TokenStore::Memory, Some(place.path().to_owned())),
        ] {
            let vault = Vault::new(store, folder);
            vault.save("x", "1".to_owned()).await;
            assert_eq!(vault.load("x").await.as_deref(), Some("1"));
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
