//! Certificates for the tests of this module.

use mooring_proto::certificate::executor;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tempfile::TempDir;

pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Certificate and key.
    pub(super) fn issue(&self, name: &str, purpose: ExtendedKeyUsagePurpose) -> [String; 2] {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().expect("a key");
        [params.signed_by(&key, &self.0).expect("a certificate").pem(), key.serialize_pem()]
    }

    pub(super) fn server(&self) -> [String; 2] {
        self.issue(&executor("pod", "namespace"), ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A folder with a server's files.
    pub(super) fn folder(&self) -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let [certificate, key] = self.server();
        for (name, text) in [("tls.crt", certificate), ("tls.key", key), ("ca.crt", self.pem())] {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        folder
    }

    /// A client with a certificate of that name.
    pub(super) fn client(&self, name: &str) -> ClientConfig {
        let [certificate, key] = self.issue(name, ExtendedKeyUsagePurpose::ClientAuth);
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("an authority");
        ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("known versions")
            .with_root_certificates(roots)
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM"),
            )
            .expect("a pair")
    }

    pub(super) fn server_name() -> ServerName<'static> {
        ServerName::try_from(executor("pod", "namespace")).expect("a name")
    }
}
