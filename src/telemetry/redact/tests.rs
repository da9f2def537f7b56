use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;

const SECRET: &str = "correct/horse+battery\"7";

fn in_lines(text: &str) -> String {
    let (first, second) = text.split_at(12);
    format!("{first}\n  {second}")
}

fn redactor() -> Redactor {
    let redactor = Redactor::default();
    redactor.add(SECRET);
    redactor
}

#[test]
fn a_known_secret_goes_in_each_form() {
    let redactor = redactor();
    for written in [
        SECRET.to_owned(),
        "correct%2Fhorse%2Bbattery%227".to_owned(),
        "correct%2fhorse%2bbattery%227".to_owned(),
        "correct/horse+battery\\\"7".to_owned(),
    ] {
        let text = format!("a {written} b {written}");
        assert_eq!(
            redactor.redact(&text),
            "a [redacted] b [redacted]",
            "{written}"
        );
    }
}

#[test]
fn a_secret_that_ends_like_an_escape_goes_at_the_end_of_a_text_too() {
    for secret in ["a!Aa00\\\\", "secret-5%41", "secret-\\x41", "secret-7\\n"] {
        let redactor = Redactor::default();
        redactor.add(secret);
        for (text, expected) in [
            (secret.to_owned(), "[redacted]"),
            (format!("a {secret} b"), "a [redacted] b"),
        ] {
            assert_eq!(redactor.redact(&text), expected, "{text:?}");
        }
    }
}

#[test]
fn base64_is_found_at_each_alignment() {
    let redactor = redactor();
    for before in ["", "u", "us", "user:"] {
        for engine in [STANDARD, base64::engine::general_purpose::URL_SAFE] {
            let text = engine.encode(format!("{before}{SECRET}"));
            let clean = redactor.redact(&text);
            assert!(clean.contains(MASK), "{before:?} {text}");
            assert!(clean.len() <= MASK.len() + 10, "{before:?} {clean}");
        }
    }
}

#[test]
fn an_encoded_secret_is_found() {
    let redactor = redactor();
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let all_escaped: String = SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let unicode: String = SECRET
        .bytes()
        .map(|byte| format!("\\u00{byte:02X}"))
        .collect();
    let dump: Vec<String> = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let base64 = STANDARD.encode(SECRET);
    for written in [
        hex.clone(),
        hex.to_uppercase(),
        in_lines(&hex),
        dump.join(" "),
        dump.join(":"),
        data_encoding::BASE32_NOPAD.encode(SECRET.as_bytes()),
        data_encoding::BASE32_NOPAD
            .encode(SECRET.as_bytes())
            .to_lowercase(),
        "correct\\/horse+battery\\\"7".to_owned(),
        "correct\\u002fhorse+battery\"7".to_owned(),
        "correct%2Fhorse+battery%227".to_owned(),
        "correct%2fhorse%2Bbattery\"7".to_owned(),
        all_escaped,
        unicode,
        in_lines(&base64),
        base64.replace('+', "%2B").replace('/', "%2F"),
    ] {
        let clean = redactor.redact(&written);
        assert!(
            clean.starts_with(MASK) && clean.len() < MASK.len() + 4,
            "{written}: {clean}"
        );
    }
    for before in ["a", "ab", "abc", "abcd"] {
        let text = data_encoding::BASE32_NOPAD.encode(format!("{before}{SECRET}").as_bytes());
        let clean = redactor.redact(&text);
        assert!(
            clean.contains(MASK) && clean.len() < MASK.len() + 14,
            "{text}: {clean}"
        );
    }
}

#[test]
fn places_are_counted_and_texts_of_values_cleaned() {
    let redactor = redactor();
    let (clean, count) = redactor.redact_counted("correct/horse+battery\"7 AKIAIOSFODNN7EXAMPLE");
    assert_eq!((clean.as_ref(), count), ("[redacted] [redacted]", 2));
    let mut value = serde_json::json!({"a": [SECRET, 1], SECRET: {"b": "plain"}});
    assert_eq!(redactor.redact_value(&mut value), 2);
    assert_eq!(
        value,
        serde_json::json!({"a": [MASK, 1], MASK: {"b": "plain"}})
    );
}

#[test]
fn what_is_put_on_record_says_less() {
    let redactor = redactor();
    let line = format!("PGPASSWORD=tiger psql; curl -u me:{SECRET} https://a:b1@h; x");
    let expected = "PGPASSWORD=[redacted] psql; curl -u me:[redacted] https://a:[redacted]@h; x";
    assert_eq!(redactor.redact_for_record(&line), expected);
    assert_eq!(
        redactor.redact_for_record(expected),
        expected,
        "once is enough"
    );
    assert!(matches!(
        redactor.redact_for_record("plain"),
        Cow::Borrowed("plain")
    ));
    let mut value =
        serde_json::json!({"command": "A_TOKEN=x1 y", "apiKey": "k9k9", "text": "k9k9"});
    redactor.redact_value_for_record(&mut value);
    let masked =
        serde_json::json!({"command": "A_TOKEN=[redacted] y", "apiKey": MASK, "text": "k9k9"});
    assert_eq!(value, masked);
    // What a model works on stays as it is.
    assert_eq!(
        redactor.redact("PGPASSWORD=tiger psql"),
        "PGPASSWORD=tiger psql"
    );
}

#[test]
fn a_key_without_end_hides_no_more_than_a_key_has() {
    let text = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\nafter",
        "é".repeat(secret::LONGEST_KEY)
    );
    let clean = Redactor::default().redact(&text).into_owned();
    assert!(
        clean.starts_with("[redacted]é") && clean.ends_with("after"),
        "{}",
        clean.len()
    );
}

