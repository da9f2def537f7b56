//! Notices that hold for a whole conversation: what they say, and that each is sent once.

use std::collections::HashSet;
use std::sync::Arc;

use futures::StreamExt;
use parking_lot::Mutex;

use super::{Chunk, ChunkStream, Request};
use crate::message::{Message, Notice, Part, Severity};

/// Most notices remembered; beyond it all are forgotten, and sent once more.
const MAX_SENT: usize = 1024;

/// Code of the notice that names figures, which differ from turn to turn.
pub(super) const PROMPT_TRUNCATED: &str = "prompt_truncated";

/// The notices that an instance's conversations have had; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Once(Arc<Mutex<HashSet<(String, String)>>>);

impl Once {
    /// Passes chunks on, but for notices that the conversation has had of this model.
    pub(super) fn filter(&self, request: &Request<'_>, chunks: ChunkStream) -> ChunkStream {
        let sent = self.clone();
        let place = format!("{}\n{}", request.cache_key, request.model);
        chunks
            .filter(move |chunk| {
                let keep = match chunk {
                    Ok(Chunk::Notice(notice)) => sent.is_new(&place, notice),
                    _ => true,
                };
                std::future::ready(keep)
            })
            .boxed()
    }

    fn is_new(&self, place: &str, notice: &Notice) -> bool {
        let text = match notice.code == PROMPT_TRUNCATED {
            true => &notice.code,
            false => &notice.message,
        };
        let mut sent = self.0.lock();
        if sent.len() >= MAX_SENT {
            sent.clear();
        }
        sent.insert((place.to_owned(), text.clone()))
    }
}

/// Says that a model sees none of the pictures of a conversation; nothing where there are none.
pub(super) fn images_left_out(request: &Request<'_>) -> Option<Notice> {
    let has_image = |message: &Message| {
        let parts = match message {
            Message::User(parts) => parts,
            Message::ToolResult(result) => &result.content,
            Message::Reply(_) => return false,
        };
        parts.iter().any(|part| matches!(part, Part::Image { .. }))
    };
    request.messages.iter().any(has_image).then(|| Notice {
        severity: Severity::Warning,
        code: "images_left_out".to_owned(),
        message: format!(
            "model \"{}\" does not see images: they were left out, and it was told so; choose another model to have them seen",
            request.model
        ),
    })
}

/// Says that a model which takes no PDFs learns nothing of those that have no text; nothing where there are none.
pub(super) fn documents_left_out(request: &Request<'_>) -> Option<Notice> {
    let documents = request.messages.iter().filter_map(|message| match message {
        Message::User(parts) => Some(parts),
        Message::ToolResult(_) | Message::Reply(_) => None,
    });
    let mut documents = documents.flatten().filter_map(|part| match part {
        Part::Document(document) => Some(document),
        Part::Text { .. } | Part::Image { .. } => None,
    });
    let document = documents.find(|document| document.text().trim().is_empty())?;
    Some(Notice {
        severity: Severity::Warning,
        code: "documents_left_out".to_owned(),
        message: format!(
            "model \"{}\" takes no PDF files, and no text could be read of {:?}, which may be a scan: it was left out; choose a model that takes PDFs, or send its pages as pictures",
            request.model,
            document.name()
        ),
    })
}

/// Says that a model gets no tools.
pub(super) fn no_tools(model: &str) -> Notice {
    Notice {
        severity: Severity::Warning,
        code: "model_no_tools".to_owned(),
        message: format!(
            "model \"{model}\" has no tools at this server: it answers without them, choose another model to use them"
        ),
    }
}
