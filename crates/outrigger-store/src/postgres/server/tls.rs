//! How a server's certificate is looked at, and what is said where it does not do.

use std::fmt;
use std::sync::Arc;

use rustls::CertificateError::{self, *};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Returns what encrypts: certificates are looked at by the authorities that the machine trusts, or those in a file.
pub(super) fn connector(roots: Option<&str>) -> Result<MakeRustlsConnect, String> {
    let mut store = RootCertStore::empty();
    match roots {
        Some(file) => {
            // Which file it is may be a secret that stands in the wrong place.
            let wrong = |error: &dyn fmt::Display| {
                format!("the file that sslrootcert names cannot be used: {error}")
            };
            let found = CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                store.add(certificate).map_err(|error| wrong(&error))?;
            }
            if store.is_empty() {
                return Err(wrong(&"there is no certificate in it (PEM)"));
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
        }
    }
    if store.is_empty() {
        return Err(
            "this machine knows no authority that its certificate could be looked at by; name a file by sslrootcert=".to_owned(),
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Returns what is wrong with the encryption, and what to do; `None` where it is something else.
pub(super) fn problem(error: &tokio_postgres::Error) -> Option<String> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let within = error.downcast_ref::<std::io::Error>();
        let within = within.and_then(std::io::Error::get_ref);
        let of_tls = error.downcast_ref::<rustls::Error>();
        match of_tls.or_else(|| within?.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(wrong)) => return Some(of_certificate(wrong)),
            Some(other) => return Some(format!("its encryption cannot be used: {other}")),
            None => cause = error.source(),
        }
    }
    // The client says it by a text alone.
    error.to_string().contains("TLS").then(|| {
        format!(
            "there is no encrypted connection to it ({}): set `ssl = on` there, or end store.url with ?sslmode=disable where nobody else is on the way to it",
            super::words::chain(error)
        )
    })
}

/// Returns what is wrong with a certificate, and what to do.
fn of_certificate(wrong: &CertificateError) -> String {
    let known = match wrong {
        UnknownIssuer | BadSignature => {
            "the server's certificate is of an authority that is not known here: name the file of that authority's certificate by sslrootcert=FILE in store.url"
        }
        NotValidForName | NotValidForNameContext { .. } => {
            return format!(
                "the server's certificate is for other names than the host of store.url{}: name the host as its certificate does, or give the server one that has this host in its subjectAltName (its CN does not count)",
                names(wrong)
            );
        }
        Expired | ExpiredContext { .. } => {
            "the server's certificate is too old: give the server a new one, or set this machine's clock"
        }
        NotValidYet | NotValidYetContext { .. } => {
            "the server's certificate is not valid yet: set this machine's clock, or give the server another one"
        }
        Revoked => "the server's certificate was revoked: give the server a new one",
        InvalidPurpose | InvalidPurposeContext { .. } => {
            "the server's certificate is not made for servers: give the server one whose extendedKeyUsage has serverAuth"
        }
        // What else there is has a name only within.
        other => match format!("{other:?}") {
            name if name.contains("CaUsedAsEndEntity") => {
                "the server's certificate is that of an authority (CA:TRUE), as `openssl req -x509` makes it: give the server one of its own that this authority signed (CA:FALSE), and name the authority's by sslrootcert=FILE"
            }
            name if name.contains("UnsupportedCertVersion") => {
                "the server's certificate is of version 1: give the server one of version 3, with its host in subjectAltName"
            }
            _ => {
                return format!(
                    "the server's certificate cannot be used ({other}): give the server another one"
                );
            }
        },
    };
    known.to_owned()
}

fn names(wrong: &CertificateError) -> String {
    match wrong {
        NotValidForNameContext { presented, .. } if presented.is_empty() => {
            " (it names none)".to_owned()
        }
        NotValidForNameContext { presented, .. } => format!(" ({})", presented.join(", ")),
        _ => String::new(),
    }
}
