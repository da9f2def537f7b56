//! Keys that tokens are checked against: a set of JSON web keys (RFC 7517). Pure, but for the time.

use std::collections::{BTreeSet, HashMap};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::Value;

use super::{Claims, Refused};
use crate::config::JwtConfig;

/// The most keys of a set.
const MAX_KEYS: usize = 64;

/// The shortest modulus of RSA, in bits.
const MIN_MODULUS: usize = 2048;

/// The shortest secret of HS256, in bytes: as many as its digest has.
const MIN_SECRET: usize = 32;

/// The key that a token asks for: its name, where it has one.
pub(super) type Wanted = Option<String>;

/// A set of keys.
#[derive(Debug, Default)]
pub(super) struct Keys {
    named: HashMap<String, Key>,
    /// The one there is, where there is one: a token need not name it.
    only: Option<Key>,
    /// Why some were left out that may have been meant for tokens.
    odd: Vec<String>,
}

/// A key, with the one algorithm that it is for.
#[derive(Clone, Debug)]
struct Key {
    algorithm: Algorithm,
    key: DecodingKey,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

/// Returns which key a token was signed with, by its own word: only to find that key.
pub(super) fn wanted(token: &str) -> Result<Wanted, Refused> {
    let header = decode_header(token).map_err(|_| Refused::Wrong)?;
    Ok(header.kid)
}

impl Keys {
    /// Reads a set. Keys that are for something else are left out, and so are those that cannot be used: an issuer's further
    /// key locks nobody out.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let set: Set = serde_json::from_str(text)
            .map_err(|_| "it is no set of JSON web keys: {\"keys\": […]}".to_owned())?;
        if set.keys.len() > MAX_KEYS {
            return Err(format!("it has more than {MAX_KEYS} keys"));
        }
        let mut keys = Self::default();
        let mut found: Vec<(Option<String>, Key)> = Vec::new();
        for key in set.keys {
            let Ok(key) = serde_json::from_value::<Jwk>(key) else {
                continue;
            };
            let name = key.common.key_id.clone();
            match Key::of(&key) {
                Ok(usable) => found.extend(usable.map(|usable| (name, usable))),
                Err(why) => keys.odd.push(match name {
                    Some(name) => format!("the key {name:?} {why}"),
                    None => format!("a key without a name {why}"),
                }),
            }
        }
        if let [(_, only)] = found.as_slice() {
            keys.only = Some(only.clone());
        }
        let mut twice = BTreeSet::new();
        for (name, key) in found {
            if let Some(name) = name
                && keys.named.insert(name.clone(), key).is_some()
            {
                twice.insert(name);
            }
        }
        for name in twice {
            // Which one is meant is not known.
            keys.named.remove(&name);
            let why =
                format!("there are several keys of the name {name:?}, and none of them counts");
            keys.odd.push(why);
        }
        if keys.named.is_empty() && keys.only.is_none() {
            let problem = "it has no key that tokens can be checked with: Ed25519, RSA from 2048 bits on, or a secret of 32 bytes; several need names (kid)";
            let problems = [problem.to_owned()].into_iter().chain(keys.odd);
            return Err(problems.collect::<Vec<_>>().join("; "));
        }
        Ok(keys)
    }

    /// Returns why keys were left out that may have been meant for tokens.
    pub(super) fn odd(&self) -> &[String] {
        &self.odd
    }

    /// Returns whether there is the key that a token asks for.
    pub(super) fn has(&self, wanted: &Wanted) -> bool {
        self.get(wanted).is_some()
    }

    fn get(&self, wanted: &Wanted) -> Option<&Key> {
        match wanted {
            Some(name) => self.named.get(name),
            None => self.only.as_ref(),
        }
    }

    /// Returns what a token says, where it was signed with the key it asks for and holds now and here.
    pub(super) fn check(
        &self,
        token: &str,
        wanted: &Wanted,
        config: &JwtConfig,
    ) -> Result<Claims, Refused> {
        let Key { algorithm, key } = self.get(wanted).ok_or(Refused::UnknownKey)?;
        let mut rules = Validation::new(*algorithm);
        rules.leeway = config.clock_skew.as_secs();
        rules.validate_nbf = true;
        let mut needed = vec!["exp", "sub"];
        if let Some(issuer) = &config.issuer {
            rules.set_issuer(&[issuer]);
            needed.push("iss");
        }
        match &config.audience {
            Some(audience) => {
                rules.set_audience(&[audience]);
                needed.push("aud");
            }
            None => rules.validate_aud = false,
        }
        rules.set_required_spec_claims(&needed);
        let read = decode::<Claims>(token, key, &rules);
        read.map(|read| read.claims)
            .map_err(|error| match error.kind() {
                ErrorKind::ExpiredSignature => Refused::Expired,
                ErrorKind::ImmatureSignature => Refused::Early,
                ErrorKind::InvalidIssuer | ErrorKind::InvalidAudience => Refused::Elsewhere,
                ErrorKind::MissingRequiredClaim(name) if name == "iss" || name == "aud" => {
                    Refused::Elsewhere
                }
                ErrorKind::MissingRequiredClaim(_)
                | ErrorKind::InvalidClaimFormat(_)
                | ErrorKind::Json(_) => Refused::Claims,
                _ => Refused::Wrong,
            })
    }
}

impl Key {
    /// Returns a key as it can be used here; `None` where it is for something else. Fails with what is wrong with it.
    fn of(jwk: &Jwk) -> Result<Option<Self>, String> {
        let is_for_signatures = jwk.common.public_key_use.as_ref();
        if is_for_signatures.is_some_and(|it| *it != PublicKeyUse::Signature) {
            return Ok(None);
        }
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
                Algorithm::EdDSA
            }
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::OctetKey(_) => Algorithm::HS256,
            _ => return Ok(None),
        };
        let named = jwk.common.key_algorithm;
        if named.is_some_and(|named| named != KeyAlgorithm::from(algorithm)) {
            return Ok(None);
        }
        let key = DecodingKey::from_jwk(jwk).map_err(|_| "cannot be read".to_owned())?;
        match key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, .. } if bits(n) < MIN_MODULUS => {
                Err(format!("has {} bits, and RSA needs {MIN_MODULUS}", bits(n)))
            }
            DecodingKeyKind::SecretOrDer(secret)
                if algorithm == Algorithm::HS256 && secret.len() < MIN_SECRET =>
            {
                Err(format!(
                    "is a secret of fewer than {MIN_SECRET} bytes; make one with: openssl rand 32"
                ))
            }
            _ => Ok(Some(Self { algorithm, key })),
        }
    }
}

/// Returns how many bits a number has, of which the greatest byte comes first.
fn bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let rest = number.get(zeros..).unwrap_or_default();
    let first = rest.first().map_or(0, |byte| byte.leading_zeros() as usize);
    rest.len() * 8 - first
}
