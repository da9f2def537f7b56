//! That a session is open, and how long is waited for one.

use std::time::Duration;

use tokio::sync::mpsc;

use super::writer::Work;
use crate::Error;
use crate::held::Hold;

/// How long the database may take to say who has a session, and to hand it over, where another process may have it as well: whoever
/// asks is better off with an answer, and comes again, than with a process that hangs as the database does.
const ANSWER: Duration = Duration::from_secs(4);

/// Waits for an answer about a session, and no longer than that where there are several processes.
pub(super) async fn in_time<T>(
    is_one_of_several: bool,
    asked: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    if !is_one_of_several {
        return asked.await;
    }
    let answered = tokio::time::timeout(ANSWER, asked).await;
    answered.unwrap_or_else(|_| Err(Error::Failing("it does not answer".to_owned())))
}

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
