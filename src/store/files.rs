//! What calls do to files, as the store has it: what a change takes to be undone, and which files a command changed.

use outrigger_store::{Attachment, Change, FileChange, KeptFile};
use serde::{Deserialize, Serialize};

use super::{Journal, calls, json, now};
use crate::message::{
    Before, ChangedFile, ChangedFiles, ContentHash, ConversationId, FileChange as Became,
    MessageId, NotReverted, ToolId, Undo,
};
use crate::protocol::record::ExecutionRecord;

/// The largest content that is kept of a file that is changed: as much as the tools write.
const KEPT_FILE: usize = 8 * 1024 * 1024;

/// Who changes a file: a call of an exchange, or the user, who puts one back under the id of no exchange.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    pub conversation: ConversationId,
    pub exchange: MessageId,
    pub call: Option<ToolId>,
}

/// A change as it is written down.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum About {
    #[serde(rename_all = "camelCase")]
    File {
        /// There was none.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        created: bool,
        /// What it was to hold, in hexadecimal; absent where it was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        /// Why the content that it had is not kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_kept: Option<String>,
    },
    Command(ChangedFiles),
}

/// A change as it is read.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub author: Author,
    pub at_ms: i64,
    pub diff: String,
    pub what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    File(KnownFile),
    Command(ChangedFiles),
}

/// A file that a call, or the user, changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownFile {
    pub root: String,
    pub path: String,
    pub before: KnownBefore,
    /// What it was to hold; `None` where it was removed.
    pub after: Option<ContentHash>,
}

/// What a file was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnownBefore {
    Missing,
    /// Its content is kept, by this hash; with its mode bits where it was removed.
    Kept(ContentHash, Option<u32>),
    /// For this reason it is not.
    NotKept(String),
}

impl Journal {
    /// Notes a change of a file that is about to be made, and how the call stands that makes it.
    pub(crate) fn file(&self, author: &Author, call: Option<&ExecutionRecord>, undo: Undo) {
        let Some(shared) = &self.0 else {
            return;
        };
        let is_created = undo.before == Before::Missing;
        let (before, mode, not_kept) = match undo.before {
            Before::Missing => (None, None, None),
            Before::Content { bytes, mode } if bytes.len() <= KEPT_FILE => {
                match shared.outbox.has_room(bytes.len()) {
                    true => (Some(attachment(bytes)), mode, None),
                    false => (
                        None,
                        mode,
                        Some("the store did not take it then".to_owned()),
                    ),
                }
            }
            Before::Content { .. } | Before::TooLarge => {
                let most = KEPT_FILE / 1024 / 1024;
                let problem = format!("it had more than {most} MiB");
                (None, None, Some(problem))
            }
        };
        let about = About::File {
            created: is_created,
            after: undo.after.map(|hash| data_encoding::HEXLOWER.encode(&hash)),
            mode,
            not_kept,
        };
        let change = author.change((undo.root, undo.path), &about, undo.diff, before);
        let call = call.map(|record| calls::change(record, true, None));
        self.write(call.into_iter().chain([change]).collect());
    }

    /// Notes that a change of a file was not made after all.
    pub(crate) fn file_unmade(&self, author: &Author, root: &str, path: &str) {
        self.write_one(|| Change::FileUnmade {
            exchange: author.exchange.to_string(),
            call: author.call_text(),
            root: root.to_owned(),
            path: path.to_owned(),
        });
    }

    /// Notes which files a command changed.
    pub(crate) fn files_of_command(&self, author: &Author, changed: &ChangedFiles) {
        self.write_one(|| {
            let about = About::Command(changed.clone());
            author.change(Default::default(), &about, String::new(), None)
        });
    }
}

impl Author {
    fn call_text(&self) -> String {
        self.call
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    fn change(
        &self,
        (root, path): (String, String),
        about: &About,
        diff: String,
        before: Option<Attachment>,
    ) -> Change {
        Change::File(FileChange {
            conversation: self.conversation.to_string(),
            exchange: self.exchange.to_string(),
            call: self.call_text(),
            root,
            path,
            about: json(about),
            diff,
            before,
            at_ms: now(),
        })
    }
}

fn attachment(bytes: Vec<u8>) -> Attachment {
    use sha2::{Digest as _, Sha256};
    let hash = Sha256::digest(&bytes).into();
    Attachment { hash, bytes }
}

impl Known {
    /// Returns a change of the store; `None` where it cannot be read, which is logged.
    pub(crate) fn of(kept: KeptFile) -> Option<Self> {
        let FileChange {
            conversation,
            exchange,
            call,
            root,
            path,
            about,
            diff,
            at_ms,
            ..
        } = kept.change;
        let about = super::restored::read(&about, "a change of a file")?;
        let what = match about {
            About::Command(changed) => What::Command(changed),
            About::File {
                created,
                after,
                mode,
                not_kept,
            } => What::File(KnownFile {
                root,
                path,
                before: match (created, kept.before, not_kept) {
                    (true, ..) => KnownBefore::Missing,
                    (false, Some(hash), _) => KnownBefore::Kept(hash, mode),
                    (false, None, Some(why)) => KnownBefore::NotKept(why),
                    (false, None, None) => {
                        KnownBefore::NotKept("newer changes needed the room".to_owned())
                    }
                },
                after: match after {
                    Some(hex) => Some(hash(&hex)?),
                    None => None,
                },
            }),
        };
        Some(Self {
            author: Author {
                conversation: ConversationId::new(conversation),
                exchange: MessageId::new(exchange),
                call: Some(call).filter(|it| !it.is_empty()).map(ToolId::new),
            },
            at_ms,
            diff,
            what,
        })
    }

    /// Returns the files and what became of them.
    pub(crate) fn files(&self) -> ChangedFiles {
        match &self.what {
            What::Command(changed) => changed.clone(),
            What::File(file) => ChangedFiles {
                files: vec![ChangedFile {
                    path: file.path.clone(),
                    change: match (&file.before, file.after) {
                        (_, None) => Became::Deleted,
                        (KnownBefore::Missing, Some(_)) => Became::Created,
                        (KnownBefore::Kept(..) | KnownBefore::NotKept(_), Some(_)) => {
                            Became::Modified
                        }
                    },
                }],
                ..ChangedFiles::default()
            },
        }
    }

    /// Returns why it is not put back whatever the file is by now; `None` where it may be.
    pub(crate) fn not_reverted(&self) -> Option<NotReverted> {
        match &self.what {
            What::Command(_) => Some(NotReverted::Command),
            What::File(file) => match file.before {
                KnownBefore::NotKept(_) => Some(NotReverted::NotKept),
                KnownBefore::Missing | KnownBefore::Kept(..) => None,
            },
        }
    }
}

fn hash(hex: &str) -> Option<ContentHash> {
    let bytes = data_encoding::HEXLOWER.decode(hex.as_bytes()).ok()?;
    bytes.try_into().ok()
}
