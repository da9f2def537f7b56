//! Work that takes long, done without holding up what else this thread has to do.

use tokio::runtime::{Handle, RuntimeFlavor};

/// From this size on, in bytes, a text is read aside: at 10 to 40 ns a byte it would hold up others for milliseconds.
const LARGE: usize = 256 * 1024;

/// Does the work of reading `text`; of a large one so that this thread's other tasks go on meanwhile.
pub fn aside<T>(text: &str, work: impl FnOnce(&str) -> T) -> T {
    let has_others = Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if text.len() >= LARGE && has_others {
        tokio::task::block_in_place(|| work(text))
    } else {
        work(text)
    }
}
