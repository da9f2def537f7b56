//! The question whether files may speak for the user, as lines. Pure.

use super::exposed;
use super::line::first_word;
use super::style::{Piece, Style};
use super::text::{exposed_line, prefixed};
use crate::message::TrustId;
use crate::protocol::trust::{TrustApprove, TrustConfirm, TrustKind, TrustOutcome, TrustResolved};

/// What may be typed.
pub(crate) const PROMPT: &str = "y the model is told this as your words, n it is not > ";

/// Shows the files, whole.
pub(crate) fn show(confirm: &TrustConfirm) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for file in &confirm.files {
        let what = match file.kind {
            TrustKind::Instructions => "instructions",
            TrustKind::Skill => "a skill",
        };
        let title = format!(
            "? the project has {what} for the model: {}, {} bytes, SHA-256 {}",
            exposed_line(&file.path),
            file.bytes,
            exposed_line(&file.sha256)
        );
        pieces.push(Piece::line(Style::Bold, title));
        pieces.push(Piece::line(
            Style::Plain,
            prefixed(&exposed(&file.text), "  │ "),
        ));
    }
    pieces
}

pub(crate) fn settled(resolved: &TrustResolved) -> String {
    let outcome = match resolved.outcome {
        TrustOutcome::Trusted => "the model is told",
        TrustOutcome::Refused => "the model is not told",
        TrustOutcome::Expired => "nobody answered in time; the model is not told",
        TrustOutcome::Cancelled => "the question is void",
    };
    format!("{}: {outcome}", resolved.request_id)
}

/// Reads an answer, with the question's id behind it or without; `None` where the line is none.
pub(crate) fn read(line: &str, request_id: &TrustId) -> Option<TrustApprove> {
    let (word, id) = first_word(line.trim());
    if !id.is_empty() && id != request_id.as_str() {
        return None;
    }
    let approved = match word.to_ascii_lowercase().as_str() {
        "y" | "yes" => true,
        "n" | "no" => false,
        _ => return None,
    };
    Some(TrustApprove {
        request_id: request_id.clone(),
        approved,
    })
}

/// Returns the answer of nobody.
pub(crate) fn no(request_id: &TrustId) -> TrustApprove {
    TrustApprove {
        request_id: request_id.clone(),
        approved: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_clear_word_is_an_answer() {
        let id = TrustId::new("f1");
        for (line, expected) in [
            ("y", Some(true)),
            (" YES ", Some(true)),
            ("n", Some(false)),
            ("y f1", Some(true)),
            ("no f1", Some(false)),
            ("y f2", None),
            ("f1", None),
            ("", None),
            ("y always", None),
        ] {
            assert_eq!(read(line, &id).map(|it| it.approved), expected, "{line}");
        }
    }

    #[test]
    fn a_file_is_shown_whole_and_cannot_write_on_the_screen() {
        let confirm: TrustConfirm = serde_json::from_value(json!({
            "conversationId": "default", "messageId": "m1", "requestId": "f1", "remember": "session",
            "files": [{"path": "AGENTS.md", "kind": "instructions", "sha256": "ab", "bytes": 9, "text": "one\u{1b}[2J\ntwo"}],
        }))
        .unwrap();
        let shown: String = show(&confirm)
            .into_iter()
            .map(|piece| match piece {
                Piece::Answer(text) | Piece::Aside(_, text) => text,
            })
            .collect();
        assert!(shown.contains("AGENTS.md, 9 bytes, SHA-256 ab"), "{shown}");
        assert!(
            shown.contains("  │ one") && shown.contains("  │ two"),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
}
