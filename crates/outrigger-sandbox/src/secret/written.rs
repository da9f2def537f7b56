//! Secrets that a text gives away by where they stand: after a name, in a header, after an option. Pure.
//!
//! For what is put on record alone: a model that works on a file has to see such a line as it is.

use std::ops::Range;

use super::SCHEMES;
use super::ordinary::{is_everyday, is_path};

/// How names of secrets end, in small letters, with `_` between their words.
const NAME_ENDS: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "access_key",
    "secret_key",
    "private_key",
    "credentials",
    "_auth",
    "_pat",
];

/// Of these, whatever is assigned is one; elsewhere a number is a number.
const PASSWORDS: [&str; 3] = ["password", "passwd", "passphrase"];

/// Headers that have one as their value, in small letters.
const HEADERS: [&str; 8] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-access-token",
    "private-token",
    "cookie",
];

/// A program or its subcommand, an option of it, and whether the secret stands behind the first colon of its value.
type ProgramOption = (&'static str, &'static str, bool);

const OPTIONS: [ProgramOption; 6] = [
    ("curl", "--proxy-user", true),
    ("curl", "--user", true),
    ("curl", "-u", true),
    ("curl", "-U", true),
    ("login", "-p", false),
    ("sshpass", "-p", false),
];

/// Longest name, and longest value, in bytes.
const MAX_NAME: usize = 128;
const MAX_VALUE: usize = 2 * 1024;

/// How far before an option its program may stand, in bytes.
const MAX_COMMAND: usize = 1024;

/// Shortest token of a header, and shortest one that no header names, in bytes.
const SHORTEST_TOKEN: usize = 6;
const SHORTEST_BEARER: usize = 16;

/// Shortest value without a digit that is one under a name in small letters, in bytes.
const SHORTEST_WORD: usize = 8;

/// Returns where secrets stand, in order; none of them overlap.
pub fn written(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut before = b' ';
    for (at, byte) in text.bytes().enumerate() {
        let is_found = found.last().is_some_and(|last| at < last.end);
        let begins = !before.is_ascii_alphanumeric();
        let value = match byte {
            _ if is_found => None,
            b'=' => assigned(text, at),
            b':' => header(text, at).or_else(|| member(text, at)),
            b'-' if before.is_ascii_whitespace() => option(text, at),
            b'B' | b'b' if begins => bearer(text, at),
            _ => None,
        };
        before = byte;
        let is_new = |value: &Range<usize>| found.last().is_none_or(|last| last.end <= value.start);
        found.extend(value.filter(|value| !value.is_empty()).filter(is_new));
    }
    found
}

/// `NAME=value`, `--name=value`, `name = "value"`.
fn assigned(text: &str, at: usize) -> Option<Range<usize>> {
    let (before, after) = (text.get(..at)?, text.get(at + 1..)?);
    if after.starts_with(['=', '~', '>']) || before.ends_with(['=', '!', '<', '>', ':', '+']) {
        return None;
    }
    let is_spaced = before.ends_with(' ');
    let written = name_before(before.trim_end_matches(' '));
    let name = named(written)?;
    let gap = if is_spaced { spaces(after) } else { 0 };
    let value = value_at(text, at + 1 + gap)?;
    let held = text.get(value.range.clone())?;
    // What is called is code.
    let is_called = text.get(value.range.end..)?.starts_with('(');
    let is_plain =
        !is_spaced && (written.starts_with('-') || !written.contains(char::is_lowercase));
    (!is_called && is_one(&name, held, is_plain, value.is_quoted)).then_some(value.range)
}

/// `"name": "value"`, its quotes escaped or not.
fn member(text: &str, at: usize) -> Option<Range<usize>> {
    let before = text.get(..at)?;
    let before = before.strip_suffix(['"', '\''])?.trim_end_matches('\\');
    let name = named(name_before(before))?;
    let from = at + 1 + spaces(text.get(at + 1..)?);
    let value = value_at(text, from)?;
    let held = text.get(value.range.clone())?;
    (value.is_quoted && is_one(&name, held, false, true)).then_some(value.range)
}

/// `Authorization: Bearer value`.
fn header(text: &str, at: usize) -> Option<Range<usize>> {
    let name = name_before(text.get(..at)?).to_ascii_lowercase();
    if !HEADERS.contains(&name.as_str()) {
        return None;
    }
    let from = at + 1 + spaces(text.get(at + 1..)?);
    let rest = window(text, from)?;
    let line = rest
        .find(['"', '\'', '\n', '\r', '\\'])
        .unwrap_or(rest.len());
    let line = rest.get(..line)?;
    if name == "cookie" {
        return (line.contains('=') && !stands_for_another(line)).then(|| from..from + line.len());
    }
    let scheme = SCHEMES.iter().find(|scheme| {
        let head = line.get(..scheme.len());
        let is_it = head.is_some_and(|head| head.eq_ignore_ascii_case(scheme));
        is_it
            && line
                .get(scheme.len()..)
                .is_some_and(|rest| rest.starts_with(' '))
    });
    let skipped = scheme.map_or(0, |scheme| scheme.len() + 1);
    let skipped = skipped + spaces(line.get(skipped..)?);
    let token = line.get(skipped..)?.split_whitespace().next()?;
    let start = from + skipped;
    (token.len() >= SHORTEST_TOKEN && is_mixed(token)).then(|| start..start + token.len())
}

