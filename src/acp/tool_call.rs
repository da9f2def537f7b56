//! How a tool call looks in an editor: its kind, title, places and difference. Pure.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};

/// The longest title, in characters.
const MAX_TITLE: usize = 200;

/// Words of git that only read, as far as a picture of the call goes.
const READING: [&str; 6] = ["status", "diff", "log", "show", "blame", "branch"];

/// Returns what sort of call it is, in the protocol's words.
pub(super) fn kind(tool: &str, input: &Map<String, Value>) -> &'static str {
    match tool {
        "file_read" => "read",
        "file_list" | "file_search" => "search",
        "file_write" | "file_edit" => "edit",
        "bash" | "bash_output" | "bash_kill" => "execute",
        "git" if READING.contains(&first_word(input)) => "read",
        "git" => "execute",
        "web_search" | "web_fetch" => "fetch",
        "task" => "think",
        _ => "other",
    }
}

/// Returns what the call does, in one line.
pub(super) fn title(tool: &str, input: &Map<String, Value>) -> String {
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    let path = || text("path").unwrap_or(".");
    let title = match tool {
        // Not known yet.
        _ if input.is_empty() => String::new(),
        "file_read" => format!("Read {}", path()),
        "file_list" => format!("List {}", text("pattern").unwrap_or_else(path)),
        "file_search" => format!("Search {}", text("pattern").unwrap_or_default()),
        "file_write" => format!("Write {}", path()),
        "file_edit" => format!("Edit {}", path()),
        "bash" => text("command").unwrap_or_default().to_owned(),
        "git" => format!("git {}", words(input).join(" ")),
        "web_search" => format!("Search the web: {}", text("query").unwrap_or_default()),
        "web_fetch" => format!("Fetch {}", text("url").unwrap_or_default()),
        _ => String::new(),
    };
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    match title.is_empty() {
        true => tool.to_owned(),
        false => cut(&title),
    }
}

fn cut(title: &str) -> String {
    match title.char_indices().nth(MAX_TITLE) {
        Some((at, _)) => format!("{}…", title.get(..at).unwrap_or_default()),
        None => title.to_owned(),
    }
}

fn words(input: &Map<String, Value>) -> Vec<&str> {
    let words = input.get("args").and_then(Value::as_array);
    words
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn first_word(input: &Map<String, Value>) -> &str {
    words(input).into_iter().next().unwrap_or_default()
}

/// Returns the file that a call is about, absolute.
pub(super) fn path(tool: &str, input: &Map<String, Value>, cwd: &Path) -> Option<PathBuf> {
    let is_of_file = matches!(tool, "file_read" | "file_write" | "file_edit");
    let path = input.get("path").and_then(Value::as_str)?;
    is_of_file.then(|| absolute(path, cwd))
}

/// Returns the places that a client may jump to.
pub(super) fn locations(tool: &str, input: &Map<String, Value>, cwd: &Path) -> Vec<Value> {
    let line = input.get("offset").and_then(Value::as_u64);
    let place = |path: PathBuf| match line {
        Some(line) => json!({"path": path, "line": line}),
        None => json!({ "path": path }),
    };
    path(tool, input, cwd).map(place).into_iter().collect()
}

/// Returns a path below the project as an absolute one, without dots.
fn absolute(path: &str, cwd: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                whole.pop();
            }
            part => whole.push(part),
        }
    }
    whole
}

/// Returns the difference that a call is about to make, or has made: of its unified diff where there is one, else of its
/// input. Text without its surroundings stands for the whole file, which the protocol would have.
pub(super) fn diff(
    tool: &str,
    input: &Map<String, Value>,
    unified: Option<&str>,
    cwd: &Path,
) -> Option<Value> {
    let path = path(tool, input, cwd)?;
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    let (old, new) = match (unified, tool) {
        (Some(unified), _) => of_unified(unified),
        (None, "file_edit") => (
            Some(text("oldText")?.to_owned()),
            text("newText")?.to_owned(),
        ),
        _ => return None,
    };
    Some(json!({"type": "diff", "path": path, "oldText": old, "newText": new}))
}

