//! Tokens of every sort, made by hand: only those that are meant to open the door do.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

use super::*;
use crate::config::KeySource;

const RSA: &str = include_str!("../../fixtures/token/rsa.pem");
const SECRET: &[u8] = b"a secret of thirty-two bytes, or more";

/// The keys of an issuer, and what checks its tokens.
struct Issuer {
    ed: Ed25519KeyPair,
    rsa: RsaKeyPair,
    folder: tempfile::TempDir,
    tokens: Tokens,
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Issuer {
    fn new() -> Self {
        let ed = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let ed = Ed25519KeyPair::from_pkcs8(ed.as_ref()).unwrap();
        let body: String = RSA.lines().filter(|line| !line.starts_with('-')).collect();
        let rsa = RsaKeyPair::from_pkcs8(&STANDARD.decode(body).unwrap()).unwrap();
        let public = modulus(&rsa);
        let keys = json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": encoded(ed.public_key())},
            {"kty": "RSA", "kid": "rsa", "alg": "RS256", "n": encoded(&public), "e": "AQAB"},
            {"kty": "oct", "kid": "secret", "k": encoded(SECRET)},
            {"kty": "RSA", "kid": "other", "alg": "RS512", "n": encoded(&public), "e": "AQAB"},
            {"kty": "RSA", "kid": "enc", "use": "enc", "n": encoded(&public), "e": "AQAB"},
            {"kty": "new", "kid": "new"},
        ]});
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        std::fs::write(&path, keys.to_string()).unwrap();
        let revoked = folder.path().join("revoked");
        std::fs::write(&revoked, "jti gone\n").unwrap();
        let tokens = Tokens::new(&JwtConfig {
            keys: KeySource::File(path),
            issuer: Some("issuer".to_owned()),
            audience: Some("daemon".to_owned()),
            clock_skew: Duration::from_secs(5),
            revoked: Some(revoked),
        });
        Self {
            ed,
            rsa,
            folder,
            tokens: tokens.unwrap(),
        }
    }

    /// Returns a token with this head and these claims, signed by a key.
    fn token(&self, key: &str, head: &Value, claims: &Value) -> String {
        let said = format!(
            "{}.{}",
            encoded(head.to_string()),
            encoded(claims.to_string())
        );
        let signature = match key {
            "ed" => self.ed.sign(said.as_bytes()).as_ref().to_vec(),
            "rsa" => {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                let random = SystemRandom::new();
                self.rsa
                    .sign(&RSA_PKCS1_SHA256, &random, said.as_bytes(), &mut signature)
                    .unwrap();
                signature
            }
            "secret" => mac(SECRET, &said),
            // The public key, which everybody has, in the place of a secret.
            "rsa as secret" => mac(&modulus(&self.rsa), &said),
            "ed as secret" => mac(self.ed.public_key().as_ref(), &said),
            _ => Vec::new(),
        };
        format!("{said}.{}", encoded(signature))
    }

    async fn outcome(&self, token: &str) -> Result<String, Refused> {
        let grant = self.tokens.grant(token).await;
        grant.map(|grant| grant.user.to_string())
    }
}

/// Returns the public half of a key, but for the exponent that all of them have.
fn modulus(rsa: &RsaKeyPair) -> Vec<u8> {
    PublicKeyComponents::<Vec<u8>>::from(rsa.public()).n
}

fn mac(secret: &[u8], said: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    hmac::sign(&key, said.as_bytes()).as_ref().to_vec()
}

fn head(alg: &str, kid: &str) -> Value {
    json!({"typ": "JWT", "alg": alg, "kid": kid})
}

/// Claims that are good, but for these.
fn claims(other: &Value) -> Value {
    let now = Timestamp::now().as_second();
    let mut claims = json!({
        "iss": "issuer", "aud": "daemon", "sub": "anna", "iat": now, "exp": now + 600, "jti": "one",
    });
    for (name, value) in other.as_object().unwrap() {
        match value {
            Value::String(text) if text == "absent" => {
                claims.as_object_mut().unwrap().remove(name);
            }
            value => claims[name] = value.clone(),
        }
    }
    claims
}

