//! A call's progress as it is shown: some lines a second, and the last one always. A server may report on each of a
//! million files, and each line that is shown is an event that is kept for a resume.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The least time between two lines.
const PACE: Duration = Duration::from_millis(100);

/// The lines of one call.
#[derive(Default)]
pub(super) struct Progress {
    next: Option<Instant>,
    held: Option<String>,
}

impl Progress {
    /// Takes a line; returns it where it is shown now. One that is held back gives way to a later one.
    pub(super) fn push(&mut self, line: String) -> Option<String> {
        self.held = Some(line);
        match self.next.is_none_or(|next| next <= Instant::now()) {
            true => self.take(),
            false => None,
        }
    }

    /// Returns the line that is held back, where there is one.
    pub(super) fn take(&mut self) -> Option<String> {
        let line = self.held.take()?;
        self.next = Instant::now().checked_add(PACE);
        Some(line)
    }

    /// Waits until the line that is held back is due; never returns where there is none. Cancel-safe.
    pub(super) async fn due(&self) {
        match (&self.held, self.next) {
            (Some(_), Some(next)) => sleep_until(next).await,
            _ => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_some_lines_a_second_and_the_last_one() {
        let mut progress = Progress::default();
        let began = Instant::now();
        let mut shown = Vec::new();
        for number in 0..10_000 {
            shown.extend(progress.push(number.to_string()));
            if number % 10 == 0 {
                tokio::time::advance(Duration::from_millis(1)).await;
            }
        }
        assert_eq!(shown[0], "0");
        let seconds = began.elapsed().as_secs_f64();
        assert!(
            shown.len() as f64 <= seconds * 10.0 + 1.0,
            "{}",
            shown.len()
        );
        progress.due().await;
        assert_eq!(progress.take().as_deref(), Some("9999"));
        assert_eq!(progress.take(), None);
        let nothing = tokio::time::timeout(PACE * 10, progress.due()).await;
        assert!(nothing.is_err());
    }
}
