use serde_json::json;

use super::*;

#[test]
fn modes_by_family() {
    use Mode::{Adaptive, BetweenTools, Disabled, Enabled};
    // Model; modes; whether it thinks by default; binds; efforts; sampling; most tokens.
    let cases: &[(&str, &[Mode], [bool; 4], u64)] = &[
        (
            "claude-fable-5",
            &[Adaptive],
            [true, false, true, false],
            128_000,
        ),
        (
            "claude-fable-5-1",
            &[Adaptive],
            [true, true, true, false],
            128_000,
        ),
        (
            "claude-opus-5-5",
            &[Adaptive],
            [true, true, true, false],
            128_000,
        ),
        (
            "claude-opus-6",
            &[Adaptive],
            [true, true, true, false],
            128_000,
        ),
        (
            "claude-sonnet-5-5-20261021",
            &[Adaptive, BetweenTools],
            [true, true, true, false],
            128_000,
        ),
        (
            "claude-opus-5",
            &[Adaptive, Disabled],
            [true, false, true, false],
            128_000,
        ),
        (
            "claude-sonnet-5",
            &[Adaptive, Disabled],
            [true, false, true, false],
            128_000,
        ),
        (
            "claude-opus-4-8",
            &[Adaptive, Disabled],
            [false, false, true, false],
            128_000,
        ),
        (
            "claude-opus-4-7",
            &[Adaptive, Disabled],
            [false, false, true, false],
            128_000,
        ),
        (
            "claude-sonnet-4-6",
            &[Adaptive, Enabled, Disabled],
            [false, false, true, true],
            64_000,
        ),
        (
            "anthropic/claude-opus-4.6",
            &[Adaptive, Enabled, Disabled],
            [false, false, true, true],
            128_000,
        ),
        (
            "claude-opus-4-5-20251101",
            &[Enabled, Disabled],
            [false, false, true, true],
            64_000,
        ),
        (
            "claude-haiku-4-5-20251001",
            &[Enabled, Disabled],
            [false, false, false, true],
            64_000,
        ),
        (
            "claude-sonnet-4-20250514",
            &[Enabled, Disabled],
            [false, false, false, true],
            64_000,
        ),
        (
            "claude-opus-4-1-20250805",
            &[Enabled, Disabled],
            [false, false, false, true],
            32_000,
        ),
        (
            "us.anthropic.claude-3-7-sonnet-20250219-v1:0",
            &[Enabled, Disabled],
            [false, false, false, true],
            64_000,
        ),
        (
            "claude-3-5-haiku-20241022",
            &[],
            [false, false, false, true],
            8_192,
        ),
        (
            "claude-3-haiku-20240307",
            &[],
            [false, false, false, true],
            4_096,
        ),
        ("claude-2.1", &[], [false, false, false, true], 4_096),
        (
            "claude-aria",
            &[Adaptive],
            [false, true, true, false],
            64_000,
        ),
        (
            "deepseek-v4-pro",
            &[Enabled, Disabled],
            [false, false, false, true],
            8_192,
        ),
        ("", &[Enabled, Disabled], [false, false, false, true], 8_192),
    ];
    for (model, modes, [by_default, binds, efforts, sampling], max_tokens) in cases {
        let seen = Capabilities::by_name(model);
        assert_eq!(seen.modes, *modes, "{model}");
        assert_eq!(seen.thinks_by_default, *by_default, "{model}");
        assert_eq!(seen.binds_thinking, *binds, "{model}");
        assert_eq!(!seen.efforts.is_empty(), *efforts, "{model}");
        assert_eq!(seen.sampling, *sampling, "{model}");
        assert_eq!(seen.max_tokens, *max_tokens, "{model}");
    }
}

#[test]
fn the_listing_wins_over_the_name() {
    let listed = Capabilities::from_listing(&json!({
        "id": "claude-opus-4-5", "max_tokens": 77,
        "capabilities": {
            "image_input": {"supported": false},
            "thinking": {"supported": true, "types": {
                "adaptive": {"supported": true}, "enabled": {"supported": false},
                "between_tools": {"supported": true}}},
            "effort": {"supported": true, "low": {"supported": true}, "max": {"supported": true}},
        },
    }));
    assert_eq!(listed.modes, [Mode::Adaptive, Mode::BetweenTools]);
    assert_eq!(listed.efforts, [Effort::Low]);
    assert_eq!((listed.images, listed.max_tokens), (false, 77));
    let bare = Capabilities::from_listing(&json!({"id": "claude-opus-4-5"}));
    assert_eq!(bare, Capabilities::by_name("claude-opus-4-5"));
    assert_eq!(
        Capabilities::from_listing(&json!(3)),
        Capabilities::by_name("")
    );
}
