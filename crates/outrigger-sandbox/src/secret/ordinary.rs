//! What is no secret whatever its name says: everyday words, numbers, placeholders and paths. Pure.

use super::{SHORTEST, SHORTEST_RUN, is_run_mixed, names_credential};

/// Values that stand for no secret whatever the name: settings, users that everybody has, and what local servers take
/// for a key. A program's own name in its password (`POSTGRES_PASSWORD=postgres`) is known by the name.
const EVERYDAY: [&str; 33] = [
    "anonymous",
    "automatic",
    "changeme",
    "change-me",
    "database",
    "development",
    "disabled",
    "dummy-key",
    "external",
    "fake-key",
    "internal",
    "keychain",
    "llama.cpp",
    "lm-studio",
    "lmstudio",
    "localhost",
    "no-key-needed",
    "no-key-required",
    "none-needed",
    "not-needed",
    "not-required",
    "not_needed",
    "optional",
    "password",
    "placeholder",
    "postgres",
    "postgresql",
    "production",
    "required",
    "sk-no-key-required",
    "undefined",
    "username",
    "your-api-key",
];

const TOP_FOLDERS: [&str; 19] = [
    "Library", "Users", "Volumes", "app", "data", "dev", "etc", "home", "mnt", "nix", "opt",
    "private", "root", "run", "secrets", "srv", "tmp", "usr", "var",
];

/// Longest end of a file's name, in bytes.
const LONGEST_END: usize = 10;

const PATH_ENDS: [&str; 3] = ["FILE", "PATH", "DIR"];

/// Whether no secret looks like this, whatever the name says.
pub(super) fn is_ordinary(name: &str, value: &str) -> bool {
    let number =
        |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',' | ':' | '_' | '-');
    value.len() < SHORTEST
        || is_everyday(name, value)
        || value.len() < SHORTEST_RUN && value.chars().all(number)
        || is_placeholder(value)
        || is_path_under(name, value)
        || value.contains("://")
}

/// Whether it is a word that everybody has there, or the name's own.
pub(super) fn is_everyday(name: &str, value: &str) -> bool {
    let lower = value.to_lowercase();
    EVERYDAY.contains(&lower.as_str()) || name.to_lowercase().contains(&lower)
}

/// Whether the whole of a value stands for another: `$NAME`, `${NAME}`, `<…>`, `{name}` or `{{ name }}`.
fn is_placeholder(value: &str) -> bool {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:- ".contains(&byte);
    let inner = |text: &str| {
        let inner = text.strip_prefix('{')?.strip_suffix('}')?;
        let twice = inner
            .strip_prefix('{')
            .and_then(|inner| inner.strip_suffix('}'));
        Some(twice.unwrap_or(inner).bytes().all(in_name))
    };
    let in_angles = value
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'));
    if in_angles.is_some_and(|rest| !rest.contains(['<', '>'])) {
        return true;
    }
    let Some(name) = value.strip_prefix('$') else {
        return inner(value).unwrap_or(false);
    };
    // A password may begin with `$` as well; in names, letters are not mixed.
    let upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    // `${NAME:-default}` may have the secret itself.
    inner(name).unwrap_or(false) && !name.contains(":-")
        || name.bytes().all(upper)
        || name.bytes().all(lower)
}

/// Whether a value is a path under this name. One of a credential has to look more like a path.
fn is_path_under(name: &str, value: &str) -> bool {
    if !names_credential(name) {
        return is_path(value);
    }
    let last = name.rsplit(['_', '-', '.', ' ']).next().unwrap_or_default();
    PATH_ENDS.iter().any(|end| end.eq_ignore_ascii_case(last))
        || is_relative_file(value)
        || is_certain_path(value)
}

/// Whether a value begins as a path does and has a top folder, or a file's name with an end: keys in base64 may begin
/// with a slash and have others, but have no dots.
fn is_certain_path(value: &str) -> bool {
    let (has_drive, rest) = match value.as_bytes() {
        [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic() => {
            (true, value.get(2..).unwrap_or_default())
        }
        _ => (false, value),
    };
    let starts = ["/", "./", "../", "~/"];
    if !has_drive && !starts.iter().any(|start| rest.starts_with(start)) {
        return false;
    }
    let parts = || rest.split(['/', '\\']);
    let is_top =
        parts().next() == Some("") && parts().nth(1).is_some_and(|top| TOP_FOLDERS.contains(&top));
    let has_end = |part: &str| {
        part.rsplit_once('.').is_some_and(|(_, end)| {
            (1..=LONGEST_END).contains(&end.len())
                && end.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    let in_path = |letter: char| letter.is_alphanumeric() || "._-+ ~@".contains(letter);
    let is_plain =
        |part: &str| part.chars().all(in_path) && !part.split(['.', '_', '-']).any(is_run_mixed);
    is_top || parts().any(has_end) && parts().all(is_plain)
}

/// Whether a value is an absolute path, or one below a home or working directory.
pub(super) fn is_path(value: &str) -> bool {
    if value.starts_with("~/") || value.starts_with("./") || value.starts_with("../") {
        return true;
    }
    let drive = value.as_bytes().get(1..3);
    if drive.is_some_and(|rest| rest == b":\\" || rest == b":/") || is_relative_file(value) {
        return true;
    }
    // A key in base64 may begin with a slash too.
    value.strip_prefix('/').is_some_and(|rest| {
        rest.contains(['/', '.']) && !rest.ends_with('=') || !is_run_mixed(rest)
    })
}

/// `folder/file.end`, with nothing in it that is as mixed as a key.
fn is_relative_file(value: &str) -> bool {
    let in_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let end = value
        .rsplit_once('/')
        .and_then(|(_, name)| name.rsplit_once('.'));
    end.is_some_and(|(_, end)| (1..=5).contains(&end.len()))
        && value.bytes().all(in_path)
        && !value.split(['/', '.', '_', '-']).any(is_run_mixed)
}
