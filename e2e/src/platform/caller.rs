//! Somebody at the API server under an identity of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::http::{Method, Request};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use super::{Ground, Kubectl, Sighting, Watch};

/// The signer and the controller manager of a busy machine.
const CERTIFICATE_DEADLINE: Duration = Duration::from_secs(30);
/// Requests for certificates are objects of the whole cluster.
static NUMBER: AtomicU32 = AtomicU32::new(0);
/// A request that is answered as if and keeps nothing.
pub const DRY_RUN: &str = "?dryRun=All";

/// One identity, as the API server knows it.
#[derive(Clone)]
pub struct Caller {
    /// The user name.
    pub name: String,
    kubeconfig: Arc<Kubeconfig>,
    client: Client,
}

/// What the API server said to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It did what was asked: the object, or the text as a string.
    Done(Value),
    /// It refused, with its code, its typed reason and its words, those of every policy that refused among them.
    Refused {
        /// The code of HTTP.
        code: u16,
        /// `Forbidden`, `Invalid`, `Unauthorized`.
        reason: String,
        /// The sentences.
        words: String,
    },
}

impl Caller {
    /// A person with a client certificate of the cluster's, signed through its API.
    ///
    /// # Errors
    /// When the cluster signs none.
    pub async fn person(ground: &Ground, name: &str) -> anyhow::Result<Self> {
        let key = KeyPair::generate().context("a key")?;
        let mut params = CertificateParams::new(vec![])?;
        params.distinguished_name.push(DnType::CommonName, name);
        let request = params.serialize_request(&key)?.pem()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let object = format!("e2e-{}-{number}-{name}", std::process::id());
        let mut signed = CertificateSigningRequest::default();
        signed.metadata.name = Some(object.clone());
        signed.spec.request = k8s_openapi::ByteString(request.into_bytes());
        "kubernetes.io/kube-apiserver-client".clone_into(&mut signed.spec.signer_name);
        signed.spec.usages = Some(vec!["client auth".to_owned()]);
        ground.kubectl.apply(&serde_json::to_value(&signed)?).await?;
        ground.kubectl.run(&["certificate", "approve", &object]).await?;
        let api = Api::<CertificateSigningRequest>::all(ground.client.clone());
        let find = |seen: &[Sighting<CertificateSigningRequest>]| {
            seen.last()?.object.as_ref()?.status.as_ref()?.certificate.clone()
        };
        let tell = |request: &CertificateSigningRequest| format!("{:?}", request.status);
        let what = format!("a certificate for {name}");
        let mut watch = Watch::of(api, &object);
        let certificate = watch.until(CERTIFICATE_DEADLINE, &what, find, tell).await?;
        ground.kubectl.run(&["delete", "certificatesigningrequest", &object]).await?;
        // As a kubeconfig has them: base64, which k8s-openapi writes.
        let encoded = |bytes: Vec<u8>| serde_json::to_value(k8s_openapi::ByteString(bytes));
        let user = json!({
            "client-certificate-data": encoded(certificate.0)?,
            "client-key-data": encoded(key.serialize_pem().into_bytes())?,
        });
        Self::open(name.to_owned(), known(ground, user)?).await
    }

    /// A service account, with a token that it was just given.
    ///
    /// # Errors
    /// When there is no such account.
    pub async fn account(ground: &Ground, namespace: &str, name: &str) -> anyhow::Result<Self> {
        let token = ground.kubectl.run(&["-n", namespace, "create", "token", name]).await?;
        let kubeconfig = known(ground, json!({"token": token.trim()}))?;
        Self::open(format!("system:serviceaccount:{namespace}:{name}"), kubeconfig).await
    }

    /// Somebody who says nothing about who they are.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn anonymous(ground: &Ground) -> anyhow::Result<Self> {
        Self::open("system:anonymous".to_owned(), known(ground, json!({}))?).await
    }

    /// The cluster's admin.
    ///
    /// # Errors
    /// When the API server does not say who that is.
    pub async fn admin(ground: &Ground) -> anyhow::Result<Self> {
        let name =
            ground.kubectl.run(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]).await?;
        Self::open(name, read(ground)?).await
    }

    /// Someone whom the cluster's admin says to be, with all rights: for what is no question of rights.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn almighty(ground: &Ground, name: &str) -> anyhow::Result<Self> {
        let mut kubeconfig = read(ground)?;
        let user = kubeconfig.auth_infos.first_mut().and_then(|user| user.auth_info.as_mut());
        let user = user.context("a user in the kubeconfig")?;
        user.impersonate = Some(name.to_owned());
        user.impersonate_groups = Some(vec!["system:masters".to_owned()]);
        Self::open(name.to_owned(), kubeconfig).await
    }

    async fn open(name: String, kubeconfig: Kubeconfig) -> anyhow::Result<Self> {
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await;
        let client = Client::try_from(config.context("the kubeconfig")?);
        let kubeconfig = Arc::new(kubeconfig);
        Ok(Self { name, kubeconfig, client: client.context("a client of the API server")? })
    }

    /// `program`, a plugin of kubectl for instance, as this one uses it in `namespace`: with a kubeconfig of their own in
    /// `folder`.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn hand(&self, program: PathBuf, namespace: &str, folder: &Path) -> anyhow::Result<Kubectl> {
        let mut kubeconfig = (*self.kubeconfig).clone();
        for context in kubeconfig.contexts.iter_mut().filter_map(|context| context.context.as_mut()) {
            context.namespace = Some(namespace.to_owned());
        }
        let path = folder.join("kubeconfig");
        std::fs::write(&path, serde_json::to_vec(&kubeconfig)?).context("write a kubeconfig")?;
        Ok(Kubectl::new(program, path))
    }

    /// Its client.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// What the API server says to a request; a merge patch for `PATCH`.
    ///
    /// # Errors
    /// When it says nothing that can be understood.
    pub async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = Request::builder().method(method).uri(path).header("content-type", kind).body(body)?;
        match self.client.request_text(request).await {
            Ok(text) => Ok(Answer::Done(serde_json::from_str(&text).unwrap_or(Value::String(text)))),
            Err(kube::Error::Api(status)) => {
                let causes = status.details.as_ref().map(|details| details.causes.as_slice());
                let mut words = vec![status.message.clone()];
                words.extend(causes.unwrap_or_default().iter().map(|cause| cause.message.clone()));
                let (code, reason) = (status.code, status.reason.clone());
                Ok(Answer::Refused { code, reason, words: words.join("\n") })
            }
            Err(error) => bail!("{} asks for {path}: {error}", self.name),
        }
    }
}

impl Answer {
    /// The object that was made or found.
    ///
    /// # Errors
    /// When it was refused, with the words.
    pub fn done(self) -> anyhow::Result<Value> {
        match self {
            Self::Done(value) => Ok(value),
            Self::Refused { code, reason, words } => bail!("{code} {reason}: {words}"),
        }
    }
}

fn read(ground: &Ground) -> anyhow::Result<Kubeconfig> {
    let path = ground.kubectl.kubeconfig();
    Kubeconfig::read_from(path).with_context(|| format!("read {}", path.display()))
}

/// The admin's kubeconfig with another user in it.
fn known(ground: &Ground, user: Value) -> anyhow::Result<Kubeconfig> {
    let mut kubeconfig = read(ground)?;
    let first = kubeconfig.auth_infos.first_mut().context("a user in the kubeconfig")?;
    first.auth_info = Some(serde_json::from_value(user).context("a user")?);
    Ok(kubeconfig)
}
