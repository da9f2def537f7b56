//! Whether users can be let in, and kept out again: the keys of their tokens, and what was taken back.

use super::Machine;
use super::finding::{Finding, State};
use crate::config::JwtConfig;
use crate::token::{Checkup, check_up};

const USERS: &str = "users";

/// Looks at what tokens are checked by; nothing where there are none.
pub(super) async fn users(machine: &Machine) -> Vec<Finding> {
    match &machine.loaded.config.auth.jwt {
        Some(jwt) => found(jwt, check_up(jwt).await),
        None => Vec::new(),
    }
}

fn found(jwt: &JwtConfig, checkup: Checkup) -> Vec<Finding> {
    let Checkup { keys, revoked } = checkup;
    let mut findings = Vec::new();
    match keys {
        Ok(odd) => findings.extend(odd.into_iter().map(|problem| {
            let text = format!("auth.jwt.keys: {problem}; it is left out");
            Finding::new(USERS, State::Warning, text)
                .advise("take it out of the set, or mend it, where tokens are to be signed with it")
        })),
        Err(problem) => {
            let text = format!("auth.jwt.keys: {problem}");
            findings
                .push(Finding::new(USERS, State::Failed, text).advise(
                    "name a set of keys that is there: a file, or an address that answers",
                ));
        }
    }
    if let Err(problem) = revoked {
        let text = format!("auth.jwt.revoked: {problem}");
        findings.push(Finding::new(USERS, State::Failed, text).advise(
            "mend the file: until then nothing that is new in it counts, and the daemon does not start",
        ));
    }
    if findings.is_empty() {
        let taken_back = match jwt.revoked {
            Some(_) => ", and what was taken back can be read",
            None => "",
        };
        let text = format!("tokens can be checked{taken_back}");
        findings.push(Finding::new(USERS, State::Ok, text));
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::KeySource;

    #[tokio::test]
    async fn keys_and_what_was_taken_back_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let (keys, revoked) = (folder.path().join("keys"), folder.path().join("revoked"));
        let jwt = JwtConfig {
            keys: KeySource::File(keys.clone()),
            issuer: None,
            audience: None,
            clock_skew: Duration::ZERO,
            revoked: Some(revoked.clone()),
        };
        let good = r#"{"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        let weak = r#"{"kty": "RSA", "kid": "weak", "n": "AQAB", "e": "AQAB"}"#;
        let set = |all: &[&str]| format!(r#"{{"keys": [{}]}}"#, all.join(","));
        use State::{Failed, Ok, Warning};
        for (written, lines, expected) in [
            (set(&[good]), "jti a\n", vec![Ok]),
            (set(&[good, weak]), "", vec![Warning]),
            (set(&[good]), "sub anna 2026-11-27\n", vec![Failed]),
            (set(&[weak]), "jti", vec![Failed, Failed]),
        ] {
            std::fs::write(&keys, &written).unwrap();
            std::fs::write(&revoked, lines).unwrap();
            let findings = found(&jwt, check_up(&jwt).await);
            let states: Vec<State> = findings.iter().map(|it| it.state).collect();
            assert_eq!(states, expected, "{written} {lines}");
        }
        std::fs::remove_file(&revoked).unwrap();
        assert!(check_up(&jwt).await.revoked.is_err());
    }
}
