//! Connections to executors, each to exactly one pod: its name is in the certificate that is believed.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mooring_proto::certificate;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Mutex;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

/// For a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// For a connection and its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// After this time a link is made anew for new calls, with the certificate as it is then.
const LIFE: Duration = Duration::from_mins(10);
/// A peer with open calls that is silent for so long is asked, and given up after as long again.
const SILENCE: Duration = Duration::from_secs(10);
/// Links that are kept at most.
const MOST: usize = 1024;

/// Why an executor is not reached. Nothing was sent to it.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The operator has not written the harness's certificate, or it cannot be read.
    #[error("the harness has no certificate for executors yet: {file}")]
    Credential {
        /// Which file.
        file: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What the Session says is no address, or the certificate is none.
    #[error("a connection cannot be prepared")]
    Unusable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Nobody there, or not the executor that was meant.
    #[error("the executor is not reached")]
    Unreachable(#[source] tonic::transport::Error),
    /// No answer.
    #[error("the executor does not answer within {} s", HANDSHAKE.as_secs())]
    Slow,
}

/// Makes and keeps connections.
pub struct Links {
    /// `tls.crt`, `tls.key` and `ca.crt`, as the operator writes them and the kubelet replaces them.
    folder: PathBuf,
    open: Mutex<HashMap<Peer, Arc<Mutex<Option<Link>>>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Peer {
    name: String,
    address: String,
}

#[derive(Clone)]
struct Link {
    channel: Channel,
    made: Instant,
}

impl Links {
    /// With the certificate in `folder`, which need not be there yet.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, open: Mutex::default() }
    }

    /// Whether there is a certificate to show.
    pub fn has_credential(&self) -> bool {
        self.credential().is_ok()
    }

    /// A connection to the executor in `pod`, whose certificate says so.
    ///
    /// # Errors
    /// [`LinkError`].
    pub(super) async fn reach(
        &self,
        pod: &str,
        namespace: &str,
        address: &str,
    ) -> Result<Channel, LinkError> {
        let peer = Peer { name: certificate::executor(pod, namespace), address: address.to_owned() };
        let place = self.place(&peer).await;
        // Whoever comes meanwhile waits for this attempt instead of making another one.
        let mut place = place.lock().await;
        if let Some(link) = place.as_ref().filter(|link| link.made.elapsed() < LIFE) {
            return Ok(link.channel.clone());
        }
        let channel = self.connect(&peer).await?;
        *place = Some(Link { channel: channel.clone(), made: Instant::now() });
        Ok(channel)
    }

    async fn place(&self, peer: &Peer) -> Arc<Mutex<Option<Link>>> {
        let mut open = self.open.lock().await;
        if open.len() >= MOST {
            // Those that nobody is making and that are over; calls on them go on.
            open.retain(|_, place| {
                place
                    .try_lock()
                    .map_or(true, |link| link.as_ref().is_some_and(|link| link.made.elapsed() < LIFE))
            });
        }
        Arc::clone(open.entry(peer.clone()).or_default())
    }

    async fn connect(&self, peer: &Peer) -> Result<Channel, LinkError> {
        let unusable = |error: Box<dyn std::error::Error + Send + Sync>| LinkError::Unusable(error);
        let address: SocketAddr = peer.address.parse().map_err(|error| unusable(Box::new(error)))?;
        let Credential { certificate, key, authority } = self.credential()?;
        let tls = ClientTlsConfig::new()
            .domain_name(peer.name.clone())
            .ca_certificate(Certificate::from_pem(authority))
            .identity(Identity::from_pem(certificate, key.expose_secret()));
        let endpoint = Endpoint::from_shared(format!("https://{address}"))
            .and_then(|endpoint| {
                endpoint
                    .connect_timeout(CONNECT)
                    .http2_keep_alive_interval(SILENCE)
                    .keep_alive_timeout(SILENCE)
                    .tls_config(tls)
            })
            .map_err(|error| unusable(Box::new(error)))?;
        match tokio::time::timeout(HANDSHAKE, endpoint.connect()).await {
            Err(_) => Err(LinkError::Slow),
            Ok(connected) => connected.map_err(LinkError::Unreachable),
        }
    }

    fn credential(&self) -> Result<Credential, LinkError> {
        let read = |file: &'static str| {
            std::fs::read_to_string(self.folder.join(file))
                .map_err(|source| LinkError::Credential { file, source })
        };
        Ok(Credential {
            certificate: read("tls.crt")?,
            key: SecretString::from(read("tls.key")?),
            authority: read("ca.crt")?,
        })
    }
}

struct Credential {
    certificate: String,
    key: SecretString,
    authority: String,
}
