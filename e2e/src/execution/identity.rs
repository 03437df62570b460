//! Who calls: a certificate with its key, and the authority that is believed.

use anyhow::Context as _;
use mooring_proto::certificate::{HARNESS, OPERATOR};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// What a caller shows, and whom it believes. PEM.
#[derive(Clone)]
pub struct Identity {
    /// The caller's certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// Certificates of the authority that executors must be certified by.
    pub authority: String,
}

/// An authority that certifies names as the operator's does.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// The one with this certificate and key, as PEM.
    ///
    /// # Errors
    /// When they are not a certificate and its key.
    pub fn open(certificate: String, key: &str) -> anyhow::Result<Self> {
        let key = KeyPair::from_pem(key).context("the authority's key")?;
        let issuer = Issuer::from_ca_cert_pem(&certificate, key).context("the authority's certificate")?;
        Ok(Self { certificate, issuer })
    }

    /// A new one that nobody has reason to believe.
    ///
    /// # Errors
    /// When no key can be made.
    pub fn make() -> anyhow::Result<Self> {
        let mut params = CertificateParams::new(vec![])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().context("a key")?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// A client with this one DNS name, who believes this authority.
    ///
    /// # Errors
    /// When `name` is no DNS name.
    pub fn certify(&self, name: &str) -> anyhow::Result<Identity> {
        self.issue(name, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// A server with this one DNS name.
    ///
    /// # Errors
    /// As [`Authority::certify`].
    pub fn certify_server(&self, name: &str) -> anyhow::Result<Identity> {
        self.issue(name, ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn issue(&self, name: &str, purpose: ExtendedKeyUsagePurpose) -> anyhow::Result<Identity> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().context("a key")?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity { certificate, key: key.serialize_pem(), authority: self.certificate.clone() })
    }

    /// A harness.
    ///
    /// # Errors
    /// As [`Authority::certify`].
    pub fn harness(&self) -> anyhow::Result<Identity> {
        self.certify(HARNESS)
    }

    /// An operator.
    ///
    /// # Errors
    /// As [`Authority::certify`].
    pub fn operator(&self) -> anyhow::Result<Identity> {
        self.certify(OPERATOR)
    }
}

impl Identity {
    /// The same caller, who believes another authority: that of `other`.
    #[must_use]
    pub fn believing(mut self, other: &Self) -> Self {
        self.authority.clone_from(&other.authority);
        self
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("key", &"[redacted]").finish_non_exhaustive()
    }
}