#[tokio::test]
async fn a_token_is_signed_by_the_key_it_names_as_that_key_signs() {
    let issuer = Issuer::new();
    let good = claims(&json!({}));
    let anna = || Ok("anna".to_owned());
    for (key, head, expected) in [
        ("ed", head("EdDSA", "ed"), anna()),
        ("rsa", head("RS256", "rsa"), anna()),
        ("secret", head("HS256", "secret"), anna()),
        ("none", head("none", "ed"), Err(Refused::Wrong)),
        ("none", head("None", "ed"), Err(Refused::Wrong)),
        ("none", head("EdDSA", "ed"), Err(Refused::Wrong)),
        ("none", json!({"alg": "none"}), Err(Refused::Wrong)),
        ("rsa as secret", head("HS256", "rsa"), Err(Refused::Wrong)),
        ("ed as secret", head("HS256", "ed"), Err(Refused::Wrong)),
        (
            "rsa as secret",
            head("HS256", "secret"),
            Err(Refused::Wrong),
        ),
        ("secret", head("HS256", "ed"), Err(Refused::Wrong)),
        ("ed", head("RS256", "ed"), Err(Refused::Wrong)),
        ("ed", head("RS256", "rsa"), Err(Refused::Wrong)),
        ("rsa", head("RS256", "ed"), Err(Refused::Wrong)),
        ("rsa", head("RS512", "rsa"), Err(Refused::Wrong)),
        ("rsa", head("RS512", "other"), Err(Refused::UnknownKey)),
        ("rsa", head("RS256", "enc"), Err(Refused::UnknownKey)),
        ("secret", head("HS384", "secret"), Err(Refused::Wrong)),
        ("ed", json!({"alg": "EdDSA"}), Err(Refused::UnknownKey)),
        ("ed", head("EdDSA", ""), Err(Refused::UnknownKey)),
        (
            "ed",
            head("EdDSA", "../../etc/passwd"),
            Err(Refused::UnknownKey),
        ),
        (
            "ed",
            head("EdDSA", "https://evil.example/keys"),
            Err(Refused::UnknownKey),
        ),
        (
            "ed",
            json!({"alg": "EdDSA", "kid": ["ed"]}),
            Err(Refused::Wrong),
        ),
        ("ed", json!({"kid": "ed"}), Err(Refused::Wrong)),
        // A key that a token brings along is no key.
        (
            "ed",
            json!({"alg": "EdDSA", "kid": "unknown", "jwk": {"kty": "OKP", "crv": "Ed25519", "x": encoded(issuer.ed.public_key())}}),
            Err(Refused::UnknownKey),
        ),
    ] {
        let token = issuer.token(key, &head, &good);
        assert_eq!(issuer.outcome(&token).await, expected, "{key} {head}");
    }
}

#[tokio::test]
async fn a_token_holds_now_here_and_for_somebody() {
    let issuer = Issuer::new();
    let now = Timestamp::now().as_second();
    let long = "x".repeat(MAX_NAME + 1);
    let many: Vec<String> = (0..=MAX_ROOTS).map(|it| format!("/{it}")).collect();
    for (other, expected) in [
        (json!({}), None),
        (json!({"exp": now + 600, "nbf": now - 1}), None),
        (json!({"exp": (now as f64) + 600.5}), None),
        (json!({"aud": ["other", "daemon"]}), None),
        (json!({"iat": "absent", "jti": "absent"}), None),
        (json!({"further": {"unknown": true}}), None),
        // Within what clocks may be apart.
        (json!({"exp": now - 1}), None),
        (json!({"exp": now - 60}), Some(Refused::Expired)),
        (json!({"exp": 0}), Some(Refused::Expired)),
        (json!({"exp": "absent"}), Some(Refused::Claims)),
        (json!({"exp": "soon"}), Some(Refused::Claims)),
        (json!({"exp": null}), Some(Refused::Claims)),
        (json!({"exp": 1e300}), Some(Refused::Claims)),
        (json!({"nbf": now + 60}), Some(Refused::Early)),
        (json!({"nbf": "later"}), Some(Refused::Claims)),
        (json!({"iss": "another"}), Some(Refused::Elsewhere)),
        (json!({"iss": "absent"}), Some(Refused::Elsewhere)),
        (json!({"aud": "another"}), Some(Refused::Elsewhere)),
        (json!({"aud": []}), Some(Refused::Elsewhere)),
        (json!({"aud": "absent"}), Some(Refused::Elsewhere)),
        (json!({"sub": "absent"}), Some(Refused::Claims)),
        (json!({"sub": ""}), Some(Refused::Claims)),
        (json!({"sub": 1}), Some(Refused::Claims)),
        (json!({"sub": "a\nb"}), Some(Refused::Claims)),
        (json!({"sub": long}), Some(Refused::Claims)),
        (json!({"jti": "gone"}), Some(Refused::Revoked)),
        (json!({"outrigger": {"rights": []}}), Some(Refused::Claims)),
        (
            json!({"outrigger": {"role": "root"}}),
            Some(Refused::Claims),
        ),
        (
            json!({"outrigger": {"trust": "total"}}),
            Some(Refused::Claims),
        ),
        (
            json!({"outrigger": {"roots": ["work"]}}),
            Some(Refused::Claims),
        ),
        (
            json!({"outrigger": {"roots": ["/work/../etc"]}}),
            Some(Refused::Claims),
        ),
        (json!({"outrigger": {"roots": many}}), Some(Refused::Claims)),
        (json!({"outrigger": {"budget": -1}}), Some(Refused::Claims)),
        (json!({"outrigger": {"disk": -1}}), Some(Refused::Claims)),
        (
            json!({"outrigger": {"disk": "1MiB"}}),
            Some(Refused::Claims),
        ),
        (json!({"outrigger": "all"}), Some(Refused::Claims)),
    ] {
        let token = issuer.token("ed", &head("EdDSA", "ed"), &claims(&other));
        let outcome = issuer.outcome(&token).await;
        assert_eq!(outcome.err(), expected, "{other}");
    }
}

