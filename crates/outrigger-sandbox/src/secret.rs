//! What counts as a secret: by its name, by its form, or because the operator says so. Pure.
//!
//! The one list for all who have to know: the environment of commands, the values of the configuration, and what is
//! taken out of text.

mod ordinary;
mod patterns;
mod written;

use ordinary::{is_ordinary, is_path};
pub use patterns::{LONGEST_KEY, looked_like};
pub use written::written;

/// Shortest secret, in bytes: a shorter one is a part of ordinary words.
pub const SHORTEST: usize = 8;

/// Anywhere in a name, in any case: it is that of a credential.
const NAME_PARTS: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", "COOKIE"];

const NAME_ENDS: [&str; 2] = ["_PAT", "_DSN"];

/// Words of names that have one of these in them by chance.
const HARMLESS_WORDS: [&str; 13] = [
    "AUTHOR",
    "AUTHORS",
    "BYPASS",
    "COMPASS",
    "HOTKEY",
    "HOTKEYS",
    "KEYBOARD",
    "KEYMAP",
    "MONKEY",
    "PASSIVE",
    "PASSTHROUGH",
    "TOKENIZER",
    "TOKENIZERS",
];

/// Names of these are kept from commands, though not every value of them is secret: accounts, regions, models.
const VENDOR_STARTS: [&str; 6] = ["AWS_", "AZURE_", "GOOGLE_", "GCP_", "OPENAI", "ANTHROPIC"];

/// Words before a token in the value of a header.
const SCHEMES: [&str; 6] = ["Bearer", "Basic", "Token", "ApiKey", "Bot", "Digest"];

/// Shortest run of letters and digits that is taken for a key by how mixed it is, in bytes.
const SHORTEST_RUN: usize = 16;

/// Shortest value with such a run, in bytes.
const SHORTEST_MIXED: usize = 20;

/// Least entropy of such a run, in bits for each byte; text has less than 4 at this length, and no digits amid it.
const LEAST_ENTROPY: f64 = 3.0;

/// Lengths of digests in hexadecimal, which name commits and files.
const DIGEST_LENGTHS: [usize; 2] = [40, 64];

/// Whether a variable or header of this name holds a credential.
fn names_credential(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace(['-', '.', ' '], "_");
    let working_directory = matches!(name.as_str(), "PWD" | "OLDPWD");
    let has = |part: &str| {
        name.split('_')
            .any(|word| word.contains(part) && !HARMLESS_WORDS.contains(&word))
    };
    NAME_PARTS.iter().any(|part| has(part))
        || NAME_ENDS.iter().any(|end| name.ends_with(end))
        || name.contains("PWD") && !working_directory
}

pub(crate) fn is_kept_back(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    names_credential(name)
        || VENDOR_STARTS.iter().any(|start| upper.starts_with(start))
        || upper.contains("SESSION")
}

/// Whether a value is or contains a credential: one of the known ones, or something of that form.
///
/// For what is passed on to commands, where one too many costs little.
pub(crate) fn may_hold_one(value: &str, known: &[&str]) -> bool {
    known
        .iter()
        .any(|secret| secret.len() >= SHORTEST && value.contains(secret))
        || patterns::prefixes().any(|prefix| value.starts_with(prefix))
        || value.contains("-----BEGIN ")
        || is_web_token(value)
        || has_user_information(value)
}

/// Lists the secrets in the value of a variable or header; none where it is an ordinary one.
///
/// `declared` is the operator's word, which counts more than name and form. What is shorter than 8 bytes is never one.
pub fn in_value(name: &str, value: &str, declared: Option<bool>) -> Vec<String> {
    found(name, value, declared, is_mixed)
}

/// The same for a variable that nobody set for this program: by its name, or as vendors' keys look.
pub fn in_variable(name: &str, value: &str) -> Vec<String> {
    found(name, value, None, |_| false)
}

fn found(
    name: &str,
    value: &str,
    declared: Option<bool>,
    is_mixed: impl Fn(&str) -> bool,
) -> Vec<String> {
    let value = value.trim();
    if declared == Some(false) {
        return Vec::new();
    }
    let named = declared == Some(true) || names_credential(name);
    let mut secrets = in_url(value);
    secrets.extend(in_parts(value));
    let by_form = || looks_like_key(value) || is_mixed(value);
    if declared == Some(true) || named && !is_ordinary(name, value) || by_form() {
        secrets.push(value.to_owned());
    }
    if let Some((scheme, token)) = value.split_once(' ')
        && SCHEMES
            .iter()
            .any(|known| known.eq_ignore_ascii_case(scheme))
        && !is_ordinary(name, token)
    {
        secrets.extend([value.to_owned(), token.trim().to_owned()]);
    }
    secrets.retain(|secret| secret.len() >= SHORTEST);
    secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    secrets.dedup();
    secrets
}

