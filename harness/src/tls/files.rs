//! Certificate and key, as the files of a mounted Secret hold them now.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{RootCertStore, ServerConfig, crypto};
use sha2::{Digest as _, Sha256};

use crate::telemetry::story;

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// One cannot be read.
    #[error("cannot read {file}")]
    Read {
        /// Which.
        file: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// One holds nothing of what it is for.
    #[error("{what} is not the PEM text it should be")]
    Pem {
        /// Which.
        what: &'static str,
        /// Why.
        #[source]
        source: pem::Error,
    },
    /// They are no pair, or of a kind that is not spoken.
    #[error("{CERTIFICATE} and {KEY} are no usable pair")]
    Pair(#[source] rustls::Error),
    /// Those whom clients must be certified by are none.
    #[error("the authority of clients is not usable")]
    Clients(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What is spoken over TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocols {
    /// HTTP/2 alone: gRPC.
    Grpc,
    /// HTTP/2 and HTTP/1.1.
    Http,
}

/// Who may connect.
#[derive(Clone, Debug)]
pub(crate) enum Peers {
    /// Everybody.
    All,
    /// Clients with a certificate by one of these authorities, PEM.
    CertifiedBy(Arc<str>),
}

/// A folder with `tls.crt` and `tls.key`. Looked at for every connection, so a renewal needs no restart and no watch.
#[derive(Debug)]
pub struct TlsFiles {
    folder: PathBuf,
    protocols: Protocols,
    current: Mutex<Option<Current>>,
}

#[derive(Debug)]
struct Current {
    digest: [u8; 32],
    config: Arc<ServerConfig>,
}

impl TlsFiles {
    /// Of this folder.
    pub(crate) fn new(folder: &Path, protocols: Protocols) -> Self {
        Self { folder: folder.to_owned(), protocols, current: Mutex::new(None) }
    }

    /// The configuration of this moment for these peers.
    ///
    /// # Errors
    /// [`TlsError`], while there is none that was usable before.
    pub(crate) fn config(&self, peers: &Peers) -> Result<Arc<ServerConfig>, TlsError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match (self.renewed(current.as_ref(), peers), &*current) {
            (Ok(None), Some(known)) => Ok(Arc::clone(&known.config)),
            (Ok(Some(renewed)), _) => Ok(Arc::clone(&current.insert(renewed).config)),
            // Half written: the last pair stays until they match.
            (Err(error), Some(known)) => {
                tracing::warn!(
                    error = story(&error),
                    "newer certificate files cannot be used, the last ones stay"
                );
                Ok(Arc::clone(&known.config))
            }
            (Err(error), None) => Err(error),
            (Ok(None), None) => unreachable!("nothing known is nothing to be equal to"),
        }
    }

    fn renewed(&self, known: Option<&Current>, peers: &Peers) -> Result<Option<Current>, TlsError> {
        let (certificate, key) = (read(&self.folder, CERTIFICATE)?, read(&self.folder, KEY)?);
        let mut digest = Sha256::new();
        let clients = match peers {
            Peers::All => "",
            Peers::CertifiedBy(authority) => authority,
        };
        for part in [certificate.as_slice(), &key, clients.as_bytes()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let digest: [u8; 32] = digest.finalize().into();
        if known.is_some_and(|known| known.digest == digest) {
            return Ok(None);
        }
        let config = Arc::new(config(&certificate, &key, peers, self.protocols)?);
        Ok(Some(Current { digest, config }))
    }
}

fn config(
    certificate: &[u8],
    key: &[u8],
    peers: &Peers,
    protocols: Protocols,
) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(crypto::ring::default_provider());
    let versions = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(TlsError::Pair)?;
    let builder = match peers {
        Peers::All => versions.with_no_client_auth(),
        Peers::CertifiedBy(authority) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates("the authority of clients", authority.as_bytes())? {
                roots.add(authority).map_err(|error| TlsError::Clients(error.into()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error: VerifierBuilderError| TlsError::Clients(error.into()))?;
            versions.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|source| TlsError::Pem { what: KEY, source })?;
    let mut config =
        builder.with_single_cert(certificates(CERTIFICATE, certificate)?, key).map_err(TlsError::Pair)?;
    config.alpn_protocols = match protocols {
        Protocols::Grpc => vec![b"h2".to_vec()],
        Protocols::Http => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    // No resumption: each connection is verified in full.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

fn read(folder: &Path, file: &'static str) -> Result<Vec<u8>, TlsError> {
    std::fs::read(folder.join(file)).map_err(|source| TlsError::Read { file: file.to_owned(), source })
}

/// At least one.
fn certificates(what: &'static str, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(pem::Error::NoItemsFound),
        found => found,
    }
    .map_err(|source| TlsError::Pem { what, source })
}
