//! Whoever is not exactly who and where they must be is refused, with a type.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Secret;
use mooring_e2e::execution::{Authority, Executor, Identity, Place, Program, code};
use mooring_e2e::platform::{Bound, Session};
use mooring_proto::v1::{
    ApplyRequest, BindRequest, DropRequest, EnvironmentKind, ErrorCode, ForkRequest, ListWorkspacesRequest,
};
use mooring_proto::{PROTOCOL, detail_of};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, ClientConfig, RootCertStore, SupportedProtocolVersion, version};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;
use tonic::Status;

use super::stage::{Stage, on_stage};

async fn bound(stage: &Stage, name: &str) -> anyhow::Result<(Session, Bound)> {
    let mut session = Session::apply(&stage.namespace, name, &json!({})).await?;
    let bound = session.ready().await?;
    Ok((session, bound))
}

/// One call of each service that is open to a harness, in the words of `executor`.
async fn refusals(executor: &Executor) -> anyhow::Result<Vec<Status>> {
    let list = ListWorkspacesRequest { context: Some(executor.context()), owner: String::new() };
    Ok(vec![
        executor.list("").await.err().context("ListDirectory was answered")?,
        executor.write("refused.txt", b"x").await.err().context("Write was answered")?,
        executor.start(&Program::argv(["true"])).await.err().context("Start was answered")?,
        executor.workspaces().list_workspaces(list).await.err().context("ListWorkspaces was answered")?,
        executor.import_bytes("", &[0; 1024]).await.err().context("Import was answered")?,
    ])
}