/// The passwords of a URL: of its user, and in its query.
fn in_url(value: &str) -> Vec<String> {
    if !value.contains("://") {
        return Vec::new();
    }
    let Ok(url) = url::Url::parse(value) else {
        return Vec::new();
    };
    let mut secrets = Vec::new();
    let user = url.username();
    match url.password() {
        Some(password) if !is_ordinary(user, password) => {
            secrets.push(password.to_owned());
        }
        None if looks_like_key(user) || is_run_mixed(user) => secrets.push(user.to_owned()),
        _ => {}
    }
    for (name, value) in url.query_pairs() {
        if names_credential(&name) && !is_ordinary(&name, &value) {
            secrets.push(value.into_owned());
        }
    }
    // Some give their secret as a part of the path.
    let parts = url.path_segments().into_iter().flatten();
    secrets.extend(parts.filter(|part| looks_like_key(part)).map(str::to_owned));
    secrets
}

/// The secrets of a connection string: `Server=h;Password=…`, `host=h password=…`.
fn in_parts(value: &str) -> Vec<String> {
    let finest = |letter: char| letter.is_whitespace() || matches!(letter, ';' | ',' | '&');
    // Where `;` stands between them, a part may have the others in it.
    let coarse = value.contains(';').then(|| value.split(';'));
    let parts = coarse.into_iter().flatten().chain(value.split(finest));
    let quotes = ['"', '\''];
    parts
        .filter_map(|part| part.split_once('='))
        .filter_map(|(name, part)| {
            let name = name.rsplit(['?', '/', '#']).next()?.trim();
            let part = part.trim().trim_matches(quotes);
            // By itself the name of a variable with a folder, but not in a connection string.
            let is_named = names_credential(name) || name.eq_ignore_ascii_case("pwd");
            (is_named && !is_ordinary(name, part)).then(|| part.to_owned())
        })
        .collect()
}

/// Whether a value has something of a well-known form in it, less passwords in URLs.
fn looks_like_key(value: &str) -> bool {
    let bytes = value.as_bytes();
    let mut places = bytes.iter().enumerate();
    places.any(|(at, byte)| *byte != b':' && looked_like(*byte, bytes, at).is_some())
}

/// Whether a value is as mixed as keys are, and neither a path nor a digest.
fn is_mixed(value: &str) -> bool {
    let in_key = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_.~-".contains(&byte);
    let is_digest =
        DIGEST_LENGTHS.contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    value.len() >= SHORTEST_MIXED
        && value.bytes().all(in_key)
        && !is_path(value)
        && !is_digest
        && !value.starts_with("sha")
        && value
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(is_run_mixed)
}

/// Whether letters and digits are mixed as in a key: names and versions have them in a few groups.
fn is_run_mixed(run: &str) -> bool {
    let changes = run
        .as_bytes()
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.is_ascii_digit() != b.is_ascii_digit()))
        .count();
    run.len() >= SHORTEST_RUN && changes >= 3 && entropy(run.as_bytes()) >= LEAST_ENTROPY
}

/// Shannon's entropy of the bytes, in bits for each.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let all = f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / all;
            -share * share.log2()
        })
        .sum()
}

/// `eyJ….eyJ….…`, the form of a signed JSON web token.
fn is_web_token(value: &str) -> bool {
    value
        .split('.')
        .filter(|part| part.starts_with("eyJ"))
        .count()
        >= 2
}

