//! How a long text is kept: deflated, without a head.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// From how many bytes on a text is deflated.
const DEFLATE: usize = 256;

/// How well. The fastest has one table for all texts; with a table for each, a text takes a third less room and twice as
/// long to be read.
const LEVEL: u32 = 1;

/// The most bytes that a text may have inflated: more than the largest message, less than memory.
const MAX_INFLATED: usize = 256 * 1024 * 1024;

/// How many times its bytes a text is taken to have before it is inflated.
const GROWTH: usize = 3;

/// Returns a long text deflated; none where it is short, or does not get shorter.
pub(crate) fn deflated(text: &str) -> Option<Vec<u8>> {
    if text.len() < DEFLATE {
        return None;
    }
    let mut data = Vec::with_capacity(text.len());
    let mut deflate = Compress::new(Compression::new(LEVEL), false);
    let status = deflate.compress_vec(text.as_bytes(), &mut data, FlushCompress::Finish);
    data.shrink_to_fit();
    matches!(status, Ok(Status::StreamEnd)).then_some(data)
}

/// Returns a text that was deflated; an error says why it is none.
pub(crate) fn inflated(data: &[u8]) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(data.len().saturating_mul(GROWTH).min(MAX_INFLATED));
    let mut inflate = Decompress::new(false);
    loop {
        let taken = usize::try_from(inflate.total_in()).unwrap_or(usize::MAX);
        let rest = data.get(taken..).unwrap_or_default();
        let status = inflate.decompress_vec(rest, &mut bytes, FlushDecompress::Finish);
        match status.map_err(|error| error.to_string())? {
            Status::StreamEnd => break,
            _ if bytes.len() >= MAX_INFLATED => return Err("it is too long".to_owned()),
            // Nothing but room is missing.
            _ if bytes.len() == bytes.capacity() => {
                let more = bytes.len().max(DEFLATE);
                bytes.reserve(more.min(MAX_INFLATED - bytes.len()));
            }
            _ => return Err("its end is missing".to_owned()),
        }
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_come_back_as_they_were() {
        assert_eq!(deflated("short"), None);
        for text in ["ab".repeat(DEFLATE), "ü".repeat(1_000_000)] {
            let data = deflated(&text).unwrap();
            assert!(data.len() < text.len() / 2);
            assert_eq!(inflated(&data), Ok(text));
        }
    }

    #[test]
    fn what_does_not_get_shorter_is_kept_as_it_is() {
        let mut number = 1_u32;
        let mut any = || {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from_u32(0x4E00 + (number >> 16) % 0x5000).unwrap_or('a')
        };
        let text: String = (0..DEFLATE).map(|_| any()).collect();
        if let Some(data) = deflated(&text) {
            assert!(data.len() <= text.len());
            assert_eq!(inflated(&data), Ok(text));
        }
    }

    #[test]
    fn what_an_earlier_version_deflated_is_read() {
        // "what was said " ten times, by miniz_oxide at level 1.
        let data = [
            197, 199, 49, 13, 0, 0, 8, 3, 65, 43, 181, 246, 9, 3, 204, 37, 169, 125, 100, 48, 94,
            154, 85, 176, 204, 148, 126, 117,
        ];
        assert_eq!(inflated(&data), Ok("what was said ".repeat(10)));
    }

    #[test]
    fn what_is_damaged_says_so() {
        let whole = deflated(&"what was said ".repeat(100)).unwrap();
        for data in [
            &whole[..whole.len() - 2],
            b"".as_slice(),
            b"\xff no deflated text",
        ] {
            assert!(inflated(data).is_err(), "{data:?}");
        }
    }
}
