//! What looks like a secret, by name and by value. The second net, below the list of what is passed. Pure.

/// Anywhere in a name, in any case.
const NAME_PARTS: [&str; 8] = [
    "KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", "COOKIE", "SESSION",
];

const NAME_STARTS: [&str; 6] = ["AWS_", "AZURE_", "GOOGLE_", "GCP_", "OPENAI", "ANTHROPIC"];

const NAME_ENDS: [&str; 2] = ["_PAT", "_DSN"];

/// How well-known credentials begin.
const VALUE_STARTS: [&str; 8] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "xoxb-",
    "AKIA",
    "glpat-",
];

/// A shorter value would be found in harmless text.
const SHORTEST_SECRET: usize = 8;

pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let working_directory = name == "PWD" || name == "OLDPWD";
    NAME_PARTS.iter().any(|part| name.contains(part))
        || NAME_STARTS.iter().any(|start| name.starts_with(start))
        || NAME_ENDS.iter().any(|end| name.ends_with(end))
        || name.contains("PWD") && !working_directory
}

/// Whether a value is or contains a credential: one of the known ones, or something of that form.
pub(super) fn is_secret_value(value: &str, known: &[&str]) -> bool {
    known
        .iter()
        .any(|secret| secret.len() >= SHORTEST_SECRET && value.contains(secret))
        || VALUE_STARTS.iter().any(|start| value.starts_with(start))
        || value.contains("-----BEGIN ")
        || is_web_token(value)
        || has_user_information(value)
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
