//! An import on its way to the task that writes; what is written of it is seen by nobody before the last slice.

use tokio::sync::{mpsc, oneshot};

use super::writer::Work;
use crate::slices::{Slice, gather};
use crate::{Changes, Error, User};

/// Makes a session of changes; for a thread for blocking work. `slices` is held while one waits: however many imports there
/// are, one does.
pub(super) fn run(
    work: &mpsc::Sender<Work>,
    slices: &parking_lot::Mutex<()>,
    (user, session): (&User, &str),
    mut changes: Changes,
) -> Result<(), Error> {
    let mut under_way = UnderWay {
        work,
        session,
        is_whole: false,
    };
    while !under_way.is_whole {
        let (changes, is_last) = gather(&mut changes)?;
        let slice = Slice {
            user: user.clone(),
            session: session.to_owned(),
            changes,
            is_last,
        };
        let (reply, answer) = oneshot::channel();
        let _one = slices.lock();
        work.blocking_send(Work::Slice(slice, reply))
            .map_err(|_| Error::Closed)?;
        answer.blocking_recv().map_err(|_| Error::Closed)??;
        under_way.is_whole = is_last;
    }
    Ok(())
}

/// An import that is under way. Dropping it before it is whole has what was written of it removed.
struct UnderWay<'a> {
    work: &'a mpsc::Sender<Work>,
    session: &'a str,
    is_whole: bool,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.is_whole {
            self.work
                .blocking_send(Work::BreakOff(self.session.to_owned()))
                .ok();
        }
    }
}
