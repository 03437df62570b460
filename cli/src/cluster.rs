//! The API server, by a person's own kubeconfig.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use mooring_operator_api::{Exchange, ExchangeSpec, ExchangeStatus, Session};

use crate::args::{self, Access};
use crate::error::Error;

/// For a connection to the API server.
const CONNECT: Duration = Duration::from_secs(10);
/// For an exchange, which the API server hands on to the harness.
const EXCHANGE: Duration = Duration::from_secs(30);

/// The API server and the namespace that is meant.
#[derive(Clone)]
pub(crate) struct Cluster {
    /// Its client.
    pub(crate) client: Client,
    /// The namespace.
    pub(crate) namespace: String,
}

impl Cluster {
    /// Reads the kubeconfig. The API server is not asked anything.
    ///
    /// # Errors
    /// [`Error::Kubeconfig`], [`Error::Cluster`].
    pub(crate) async fn open(access: &Access) -> Result<Self, Error> {
        let mut config = configuration(access).await?;
        config.connect_timeout = Some(CONNECT);
        // A person sees what an API server in trouble says at once, and tries again.
        config.default_retry = false;
        let namespace = access.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        // A part of the path of every request.
        if args::namespace_name(&namespace).is_err() {
            return Err(Error::Usage(format!("a namespace cannot be named {namespace}")));
        }
        let client = Client::try_from(config).map_err(|error| Error::cluster("make a client", error))?;
        Ok(Self { client, namespace })
    }

    /// The Sessions of the namespace.
    pub(crate) fn sessions(&self) -> Api<Session> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Whom the API server takes us for.
    ///
    /// # Errors
    /// [`Error::Cluster`], [`Error::ApiServer`].
    pub(crate) async fn user(&self) -> Result<String, Error> {
        const WHAT: &str = "ask the API server who you are";
        let api: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await;
        let review = review.map_err(|error| Error::cluster(WHAT, error))?;
        let name = review.status.and_then(|status| status.user_info).and_then(|info| info.username);
        let nameless =
            || Error::ApiServer { what: WHAT.to_owned(), message: "no name".to_owned(), code: 200 };
        name.ok_or_else(nameless)
    }

    /// A token for the gateway, and where that is.
    ///
    /// # Errors
    /// [`Error::NoGateway`] when the API server knows no such call, [`Error::Away`] when nobody answers it, else as any other.
    pub(crate) async fn exchange(&self) -> Result<ExchangeStatus, Error> {
        const WHAT: &str = "get a token for the gateway";
        let api: Api<Exchange> = Api::all(self.client.clone());
        let mut request = Exchange::new("", ExchangeSpec {});
        request.metadata.name = None;
        let answer =
            tokio::time::timeout(EXCHANGE, async { api.create(&PostParams::default(), &request).await });
        let answer =
            answer.await.map_err(|_| Error::Away(format!("nothing within {} s", EXCHANGE.as_secs())))?;
        let exchange = match answer {
            Ok(exchange) => exchange,
            Err(kube::Error::Api(status)) if status.code == 404 => {
                return Err(Error::NoGateway(status.message.clone()));
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 502..=504) => {
                return Err(Error::Away(status.message.clone()));
            }
            Err(error) => return Err(Error::cluster(WHAT, error)),
        };
        exchange.status.ok_or_else(|| Error::NoGateway("the answer is empty".to_owned()))
    }

    /// The epoch of a Session, when it may be read and has one.
    pub(crate) async fn epoch(&self, name: &str) -> Option<u64> {
        let session = self.sessions().get(name).await.ok()?;
        session.status?.epoch.and_then(|epoch| u64::try_from(epoch).ok())
    }
}

async fn configuration(access: &Access) -> Result<Config, Error> {
    let options = KubeConfigOptions { context: access.context.clone(), ..KubeConfigOptions::default() };
    let kubeconfig = match &access.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        // In a pod without a kubeconfig, its service account speaks, as with kubectl.
        None if access.context.is_none() && is_in_pod() && Kubeconfig::read().is_err() => {
            return Config::infer().await.map_err(|error| Error::Kubeconfig(Box::new(error)));
        }
        None => Kubeconfig::read(),
    };
    let kubeconfig = kubeconfig.map_err(|error| Error::Kubeconfig(Box::new(error)))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.map_err(|error| Error::Kubeconfig(Box::new(error)))
}

/// What the kubelet tells every container (kubernetes.io, "Discovering services").
fn is_in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}
