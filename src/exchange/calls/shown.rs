//! A result as clients are shown it. Pure.

use crate::message::Part;

/// The most pictures that the event of a result has, in bytes of base64: the largest one that there is, and no more than
/// a third of a frame. Each event is kept for a resume, with its pictures.
const MAX_PICTURES: usize = 5_000_000;

/// Returns the text of a result; pictures are named.
pub(super) fn text_of(content: &[Part]) -> String {
    let mut text = String::new();
    for part in content {
        match part {
            Part::Text { text: more } => text.push_str(more),
            Part::Image { media_type, .. } => {
                text.push_str("[image ");
                text.push_str(media_type);
                text.push(']');
            }
            Part::Document(document) => text.push_str(&format!("[{}]", document.label())),
        }
    }
    text
}

/// Returns the parts of a result that has pictures, as far as an event has room for them; empty where the text says it
/// all.
pub(super) fn parts_of(content: &[Part]) -> Vec<Part> {
    let has_picture = |part: &Part| matches!(part, Part::Image { .. });
    if !content.iter().any(has_picture) {
        return Vec::new();
    }
    let mut room = MAX_PICTURES;
    let shown = content.iter().map(|part| match part {
        Part::Image { data, media_type } => match room.checked_sub(data.len()) {
            Some(left) => {
                room = left;
                part.clone()
            }
            None => Part::text(format!(
                "[picture {media_type}, left out: there are too many]"
            )),
        },
        Part::Text { .. } | Part::Document(_) => part.clone(),
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_shown_as_far_as_there_is_room() {
        let picture = |bytes: usize| Part::Image {
            media_type: "image/png".to_owned(),
            data: "A".repeat(bytes),
        };
        assert_eq!(parts_of(&[Part::text("a")]), []);
        let content = [
            Part::text("a"),
            picture(MAX_PICTURES - 1),
            picture(2),
            picture(1),
        ];
        let shown = parts_of(&content);
        assert_eq!(shown[..2], content[..2]);
        assert!(matches!(&shown[2], Part::Text { text } if text.contains("left out")));
        assert_eq!(shown[3], content[3]);
        assert_eq!(
            text_of(&[Part::text("a"), picture(1)]),
            "a[image image/png]"
        );
    }
}
