//! Which notices a conversation has had, so that what holds for each of its turns is said once.

use std::collections::HashSet;
use std::sync::Arc;

use futures::StreamExt;
use parking_lot::Mutex;

use super::{Chunk, ChunkStream, Request};
use crate::message::Notice;

/// Most notices remembered; beyond it all are forgotten, and said once more.
const MAX_TOLD: usize = 1024;

/// Code of the notice that names figures, which differ from turn to turn.
pub(super) const PROMPT_TRUNCATED: &str = "prompt_truncated";

/// The notices of an instance's conversations; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Told(Arc<Mutex<HashSet<(String, String)>>>);

impl Told {
    /// Lets through what the conversation was not told of this model before.
    pub(super) fn once(&self, request: &Request<'_>, chunks: ChunkStream) -> ChunkStream {
        let told = self.clone();
        let place = format!("{}\n{}", request.cache_key, request.model);
        chunks
            .filter(move |chunk| {
                let keep = match chunk {
                    Ok(Chunk::Notice(notice)) => told.is_new(&place, notice),
                    _ => true,
                };
                std::future::ready(keep)
            })
            .boxed()
    }

    fn is_new(&self, place: &str, notice: &Notice) -> bool {
        let said = if notice.code == PROMPT_TRUNCATED {
            &notice.code
        } else {
            &notice.message
        };
        let mut told = self.0.lock();
        if told.len() >= MAX_TOLD {
            told.clear();
        }
        told.insert((place.to_owned(), said.clone()))
    }
}
