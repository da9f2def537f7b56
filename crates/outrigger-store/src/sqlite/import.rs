//! An import on its way to the thread that writes: in slices, so that what others say is written between them.
//!
//! What is written of it is seen by nobody before the last slice. Where it breaks off, the thread removes it when nothing
//! else is to do; what an ended process has left, too.

use tokio::sync::oneshot;

use super::Shared;
use super::queue::{Handle, Work};
use crate::slices::{Slice, gather};
use crate::{Changes, Error, User};

/// Makes a session of changes; for a thread for blocking work.
pub(super) fn run(
    shared: &Shared,
    (user, session): (&User, &str),
    mut changes: Changes,
) -> Result<(), Error> {
    let mut under_way = UnderWay {
        writer: &shared.writer,
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
        // However many imports there are, one slice waits.
        let _one = shared.slices.lock();
        shared.writer.send(Work::Slice(slice, reply));
        answer.blocking_recv().map_err(|_| Error::Closed)??;
        under_way.is_whole = is_last;
    }
    Ok(())
}

/// An import that is under way. Dropping it before it is whole has what was written of it removed.
struct UnderWay<'a> {
    writer: &'a Handle,
    session: &'a str,
    is_whole: bool,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.is_whole {
            self.writer.send(Work::BreakOff(self.session.to_owned()));
        }
    }
}
