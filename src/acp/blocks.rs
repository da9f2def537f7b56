//! Parts of a prompt as the model gets them. Pure.

use std::path::{Path, PathBuf};

use super::rpc::RpcError;
use super::wire::Block;
use crate::message::{Document, PDF, Part};

/// Returns the parts of a prompt; `cwds` are the names that the project's folder has.
pub(super) fn parts(blocks: Vec<Block>, cwds: &[&Path]) -> Result<Vec<Part>, RpcError> {
    if blocks.is_empty() {
        return Err(RpcError::invalid_params("`prompt` is empty"));
    }
    blocks.into_iter().map(|block| part(block, cwds)).collect()
}

fn part(block: Block, cwds: &[&Path]) -> Result<Part, RpcError> {
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
        Block::ResourceLink { uri, name } => match relative(&uri, cwds) {
            Some(path) => format!("[file: {path}]"),
            None => format!("[{}]({uri})", name.unwrap_or_else(|| uri.clone())),
        },
        Block::Resource { resource } => {
            let name = relative(&resource.uri, cwds).unwrap_or_else(|| resource.uri.clone());
            match (resource.text, resource.blob, resource.mime_type) {
                (Some(text), ..) => fenced(&name, &text),
                (None, Some(data), Some(media_type)) if media_type.starts_with("image/") => {
                    return Ok(Part::Image { media_type, data });
                }
                (None, Some(data), Some(media_type)) if media_type == PDF => {
                    return Ok(Part::Document(Document {
                        media_type,
                        data: Some(data),
                        name: Some(name),
                        ..Document::default()
                    }));
                }
                (None, ..) => format!("[{name}: no text, left out]"),
            }
        }
    };
    Ok(Part::Text { text })
}

/// Returns a file of the project as the model names it, with the lines that are meant.
fn relative(uri: &str, cwds: &[&Path]) -> Option<String> {
    let url = reqwest::Url::parse(uri).ok()?;
    let path: PathBuf = url.to_file_path().ok()?;
    let below = cwds.iter().find_map(|cwd| path.strip_prefix(cwd).ok())?;
    let lines = url.fragment().and_then(lines).unwrap_or_default();
    Some(format!("{}{lines}", below.display()))
}

/// Reads lines of a fragment, such as `L10`, `L10-20` and `L10:L20`.
fn lines(fragment: &str) -> Option<String> {
    let numbers = fragment.strip_prefix('L')?;
    let (first, last) = match numbers.split_once(['-', ':']) {
        Some((first, last)) => (first, Some(last.trim_start_matches('L'))),
        None => (numbers, None),
    };
    let number = |text: &str| text.parse::<u32>().ok();
    let first = number(first)?;
    Some(match last.map(number) {
        None => format!(":{first}"),
        Some(Some(last)) => format!(":{first}-{last}"),
        Some(None) => return None,
    })
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
        let cwd: &[&Path] = &[Path::new("/p"), Path::new("/link")];
        for (given, expected) in [
            (json!({"type": "text", "text": "hi"}), "hi"),
            (
                json!({"type": "resource_link", "uri": "file:///p/src/a%20b.rs", "name": "a"}),
                "[file: src/a b.rs]",
            ),
            (
                json!({"type": "resource_link", "uri": "file:///link/a.rs#L10-20", "name": "a"}),
                "[file: a.rs:10-20]",
            ),
            (
                json!({"type": "resource_link", "uri": "file:///p/a.rs#L7", "name": "a"}),
                "[file: a.rs:7]",
            ),
            (
                json!({"type": "resource_link", "uri": "file:///p/a.rs#part", "name": "a"}),
                "[file: a.rs]",
            ),
            (
                json!({"type": "resource", "resource": {"uri": "file:///p/a#L3:L5", "text": "one\n"}}),
                "```a:3-5\none\n```",
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
        for image in [
            json!({"type": "image", "data": "AA==", "mimeType": "image/png"}),
            json!({"type": "resource", "resource": {"uri": "file:///p/a", "blob": "AA==", "mimeType": "image/png"}}),
        ] {
            let image = part(block(image), cwd);
            assert!(matches!(image, Ok(Part::Image { .. })), "{image:?}");
        }
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
