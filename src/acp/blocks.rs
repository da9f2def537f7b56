//! Parts of a prompt as the model gets them. Pure.

use std::path::{Path, PathBuf};

use super::rpc::RpcError;
use super::wire::Block;
use crate::message::{Document, PDF, Part};

/// Returns the parts of a prompt.
pub(super) fn parts(blocks: Vec<Block>, cwd: &Path) -> Result<Vec<Part>, RpcError> {
    if blocks.is_empty() {
        return Err(RpcError::invalid_params("`prompt` is empty"));
    }
    blocks.into_iter().map(|block| part(block, cwd)).collect()
}

fn part(block: Block, cwd: &Path) -> Result<Part, RpcError> {
    let text = match block {
        Block::Text { text } => text,
        Block::Image { data, mime_type } => {
            return Ok(Part::Image {
                media_type: mime_type,
                data,
            });
        }
        Block::Audio {} => {
            return Err(RpcError::invalid_params(
                "`prompt`: audio is not taken; promptCapabilities of `initialize` say what is",
            ));
        }
        Block::ResourceLink { uri, name } => match relative(&uri, cwd) {
            Some(path) => format!("[file: {path}]"),
            None => format!("[{}]({uri})", name.unwrap_or_else(|| uri.clone())),
        },
        Block::Resource { resource } => {
            let name = relative(&resource.uri, cwd).unwrap_or_else(|| resource.uri.clone());
            let is_pdf = resource.mime_type.as_deref() == Some(PDF);
            match (resource.text, resource.blob.filter(|_| is_pdf)) {
                (Some(text), _) => fenced(&name, &text),
                (None, Some(data)) => {
                    return Ok(Part::Document(Document {
                        media_type: PDF.to_owned(),
                        data: Some(data),
                        name: Some(name),
                        ..Document::default()
                    }));
                }
                (None, None) => format!("[{name}: no text, left out]"),
            }
        }
    };
    Ok(Part::Text { text })
}

/// Returns a file of the project as the model names it.
fn relative(uri: &str, cwd: &Path) -> Option<String> {
    let url = reqwest::Url::parse(uri).ok()?;
    let path: PathBuf = url.to_file_path().ok()?;
    Some(path.strip_prefix(cwd).ok()?.display().to_string())
}

/// Returns a text between fences that it does not hold itself.
pub(super) fn fenced(name: &str, text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{name}\n{text}{end}{fence}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_sort_of_part_comes_to_the_model() {
        let block = |value: Value| serde_json::from_value::<Block>(value).unwrap();
        let cwd = Path::new("/p");
        for (given, expected) in [
            (json!({"type": "text", "text": "hi"}), "hi"),
            (
                json!({"type": "resource_link", "uri": "file:///p/src/a%20b.rs", "name": "a"}),
                "[file: src/a b.rs]",
            ),
            (
                json!({"type": "resource_link", "uri": "zed:///x", "name": "x"}),
                "[x](zed:///x)",
            ),
            (
                json!({"type": "resource_link", "uri": "file:///etc/x"}),
                "[file:///etc/x](file:///etc/x)",
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///p/a", "text": "one\n```\n"}}),
                "````a\none\n```\n````",
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///p/a", "blob": "AA=="}}),
                "[a: no text, left out]",
            ),
        ] {
            assert_eq!(part(block(given), cwd), Ok(Part::text(expected)));
        }
        let pdf = block(json!({"type": "resource", "resource":
            {"uri": "file:///p/a.pdf", "blob": "AA==", "mimeType": "application/pdf"}}));
        let Ok(Part::Document(pdf)) = part(pdf, cwd) else {
            panic!("a PDF is no document");
        };
        assert_eq!((pdf.name(), pdf.pdf()), ("a.pdf", Some("AA==")));
        let image = block(json!({"type": "image", "data": "AA==", "mimeType": "image/png"}));
        assert!(matches!(part(image, cwd), Ok(Part::Image { .. })));
        assert!(
            part(
                block(json!({"type": "audio", "data": "", "mimeType": "a"})),
                cwd
            )
            .is_err()
        );
        assert!(parts(Vec::new(), cwd).is_err());
    }
}
