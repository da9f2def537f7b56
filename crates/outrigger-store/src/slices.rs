//! Imports are written in slices, so that what others say is written between them.

use crate::queue::bytes_of;
use crate::{Change, Changes, Error, User};

/// The most changes in one transaction of an import, and the bytes from which on there are fewer: nobody waits for more
/// than that. One change is never cut, however large it is.
pub(crate) const SLICE: usize = 256;
pub(crate) const SLICE_BYTES: usize = 1024 * 1024;

/// Some changes of a session that is imported.
pub(crate) struct Slice {
    pub(crate) user: User,
    pub(crate) session: String,
    pub(crate) changes: Vec<Change>,
    /// Whether the session is whole with them.
    pub(crate) is_last: bool,
}

/// Returns the changes of a slice, and whether they are the last ones.
pub(crate) fn gather(changes: &mut Changes) -> Result<(Vec<Change>, bool), Error> {
    let (mut gathered, mut bytes) = (Vec::new(), 0);
    while gathered.len() < SLICE && bytes < SLICE_BYTES {
        let Some(change) = changes.next() else {
            return Ok((gathered, true));
        };
        let change = change.map_err(Error::Refused)?;
        bytes += bytes_of(std::slice::from_ref(&change));
        gathered.push(change);
    }
    Ok((gathered, false))
}
