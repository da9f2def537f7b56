//! A document that the user says something about: a PDF or a text file. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The media type of PDF files.
pub const PDF: &str = "application/pdf";

/// A document. A client gives its bytes or its text; the daemon adds the text of a PDF, once, when it is sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Document {
    /// Media type: `application/pdf`, `text/plain`, `text/markdown`, `text/csv`, or another kind of text.
    pub media_type: String,
    /// The bytes in standard base64. A text file's are gone once they are read: `text` has all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Its text. Of a PDF that is what models read that do not take PDFs themselves; empty where it has none, as scans do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many pages a PDF has. The daemon counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<u32>,
}

impl Document {
    /// Returns the file's name, or a word for it.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("document")
    }

    /// Returns a name for its file, for where one is demanded.
    pub fn file_name(&self) -> &str {
        self.name.as_deref().unwrap_or("document.pdf")
    }

    /// Returns the bytes of a PDF in base64; `None` of what is sent as text.
    pub fn pdf(&self) -> Option<&str> {
        let data = self.data.as_deref().filter(|data| !data.is_empty());
        data.filter(|_| self.media_type == PDF)
    }

    /// Returns its text; empty where none could be read.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Returns its name and type, for a line that stands for it.
    pub fn label(&self) -> String {
        format!("document {:?}, {}", self.name(), self.media_type)
    }

    /// Returns it as text alone, for models that take no documents; empty where it has no text.
    pub fn as_text(&self) -> String {
        match self.text().trim().is_empty() {
            true => String::new(),
            false => format!(
                "[{}]\n{}\n[end of {:?}]",
                self.label(),
                self.text().trim_end(),
                self.name()
            ),
        }
    }

    /// Returns how many bytes it takes.
    pub fn bytes(&self) -> usize {
        [&self.data, &self.text, &self.name]
            .into_iter()
            .flatten()
            .map(String::len)
            .sum::<usize>()
            + self.media_type.len()
    }

    /// Returns whether there is nothing in it to send to a model.
    pub fn is_empty(&self) -> bool {
        self.data.as_deref().is_none_or(str::is_empty) && self.text().trim().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_a_document_names_it() {
        let document = |text: &str| Document {
            media_type: PDF.to_owned(),
            data: Some("JVBERg==".to_owned()),
            text: Some(text.to_owned()),
            name: Some("a \"b\".pdf".to_owned()),
            pages: Some(1),
        };
        let said = document("one\n");
        assert_eq!(
            said.as_text(),
            "[document \"a \\\"b\\\".pdf\", application/pdf]\none\n[end of \"a \\\"b\\\".pdf\"]"
        );
        assert_eq!(document(" \n").as_text(), "");
        assert_eq!(said.pdf(), Some("JVBERg=="));
        let text = Document {
            media_type: "text/csv".to_owned(),
            ..said
        };
        assert_eq!(text.pdf(), None);
        assert!(Document::default().is_empty() && !text.is_empty());
    }
}
