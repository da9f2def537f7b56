//! What signs and checks: `ring`, which TLS here uses too. `jsonwebtoken` brings no cryptography of its own along.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result, new_error};
use jsonwebtoken::signature::{Error as SignatureError, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::hmac;
use ring::signature::{
    ED25519, Ed25519KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has the library use it, once.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    // Fails where one is there already, which is this one.
    INSTALLED.call_once(|| {
        PROVIDER.install_default().ok();
    });
}

fn unsupported<T>() -> Result<T> {
    Err(new_error(ErrorKind::UnsupportedAlgorithm))
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    match algorithm {
        Algorithm::EdDSA => {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.as_bytes());
            let pair = pair.map_err(|_| new_error(ErrorKind::InvalidEddsaKey))?;
            Ok(Box::new(EdSigner(pair)))
        }
        Algorithm::HS256 => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
            Ok(Box::new(HmacSigner(key)))
        }
        _ => unsupported(),
    }
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if key.family() != algorithm.family() {
        return Err(new_error(ErrorKind::InvalidKeyFormat));
    }
    match algorithm {
        Algorithm::EdDSA | Algorithm::RS256 | Algorithm::HS256 => Ok(Box::new(Checker {
            algorithm: *algorithm,
            key: key.clone(),
        })),
        _ => unsupported(),
    }
}

struct EdSigner(Ed25519KeyPair);

impl Signer<Vec<u8>> for EdSigner {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, SignatureError> {
        Ok(self.0.sign(message).as_ref().to_vec())
    }
}

impl JwtSigner for EdSigner {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

struct HmacSigner(hmac::Key);

impl Signer<Vec<u8>> for HmacSigner {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, SignatureError> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl JwtSigner for HmacSigner {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

struct Checker {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for Checker {
    fn verify(
        &self,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> std::result::Result<(), SignatureError> {
        let checked = match (self.algorithm, self.key.kind()) {
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature)
            }
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (Algorithm::HS256, DecodingKeyKind::SecretOrDer(key)) => {
                hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, key), message, signature)
            }
            _ => Err(ring::error::Unspecified),
        };
        checked.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for Checker {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
