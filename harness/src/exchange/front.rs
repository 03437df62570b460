//! The API server's front proxy: its certificate, and whom it names.
//!
//! What it must look like stands in the ConfigMap `extension-apiserver-authentication` of `kube-system`, which the API server
//! writes (Kubernetes, "Configure the Aggregation Layer").

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::connect_info::Connected;
use axum::http::HeaderMap;
use axum::serve::{IncomingStream, Listener};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use mooring_operator_api::UserName;
use tokio::sync::watch;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::telemetry::story;
use crate::tls::{Connection, Incoming, Peers};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// What a front proxy must look like.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    /// PEM.
    authority: Arc<str>,
    /// Common names that are believed; none: every one the authority certifies.
    names: Vec<String>,
    /// Headers that hold the user, the first that is there counts.
    user_headers: Vec<String>,
}

/// Why nobody is named.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrontError {
    /// The API server's configuration is not known yet.
    #[error("what the front proxy looks like is not known yet")]
    Unknown,
    /// The certificate is somebody else's.
    #[error("the certificate's name is not one of the front proxy's")]
    Name,
    /// No user in the headers.
    #[error("the request names no user")]
    NoUser,
}

/// Who may speak for others. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Front {
    look: watch::Receiver<Option<Look>>,
}

impl Front {
    /// Follows the API server's configuration for as long as the future that is given back is awaited.
    pub(crate) fn watch(client: Client) -> (Self, impl Future<Output = ()>) {
        let (sender, look) = watch::channel(None);
        let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
        let following = async move {
            let mut changes = watcher::watch_object(maps, NAME).default_backoff().boxed();
            while let Some(change) = changes.next().await {
                match change.map(|map| map.as_ref().and_then(|map| Look::read(map.data.as_ref()?))) {
                    Ok(look) => {
                        if look.is_none() {
                            tracing::warn!("the API server's configuration names no front proxy");
                        }
                        sender.send_replace(look);
                    }
                    Err(error) => {
                        tracing::warn!(error = story(&error), "the front proxy's look cannot be followed");
                    }
                }
            }
        };
        (Self { look }, following)
    }

    /// Whom a handshake must show a certificate of. `None` while that is not known.
    pub(crate) fn peers(&self) -> Option<Peers> {
        self.look.borrow().as_ref().map(|look| Peers::CertifiedBy(Arc::clone(&look.authority)))
    }

    /// The user that a request of `proxy` is for.
    ///
    /// # Errors
    /// [`FrontError`].
    pub(super) fn user(&self, proxy: &FrontProxy, headers: &HeaderMap) -> Result<UserName, FrontError> {
        self.look.borrow().as_ref().ok_or(FrontError::Unknown)?.user(proxy, headers)
    }
}

impl Look {
    fn read(data: &BTreeMap<String, String>) -> Option<Self> {
        let list = |key: &str| -> Option<Vec<String>> { serde_json::from_str(data.get(key)?).ok() };
        Some(Self {
            authority: data.get("requestheader-client-ca-file")?.as_str().into(),
            names: list("requestheader-allowed-names")?,
            user_headers: list("requestheader-username-headers").filter(|all| !all.is_empty())?,
        })
    }

    fn user(&self, proxy: &FrontProxy, headers: &HeaderMap) -> Result<UserName, FrontError> {
        let is_known = self.names.is_empty() || proxy.name.as_ref().is_some_and(|it| self.names.contains(it));
        if !is_known {
            return Err(FrontError::Name);
        }
        let named = self.user_headers.iter().find_map(|header| headers.get(header.as_str()));
        let user = named.and_then(|value| std::str::from_utf8(value.as_bytes()).ok()).unwrap_or_default();
        if user.is_empty() || user == "system:anonymous" {
            return Err(FrontError::NoUser);
        }
        Ok(UserName::from(user))
    }
}

/// The other end of a connection: certified by the front proxy's authority.
#[derive(Clone, Debug)]
pub(crate) struct FrontProxy {
    /// The common name in its certificate.
    name: Option<String>,
}

impl FrontProxy {
    fn of(connection: &Connection) -> Self {
        let shown = connection.peer_certificates();
        Self { name: shown.first().and_then(|certificate| common_name(certificate)) }
    }
}

fn common_name(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let mut names = certificate.subject().iter_common_name();
    let name = names.next()?.as_str().ok()?.to_owned();
    // Two would be a riddle.
    names.next().is_none().then_some(name)
}

/// Connections for axum.
pub(crate) struct Door {
    incoming: Incoming,
}

impl Door {
    pub(super) fn new(incoming: Incoming) -> Self {
        Self { incoming }
    }
}

impl Listener for Door {
    type Io = Connection;
    type Addr = ();

    async fn accept(&mut self) -> (Connection, ()) {
        match self.incoming.next().await {
            Some(connection) => (connection, ()),
            // Nothing accepts any more: the server is being stopped.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Connected<IncomingStream<'_, Door>> for FrontProxy {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        Self::of(stream.io())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(names: &str) -> Look {
        let data = [
            ("requestheader-client-ca-file", "PEM"),
            ("requestheader-allowed-names", names),
            ("requestheader-username-headers", r#"["X-Remote-User"]"#),
        ];
        Look::read(&data.map(|(key, value)| (key.to_owned(), value.to_owned())).into()).expect("a look")
    }

    fn user(look: &Look, name: Option<&str>, header: &str) -> Result<UserName, FrontError> {
        let headers = HeaderMap::from_iter([(
            "x-remote-user".parse().expect("a name"),
            header.parse().expect("a value"),
        )]);
        look.user(&FrontProxy { name: name.map(str::to_owned) }, &headers)
    }

    #[test]
    fn only_a_front_proxy_names_a_user() {
        let strict = look(r#"["front-proxy-client"]"#);
        assert_eq!(user(&strict, Some("front-proxy-client"), "ana").expect("ana").as_str(), "ana");
        for name in [None, Some("ana"), Some("")] {
            assert!(matches!(user(&strict, name, "ana"), Err(FrontError::Name)), "{name:?}");
        }
        for header in ["", "system:anonymous"] {
            let named = user(&strict, Some("front-proxy-client"), header);
            assert!(matches!(named, Err(FrontError::NoUser)), "{header}");
        }
        assert!(user(&look("[]"), None, "ana").is_ok(), "the authority certifies none but front proxies");
    }

    #[test]
    fn a_configuration_without_a_front_proxy_is_none() {
        assert_eq!(Look::read(&BTreeMap::new()), None);
        let mut data = BTreeMap::from([("requestheader-client-ca-file".to_owned(), "PEM".to_owned())]);
        data.insert("requestheader-allowed-names".to_owned(), "not JSON".to_owned());
        assert_eq!(Look::read(&data), None);
    }
}