/// Returns both sides of a unified diff; `None` for the old one where there was no file.
fn of_unified(unified: &str) -> (Option<String>, String) {
    let (mut old, mut new) = (String::new(), String::new());
    let (mut is_new_file, mut is_in_hunk) = (false, false);
    for line in unified.lines() {
        if line.starts_with("@@") {
            is_in_hunk = true;
        } else if !is_in_hunk {
            is_new_file |= line.starts_with("--- /dev/null");
        } else {
            let (mark, rest) = line.split_at_checked(1).unwrap_or((line, ""));
            for (side, marks) in [(&mut old, "- "), (&mut new, "+ ")] {
                // An empty line of the surroundings may have lost its mark.
                if mark.is_empty() || marks.contains(mark) {
                    side.push_str(rest);
                    side.push('\n');
                }
            }
        }
    }
    is_new_file |= old.is_empty();
    ((!is_new_file).then_some(old), new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_call_has_a_kind_and_a_title() {
        for (tool, given, expected_kind, expected) in [
            (
                "file_read",
                json!({"path": "src/a.rs"}),
                "read",
                "Read src/a.rs",
            ),
            (
                "file_list",
                json!({"pattern": "*.rs"}),
                "search",
                "List *.rs",
            ),
            ("file_list", json!({}), "search", "file_list"),
            ("file_edit", json!({"path": "a"}), "edit", "Edit a"),
            (
                "bash",
                json!({"command": "cargo test\n  --lib"}),
                "execute",
                "cargo test --lib",
            ),
            (
                "git",
                json!({"args": ["status", "-s"]}),
                "read",
                "git status -s",
            ),
            ("git", json!({"args": ["commit"]}), "execute", "git commit"),
            (
                "web_search",
                json!({"query": "a b"}),
                "fetch",
                "Search the web: a b",
            ),
            ("server__tool", json!({}), "other", "server__tool"),
            ("bash", json!({}), "execute", "bash"),
        ] {
            let given = input(&given);
            assert_eq!(
                (kind(tool, &given), title(tool, &given).as_str()),
                (expected_kind, expected)
            );
        }
        let long = input(&json!({"command": "x".repeat(MAX_TITLE + 1)}));
        assert_eq!(title("bash", &long).chars().count(), MAX_TITLE + 1);
    }

    #[test]
    fn places_are_absolute() {
        let cwd = Path::new("/home/me/app");
        for (path, expected) in [
            ("src/a.rs", "/home/me/app/src/a.rs"),
            ("./b/../c", "/home/me/app/c"),
            ("/etc/hosts", "/etc/hosts"),
        ] {
            let given = input(&json!({"path": path, "offset": 3}));
            assert_eq!(
                locations("file_read", &given, cwd),
                [json!({"path": expected, "line": 3})]
            );
        }
        assert!(locations("bash", &input(&json!({"path": "x"})), cwd).is_empty());
    }

    #[test]
    fn a_difference_has_both_sides() {
        let cwd = Path::new("/p");
        let edit = input(&json!({"path": "a", "oldText": "x", "newText": "y"}));
        assert_eq!(
            diff("file_edit", &edit, None, cwd),
            Some(json!({"type": "diff", "path": "/p/a", "oldText": "x", "newText": "y"}))
        );
        let unified = "--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";
        let found = diff("file_edit", &edit, Some(unified), cwd).unwrap();
        assert_eq!(found["oldText"], "one\ntwo\nthree\n");
        assert_eq!(found["newText"], "one\nTWO\nthree\n");
        let write = input(&json!({"path": "a", "content": "n"}));
        assert_eq!(diff("file_write", &write, None, cwd), None);
        let unified = "--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+n\n";
        let found = diff("file_write", &write, Some(unified), cwd).unwrap();
        assert_eq!(
            (&found["oldText"], &found["newText"]),
            (&Value::Null, &json!("n\n"))
        );
        assert_eq!(diff("bash", &edit, Some(unified), cwd), None);
    }
}