/// `Bearer value`, wherever it stands.
fn bearer(text: &str, at: usize) -> Option<Range<usize>> {
    const SCHEME: &str = "bearer ";
    let from = at + SCHEME.len();
    let is_it = text.get(at..from)?.eq_ignore_ascii_case(SCHEME);
    let value = is_it.then(|| value_at(text, from))??;
    let token = text.get(value.range.clone())?;
    (token.len() >= SHORTEST_BEARER && is_mixed(token)).then_some(value.range)
}

/// `curl -u user:value`.
fn option(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?;
    let start = text.floor_char_boundary(at.saturating_sub(MAX_COMMAND));
    let command = text.get(start..at)?;
    let command = command.rsplit(['\n', ';', '|', '&', '(', '`']).next()?;
    let mut options = OPTIONS.iter();
    let (_, option, has_user) = options.find(|(program, option, _)| {
        let is_program = |word: &str| word.rsplit(['/', '"', '\'']).next() == Some(program);
        rest.starts_with(option) && command.split_whitespace().any(is_program)
    })?;
    let after = rest.get(option.len()..)?;
    let gap = match after.as_bytes().first()? {
        b'=' => 1,
        b' ' => spaces(after),
        // `-uuser:value`; a long option has none of this.
        _ if option.len() == 2 => 0,
        _ => return None,
    };
    let value = value_at(text, at + option.len() + gap)?.range;
    let held = text.get(value.clone())?;
    let user = match has_user {
        true => held.find(':')? + 1,
        false => 0,
    };
    let secret = held.get(user..)?;
    (!secret.is_empty() && !stands_for_another(secret)).then(|| value.start + user..value.end)
}

/// The name that ends here.
fn name_before(text: &str) -> &str {
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    let bytes = text.bytes().rev().take(MAX_NAME);
    let length = bytes.take_while(in_name).count();
    text.get(text.len() - length..).unwrap_or_default()
}

/// A name of a secret, in small letters with `_` between its words.
fn named(written: &str) -> Option<String> {
    let mut name = String::with_capacity(written.len());
    let mut was_small = false;
    for letter in written.trim_start_matches('-').chars() {
        if was_small && letter.is_ascii_uppercase() {
            name.push('_');
        }
        was_small = letter.is_ascii_lowercase();
        name.push(match letter {
            '-' | '.' => '_',
            letter => letter.to_ascii_lowercase(),
        });
    }
    NAME_ENDS
        .iter()
        .any(|end| name.ends_with(end))
        .then_some(name)
}

fn spaces(text: &str) -> usize {
    text.bytes().take_while(|byte| *byte == b' ').count()
}

struct Value {
    range: Range<usize>,
    is_quoted: bool,
}

/// As much from here on as a value may have.
fn window(text: &str, from: usize) -> Option<&str> {
    text.get(from..text.floor_char_boundary(from.saturating_add(MAX_VALUE)))
}

/// The value that begins here, without its quotes.
fn value_at(text: &str, from: usize) -> Option<Value> {
    let rest = window(text, from)?;
    let escape = usize::from(rest.starts_with('\\'));
    let quote = rest
        .get(escape..)?
        .chars()
        .next()
        .filter(|it| matches!(it, '"' | '\''));
    let (start, length) = match quote {
        Some(quote) => {
            let start = from + escape + 1;
            let inner = window(text, start)?;
            let length = inner.find([quote, '\n'])?;
            let end = inner.get(..length)?;
            (
                start,
                length - usize::from(escape > 0 && end.ends_with('\\')),
            )
        }
        None => {
            let ends = |letter: char| letter.is_whitespace() || "\"'`;|&<>(),\\".contains(letter);
            (from, rest.find(ends).unwrap_or(rest.len()))
        }
    };
    Some(Value {
        range: start..start + length,
        is_quoted: quote.is_some(),
    })
}

/// Whether a value is a secret under such a name; `is_plain` where nothing but a value can stand there.
fn is_one(name: &str, value: &str, is_plain: bool, is_quoted: bool) -> bool {
    if value.is_empty() || stands_for_another(value) || is_everyday(name, value) || is_path(value) {
        return false;
    }
    let is_word = ["true", "false", "none", "null", "yes", "no"].contains(&&*value.to_lowercase());
    let is_number = value
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b".,_-".contains(&byte));
    let is_password = PASSWORDS.iter().any(|end| name.ends_with(end));
    if is_word || is_number && !(is_password && is_plain) {
        return false;
    }
    is_plain
        || value.bytes().any(|byte| byte.is_ascii_digit())
        || is_quoted && value.len() >= SHORTEST_WORD && !value.contains(' ')
}

/// `$NAME`, `$(command)`, `<name>`, `{name}`, `%s`, `***`, and the mask of what was taken out before.
fn stands_for_another(value: &str) -> bool {
    value.starts_with(['$', '<', '{', '%', '*', '`', '[']) || value.contains("...")
}

