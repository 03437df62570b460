//! The chart as helm renders, refuses, upgrades and removes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use expect_test::expect_file;
use mooring_e2e::platform::{Ground, Namespace, Product, chart};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, version};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::stage::{conclude, in_peace};

/// In which a release is only rendered.
const NOWHERE: &str = "mooring";

async fn in_ground(body: impl AsyncFnOnce(&Ground) -> anyhow::Result<()>) {
    in_peace(async {
        let ground = Ground::open().await.expect("a cluster");
        conclude(Ok(body(&ground).await));
    })
    .await;
}

/// The files of values beside the chart.
const VALUES: [&str; 3] = ["gitops", "everything", "no-harness"];

/// The first is shown whole, of the others what differs from it.
#[tokio::test(flavor = "multi_thread")]
async fn the_chart_renders_to_what_its_snapshots_show() {
    in_ground(async |ground| {
        let files = std::fs::read_dir(chart().join("ci"))?.count();
        assert_eq!(files, VALUES.len(), "a snapshot for each file of values");
        let mut whole = None;
        for name in VALUES {
            let values = chart().join(format!("ci/{name}.yaml")).display().to_string();
            let rendered = Product::rendered(ground, NOWHERE, &["--values", &values]).await?;
            let shown =
                whole.as_deref().map_or_else(|| rendered.clone(), |whole| difference(whole, &rendered));
            let snapshot =
                Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cluster/chart/{name}.txt"));
            expect_file![snapshot].assert_eq(&shown);
            whole.get_or_insert(rendered);
        }
        Ok(())
    })
    .await;
}

/// What helm puts before each document; the rest of the line is its template.
const SOURCE: &str = "---\n# Source: mooring/templates/";

/// The documents of `other` that are not in `whole`, and the templates that give nothing any more.
fn difference(whole: &str, other: &str) -> String {
    let template = |document: &str| document.lines().next().unwrap_or_default().to_owned();
    let documents = |text: &str| text.split(SOURCE).skip(1).map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (documents(whole), documents(other));
    let left: BTreeSet<String> = after.iter().map(|document| template(document)).collect();
    let gone: BTreeSet<String> = before.iter().map(|document| template(document)).collect();
    let gone = gone.difference(&left).map(|template| format!("# Nothing of mooring/templates/{template}\n"));
    let new = after.iter().filter(|document| !before.contains(document));
    gone.chain(new.map(|document| format!("{SOURCE}{document}"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_mean_nothing_are_refused_in_words() {
    in_ground(async |ground| {
        let pem = "harness.tls.caBundle=-----BEGIN CERTIFICATE-----x";
        let cases: [(&[&str], &str); 10] = [
            (&["surprise=1"], "additional properties 'surprise' not allowed"),
            (&["harness.surprise=1"], "additional properties 'surprise' not allowed"),
            (&["harness.tls.surprise=1"], "additional properties 'surprise' not allowed"),
            (&["operator.image.digest=sha256:12"], "at '/operator/image/digest'"),
            (&["harness.image.digest=latest"], "at '/harness/image/digest'"),
            (&["harness.environments={local}"], "at '/harness/environments/0'"),
            (&["harness.gateway.url=http://mooring.example:80"], "at '/harness/gateway/url'"),
            (&["harness.gateway.hostnames={Not A Name}"], "at '/harness/gateway/hostnames/0'"),
            (&["harness.tls.existingSecret=mine"], "harness.tls.existingSecret needs harness.tls.caBundle"),
            (&[pem], "harness.tls.caBundle belongs to harness.tls.existingSecret"),
        ];
        for (values, words) in cases {
            let arguments: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
            let refusal = Product::rendered(ground, NOWHERE, &arguments).await.err();
            let refusal = refusal.with_context(|| format!("{values:?} is taken"))?.to_string();
            ensure!(refusal.contains(words), "{values:?}: {refusal}");
        }
        Ok(())
    })
    .await;
}

/// What the chart makes the harness known by, and what the API server is told of it.
async fn known_by(ground: &Ground, namespace: &str, more: &[&str]) -> anyhow::Result<(Value, String)> {
    let arguments = [&["--set", "crds.install=false"], more].concat();
    let rendered = Product::rendered(ground, namespace, &arguments).await?;
    let mut secret = None;
    let mut bundle = None;
    for document in serde_yaml::Deserializer::from_str(&rendered) {
        let document = Value::deserialize(document)?;
        match document["kind"].as_str() {
            Some("Secret") => secret = Some(document),
            Some("APIService") => bundle = document["spec"]["caBundle"].as_str().map(str::to_owned),
            Some(_) | None => {}
        }
    }
    let (secret, bundle) = (secret.context("a Secret")?, bundle.context("a caBundle")?);
    assert_eq!(secret["data"]["ca.crt"], json!(bundle));
    assert_eq!(secret["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    Ok((secret, bundle))
}

fn decoded(secret: &Value) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let data: BTreeMap<String, k8s_openapi::ByteString> = serde_json::from_value(secret["data"].clone())?;
    Ok(data.into_iter().map(|(key, bytes)| (key, bytes.0)).collect())
}

/// Whether a client that trusts its authority takes a server with its certificate for `name`.
async fn is_taken(secret: &Value, name: &str) -> anyhow::Result<bool> {
    mooring_e2e::install_crypto();
    let data = decoded(secret)?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&data["ca.crt"])?)?;
    let client = ClientConfig::builder_with_protocol_versions(&[&version::TLS13])
        .with_root_certificates(roots)
        .with_no_client_auth();
    let certificate = CertificateDer::from_pem_slice(&data["tls.crt"])?;
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::from_pem_slice(&data["tls.key"])?)?;
    let (near, far) = tokio::io::duplex(65_536);
    let (name, connector) = (ServerName::try_from(name.to_owned())?, TlsConnector::from(Arc::new(client)));
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let (taken, _) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
    Ok(taken.is_ok())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_harness_has_one_certificate_and_token_key_that_upgrades_keep() {
    in_ground(async |ground| {
        let namespace = Namespace::bare(ground, "kept").await?;
        let name = namespace.name.as_str();
        let (service, long) =
            (format!("mooring-harness.{name}.svc"), format!("mooring-harness.{name}.svc.cluster.local"));
        let (first, _) = known_by(ground, name, &[]).await?;
        assert_eq!(decoded(&first)?["token.key"].len(), 32);
        for (asked, expected) in [(service.as_str(), true), (&long, true), ("mooring.example", false)] {
            assert_eq!(is_taken(&first, asked).await?, expected, "{asked}");
        }
        let (other, _) = known_by(ground, name, &[]).await?;
        assert_ne!(
            first["data"]["token.key"], other["data"]["token.key"],
            "nothing is kept where nothing is"
        );
        ground.kubectl.apply(&first).await?;
        let (again, _) = known_by(ground, name, &[]).await?;
        assert_eq!(again["data"], first["data"]);
        // Another name is another certificate, and no reason to end everybody's tokens.
        let (more, _) =
            known_by(ground, name, &["--set", "harness.gateway.hostnames={mooring.example}"]).await?;
        assert_eq!(more["data"]["token.key"], first["data"]["token.key"]);
        assert_ne!(more["data"]["tls.crt"], first["data"]["tls.crt"]);
        for asked in [service.as_str(), &long, "mooring.example"] {
            ensure!(is_taken(&more, asked).await?, "{asked}");
        }
        namespace.remove().await
    })
    .await;
}
