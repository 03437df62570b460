//! The cluster's own certificate authority and a certificate for each of its users.

use std::net::IpAddr;

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use super::network::Ranges;
use super::run::RunFolder;
use super::{ADMIN, NODE};

/// Users of the API server that get a kubeconfig: file name, user name, group. The names that begin with `system:` are the ones
/// Kubernetes has roles for.
const USERS: &[(&str, &str, Option<&str>)] = &[
    (ADMIN, "admin", Some("system:masters")),
    ("kubelet", "system:node:node1", Some("system:nodes")),
    ("controller-manager", "system:kube-controller-manager", None),
    ("scheduler", "system:kube-scheduler", None),
    ("proxy", "system:kube-proxy", None),
    ("network-policy", "mooring:network-policy", None),
    ("volumes", "mooring:volumes", None),
];

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: RunFolder,
}

/// Writes keys, certificates and kubeconfigs of a new run.
pub(super) fn make(folder: &RunFolder, ranges: Ranges) -> anyhow::Result<()> {
    for name in ["certificate", "kubeconfig"] {
        std::fs::create_dir_all(folder.join(name))?;
    }
    let authority = Authority::make(folder)?;
    let service_accounts = KeyPair::generate().context("the service accounts' key")?;
    write(folder, "certificate/service-accounts.key", &service_accounts.serialize_pem())?;
    write(folder, "certificate/service-accounts.pub", &service_accounts.public_key_pem())?;
    let addresses = [ranges.node(), ranges.kubernetes_service(), [127, 0, 0, 1].into()];
    let mut names: Vec<SanType> =
        addresses.into_iter().map(|address| SanType::IpAddress(IpAddr::V4(address))).collect();
    for name in ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"] {
        names.push(SanType::DnsName(name.try_into()?));
    }
    names.push(SanType::DnsName("kubernetes.default.svc.cluster.local".try_into()?));
    authority.certify("apiserver", "kube-apiserver", None, names)?;
    // How the API server names itself to the kubelet, and how it vouches for callers of an aggregated API.
    authority.certify("kubelet-client", "kube-apiserver-kubelet-client", Some("system:masters"), vec![])?;
    authority.certify("aggregator", "front-proxy", None, vec![])?;
    for (name, user, group) in USERS {
        let mut names = vec![];
        if *name == "kubelet" {
            names = vec![SanType::DnsName(NODE.try_into()?), SanType::IpAddress(ranges.node().into())];
        }
        authority.certify(name, user, *group, names)?;
        write(folder, &format!("kubeconfig/{name}"), &kubeconfig(folder, ranges, name)?)?;
    }
    Ok(())
}

impl Authority {
    fn make(folder: &RunFolder) -> anyhow::Result<Self> {
        let mut params = CertificateParams::new(vec![])?;
        params.distinguished_name.push(DnType::CommonName, format!("mooring test cluster {}", folder.id()));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().context("the authority's key")?;
        write(folder, "certificate/ca.crt", &params.self_signed(&key)?.pem())?;
        write(folder, "certificate/ca.key", &key.serialize_pem())?;
        Ok(Self { issuer: Issuer::new(params, key), folder: folder.clone() })
    }

    fn certify(
        &self,
        file: &str,
        user: &str,
        group: Option<&str>,
        names: Vec<SanType>,
    ) -> anyhow::Result<()> {
        let mut params = CertificateParams::new(vec![])?;
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.subject_alt_names = names;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().with_context(|| format!("the key of {user}"))?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        write(&self.folder, &format!("certificate/{file}.crt"), &certificate.pem())?;
        write(&self.folder, &format!("certificate/{file}.key"), &key.serialize_pem())
    }
}

fn kubeconfig(folder: &RunFolder, ranges: Ranges, user: &str) -> anyhow::Result<String> {
    let file = |name: &str| folder.join(format!("certificate/{name}"));
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "mooring", "cluster": {
            "server": format!("https://{}:6443", ranges.node()),
            "certificate-authority": file("ca.crt"),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate": file(&format!("{user}.crt")),
            "client-key": file(&format!("{user}.key")),
        }}],
        "contexts": [{"name": "mooring", "context": {"cluster": "mooring", "user": user}}],
        "current-context": "mooring",
    });
    Ok(serde_json::to_string_pretty(&config)?)
}

/// Readable by the owner alone: most of these are keys.
fn write(folder: &RunFolder, name: &str, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let path = folder.join(name);
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
    let mut file = file.with_context(|| format!("write {}", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("write {}", path.display()))
}