#[tokio::test]
async fn what_is_no_token_opens_nothing() {
    let issuer = Issuer::new();
    let good = issuer.token("ed", &head("EdDSA", "ed"), &claims(&json!({})));
    let other = issuer.token("ed", &head("EdDSA", "ed"), &claims(&json!({"sub": "ben"})));
    let parts: Vec<&str> = good.split('.').collect();
    let others: Vec<&str> = other.split('.').collect();
    let exchanged = [parts[0], others[1], parts[2]].join(".");
    let long = issuer.token(
        "ed",
        &head("EdDSA", "ed"),
        &claims(&json!({"x": "x".repeat(MAX_TOKEN)})),
    );
    for token in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        "a.b.c".to_owned(),
        parts[..2].join("."),
        format!("{}.", parts[..2].join(".")),
        format!("{good}.{}", parts[2]),
        format!("{good}x"),
        good.to_uppercase(),
        exchanged,
        long,
        "é".repeat(100),
    ] {
        assert_eq!(issuer.outcome(&token).await, Err(Refused::Wrong), "{token}");
    }
}

#[tokio::test]
async fn a_token_says_what_its_user_may() {
    let issuer = Issuer::new();
    let rights = json!({"role": "approver", "roots": ["/work/anna"], "trust": "guided", "budget": 2.5, "disk": 1_000_000});
    let rights = claims(&json!({"outrigger": rights}));
    let token = issuer.token("ed", &head("EdDSA", "ed"), &rights);
    let grant = issuer.tokens.grant(&token).await.unwrap();
    assert_eq!(
        (grant.role, grant.is_operator),
        (SocketRole::Approver, false)
    );
    assert_eq!(grant.roots, Some(vec![PathBuf::from("/work/anna")]));
    assert_eq!(grant.most_trust, TrustLevel::Guided);
    assert_eq!(grant.day.as_deref(), Money::from_dollars(2.5).as_ref());
    assert_eq!(grant.disk.as_deref(), Some(&1_000_000));
    let ends = rights["exp"].as_i64().unwrap() + 5;
    assert_eq!(grant.ends.unwrap().as_second(), ends);
    for (role, expected) in [
        (json!({}), (SocketRole::Driver, false)),
        (json!({"role": "operator"}), (SocketRole::Driver, true)),
        (json!({"role": "observer"}), (SocketRole::Observer, false)),
    ] {
        let token = issuer.token(
            "ed",
            &head("EdDSA", "ed"),
            &claims(&json!({"outrigger": role})),
        );
        let grant = issuer.tokens.grant(&token).await.unwrap();
        assert_eq!((grant.role, grant.is_operator), expected);
    }
}

#[tokio::test]
async fn what_is_taken_back_ends_at_once_and_a_wrong_file_changes_nothing() {
    let issuer = Issuer::new();
    let token = |jti: &str| issuer.token("ed", &head("EdDSA", "ed"), &claims(&json!({"jti": jti})));
    let (one, two) = (token("one"), token("two"));
    let first = issuer.tokens.grant(&one).await.unwrap();
    let second = issuer.tokens.grant(&two).await.unwrap();
    let file = issuer.folder.path().join("revoked");
    std::fs::write(&file, "jti gone\njti one\n").unwrap();
    issuer.tokens.look_at_revoked().await;
    assert!(first.revoked.is_cancelled() && !second.revoked.is_cancelled());
    assert_eq!(issuer.outcome(&one).await, Err(Refused::Revoked));
    std::fs::write(&file, "what is this\n").unwrap();
    issuer.tokens.reload().await;
    assert_eq!(issuer.outcome(&one).await, Err(Refused::Revoked));
    assert!(issuer.outcome(&two).await.is_ok());
    std::fs::write(&file, "sub anna\n").unwrap();
    issuer.tokens.reload().await;
    assert!(second.revoked.is_cancelled());
}

