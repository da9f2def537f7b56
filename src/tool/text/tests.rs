use proptest::prelude::*;

use super::*;

const UTF16LE: Encoding = Encoding::Utf16 { little: true };
const UTF16BE: Encoding = Encoding::Utf16 { little: false };
const UTF32LE: Encoding = Encoding::Utf32 { little: true };
const UTF32BE: Encoding = Encoding::Utf32 { little: false };

#[test]
fn encodings_are_found() {
    let cases: &[(&[u8], &str, Encoding, bool)] = &[
        (b"", "", Encoding::Utf8, false),
        (b"abc\n", "abc\n", Encoding::Utf8, false),
        (
            "gr\u{fc}\u{df}".as_bytes(),
            "gr\u{fc}\u{df}",
            Encoding::Utf8,
            false,
        ),
        (b"\xEF\xBB\xBFabc", "abc", Encoding::Utf8, true),
        (b"\xFF\xFEa\0\xfc\0", "a\u{fc}", UTF16LE, true),
        (b"\xFE\xFF\0a\0\xfc", "a\u{fc}", UTF16BE, true),
        (b"\xFF\xFE\0\0a\0\0\0", "a", UTF32LE, true),
        (b"\0\0\xFE\xFF\0\x01\xf6\0", "\u{1f600}", UTF32BE, true),
        (b"\xFF\xFE=\xd8\0\xde", "\u{1f600}", UTF16LE, true),
        (
            b"Fu\xdfg\xe4nger \xfcberqueren die Stra\xdfe",
            "Fu\u{df}g\u{e4}nger \u{fc}berqueren die Stra\u{df}e",
            Encoding::Legacy(encoding_rs::WINDOWS_1252),
            false,
        ),
        (
            b"\x93\xfa\x96{\x8c\xea\x82\xcc\x83e\x83L\x83X\x83g\x82\xc5\x82\xb7\x81B",
            "\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{30c6}\u{30ad}\u{30b9}\u{30c8}\u{3067}\u{3059}\u{3002}",
            Encoding::Legacy(encoding_rs::SHIFT_JIS),
            false,
        ),
    ];
    for (bytes, content, encoding, mark) in cases {
        let text = decode(bytes).unwrap();
        assert_eq!(text.content, *content, "{bytes:?}");
        assert_eq!(
            (text.form.encoding, text.form.mark),
            (*encoding, *mark),
            "{bytes:?}"
        );
        assert_eq!(
            text.form.encode(&text.content).as_deref(),
            Ok(*bytes),
            "{bytes:?}"
        );
    }
}

#[test]
fn what_is_no_text_is_named() {
    let cases: &[(&[u8], &str)] = &[
        (b"a\0b", "binary data"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a PNG image"),
        (b"\x7fELF\x02\x01\0", "an ELF program"),
        (b"%PDF-1.7\n\xe2\xe3\xcf\xd3\0", "a PDF document"),
        (b"\xFF\xFEa", "binary data"),
        (b"\xFF\xFE\0\xd8", "binary data"),
        (b"\xEF\xBB\xBF\xff", "binary data"),
        (b"\x01\x02\x03\xff\xfe\x80\x90", "binary data"),
    ];
    for (bytes, word) in cases {
        assert_eq!(decode(bytes), Err(*word), "{bytes:?}");
    }
}

#[test]
fn line_ends_are_told_apart_and_kept() {
    for (content, line_end) in [
        ("", LineEnd::Lf),
        ("a\nb", LineEnd::Lf),
        ("a\rb", LineEnd::Lf),
        ("a\r\nb", LineEnd::CrLf),
        ("a\r\nb\n", LineEnd::Mixed),
    ] {
        assert_eq!(
            decode(content.as_bytes()).unwrap().form.line_end,
            line_end,
            "{content:?}"
        );
    }
    let form = Form {
        line_end: LineEnd::CrLf,
        ..Form::NEW
    };
    assert_eq!(form.with_line_ends("a\nb\r\nc\n"), "a\r\nb\r\nc\r\n");
    assert_eq!(Form::NEW.with_line_ends("a\nb\r\n"), "a\nb\r\n");
}

#[test]
fn what_an_encoding_lacks_is_named() {
    let form = Form {
        encoding: Encoding::Legacy(encoding_rs::WINDOWS_1252),
        ..Form::NEW
    };
    assert_eq!(form.encode("a\u{3b1}\u{3b2}"), Err('\u{3b1}'));
}

proptest! {
    #[test]
    fn any_text_in_any_form_is_read_back(
        content in "[^\0\u{feff}]\\PC{0,40}(\r?\n[^\0]{0,20}){0,5}",
        encoding in prop::sample::select(vec![Encoding::Utf8, UTF16LE, UTF16BE, UTF32LE, UTF32BE]),
        mark in prop::bool::ANY,
    ) {
        // Without a mark only UTF-8 is recognised for certain.
        let mark = mark || encoding != Encoding::Utf8;
        // A NUL first, and UTF-16's mark is UTF-32's.
        prop_assume!(!content.contains('\0'));
        let form = Form { encoding, mark, line_end: LineEnd::of(&content) };
        let bytes = form.encode(&content).unwrap();
        prop_assert_eq!(decode(&bytes), Ok(Text { content, form }));
    }

    #[test]
    fn any_bytes_are_text_that_writes_the_same_bytes_or_binary(
        bytes in prop::collection::vec(prop::num::u8::ANY, 0..200)
    ) {
        if let Ok(text) = decode(&bytes) {
            prop_assert_eq!(text.form.encode(&text.content), Ok(bytes));
        }
    }

    #[test]
    fn any_legacy_text_is_kept(letters in "[ -~\u{e0}-\u{fc}]{1,80}") {
        let form = Form { encoding: Encoding::Legacy(encoding_rs::WINDOWS_1252), ..Form::NEW };
        let bytes = form.encode(&letters).unwrap();
        if let Ok(text) = decode(&bytes) {
            prop_assert_eq!(text.form.encode(&text.content), Ok(bytes));
        }
    }
}
