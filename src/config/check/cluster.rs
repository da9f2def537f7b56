//! `[cluster]`: a name, an address for the other daemons, and what they know each other by.

use std::ops::RangeInclusive;

use secrecy::ExposeSecret as _;

use super::super::sections::ClusterSettings;
use super::super::{ClusterConfig, StoreConfig};
use super::findings::Findings;

/// The longest name, in characters.
const NAME_CHARS: usize = 64;

/// The characters that a secret may have.
const SECRET_CHARS: RangeInclusive<usize> = 32..=256;

/// Checks the section; `None` where nothing of it is set.
pub(super) fn check(
    settings: ClusterSettings,
    store: Option<&StoreConfig>,
    findings: &mut Findings<'_>,
) -> Option<ClusterConfig> {
    let [name, url] = [settings.name, settings.url].map(|it| it.trim().to_owned());
    if name.is_empty() && url.is_empty() && settings.secret.is_none() {
        return None;
    }
    let is_shared = store.is_some_and(|it| it.place.database().is_some());
    if !is_shared {
        findings.refuse(
            &["cluster"],
            "several daemons need one database for their sessions; name it in store.url",
        );
    }
    if name.chars().count() > NAME_CHARS || name.chars().any(char::is_control) {
        let problem = format!("must have {NAME_CHARS} characters at most, and no line breaks");
        findings.refuse(&["cluster", "name"], problem);
    }
    if !url.is_empty()
        && let Some(parsed) = findings.url(&["cluster", "url"], &url)
        && (parsed.scheme() != "http"
            || parsed.path() != "/"
            || parsed.query().is_some()
            || parsed.fragment().is_some())
    {
        let problem = "must be as http://10.0.0.5:4517 is: a daemon speaks no TLS, and there is nothing behind the port";
        findings.refuse(&["cluster", "url"], problem);
    }
    let length = settings
        .secret
        .as_ref()
        .map(|it| it.expose_secret().chars().count());
    match length {
        Some(length) if !SECRET_CHARS.contains(&length) => {
            let (least, most) = (SECRET_CHARS.start(), SECRET_CHARS.end());
            let problem = format!("must have {least} to {most} characters: openssl rand -base64 32");
            findings.refuse(&["cluster", "secret"], problem);
        }
        None if !url.is_empty() => findings.refuse(
            &["cluster", "secret"],
            "cluster.url needs it: what is passed on has to come from a daemon of the cluster; openssl rand -base64 32",
        ),
        _ => {}
    }
    Some(ClusterConfig {
        name: Some(name).filter(|it| !it.is_empty()),
        url: Some(url.trim_end_matches('/').to_owned()).filter(|it| !it.is_empty()),
        secret: settings.secret,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{loaded, refused};

    const SECRET: (&str, &str) = (
        "OUTRIGGER_CLUSTER__SECRET",
        "0123456789abcdef0123456789abcdef",
    );
    const STORE: (&str, &str) = ("OUTRIGGER_STORE__URL", "postgres://me@localhost/db");
    const URL: (&str, &str) = ("OUTRIGGER_CLUSTER__URL", "http://10.0.0.5:4517/");

    #[test]
    fn a_cluster_needs_a_database_and_an_address_a_secret() {
        assert!(loaded(&[STORE]).0.cluster.is_none());
        let found = loaded(&[STORE, URL, SECRET]).0.cluster.unwrap();
        assert_eq!(found.url.as_deref(), Some("http://10.0.0.5:4517"));
        assert_eq!(found.name, None);
        let name = ("OUTRIGGER_CLUSTER__NAME", "pod-1");
        let found = loaded(&[STORE, name]).0.cluster.unwrap();
        assert_eq!(found.name.as_deref(), Some("pod-1"));
        for (pairs, part) in [
            (&[name][..], "name it in store.url"),
            (&[STORE, URL], "cluster.url needs it"),
            (
                &[STORE, URL, ("OUTRIGGER_CLUSTER__SECRET", "short")],
                "32 to 256 characters",
            ),
            (
                &[STORE, SECRET, ("OUTRIGGER_CLUSTER__URL", "http://h/x")],
                "a daemon speaks no TLS",
            ),
            (
                &[STORE, SECRET, ("OUTRIGGER_CLUSTER__URL", "ftp://h")],
                "the scheme is neither",
            ),
            (
                &[STORE, ("OUTRIGGER_CLUSTER__NAME", "a\nb")],
                "no line breaks",
            ),
        ] {
            let said = refused(pairs);
            assert!(said.contains(part), "{said}");
            assert!(
                !said.contains(SECRET.1) && !said.contains("short\""),
                "{said}"
            );
        }
    }
}
