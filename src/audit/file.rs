//! The file of the audit log: opened so that nobody else can have prepared it, appended to, and put aside when it is long.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The most older files that are kept.
pub const MAX_KEPT: u64 = 100;

#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
    keep: u32,
    /// The last line was cut off by an error.
    torn: bool,
}

impl LogFile {
    /// Opens the file, or makes it and the folder above, for this user alone.
    ///
    /// # Errors
    ///
    /// The system's; or what it is instead of a file of this user.
    pub(super) fn open(path: &Path, max_bytes: u64, keep: u32) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            let mut builder = fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.recursive(true).create(folder)?;
        }
        let file = open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            torn: bytes > 0 && !ends_with_a_line(path),
            file,
            bytes,
            max_bytes,
            keep,
        })
    }

    /// Appends whole lines with one write, which other daemons on the same file cannot cut in two.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.follow()?;
        let full = self.bytes > 0 && self.bytes + lines.len() as u64 > self.max_bytes;
        if full {
            self.put_aside()?;
        }
        let newline: &[u8] = if self.torn { b"\n" } else { b"" };
        let text = [newline, lines].concat();
        let written = self.file.write(&text)?;
        let is_whole = written == text.len();
        if written > 0 {
            self.bytes += written as u64;
            self.torn = !is_whole;
        }
        match is_whole {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// Has the system write what it holds back, as far as it does.
    pub(super) fn sync(&self) {
        self.file.sync_data().unwrap_or_default();
    }

    /// Opens the file anew where somebody put it aside or removed it.
    fn follow(&mut self) -> io::Result<()> {
        if is_device(&self.file) || is_the_same(&self.path, &self.file) {
            return Ok(());
        }
        self.file = open(&self.path)?;
        self.bytes = self.file.metadata()?.len();
        self.torn = false;
        Ok(())
    }

    /// `audit.log` becomes `audit.log.1`, that becomes `.2`, and the oldest goes.
    fn put_aside(&mut self) -> io::Result<()> {
        if is_device(&self.file) {
            return Ok(());
        }
        for number in (1..self.keep).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.numbered(1))?;
        self.follow()
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

fn ends_with_a_line(path: &Path) -> bool {
    use std::io::{Read, Seek, SeekFrom};

    let mut last = [0];
    File::open(path)
        .and_then(|mut file| {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)
        })
        .is_ok_and(|()| last == [b'\n'])
}

/// Opens for appending: no link at the end is followed, no device or pipe waits, nobody else owns it or has a name for it.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{
        FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    };

    use rustix::fs::OFlags;

    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)?;
    let metadata = file.metadata()?;
    let refuse = |what: &str| Err(io::Error::other(what.to_owned()));
    if metadata.file_type().is_char_device() {
        return Ok(file);
    }
    if !metadata.is_file() {
        return refuse("it is no regular file");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return refuse("it belongs to another user");
    }
    if metadata.nlink() > 1 {
        return refuse("it has a second name (a hard link)");
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(unix)]
fn is_device(file: &File) -> bool {
    use std::os::unix::fs::FileTypeExt as _;

    file.metadata()
        .is_ok_and(|metadata| metadata.file_type().is_char_device())
}

#[cfg(unix)]
fn is_the_same(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    match (fs::symlink_metadata(path), file.metadata()) {
        (Ok(there), Ok(ours)) => (there.dev(), there.ino()) == (ours.dev(), ours.ino()),
        _ => false,
    }
}

#[cfg(windows)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;

    /// `FILE_FLAG_OPEN_REPARSE_POINT`: a link is opened itself.
    const NOFOLLOW: u32 = 0x0020_0000;

    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(NOFOLLOW)
        .open(path)?;
    let refuse = |what: &str| Err(io::Error::other(what.to_owned()));
    // What `NUL` opens has no links.
    if is_device(&file) {
        return Ok(file);
    }
    if !file.metadata()?.is_file() {
        return refuse("it is no regular file");
    }
    if winapi_util::file::information(&file)?.number_of_links() > 1 {
        return refuse("it has a second name (a hard link)");
    }
    Ok(file)
}

#[cfg(windows)]
fn is_device(file: &File) -> bool {
    winapi_util::file::typ(file).is_ok_and(|kind| kind.is_char())
}

#[cfg(windows)]
fn is_the_same(path: &Path, file: &File) -> bool {
    let place = |file: &File| {
        let information = winapi_util::file::information(file).ok()?;
        Some((information.volume_serial_number(), information.file_index()))
    };
    let there = File::open(path).ok();
    there.and_then(|there| place(&there)) == place(file)
}
