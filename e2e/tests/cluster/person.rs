//! People and programs who are not the cluster's admin: a kubeconfig with a client certificate, or with a service account's
//! token, and the rights that a platform team gives them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::ByteString;
use mooring_e2e::fixture::{await_condition, binary};
use mooring_e2e::platform::{Ground, Kubectl};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::stage::Stage;

/// From the approval of a certificate to the certificate.
const SIGNED_DEADLINE: Duration = Duration::from_mins(1);

/// Somebody with a kubeconfig.
pub(super) struct Person {
    kubeconfig: PathBuf,
    ground: Ground,
    _folder: TempDir,
}

impl Person {
    /// A user `name` with a certificate of the cluster's authority, bound to `mooring-person` in the stage's namespace.
    pub(super) async fn with_certificate(stage: &Stage, name: &str) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        let request = ByteString(params.serialize_request(&key)?.pem()?.into_bytes());
        let object = format!("{}-{name}", stage.namespace.name);
        let kubectl = &stage.ground.kubectl;
        kubectl
            .apply(&json!({
                "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
                "metadata": {"name": object},
                "spec": {
                    "request": request, "signerName": "kubernetes.io/kube-apiserver-client",
                    "usages": ["client auth"], "expirationSeconds": 3600,
                },
            }))
            .await?;
        kubectl.run(&["certificate", "approve", &object]).await?;
        let look = ["get", "certificatesigningrequest", &object, "-o", "jsonpath={.status.certificate}"];
        let signed = await_condition(SIGNED_DEADLINE, "the certificate is signed", async || {
            kubectl.run(&look).await.ok().filter(|text| !text.is_empty())
        });
        let certificate = signed.await?;
        let key = ByteString(key.serialize_pem().into_bytes());
        let user = json!({"client-certificate-data": certificate, "client-key-data": key});
        kubectl.run(&["delete", "certificatesigningrequest", &object]).await?;
        Self::with(stage, &json!({"kind": "User", "name": name}), &user).await
    }

    /// A service account `name` of the stage's namespace, bound in the same way.
    pub(super) async fn with_token(stage: &Stage, name: &str) -> anyhow::Result<Self> {
        stage.namespace.kubectl(&["create", "serviceaccount", name]).await?;
        let token = stage.namespace.kubectl(&["create", "token", name]).await?;
        let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": stage.namespace.name});
        Self::with(stage, &subject, &json!({"token": token.trim()})).await
    }

    async fn with(stage: &Stage, subject: &Value, user: &Value) -> anyhow::Result<Self> {
        let ground = stage.ground.clone();
        let name = subject["name"].as_str().unwrap_or_default();
        stage
            .namespace
            .apply_raw(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": format!("person-{name}")},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mooring-person",
                },
                "subjects": [subject],
            }))
            .await?;
        let own = ground.kubectl.run(&["config", "view", "--raw", "--minify", "-o", "json"]).await?;
        let own: Value = serde_json::from_str(&own)?;
        let cluster = own["clusters"][0]["cluster"].clone();
        let context = json!({"cluster": "c", "user": "u", "namespace": stage.namespace.name});
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": context}],
        });
        let folder = tempfile::Builder::new().prefix("mooring-person-").tempdir().context("a folder")?;
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, kubeconfig.to_string())?;
        Ok(Self { kubeconfig: path, ground, _folder: folder })
    }

    /// `kubectl mooring`, as this person.
    pub(super) fn plugin(&self) -> anyhow::Result<Kubectl> {
        Ok(Kubectl::new(binary("kubectl-mooring")?, self.kubeconfig.clone()))
    }

    /// What the API server answers to an Exchange of this person.
    pub(super) async fn exchange(&self) -> anyhow::Result<String> {
        let kubeconfig = self.kubeconfig.to_str().context("UTF-8")?;
        let arguments = [
            "--kubeconfig",
            kubeconfig,
            "create",
            "--raw",
            "/apis/tokens.mooring.dev/v1alpha1/exchanges",
            "-f",
            "-",
        ];
        let request = json!({"apiVersion": "tokens.mooring.dev/v1alpha1", "kind": "Exchange", "metadata": {}, "spec": {}});
        let said = self.ground.kubectl.ask(&arguments, request.to_string().as_bytes()).await?;
        anyhow::ensure!(said.is_success, "{}", said.stderr);
        Ok(said.stdout)
    }
}
