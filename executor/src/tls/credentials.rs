//! Key, certificate and authority of this executor, as the files of a projected Secret hold them now.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{CWD, Mode, OFlags};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerConfig, VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{RootCertStore, crypto};
use sha2::{Digest as _, Sha256};

use super::role::RoleVerifier;

/// The kubelet's link to the folder with the files of one moment; swapped as a whole.
const MOMENT: &str = "..data";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITY: &str = "ca.crt";
/// Bytes of one file: a chain or a bundle of authorities, with much room.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The folder or a file cannot be read.
    #[error("cannot read {file}")]
    Read {
        /// Its name in the folder.
        file: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file is longer than any such file is.
    #[error("{file} is over 256 KiB")]
    TooLong {
        /// Its name in the folder.
        file: &'static str,
    },
    /// A file holds nothing of what it is for, or something broken.
    #[error("{file} is not the PEM text it should be")]
    Pem {
        /// Its name in the folder.
        file: &'static str,
        /// What is wrong with it.
        #[source]
        source: pem::Error,
    },
    /// The authority's certificate cannot be one.
    #[error("{AUTHORITY} holds no usable authority")]
    Authority(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Certificate and key are not a pair, or of a kind that is not spoken.
    #[error("{CERTIFICATE} and {KEY} are no usable pair")]
    Pair(#[source] rustls::Error),
}

/// What one folder holds. The files are looked at for every connection, so a rotation needs no restart and no watch;
/// connections that are open go on.
#[derive(Debug)]
pub struct Credentials {
    folder: PathBuf,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    digest: [u8; 32],
    config: Arc<ServerConfig>,
    /// The last error about newer files, told once.
    told: Option<String>,
}

impl Credentials {
    /// Reads `folder`, which must hold a usable pair and an authority by now.
    ///
    /// # Errors
    /// [`CredentialsError`].
    pub fn open(folder: &Path) -> Result<Self, CredentialsError> {
        let files = Files::read(folder)?;
        let current = Current { digest: files.digest(), config: Arc::new(files.config()?), told: None };
        Ok(Self { folder: folder.to_owned(), current: Mutex::new(current) })
    }

    /// The configuration for the next connection: that of the files as they are, or the last usable one while they are
    /// half written, do not match or cannot be read.
    pub fn current(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match current.renewed(&self.folder) {
            Ok(None) => {}
            Ok(Some(renewed)) => {
                tracing::info!("the certificate or its authority was replaced");
                *current = renewed;
            }
            Err(error) => {
                let text = error.to_string();
                if current.told.as_ref() != Some(&text) {
                    tracing::warn!(%error, "newer certificate files cannot be used, the last ones stay");
                    current.told = Some(text);
                }
            }
        }
        Arc::clone(&current.config)
    }
}

impl Current {
    fn renewed(&self, folder: &Path) -> Result<Option<Self>, CredentialsError> {
        let files = Files::read(folder)?;
        let digest = files.digest();
        if digest == self.digest {
            return Ok(None);
        }
        Ok(Some(Self { digest, config: Arc::new(files.config()?), told: None }))
    }
}

/// The three files as they were at one moment, where the folder is a projected one.
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Vec<u8>,
}

impl Files {
    fn read(folder: &Path) -> Result<Self, CredentialsError> {
        let moment = open_moment(folder)
            .map_err(|source| CredentialsError::Read { file: "the folder", source: source.into() })?;
        let [certificate, key, authority] = [CERTIFICATE, KEY, AUTHORITY].map(|file| read(&moment, file));
        Ok(Self { certificate: certificate?, key: key?, authority: authority? })
    }

    fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for file in [&self.certificate, &self.key, &self.authority] {
            digest.update((file.len() as u64).to_le_bytes());
            digest.update(file);
        }
        digest.finalize().into()
    }

    /// TLS 1.3 alone, a client certificate always, and no resumption: each connection is verified in full.
    fn config(&self) -> Result<ServerConfig, CredentialsError> {
        let provider = Arc::new(crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for authority in certificates(AUTHORITY, &self.authority)? {
            roots.add(authority).map_err(|error| CredentialsError::Authority(error.into()))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error: VerifierBuilderError| CredentialsError::Authority(error.into()))?;
        let chain = certificates(CERTIFICATE, &self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|source| CredentialsError::Pem { file: KEY, source })?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(CredentialsError::Pair)?
            .with_client_cert_verifier(Arc::new(RoleVerifier(verifier)))
            .with_single_cert(chain, key)
            .map_err(CredentialsError::Pair)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(config)
    }
}

/// The folder that the kubelet's link leads to, or the folder itself where there is no such link.
fn open_moment(folder: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, folder.join(MOMENT), flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => rustix::fs::openat(CWD, folder, flags, Mode::empty()),
        opened => opened,
    }
}

fn read(folder: &OwnedFd, file: &'static str) -> Result<Vec<u8>, CredentialsError> {
    let failed = |source: io::Error| CredentialsError::Read { file, source };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened =
        rustix::fs::openat(folder, file, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
    let mut bytes = Vec::new();
    File::from(opened).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES { Err(CredentialsError::TooLong { file }) } else { Ok(bytes) }
}

/// At least one.
fn certificates(file: &'static str, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(pem::Error::NoItemsFound),
        found => found,
    }
    .map_err(|source| CredentialsError::Pem { file, source })
}

#[cfg(test)]
mod tests;