#[test]
fn what_was_taken_out_is_not_counted_again() {
    let redactor = Redactor::default();
    let (once, count) = redactor.redact_counted("https://me:secret@host/x");
    assert_eq!((count, redactor.redact_counted(&once).1), (1, 0));
}

#[test]
fn a_key_without_end_does_not_open_the_next_one() {
    let begin = "-----BEGIN PRIVATE KEY-----\n";
    let filler = "x\n".repeat(secret::LONGEST_KEY / 2 - 50);
    let key = "SECRETHALF\n".repeat(100);
    let text = format!("{begin}{filler}{begin}{key}-----END PRIVATE KEY-----\nafter");
    let clean = Redactor::default().redact(&text).into_owned();
    assert_eq!(clean, "[redacted][redacted]\nafter");
}

#[test]
fn what_looks_like_a_secret() {
    let cases = [
        (
            concat!("key sk", "-ant-api03-0a1b2c3d4e5f_6g7h-8i9j."),
            "key [redacted].",
        ),
        ("sk-proj-aB3dE6gH9jK2mN5pQ8sT", "[redacted]"),
        ("npm_aB3dE6gH9jK2mN5pQ8sTaB3dE6gH9jK2mN5p", "[redacted]"),
        ("rk_live_aB3dE6gH9jK2mN5pQ8sT", "[redacted]"),
        (
            "\"ghp_0123456789abcdefghijABCDEFGHIJ012345\"",
            "\"[redacted]\"",
        ),
        ("github_pat_11ABCDEFG0123456789abcdef", "[redacted]"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
        (
            "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27u",
            "Bearer [redacted]",
        ),
        ("https://me:secret@host/x", "https://me:[redacted]@host/x"),
        ("http://me:p@ss@host", "http://me:[redacted]@host"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nafter",
            "[redacted]\nafter",
        ),
        ("-----BEGIN PRIVATE KEY-----\\nMII", "[redacted]"),
        ("-----BEGIN PRIVATE KEY-----\nMII\n-----END", "[redacted]"),
    ];
    for (text, expected) in cases {
        assert_eq!(Redactor::default().redact(text), expected, "{text}");
    }
}

#[test]
fn ordinary_text_is_left_alone_and_not_copied() {
    for text in [
        "",
        "risk-assessment-of-the-task-2026-and-beyond",
        "sk-learn-is-a-library-with-a-long-name",
        "the token eyJ is short, eyJhbGciOiJIUzI1NiJ9 alone too",
        "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
        "https://host:8080/path?mail=a@b",
        "http://user@host/ and ssh://git@github.com:22/x",
        "AKIA and ASIA",
        "größe: 5 € 🚣",
    ] {
        let redactor = redactor();
        assert!(
            matches!(redactor.redact(text), Cow::Borrowed(same) if same == text),
            "{text}"
        );
    }
}

#[test]
fn a_short_secret_does_not_garble_words() {
    let redactor = Redactor::default();
    redactor.add("test");
    redactor.add("");
    assert_eq!(redactor.redact("a test of tests"), "a test of tests");
}

#[test]
fn clones_share_what_is_added_later() {
    let redactor = Redactor::default();
    let clone = redactor.clone();
    redactor.add("a-later-secret");
    assert_eq!(clone.redact("a-later-secret"), MASK);
    assert!(!format!("{clone:?}").contains("later"));
}

proptest! {
    #[test]
    fn no_text_panics_and_no_known_secret_is_left(
        before in ".{0,20}",
        after in ".{0,20}",
        secret in "[!-~]{8,40}",
    ) {
        let redactor = Redactor::default();
        redactor.add(&secret);
        let text = format!("{before}{secret}{after}");
        prop_assert!(!redactor.redact(&text).contains(&secret));
    }

    #[test]
    fn pieces_of_patterns_never_panic(
        pieces in proptest::collection::vec(
            prop::sample::select(vec![
                "-----BEGIN ", "PRIVATE KEY-----", "-----END ", "RSA ", "://", "u:p@", "@", ":",
                "eyJ", ".", "sk-", "AKIA", "é", "🚣", "0123456789abcdef",
            ]),
            0..20,
        )
    ) {
        let text = pieces.concat();
        drop(redactor().redact(&text));
    }
}

#[test]
fn a_secret_that_is_over_is_looked_for_no_more_and_leaves_its_room() {
    let redactor = Redactor::default();
    redactor.add("a-token-that-stays");
    let before = redactor.known.read().count;
    for number in 0..1_000 {
        let token = format!("a-token-of-an-hour-{number}");
        let hidden = redactor.hide(&token);
        assert_eq!(redactor.redact(&token), MASK);
        drop(hidden);
        assert_eq!(redactor.redact(&token), token);
    }
    assert_eq!(redactor.known.read().count, before);
    assert_eq!(redactor.redact("a-token-that-stays"), MASK);
}

#[test]
fn a_secret_of_two_is_looked_for_until_both_are_over() {
    let redactor = Redactor::default();
    redactor.add("of-the-configuration");
    drop(redactor.hide("of-the-configuration"));
    assert_eq!(redactor.redact("of-the-configuration"), MASK);
    let (one, other) = (
        redactor.hide("of-two-tokens"),
        redactor.hide("of-two-tokens"),
    );
    drop(one);
    assert_eq!(redactor.redact("of-two-tokens"), MASK);
    drop(other);
    assert_eq!(redactor.redact("of-two-tokens"), "of-two-tokens");
}

#[test]
fn what_was_not_taken_is_not_taken_away() {
    let redactor = Redactor::default();
    for number in 0..MOST_FORMS {
        redactor.add(&format!("one-of-very-many-{number}"));
    }
    assert!(redactor.hide("one-too-many").is_none());
    assert!(redactor.hide("short").is_none());
}
