//! That a session is open.

use tokio::sync::mpsc;

use super::writer::Work;
use crate::held::Hold;

/// That a session is open. Once nobody has it open any more, it is let go of.
pub(super) struct Open {
    hold: Option<Hold>,
    work: mpsc::WeakSender<Work>,
}

impl Open {
    pub(super) fn new(hold: Hold, work: mpsc::WeakSender<Work>) -> Self {
        Self {
            hold: Some(hold),
            work,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        drop(self.hold.take());
        if let Some(work) = self.work.upgrade() {
            // Where there is no place for it, the next commit lets go.
            work.try_send(Work::LetGo).ok();
        }
    }
}
