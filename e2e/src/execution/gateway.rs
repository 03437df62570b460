//! A harness's gateway, as somebody outside the cluster's own programs reaches it.

use std::net::SocketAddr;

use anyhow::Context as _;
use mooring_proto::gateway::{AUTHORIZATION, SESSION};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use super::executor::{Words, dial};
use super::{Executor, Place, Target};

/// Where a gateway is, and whom it must prove to be.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Its address from the place that connects.
    pub address: SocketAddr,
    /// The name in its certificate.
    pub name: String,
    /// Certificates of the authority it must be certified by, PEM.
    pub authority: String,
}

impl Gateway {
    /// A client of the executor of `session` (`namespace/name`), for whom `token` speaks. What `target` leaves empty is left
    /// to the gateway.
    ///
    /// # Errors
    /// When no connection comes about, the handshake included.
    pub async fn connect(
        &self,
        place: &Place,
        token: &str,
        session: &str,
        target: Target,
    ) -> anyhow::Result<Executor> {
        crate::install_crypto();
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(&self.authority))
            .domain_name(self.name.clone());
        let endpoint =
            Endpoint::from_shared(format!("https://{}", self.address))?.tls_config(tls).context("TLS")?;
        let channel = dial(endpoint, self.address, place).await.context("the gateway")?;
        let words = vec![(AUTHORIZATION, format!("Bearer {token}")), (SESSION, session.to_owned())];
        Ok(Executor::behind(channel, Words(words), target))
    }
}
