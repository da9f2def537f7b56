//! How a tool call looks in an editor: its kind, title and places. Pure.

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
        "task" => format!("Task: {}", text("description").unwrap_or_default()),
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

/// Returns what a call writes, where its input has all of the file.
pub(super) fn written<'a>(tool: &str, input: &'a Map<String, Value>) -> Option<&'a str> {
    let content = input.get("content").and_then(Value::as_str);
    content.filter(|text| tool == "file_write" && !text.chars().any(is_odd))
}

/// Whether a character may be escaped where a text is shown.
fn is_odd(letter: char) -> bool {
    !letter.is_ascii() || letter.is_ascii_control() && letter != '\n' && letter != '\t'
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
}