/// `scheme://user:password@host` or `scheme://token@host`.
fn has_user_information(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        rest.split(['/', '?', '#'])
            .next()
            .is_some_and(|authority| authority.contains('@'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What of a value is a secret, joined by blanks.
    fn of(name: &str, value: &str) -> String {
        in_value(name, value, None).join(" ")
    }

    #[test]
    fn ordinary_values_are_no_secrets() {
        for (name, value) in [
            ("NODE_ENV", "production"),
            ("LOG_LEVEL", "development debug"),
            ("DESCRIPTION", "reads the production database"),
            ("ROOT", "/srv/projects/production"),
            ("KEY_FILE", "/etc/ssl/private/server.key"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/home/u/key.json"),
            ("CREDENTIALS_FILE", "config/credentials.json"),
            (
                "STORE",
                "/nix/store/0c5rq4m7k2f9z1x8v6b3n0a5s7d2g4h1-nodejs/bin",
            ),
            ("API_URL", "https://api.example.org/v1/resources?page=2"),
            ("AUTH_URL", "https://login.example.org/oauth2/authorize"),
            ("AWS_REGION", "eu-central-1"),
            ("OPENAI_MODEL", "gpt-4o-mini-2024-07-18"),
            ("MODEL", "claude-sonnet-4-20250514"),
            ("TENANT", "6f9619ff-8b86-d011-b42d-00cf4fc964ff"),
            ("COMMIT", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("MAX_TOKENS", "128000000"),
            ("MY_TOKEN_LIMIT", "128000000"),
            ("GIT_AUTHOR_NAME", "Grace Hopper"),
            ("KEYBOARD_LAYOUT", "de-nodeadkeys"),
            ("POSTGRES_PASSWORD", "postgres"),
            ("DB_PASSWORD", "password"),
            ("API_KEY", "not-needed"),
            ("GITHUB_TOKEN", "${GITHUB_TOKEN}"),
            ("GITHUB_TOKEN", "$GITHUB_TOKEN"),
            ("API_KEY", "<your key here>"),
            ("API_KEY", "{{ secrets.API_KEY }}"),
            ("API_KEY", "${{ secrets.API_KEY }}"),
            ("SSH_AUTH_SOCK", "/run/user/1000/keyring/ssh"),
            ("KEY_STORE", "~/.ssh/id_ed25519"),
            ("KEY_STORE", "C:\\keys\\server.pem"),
            ("KEY_PATH", "/keys/live"),
            (
                "DB_CONN",
                "Server=tcp:h,1433;Database=production;Encrypt=True",
            ),
            ("API_TOKEN", "short"),
            ("X-Team", "infrastructure"),
        ] {
            assert_eq!(of(name, value), "", "{name}={value}");
        }
    }

    #[test]
    fn secrets_are_known_by_name_and_by_form() {
        for (name, value, secrets) in [
            ("API_TOKEN", "supersecret", "supersecret"),
            (
                "PGPASSWORD",
                "correct horse battery",
                "correct horse battery",
            ),
            ("x-api-key", "abcdefgh", "abcdefgh"),
            (
                "Authorization",
                "Bearer abcdefghijkl",
                "Bearer abcdefghijkl abcdefghijkl",
            ),
            (
                "X-Upstream",
                "Bearer abcdefghijkl",
                "Bearer abcdefghijkl abcdefghijkl",
            ),
            ("MY_PAT", "abcdefghij", "abcdefghij"),
            (
                "X",
                "ghp_0123456789abcdefghijABCDEFGHIJ012345",
                "ghp_0123456789abcdefghijABCDEFGHIJ012345",
            ),
            ("X", "a9F3kQ7zL2mX8vB4nT6w", "a9F3kQ7zL2mX8vB4nT6w"),
            (
                "X",
                "7c4a8d09ca3762af61e59520943dc264",
                "7c4a8d09ca3762af61e59520943dc264",
            ),
            (
                "DATABASE_URL",
                "postgres://app:s3cr3t-pw@db/app",
                "s3cr3t-pw",
            ),
            (
                "HOOK",
                "https://h/x?api_key=abcdefghijk&page=1",
                "abcdefghijk",
            ),
            (
                "SENTRY_DSN",
                "https://9f2c4e6a8b1d3f507c9e2a4b6d8f0a1c@o1.example.org/5",
                "9f2c4e6a8b1d3f507c9e2a4b6d8f0a1c",
            ),
            (
                "SECRET_B64",
                "/k8sJ2f3a9Q1z7Xw5Vb6Nm0p==",
                "/k8sJ2f3a9Q1z7Xw5Vb6Nm0p==",
            ),
            (
                "SECRET_B64",
                "/k8sJ2f3a9Q1z/7Xw5Vb6Nm0pQ",
                "/k8sJ2f3a9Q1z/7Xw5Vb6Nm0pQ",
            ),
            (
                "AZURE_STORAGE_CONNECTION_STRING",
                "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abcdefgh+/ij==;EndpointSuffix=x",
                "abcdefgh+/ij==",
            ),
            (
                "MSSQL_CONN",
                "Server=h;Password=hunter2hunter2",
                "hunter2hunter2",
            ),
            (
                "PG",
                "host=h password='hunter2hunter2' dbname=x",
                "hunter2hunter2",
            ),
            (
                "MSSQL_CONN",
                "Pwd=hunter2,hunter2;Server=h",
                "hunter2,hunter2",
            ),
            ("DB_PASSWORD", "$uper-Secret-99", "$uper-Secret-99"),
            ("DB_PASSWORD", "$uperSecret99", "$uperSecret99"),
            ("DB_PASSWORD", "<hunter2", "<hunter2"),
            ("DB_PASSWORD", "{hunter2", "{hunter2"),
            ("KEY_JSON", "{\"a\":\"hunter2\"}", "{\"a\":\"hunter2\"}"),
        ] {
            assert_eq!(of(name, value), secrets, "{name}={value}");
        }
    }

    /// Measured to its end at each `eyJ`, this is 10^11 steps.
    #[test]
    fn a_long_run_of_beginnings_ends() {
        for piece in ["eyJ.", "eyJ.eyJhbGciOiJI."] {
            let run = piece.repeat((1 << 20) / piece.len());
            assert!(!looks_like_key(&run), "{piece}");
        }
    }

    #[test]
    fn the_operators_word_counts_most() {
        assert_eq!(
            in_value("MODE", "my own words", Some(true)),
            ["my own words"]
        );
        assert_eq!(in_value("MODE", "short", Some(true)), Vec::<String>::new());
        assert_eq!(
            in_value("API_KEY", "abcdefghijk", Some(false)),
            Vec::<String>::new()
        );
    }

    #[test]
    fn of_a_variable_that_nobody_set_here_how_mixed_it_is_says_nothing() {
        let digest = "7c4a8d09ca3762af61e59520943dc264";
        assert_eq!(in_variable("INVOCATION_ID", digest), Vec::<String>::new());
        assert_eq!(in_variable("VENDOR_KEY", digest), [digest]);
    }
}