async fn all_refuse(executor: &Executor, expected: ErrorCode) -> anyhow::Result<()> {
    for refusal in refusals(executor).await? {
        assert_eq!(code(&refusal), Some(expected), "{refusal:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_environment_epoch_or_workspace_is_refused() {
    on_stage("identity", async |stage| {
        let (session, bound) = bound(stage, "one").await?;
        let executor = session.connect(&bound, &stage.product).await?;
        executor.list("").await.context("in the right words")?;

        let revision = "0123456789abcdef0123456789abcdef".to_owned();
        let other = executor.with(|target| target.environment.revision = revision);
        all_refuse(&other, ErrorCode::WrongEnvironment).await?;
        let other = executor.with(|target| target.environment.kind = EnvironmentKind::Local.into());
        all_refuse(&other, ErrorCode::WrongEnvironment).await?;
        for id in ["nobody/knows/this", &bound.environment.id.to_uppercase(), ""] {
            let other = executor.with(|target| id.clone_into(&mut target.environment.id));
            all_refuse(&other, ErrorCode::WrongEnvironment).await?;
        }
        for epoch in [bound.epoch + 1, bound.epoch - 1, u64::MAX] {
            let other = executor.with(|target| target.epoch = epoch);
            all_refuse(&other, ErrorCode::StaleEpoch).await?;
            let detail = detail_of(&refusals(&other).await?[0]).context("detail")?;
            assert_eq!(detail.fields["current"], bound.epoch.to_string());
        }
        let other = executor.with(|target| target.workspace_id = "0".repeat(32));
        all_refuse(&other, ErrorCode::NotFound).await
    })
    .await;
}

/// Another Session's words to this one's executor, and the other way round: an environment somebody has is as unknown as one
/// nobody has.
#[tokio::test(flavor = "multi_thread")]
async fn one_sessions_executor_does_not_serve_another_session() {
    on_stage("tenants", async |stage| {
        let ((one, first), (_, second)) = tokio::try_join!(bound(stage, "one"), bound(stage, "two"))?;
        let executor = one.connect(&first, &stage.product).await?;
        let known = executor.with(|target| target.environment = second.environment.clone());
        let unknown = executor.with(|target| target.environment.id = "nobody/knows/this".to_owned());
        let (known, unknown) = (refusals(&known).await?, refusals(&unknown).await?);
        for (known, unknown) in known.iter().zip(&unknown) {
            assert_eq!(code(known), Some(ErrorCode::WrongEnvironment));
            assert_eq!((known.message(), detail_of(known)), (unknown.message(), detail_of(unknown)));
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_is_refused_the_calls_of_the_other() {
    on_stage("roles", async |stage| {
        let (session, bound) = bound(stage, "one").await?;
        let harness = session.connect(&bound, &stage.product).await?;
        let context = || Some(harness.context());
        let bind = BindRequest {
            environment: Some(bound.environment.clone()),
            epoch: bound.epoch,
            protocol: Some(PROTOCOL),
            ..BindRequest::default()
        };
        let mut workspaces = harness.workspaces();
        let refused = [
            workspaces.bind(bind).await.err(),
            workspaces.fork(ForkRequest { context: context(), ..ForkRequest::default() }).await.err(),
            workspaces.drop(DropRequest { context: context(), ..DropRequest::default() }).await.err(),
            workspaces.apply(ApplyRequest { context: context(), ..ApplyRequest::default() }).await.err(),
        ];
        for refusal in refused {
            let refusal = refusal.context("an operator's call was open to a harness")?;
            assert_eq!(code(&refusal), Some(ErrorCode::PermissionDenied), "{refusal:?}");
        }
        let operator = session.connect_as(&bound, &stage.product, &stage.product.operator()?).await?;
        let list = ListWorkspacesRequest { context: Some(operator.context()), owner: String::new() };
        let listed = operator.workspaces().list_workspaces(list).await.context("an operator's own call")?;
        assert_eq!(listed.into_inner().workspaces.len(), 1);
        let refused = [
            operator.list("").await.err(),
            operator.write("refused.txt", b"x").await.err(),
            operator.start(&Program::argv(["true"])).await.err(),
        ];
        for refusal in refused {
            let refusal = refusal.context("a harness's call was open to an operator")?;
            assert_eq!(code(&refusal), Some(ErrorCode::PermissionDenied), "{refusal:?}");
        }
        Ok(())
    })
    .await;
}

/// A client that shows what it is told to, and what the executor answers to it in the handshake.
struct Stranger<'a> {
    stage: &'a Stage,
    bound: &'a Bound,
    server_name: String,
}

impl Stranger<'_> {
    async fn alert(
        &self,
        identity: Option<&Identity>,
        version: &'static SupportedProtocolVersion,
    ) -> anyhow::Result<AlertDescription> {
        mooring_e2e::install_crypto();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.stage.product.harness.authority.as_bytes())?)?;
        let builder = ClientConfig::builder_with_protocol_versions(&[version]).with_root_certificates(roots);
        let mut config = match identity {
            Some(identity) => {
                let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes())?;
                let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())?;
                builder.with_client_auth_cert(vec![certificate], key)?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = self.stage.product.place.connect(self.bound.executor.address).await?;
        let name = ServerName::try_from(self.server_name.clone())?;
        // In TLS 1.3 a client's side of the handshake is over before its certificate is judged.
        let error = match TlsConnector::from(Arc::new(config)).connect(name, stream).await {
            Ok(mut stream) => stream.read(&mut [0; 64]).await.err().context("the executor spoke on")?,
            Err(error) => error,
        };
        match error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::AlertReceived(alert)) => Ok(*alert),
            other => anyhow::bail!("no alert: {other:?} in {error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_certificate_of_a_role_is_refused_in_the_handshake() {
    on_stage("strangers", async |stage| {
        let (session, bound) = bound(stage, "one").await?;
        let (product, server_name) = (&stage.product, session.server_name(&bound));
        let stranger = Stranger { stage, bound: &bound, server_name: server_name.clone() };
        assert_eq!(stranger.alert(None, &version::TLS13).await?, AlertDescription::CertificateRequired);
        let foreign = Authority::make()?.harness()?;
        let alert = stranger.alert(Some(&foreign), &version::TLS13).await?;
        ensure!(
            matches!(alert, AlertDescription::UnknownCA | AlertDescription::DecryptError),
            "a foreign authority's harness: {alert:?}"
        );
        // Certified by our own authority, and none of the two roles.
        for name in [&server_name, "x.harness.mooring.internal", "somebody.mooring.internal"] {
            let other = product.authority.certify(name)?;
            let alert = stranger.alert(Some(&other), &version::TLS13).await?;
            assert_eq!(alert, AlertDescription::AccessDenied, "{name}");
        }
        // The executor's own key pair, should a command ever get it.
        let own = session.namespace.ground.api::<Secret>(&session.namespace.name);
        let own = own.get(&bound.executor.pod).await?.data.context("the executor's Secret")?;
        let text = |key: &str| String::from_utf8(own[key].0.clone());
        let own =
            Identity { certificate: text("tls.crt")?, key: text("tls.key")?, authority: text("ca.crt")? };
        stranger.alert(Some(&own), &version::TLS13).await.context("an executor as a client")?;
        let alert = stranger.alert(Some(&product.harness), &version::TLS12).await?;
        assert_eq!(alert, AlertDescription::ProtocolVersion);
        session.connect(&bound, product).await?.list("").await.context("the harness itself")?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_text_gets_no_answer() {
    on_stage("plain", async |stage| {
        let (_session, bound) = bound(stage, "one").await?;
        let (address, place) = (bound.executor.address, &stage.product.place);
        let plain = Executor::connect_plain(address, place, bound.target()).await;
        // A connection is made, since HTTP/2 speaks first on the client's side; nothing comes back over it.
        if let Ok(plain) = plain {
            let refusal = plain.list("").await.err().context("plain text was answered")?;
            assert_eq!(code(&refusal), None, "{refusal:?}");
        }
        let mut stream = place.connect(address).await?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: executor\r\n\r\n").await?;
        let mut answer = Vec::new();
        // At most the alert of a TLS that was not spoken (RFC 8446, section 5.1: type 21).
        let _ = stream.read_to_end(&mut answer).await;
        ensure!(answer.is_empty() || answer[0] == 21, "{answer:?}");
        Ok(())
    })
    .await;
}

/// The client is as careful as the server: an executor that is certified for another pod is not believed.
#[tokio::test(flavor = "multi_thread")]
async fn an_executor_of_another_pod_is_not_believed() {
    on_stage("server", async |stage| {
        let (session, bound) = bound(stage, "one").await?;
        let product = &stage.product;
        let connect = async |name: &str, identity: &Identity, place: &Place| {
            Executor::connect(bound.executor.address, name, identity, place, bound.target()).await
        };
        let name = mooring_proto::certificate::executor("ses-00000000000000000000-1", "elsewhere");
        ensure!(connect(&name, &product.harness, &product.place).await.is_err(), "another pod's name");
        let foreign = product.harness.clone().believing(&Authority::make()?.harness()?);
        ensure!(
            connect(&session.server_name(&bound), &foreign, &product.place).await.is_err(),
            "another authority"
        );
        Ok(())
    })
    .await;
}
