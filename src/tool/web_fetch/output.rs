//! A page, or a part of it, as the model reads it.

use serde_json::json;

use super::visit::Read;
use crate::message::{Metadata, Part};
use crate::runtime::block_in_place_if_large;
use crate::telemetry::Redactor;
use crate::tool::Output;
use crate::tool::foreign::{self, WARNING};

/// Most characters of what a site says in the place of a page that is not there.
const MAX_ERROR: usize = 2_000;

/// Which part of a page is wanted, in characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) offset: usize,
    pub(super) most: usize,
}

/// Returns a part of a page, marked as other people's words. Secrets go before it is cut, which could halve one.
pub(super) fn of(read: &Read, span: Span, redactor: &Redactor) -> Output {
    let content = &read.content;
    let (text, masked) = block_in_place_if_large(&content.text, |text| {
        let (text, masked) = redactor.redact_counted(text);
        (text.into_owned(), masked)
    });
    let is_page = read.status.is_success();
    let span = match is_page {
        true => span,
        false => Span {
            offset: 0,
            most: span.most.min(MAX_ERROR),
        },
    };
    let all = text.chars().count();
    let url = read.page.url.as_str();
    if is_page && all > 0 && span.offset >= all {
        return Output::error(format!(
            "{url} has {all} characters: there is nothing from {} on",
            span.offset
        ));
    }
    let end = span.offset.saturating_add(span.most).min(all);
    let shown: String = text.chars().skip(span.offset).take(span.most).collect();
    let mut said = url.to_owned();
    if let Some(first) = read.before.first() {
        said.push_str(&format!(" (redirected from {})", first.url));
    }
    match is_page {
        true => said.push_str(&format!(": {}", content.shown.words())),
        false => said.push_str(&format!(" answered with status {}", read.status)),
    }
    if span.offset > 0 || end < all {
        let places = format!(", characters {} to {end} of {all}", span.offset);
        said.push_str(&places);
    }
    if is_page && end < all {
        said.push_str(&format!(" (read on with `offset` {end})"));
    }
    for note in &read.notes {
        said.push_str(&format!("; {note}"));
    }
    let title = content.title.as_ref();
    let title = title.map(|title| redactor.redact(title).into_owned());
    let body = match (shown.trim().is_empty(), content.shown.is_markdown()) {
        (true, true) => {
            "[no text: the page may be filled by scripts, which are not run here]".to_owned()
        }
        (true, false) => "[empty]".to_owned(),
        (false, _) => shown,
    };
    let heading = title.as_ref().map(|title| format!("Title: {title}\n\n"));
    let heading = heading.unwrap_or_default();
    Output {
        content: vec![Part::text(format!("{said}. {WARNING}\n{heading}{body}"))],
        is_error: !is_page,
        metadata: Metadata {
            provider: Some(read.page.server.host.to_string()),
            truncated: end < all,
            total_bytes: Some(text.len() as u64),
            redacted: Some(masked).filter(|masked| *masked > 0),
            warnings: read.notes.clone(),
            results: Some(json!({
                "url": url,
                "title": title,
                "status": read.status.as_u16(),
                "contentType": foreign::line(&read.content_type, 100),
                "characters": all,
            })),
            ..Metadata::default()
        },
    }
}
