use proptest::prelude::*;

use super::*;
use crate::permission::Permission;

#[test]
fn durations() {
    let millis = |text| parse_duration(text).map(|duration| duration.as_millis());
    let cases = [
        ("500ms", Some(500)),
        ("30s", Some(30_000)),
        ("5m", Some(300_000)),
        ("1h", Some(3_600_000)),
        ("1h30m", Some(5_400_000)),
        ("1m 30s", Some(90_000)),
        ("0s", Some(0)),
        ("0", Some(0)),
        (" 30 s ", Some(30_000)),
        ("30", None),
        ("", None),
        ("s", None),
        ("-1s", None),
        ("1.5s", None),
        ("30 seconds", None),
        ("30S", None),
        ("1d", None),
        ("5m3", None),
        ("5mé", None),
        ("99999999999999999999s", None),
        ("18446744073709551615h", None),
    ];
    for (text, expected) in cases {
        assert_eq!(millis(text), expected, "{text:?}");
    }
}

#[test]
fn sizes() {
    let cases = [
        ("0", Some(0)),
        ("4096", Some(4096)),
        ("512B", Some(512)),
        ("100KiB", Some(102_400)),
        ("16MiB", Some(16_777_216)),
        ("1GiB", Some(1 << 30)),
        ("1kb", Some(1000)),
        ("2MB", Some(2_000_000)),
        ("1GB", Some(1_000_000_000)),
        ("16 mib", Some(16_777_216)),
        ("", None),
        ("MiB", None),
        ("1.5MiB", None),
        ("-1", None),
        ("1TiB", None),
        ("16MiB!", None),
        ("1é", None),
        ("18446744073709551615GiB", None),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_size(text), expected, "{text:?}");
    }
}

proptest! {
    #[test]
    fn a_written_duration_reads_the_same(millis in 0..u64::MAX) {
        let duration = Duration::from_millis(millis);
        prop_assert_eq!(parse_duration(&format_duration(duration)), Some(duration));
    }

    #[test]
    fn a_written_size_reads_the_same(bytes: u64) {
        prop_assert_eq!(parse_size(&format_size(bytes)), Some(bytes));
    }

    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = (parse_duration(&text), parse_size(&text));
    }
}

#[test]
fn a_permission_takes_text_or_milliseconds_and_writes_milliseconds() {
    let cases = [
        (r#"{"timeout":"120s"}"#, Some(120_000)),
        (r#"{"timeout":1500}"#, Some(1500)),
        (r#"{"timeout":null}"#, None),
        ("{}", None),
    ];
    for (json, expected) in cases {
        let permission: Permission = serde_json::from_str(json).expect("valid permission");
        let millis = permission.timeout.map(|timeout| timeout.0.as_millis());
        assert_eq!(millis, expected, "{json}");
        let written = serde_json::to_value(&permission).expect("plain data");
        let again: Permission = serde_json::from_value(written).expect("what it wrote");
        assert_eq!(again, permission);
    }
    for json in [
        r#"{"timeout":"120"}"#,
        r#"{"timeout":-1}"#,
        r#"{"timeout":[]}"#,
    ] {
        let error = serde_json::from_str::<Permission>(json).unwrap_err();
        assert!(error.to_string().contains(TIMEOUT.says), "{error}");
    }
}
