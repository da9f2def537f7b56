//! The signals that ask for the end of a chat, which then ends its own daemon, and puts a terminal back as it was before.

use std::io;

/// Waits for SIGTERM and SIGHUP.
#[cfg(unix)]
pub(super) struct Ends {
    terminate: tokio::signal::unix::Signal,
    /// `None` where it does what it did before.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Ends {
    /// `composes` says that a person types on a terminal, whose end a hangup tells of.
    pub(super) fn new(composes: bool) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let is_heard = composes || !ignores_hangup();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: is_heard.then(|| signal(SignalKind::hangup())).transpose()?,
        })
    }

    /// Waits until somebody asks for the end; returns the exit code for that, as shells have it.
    pub(super) async fn asked(&mut self) -> u8 {
        use tokio::signal::unix::SignalKind;

        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let signal = tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = hangup => SignalKind::hangup(),
        };
        u8::try_from(128 + signal.as_raw_value()).unwrap_or(crate::ready::exit::FAILED)
    }
}

/// Whether whoever started this process has it ignore hangups, as `nohup` does. Only Linux says; not known counts as yes.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    // The first bit is for the signal 1.
    ignored.is_none_or(|signals| signals & 1 == 1)
}

#[cfg(windows)]
pub(super) struct Ends;

#[cfg(windows)]
impl Ends {
    pub(super) fn new(_composes: bool) -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn asked(&mut self) -> u8 {
        std::future::pending().await
    }
}
