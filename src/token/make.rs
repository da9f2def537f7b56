//! Tokens that are made here, and the keys for it: Ed25519.

use std::io::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::source::read_text;
use super::{Claims, crypto};

/// The longest file of a key, in bytes.
const MAX_BYTES: usize = 16 * 1024;

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

/// Why there is no key or token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MakeError {
    #[error("{path} cannot be read: {problem}")]
    Unreadable { path: String, problem: String },
    #[error("{path} cannot be written: {problem}")]
    Unwritable { path: String, problem: String },
    #[error(
        "{path} holds no private key of Ed25519; make one with: outrigger token key FILE, or openssl genpkey -algorithm ed25519"
    )]
    NoKey { path: String },
    #[error("there are no random numbers for a key")]
    NoRandom,
    #[error("the token cannot be signed: {0}")]
    Unsigned(String),
}

/// Makes a private key in a new file of mode 0600.
pub(crate) fn written_key(path: &Path) -> Result<(), MakeError> {
    let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
    let made = made.map_err(|_| MakeError::NoRandom)?;
    let unwritable = |error: std::io::Error| MakeError::Unwritable {
        path: path.display().to_string(),
        problem: error.to_string(),
    };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(unwritable)?;
    let text = format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(made.as_ref()));
    file.write_all(text.as_bytes()).map_err(unwritable)
}

/// Returns the public half of a private key, as the daemon takes it (`auth.jwt.keys`).
pub(crate) fn public_keys(path: &Path) -> Result<Value, MakeError> {
    let (_, pair) = read(path)?;
    let public = pair.public_key().as_ref();
    Ok(json!({"keys": [{
        "kty": "OKP",
        "crv": "Ed25519",
        "alg": "EdDSA",
        "use": "sig",
        "kid": name_of(public),
        "x": URL_SAFE_NO_PAD.encode(public),
    }]}))
}

/// Returns a token, signed with a private key.
pub(crate) fn signed(path: &Path, claims: &Claims) -> Result<String, MakeError> {
    crypto::install();
    let (der, pair) = read(path)?;
    let header = Header {
        kid: Some(name_of(pair.public_key().as_ref())),
        ..Header::new(Algorithm::EdDSA)
    };
    let key = EncodingKey::from_ed_der(&der);
    encode(&header, claims, &key).map_err(|error| MakeError::Unsigned(error.to_string()))
}

/// Returns how a key is called: by its digest, so that none has to be made up.
fn name_of(public: &[u8]) -> String {
    let digest = Sha256::digest(public);
    URL_SAFE_NO_PAD.encode(digest.get(..12).unwrap_or_default())
}

fn read(path: &Path) -> Result<(Vec<u8>, Ed25519KeyPair), MakeError> {
    let shown = || path.display().to_string();
    let text = read_text(path, MAX_BYTES).map_err(|problem| MakeError::Unreadable {
        path: shown(),
        problem,
    })?;
    let body = text
        .split_once(BEGIN)
        .and_then(|(_, rest)| rest.split_once(END))
        .map(|(body, _)| body.split_whitespace().collect::<String>());
    let no_key = || MakeError::NoKey { path: shown() };
    let der = body.and_then(|body| STANDARD.decode(body).ok());
    let der = der.ok_or_else(no_key)?;
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| no_key())?;
    Ok((der, pair))
}
