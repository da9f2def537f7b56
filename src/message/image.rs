//! Which pictures are passed on to a model: the sorts that every provider takes, and how large. Pure.
//!
//! The limits are our own, and tight: what is accepted here should not be refused by a provider in the
//! middle of a conversation, where it would be sent again with every turn.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The largest picture, in bytes before base64, which makes 5 MB of it.
pub const MAX_IMAGE_BYTES: usize = 3_750_000;

/// The most pictures of one message or result.
pub const MAX_IMAGES: usize = 20;

/// Recognises a picture by its first bytes; `None` where no model takes it.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// Checks a picture as it came over a wire and returns its media type, which is what its bytes say.
///
/// # Errors
///
/// What is wrong, in words for whoever sent it.
pub fn check(claimed: &str, data: &str) -> Result<&'static str, String> {
    // Four characters for three bytes: what is too long need not be decoded to be refused.
    if data.len() > MAX_IMAGE_BYTES.div_ceil(3) * 4 + 4 {
        return Err(too_large(data.len() / 4 * 3));
    }
    let bytes = STANDARD
        .decode(data)
        .map_err(|error| format!("is not standard base64: {error}"))?;
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err(too_large(bytes.len()));
    }
    media_type(&bytes).ok_or_else(|| {
        format!("is no picture that models take (claimed: {claimed:?}); allowed: image/png, image/jpeg, image/gif, image/webp")
    })
}

/// Writes a picture as it goes over a wire.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn too_large(bytes: usize) -> String {
    format!("has about {bytes} bytes; allowed: {MAX_IMAGE_BYTES}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_what_their_bytes_say() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a;", Some("image/gif")),
            (b"GIF87a", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVEfmt ", None),
            (b"<svg></svg>", None),
            (b"", None),
        ] {
            assert_eq!(media_type(bytes), expected);
        }
    }

    #[test]
    fn what_no_model_takes_is_refused_in_words() {
        let png = encode(b"\x89PNG\r\n\x1a\nrest");
        assert_eq!(check("image/jpeg", &png), Ok("image/png"));
        for (data, expected) in [
            ("not base64!".to_owned(), "is not standard base64"),
            (encode(b"BM...."), "is no picture that models take"),
            ("A".repeat(8_000_000), "has about 6000000 bytes"),
        ] {
            let error = check("image/bmp", &data).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