/// Whether letters, digits and signs are mixed as in no word.
fn is_mixed(token: &str) -> bool {
    let is_inner =
        |pair: &[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    !stands_for_another(token)
        && (token
            .bytes()
            .any(|byte| byte.is_ascii_digit() || byte == b'=')
            || token.as_bytes().windows(2).any(is_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        let mut clean = text.to_owned();
        for range in written(text).into_iter().rev() {
            clean.replace_range(range, "#");
        }
        clean
    }

    #[test]
    fn secrets_are_known_by_where_they_stand() {
        for (text, expected) in [
            (
                "-H 'Authorization: Bearer 0123456789abcdef'",
                "-H 'Authorization: Bearer #'",
            ),
            (
                "authorization: token a1b2c3d4e5\nnext: x",
                "authorization: token #\nnext: x",
            ),
            (
                "Authorization: Basic dXNlcjpwYXNz\"",
                "Authorization: Basic #\"",
            ),
            ("X-Api-Key: 7f3d9a", "X-Api-Key: #"),
            ("curl -b 'Cookie: sid=ab12; x=1' h", "curl -b 'Cookie: #' h"),
            (
                "sent Bearer deadbeefdeadbeef0001 to it",
                "sent Bearer # to it",
            ),
            ("PGPASSWORD=hunter2 psql -U me", "PGPASSWORD=# psql -U me"),
            ("PGPASSWORD=tiger psql", "PGPASSWORD=# psql"),
            (
                "export MYSQL_PASSWORD='corr ect' && x",
                "export MYSQL_PASSWORD='#' && x",
            ),
            ("DB_PASSWORD=\"a b\" ./run", "DB_PASSWORD=\"#\" ./run"),
            ("REDIS_PASSWORD=12345678;x", "REDIS_PASSWORD=#;x"),
            ("mysql --password=tiger -u me", "mysql --password=# -u me"),
            (
                "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                "aws_secret_access_key = #",
            ),
            (
                "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI",
                "AWS_SECRET_ACCESS_KEY=#",
            ),
            (
                "//registry.npmjs.org/:_authToken=0f1e2d3c-4b5a",
                "//registry.npmjs.org/:_authToken=#",
            ),
            ("password = \"correct-horse\"", "password = \"#\""),
            (
                "{\"api_key\": \"k9k9\", \"a\": 1}",
                "{\"api_key\": \"#\", \"a\": 1}",
            ),
            (
                "{\\\"password\\\":\\\"hunter2\\\"}",
                "{\\\"password\\\":\\\"#\\\"}",
            ),
            ("curl -u ada:hunter https://h", "curl -u ada:# https://h"),
            (
                "curl -sS -uada:x1 h; curl --user 'a:b c' h",
                "curl -sS -uada:# h; curl --user 'a:#' h",
            ),
            (
                "/usr/bin/curl --user=ada:pw h",
                "/usr/bin/curl --user=ada:# h",
            ),
            ("sshpass -p tiger ssh h", "sshpass -p # ssh h"),
            ("docker login -u me -p tiger", "docker login -u me -p #"),
            ("é PGPASSWORD=größe é", "é PGPASSWORD=# é"),
        ] {
            assert_eq!(masked(text), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_text_is_none() {
        for text in [
            "the password: it is said to be long",
            "Authorization: required for all of them",
            "Authorization: Bearer tokens are needed",
            "Authorization: Bearer $TOKEN",
            "Authorization: Bearer ${{ secrets.TOKEN }}",
            "-H \"Authorization: Bearer <your token>\"",
            "Bearer of bad news; bearer authentication everywhere",
            "PASSWORD=$PASSWORD PGPASSWORD=$(cat f) A_TOKEN=`cat f`",
            "PASSWORD=changeme POSTGRES_PASSWORD=postgres",
            "PASSWORD_FILE=/run/secrets/password PASSWORD=/run/secrets/one",
            "USE_TOKEN=true API_TOKEN= x MAX_TOKEN=4096",
            "password = get_password() or token=tokenizer.eos_token",
            "def login(password=None, token=token, secret=self.secret):",
            "if password == \"correct-horse\" or token != 'abcdefgh1':",
            "type Token => string; |token| token.kind == Kind::Word1",
            "{\"password\": \"string\", \"token\": null, \"secret\": true}",
            "max_tokens=100 sort --key=2,2 monkey=banana1 author=Grace1",
            "docker run -u 1000:1000 -p 8080:80 image",
            "ls -u a:b; grep -u x:y f",
            "curl -u ada https://host:8080/ && tar -u a:b",
            "curl -u \"$USER:$PASSWORD\" h; curl -u ada:$PW h",
            "https://h/?next=token&page=2",
            "password=[redacted] \"token\": \"[redacted]\"",
            "größe: 5 €, token=é",
            "=:-B",
            "",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn no_text_takes_longer_than_its_length() {
        for unit in [
            "=",
            "token=",
            "a:",
            "-u ",
            "curl -u a:",
            "Bearer ",
            "\"token\":\"",
            "é=",
        ] {
            let text = unit.repeat(2_000);
            drop(written(&text));
        }
    }
}
