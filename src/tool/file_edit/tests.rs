use proptest::prelude::*;
use serde_json::json;

use super::super::file::testing::{World, text};
use super::super::file_read::file_read;
use super::super::text::decode;
use super::*;
use crate::config::FileReadConfig;

fn input(old: &str, new: &str, all: bool) -> Input {
    Input {
        path: String::new(),
        old_text: old.to_owned(),
        new_text: new.to_owned(),
        replace_all: all,
    }
}

/// Edits bytes and returns the new bytes, or the error's text.
fn edited(before: &[u8], old: &str, new: &str, all: bool) -> Result<Vec<u8>, String> {
    let text = decode(before).unwrap();
    let revision = edit(&text, &input(old, new, all))?;
    Ok(revision.form.encode(&revision.content).unwrap())
}

#[test]
fn edits_change_what_they_name_and_nothing_else() {
    /// Before, old text, new text, whether all, after.
    type Case = (
        &'static [u8],
        &'static str,
        &'static str,
        bool,
        &'static [u8],
    );
    let cases: &[Case] = &[
        (b"a b c", "b", "x", false, b"a x c"),
        (b"a\nb\nc\n", "a\nb", "x", false, b"x\nc\n"),
        (
            b"a\r\nb\r\nc\r\n",
            "a\nb",
            "x\ny",
            false,
            b"x\r\ny\r\nc\r\n",
        ),
        (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", false, b"x\r\ny\r\n"),
        (b"a\r\nb\nc", "b\nc", "x\ny", false, b"a\r\nx\ny"),
        (
            b"\xEF\xBB\xBFa\r\n",
            "a",
            "b\n",
            false,
            b"\xEF\xBB\xBFb\r\n\r\n",
        ),
        (
            b"\xFE\xFF\0a\0b",
            "b",
            "\u{fc}",
            false,
            b"\xFE\xFF\0a\0\xfc",
        ),
        (
            b"gr\xfc\xdfe aus M\xfcnchen",
            "aus",
            "f\u{fc}r",
            false,
            b"gr\xfc\xdfe f\xfcr M\xfcnchen",
        ),
        (b"x y x", "x", "z", true, b"z y z"),
        (b"aaa", "aa", "b", true, b"ba"),
        (b"a b", " b", "", false, b"a"),
    ];
    for (before, old, new, all, after) in cases {
        assert_eq!(
            edited(before, old, new, *all).as_deref(),
            Ok(*after),
            "{before:?} {old:?}"
        );
    }
}

#[test]
fn errors_tell_what_to_do() {
    let content = "fn main() {\n    let total = count();\n    print(total);\n}\n";
    for (before, old, expected) in [
        (
            "x y x\nx",
            "x",
            "has `oldText` 3 times (lines 1, 1, 2); give more of the lines around the one that is \
             meant, or set `replaceAll`",
        ),
        (
            "aaa",
            "aa",
            "has `oldText` 2 times (lines 1, 1); give more of the lines around the one \
             that is meant, or set `replaceAll`",
        ),
        (
            content,
            "let totals = count();",
            "does not have `oldText`; the nearest line is 2: \"    let total = count();\"",
        ),
        (
            content,
            "\tlet total = count();",
            "does not have `oldText`; the nearest line is 2: \"    let total = count();\"",
        ),
        (
            content,
            "    let total = count();\n    show(total);",
            "does not have `oldText`; line 2 is the first of `oldText`, but what follows differs; \
             read on from there",
        ),
        (
            content,
            "nothing like it at all",
            "does not have `oldText`; read it to see what it has",
        ),
    ] {
        assert_eq!(
            edited(before.as_bytes(), old, "", false),
            Err(expected.to_owned())
        );
    }
    let many = edited("x\n".repeat(5000).as_bytes(), "x", "y", false).unwrap_err();
    assert!(
        many.starts_with("has `oldText` at least 1000 times (lines 1, 2,"),
        "{many}"
    );
    assert_eq!(
        edited("x\n".repeat(5000).as_bytes(), "x", "y", true).unwrap(),
        b"y\n".repeat(5000)
    );
}

#[tokio::test]
async fn the_tool_edits_files_and_says_what_it_did() {
    let world = World::with(&[("f", "one\ntwo\none\n"), ("dir/x", "")]);
    world.put("bin", b"\0\x01");
    let tool = file_edit(Arc::clone(&world.roots));
    for (input, expected, is_error) in [
        (
            json!({"path": "f", "oldText": "two", "newText": "2"}),
            "f: replaced the text at line 2",
            false,
        ),
        (
            json!({"path": "f", "old_text": "one", "new_text": "1", "replace_all": true}),
            "f: replaced 2 places",
            false,
        ),
        (
            json!({"path": "f", "oldText": "", "newText": "x"}),
            "`oldText` is empty; to write a whole file, use file_write",
            true,
        ),
        (
            json!({"path": "f", "oldText": "x", "newText": "x"}),
            "`oldText` and `newText` are the same; there is nothing to change",
            true,
        ),
        (
            json!({"path": "none", "oldText": "x", "newText": "y"}),
            "file \"none\" does not exist; to create it, use file_write",
            true,
        ),
        (
            json!({"path": "bin", "oldText": "x", "newText": "y"}),
            "file \"bin\" is not text, or too large to edit",
            true,
        ),
        (
            json!({"path": "dir", "oldText": "x", "newText": "y"}),
            "path \"dir\" is a folder, not a regular file",
            true,
        ),
    ] {
        let output = world.call(&tool, input.clone()).await;
        assert_eq!(
            (text(&output), output.is_error),
            (expected, is_error),
            "{input}"
        );
    }
    assert_eq!(world.content("f"), b"1\n2\n1\n");
    world.put("legacy", b"gr\xfc\xdfe aus M\xfcnchen");
    let input = json!({"path": "legacy", "oldText": "aus", "newText": "\u{3b1}"});
    let output = world.call(&tool, input).await;
    assert_eq!(
        text(&output),
        "file \"legacy\" is in windows-1252, which has no character 'α'"
    );
}

#[tokio::test]
async fn a_change_that_was_shown_is_made_after_the_conversation_s_own_and_after_no_other() {
    let edit = |old: &str, new: &str| json!({"path": "f", "oldText": old, "newText": new});
    let far = "\n".repeat(8);
    let [before, foreign, after] = [("one", "two"), ("1", "two"), ("1", "2")]
        .map(|(one, two)| format!("{one}{far}{two}\nthree\n"));
    for (is_own, is_read, expected) in [
        (true, false, Ok(())),
        (true, true, Ok(())),
        (false, true, Err("changed by someone else")),
        (false, false, Err("waited for approval")),
    ] {
        let world = World::with(&[("f", &before)]);
        let tool = file_edit(Arc::clone(&world.roots));
        if is_read {
            let config = FileReadConfig {
                enabled: true,
                max_bytes: 1024,
                allowed_extensions: Vec::new(),
            };
            let read = file_read(Arc::clone(&world.roots), config);
            world.call(&read, json!({"path": "f"})).await;
        }
        let call = world.prepare(&tool, &edit("two", "2")).unwrap();
        call.preview().await.unwrap();
        if is_own {
            world.call(&tool, edit("one", "1")).await;
        } else {
            world.put("f", &foreign);
        }
        let output = world.run(call).await.unwrap();
        match expected {
            Ok(()) => assert_eq!(world.content("f"), after.as_bytes()),
            Err(reason) => assert!(text(&output).contains(reason), "{}", text(&output)),
        }
        assert_eq!(output.is_error, expected.is_err(), "{}", text(&output));
    }
}

proptest! {
    /// Small alphabets, so that matches, overlaps and line ends are common.
    #[test]
    fn an_edit_is_the_model_s_edit(
        before in "[ab\u{fc}\n]{0,30}",
        old in "[ab\n]{1,3}",
        new in "[abc\n]{0,4}",
        all in prop::bool::ANY,
        crlf in prop::bool::ANY,
        mark in prop::bool::ANY,
    ) {
        let on_disk = |text: &str| {
            let text = if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
            format!("{}{text}", if mark { "\u{feff}" } else { "" }).into_bytes()
        };
        // Without a line end in the file nothing tells that its lines end with CR LF.
        prop_assume!(!crlf || before.contains('\n'));
        let letters: Vec<char> = before.chars().collect();
        let wanted: Vec<char> = old.chars().collect();
        let count = letters.windows(wanted.len()).filter(|window| **window == wanted).count();
        let expected = match count {
            0 => None,
            1 => Some(before.replacen(&old, &new, 1)),
            _ => all.then(|| before.replace(&old, &new)),
        };
        let result = edited(&on_disk(&before), &old, &new, all);
        prop_assert_eq!(result.ok(), expected.map(|text| on_disk(&text)));
    }
}