#[test]
fn a_set_of_keys_is_read_or_said_to_be_wrong() {
    let short = json!({"kty": "oct", "kid": "short", "k": encoded("short")});
    let weak = json!({"kty": "RSA", "kid": "weak", "n": encoded([0x7f; 256]), "e": "AQAB"});
    let broken = json!({"kty": "RSA", "kid": "broken", "n": "?", "e": "AQAB"});
    let one = json!({"kty": "oct", "kid": "a", "k": encoded(SECRET)});
    let nameless = json!({"kty": "oct", "k": encoded(SECRET)});
    for (keys, expected) in [
        (json!({"keys": [nameless, nameless]}), "it has no key"),
        (json!({"keys": [one, one]}), "it has no key"),
        (json!({"keys": []}), "it has no key"),
        (json!({"keys": [short]}), "it has no key"),
        (json!({"keys": vec![one.clone(); 65]}), "it has more than"),
        (json!([one]), "it is no set"),
    ] {
        let problem = Keys::read(&keys.to_string()).unwrap_err();
        assert!(problem.starts_with(expected), "{keys}: {problem}");
    }
    // A key that cannot be used is left out, which is said; one for something else is nobody's business.
    for (keys, name, odd) in [
        (json!([one]), Some("a"), ""),
        (json!([nameless]), None, ""),
        (json!([nameless, one]), Some("a"), ""),
        (json!([one, {"kty": "new"}]), Some("a"), ""),
        (
            json!([one, short]),
            Some("a"),
            r#"the key "short" is a secret of fewer than 32 bytes"#,
        ),
        (
            json!([weak, one]),
            Some("a"),
            r#"the key "weak" has 2047 bits"#,
        ),
        (
            json!([broken, one]),
            Some("a"),
            r#"the key "broken" cannot be read"#,
        ),
        (
            json!([{"kty": "oct", "kid": "b", "k": encoded(SECRET)}, one, one]),
            Some("b"),
            r#"there are several keys of the name "a""#,
        ),
    ] {
        let read = Keys::read(&json!({"keys": keys}).to_string()).unwrap();
        assert!(read.has(&name.map(str::to_owned)), "{keys}");
        let said = read.odd().concat();
        assert_eq!(said.is_empty(), odd.is_empty(), "{keys}: {said}");
        assert!(said.starts_with(odd), "{keys}: {said}");
    }
}

#[test]
fn a_key_that_is_made_here_signs_what_is_checked_here() {
    let folder = tempfile::tempdir().unwrap();
    let (private, keys) = (folder.path().join("key"), folder.path().join("keys.json"));
    written_key(&private).unwrap();
    assert!(written_key(&private).is_err(), "it is not written over");
    let public = public_keys(&private).unwrap().to_string();
    assert!(!public.contains("\"d\""));
    std::fs::write(&keys, public).unwrap();
    let tokens = Tokens::new(&JwtConfig {
        keys: KeySource::File(keys),
        issuer: None,
        audience: None,
        clock_skew: Duration::ZERO,
        revoked: None,
    });
    let claims = Claims {
        sub: "anna".to_owned(),
        exp: Timestamp::now().as_second() as f64 + 60.0,
        ..Claims::default()
    };
    let token = signed(&private, &claims).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let grant = runtime.block_on(tokens.unwrap().grant(&token)).unwrap();
    assert_eq!(grant.user.as_str(), "anna");
    std::fs::write(
        &private,
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
    )
    .unwrap();
    assert!(matches!(
        signed(&private, &claims),
        Err(make::MakeError::NoKey { .. })
    ));
}

#[test]
fn what_a_daemon_would_not_take_is_said() {
    let named = |sub: &str| Claims {
        sub: sub.to_owned(),
        ..Claims::default()
    };
    let rights = |outrigger| Claims {
        outrigger,
        ..named("anna")
    };
    let roots = |root: &str| {
        rights(Rights {
            roots: Some(vec![root.into()]),
            ..Rights::default()
        })
    };
    let budget = |budget| {
        rights(Rights {
            budget: Some(budget),
            ..Rights::default()
        })
    };
    for (claims, expected) in [
        (named(""), "the name"),
        (named("a\u{7}"), "the name"),
        (roots("work"), "folders"),
        (roots("/work/../etc"), "folders"),
        (budget(-1.0), "the budget"),
    ] {
        let problem = claims.check().unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    }
    assert_eq!(budget(1.0).check(), Ok(()));
    assert_eq!(roots("/work").check(), Ok(()));
}
