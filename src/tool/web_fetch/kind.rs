//! What an answer is, by its `content-type`. Pure.

/// How an answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// As a page.
    Html,
    /// As it is.
    Text,
    /// Not at all.
    Pdf,
    /// Not at all.
    Other,
    /// By what it begins with.
    Unsaid,
}

/// Types that are text though they are not `text/…`, and do not end as such types do.
const TEXTS: [&str; 14] = [
    "application/json",
    "application/ld+json",
    "application/x-ndjson",
    "application/jsonl",
    "application/xml",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/typescript",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/sql",
    "application/x-sh",
];

/// What a header says of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) kind: Kind,
    /// The type alone, in lower case.
    pub(super) name: String,
    pub(super) charset: Option<String>,
}

/// Reads a `content-type`.
pub(super) fn said(content_type: Option<&str>) -> Said {
    let mut parts = content_type.unwrap_or_default().split(';');
    let name = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        let is_charset = key.trim().eq_ignore_ascii_case("charset");
        (is_charset && !value.is_empty()).then(|| value.to_owned())
    });
    let kind = match name.as_str() {
        "" => Kind::Unsaid,
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "application/pdf" | "application/x-pdf" => Kind::Pdf,
        other if other.starts_with("text/") || TEXTS.contains(&other) => Kind::Text,
        other if other.ends_with("+json") || other.ends_with("+xml") => Kind::Text,
        other if other.ends_with("+yaml") => Kind::Text,
        _ => Kind::Other,
    };
    Said {
        kind,
        name,
        charset,
    }
}

/// Returns what an answer without a type is: a page where it begins like one, else text where it may be.
pub(super) fn guessed(body: &[u8]) -> Kind {
    let start = body.trim_ascii_start();
    let start = start.get(..start.len().min(512)).unwrap_or_default();
    let begins = String::from_utf8_lossy(start).to_ascii_lowercase();
    let pages = [
        "<!doctype html",
        "<html",
        "<head",
        "<body",
        "<title",
        "<!--",
    ];
    if begins.starts_with("%pdf-") {
        return Kind::Pdf;
    }
    if pages.iter().any(|page| begins.starts_with(page)) {
        return Kind::Html;
    }
    match body.contains(&0) {
        true => Kind::Other,
        false => Kind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_apart() {
        for (text, kind, charset) in [
            (Some("text/html"), Kind::Html, None),
            (
                Some("Text/HTML; Charset=\"ISO-8859-1\""),
                Kind::Html,
                Some("ISO-8859-1"),
            ),
            (
                Some("application/xhtml+xml;charset=utf-8"),
                Kind::Html,
                Some("utf-8"),
            ),
            (
                Some("text/markdown; a=b; charset='x'"),
                Kind::Text,
                Some("x"),
            ),
            (Some("text/plain; charset="), Kind::Text, None),
            (Some("application/json"), Kind::Text, None),
            (Some("application/vnd.api+json"), Kind::Text, None),
            (Some("application/rss+xml"), Kind::Text, None),
            (Some("image/svg+xml"), Kind::Text, None),
            (Some("application/pdf"), Kind::Pdf, None),
            (Some("image/png"), Kind::Other, None),
            (Some("application/octet-stream"), Kind::Other, None),
            (Some("nonsense"), Kind::Other, None),
            (Some(""), Kind::Unsaid, None),
            (None, Kind::Unsaid, None),
        ] {
            let said = said(text);
            assert_eq!(
                (said.kind, said.charset.as_deref()),
                (kind, charset),
                "{text:?}"
            );
        }
        for (body, kind) in [
            (&b"\n <!DOCTYPE html><p>"[..], Kind::Html),
            (b"<HTML>", Kind::Html),
            (b"plain", Kind::Text),
            (b"{\"a\": 1}", Kind::Text),
            (b"", Kind::Text),
            (b"%PDF-1.7", Kind::Pdf),
            (b"a\0b", Kind::Other),
        ] {
            assert_eq!(guessed(body), kind, "{body:?}");
        }
    }
}
