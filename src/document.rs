//! Documents of the user: what is taken of a send, and the text of it.
//!
//! A document is read once, when it is sent. Its text is remembered beside its bytes, so that neither a request, nor a
//! restart, nor another provider in the middle of a conversation reads it again.

mod pdf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::message::{Document, PDF, Part};
use crate::runtime::block_in_place_if_large;
pub(crate) use pdf::{Pages, PdfText, Unreadable, is_pdf, read as read_pdf};

/// The largest PDF, in bytes before base64: with base64 it fits into a frame of the default size, and three of them into
/// the 32 MB that a request to Anthropic may have.
pub(crate) const MAX_PDF_BYTES: usize = 8_000_000;

/// The largest PDF of a project that is read, in bytes.
pub(crate) const MAX_PDF_FILE_BYTES: usize = 32_000_000;

/// The longest text of a document, in bytes: more than fits into the context of most models.
pub(crate) const MAX_TEXT_BYTES: usize = 1_000_000;

/// The most pages of a PDF: what Anthropic takes for models with a context of 200,000 tokens.
pub(crate) const MAX_PAGES: usize = 100;

/// The most documents of one message.
pub(crate) const MAX_DOCUMENTS: usize = 10;

/// The longest name of a document, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Media types of texts that do not begin with `text/`.
const TEXTS: [&str; 7] = [
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
    "application/sql",
];

/// Reads the documents of a send and puts their text beside them.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// How many were read; what was read before costs nothing.
    read: usize,
}

impl Reader {
    /// Reads those of a message, which is in this field of the send. It waits for at most [`pdf::TIME`] for each.
    ///
    /// # Errors
    ///
    /// The first document that cannot be taken: its place, its name, and what to do.
    pub(crate) async fn read(&mut self, field: &str, parts: &mut [Part]) -> Result<(), String> {
        let mut count = 0;
        for (index, part) in parts.iter_mut().enumerate() {
            let Part::Document(document) = part else {
                continue;
            };
            count += 1;
            if count > MAX_DOCUMENTS {
                return Err(format!(
                    "field `{field}` has more than {MAX_DOCUMENTS} documents; send the others with another message"
                ));
            }
            self.read_one(document).await.map_err(|problem| {
                let name = document.name();
                format!("field `{field}[{index}]`: the document {name:?} {problem}")
            })?;
        }
        Ok(())
    }

    async fn read_one(&mut self, document: &mut Document) -> Result<(), String> {
        #[cfg(test)]
        testing::wait_to_be_read(document.name()).await;
        let Some(bytes) = check(document)? else {
            return Ok(());
        };
        self.read += 1;
        if self.read > MAX_DOCUMENTS {
            return Err(format!(
                "is one more than the {MAX_DOCUMENTS} that are read for a send; send a history as `chat:history` gave it, with the text of each"
            ));
        }
        let pages = Pages {
            first: 1,
            count: MAX_PAGES,
            max_bytes: MAX_TEXT_BYTES,
        };
        let work = move || read_pdf(bytes, pages);
        let outcome = tokio::task::spawn_blocking(work).await;
        let outcome = outcome.unwrap_or(Err(Unreadable::Damaged));
        let text = outcome.and_then(PdfText::whole);
        let text = text.map_err(|problem| problem.to_string())?;
        document.pages = u32::try_from(text.pages).ok();
        document.text = Some(text.text);
        Ok(())
    }
}

/// Checks a document and puts it into the form in which it is remembered. Returns the bytes of a PDF whose text is not
/// known yet.
fn check(document: &mut Document) -> Result<Option<Vec<u8>>, String> {
    if let Some(name) = &document.name
        && (name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control))
    {
        return Err(format!(
            "must have a name of 1 to {MAX_NAME_BYTES} bytes without control characters, or none"
        ));
    }
    // `text/csv; charset=utf-8`.
    let media_type = document.media_type.split(';').next().unwrap_or_default();
    document.media_type = media_type.trim().to_ascii_lowercase();
    match document.media_type.as_str() {
        PDF => check_pdf(document),
        text if text.starts_with("text/") || TEXTS.contains(&text) => {
            check_text(document).map(|()| None)
        }
        other => Err(format!(
            "is of type {other:?}, which is not taken; send a PDF, or a text file as text/plain"
        )),
    }
}

fn check_pdf(document: &mut Document) -> Result<Option<Vec<u8>>, String> {
    if document.text().len() > MAX_TEXT_BYTES {
        return Err(Unreadable::TooLong.to_string());
    }
    let Some(data) = document.data.as_deref().filter(|data| !data.is_empty()) else {
        return match document.text().trim().is_empty() {
            true => Err("has neither `data` nor `text`".to_owned()),
            false => Ok(None),
        };
    };
    let bytes = block_in_place_if_large(data, |data| decode(data, MAX_PDF_BYTES))?;
    if !is_pdf(&bytes) {
        return Err(Unreadable::NoPdf.to_string());
    }
    Ok(document.text.is_none().then_some(bytes))
}

fn check_text(document: &mut Document) -> Result<(), String> {
    let text = match (document.data.take(), document.text.take()) {
        (None, Some(text)) => text,
        (Some(data), None) => block_in_place_if_large(&data, text_of)?,
        _ => return Err("must have either `data` or `text`".to_owned()),
    };
    if text.len() > MAX_TEXT_BYTES {
        return Err(too_large(text.len(), MAX_TEXT_BYTES));
    }
    if text.trim().is_empty() {
        return Err("is empty; send it when there is something in it".to_owned());
    }
    document.pages = None;
    document.text = Some(text);
    Ok(())
}

/// Reads the text that a text file's base64 holds.
fn text_of(data: &str) -> Result<String, String> {
    let bytes = decode(data, MAX_TEXT_BYTES)?;
    // A byte order mark is heeded: UTF-16 is read too.
    let (text, _, is_damaged) = encoding_rs::UTF_8.decode(&bytes);
    if is_damaged || text.contains('\0') {
        return Err("is no text in UTF-8; save it as UTF-8 and send it again".to_owned());
    }
    Ok(text.into_owned())
}

fn decode(data: &str, most: usize) -> Result<Vec<u8>, String> {
    // Four characters for three bytes: what is too long need not be decoded to be refused.
    if data.len() > most.div_ceil(3) * 4 + 4 {
        return Err(too_large(data.len() / 4 * 3, most));
    }
    let bytes = STANDARD
        .decode(data)
        .map_err(|error| format!("is not standard base64: {error}"))?;
    match bytes.len() > most {
        true => Err(too_large(bytes.len(), most)),
        false => Ok(bytes),
    }
}

fn too_large(bytes: usize, most: usize) -> String {
    format!(
        "has about {bytes} bytes, and {most} are allowed; send a part of it, or put the file into the project, where the model can read it piece by piece"
    )
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
