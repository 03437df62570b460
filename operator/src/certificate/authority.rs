//! Issuing and judging certificates. No input or output.

use std::time::Duration;

use jiff::Timestamp;
use mooring_proto::certificate as names;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, GeneralSubtree,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, PKCS_ECDSA_P256_SHA256, PublicKeyData as _,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use secrecy::{ExposeSecret as _, SecretString};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// Names under which this authority may issue anything at all (RFC 5280, section 4.2.1.10).
const DOMAIN: &str = "mooring.internal";
const DAY: Duration = Duration::from_hours(24);
/// Of the authority itself.
const AUTHORITY_LIFE: Duration = Duration::from_hours(24 * 3650);
/// Of a client or an executor.
const LIFE: Duration = Duration::from_hours(24 * 30);
/// How long before its end a certificate is replaced.
const RENEWED_BEFORE_END: Duration = Duration::from_hours(24 * 10);
/// How long after its issue a certificate is due for renewal.
pub(crate) const RENEWED_AFTER: Duration = LIFE.saturating_sub(RENEWED_BEFORE_END);
/// How far before its issue a certificate begins, so that a clock that is behind accepts it.
const BACKDATED: Duration = DAY;

/// What a certificate is for. Decides its one name and its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role<'a> {
    /// An executor, as the server of one pod.
    Executor {
        /// The pod's name.
        pod: &'a str,
        /// Its namespace.
        namespace: &'a str,
    },
    /// The harness, as a client.
    Harness,
    /// The operator, as a client.
    Operator,
}

impl Role<'_> {
    /// The one subject alternative name.
    pub fn name(&self) -> String {
        match self {
            Self::Executor { pod, namespace } => names::executor(pod, namespace),
            Self::Harness => names::HARNESS.to_owned(),
            Self::Operator => names::OPERATOR.to_owned(),
        }
    }

    fn purpose(self) -> ExtendedKeyUsagePurpose {
        match self {
            Self::Executor { .. } => ExtendedKeyUsagePurpose::ServerAuth,
            Self::Harness | Self::Operator => ExtendedKeyUsagePurpose::ClientAuth,
        }
    }

    fn key_usage(self) -> KeyUsage {
        match self {
            Self::Executor { .. } => KeyUsage::server_auth(),
            Self::Harness | Self::Operator => KeyUsage::client_auth(),
        }
    }
}

/// Why no certificate could be made or read.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The key or the certificate cannot be made.
    #[error("cannot issue a certificate")]
    Issue(#[source] rcgen::Error),
    /// What was kept is not a certificate with its key.
    #[error("the kept authority is no certificate with its key")]
    Read(#[source] rcgen::Error),
    /// The certificate cannot be an anchor of trust.
    #[error("the kept authority's certificate cannot be trusted")]
    Anchor,
    /// The key is another certificate's.
    #[error("the kept authority's key is not that of its certificate")]
    OtherKey,
    /// A time before 1970.
    #[error("the clock stands before 1970")]
    Clock,
}

/// A certificate with its key. `Debug` shows no key.
#[derive(Debug)]
pub struct Credential {
    /// PEM.
    pub certificate: String,
    /// PEM, PKCS #8. Never logged.
    pub key: SecretString,
}

/// The authority: its key signs, its certificate is what everybody trusts.
pub struct Authority {
    certificate: String,
    anchor: TrustAnchor<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes a new authority; the result is what [`Authority::read`] takes.
    ///
    /// # Errors
    /// When the system gives no randomness, or the clock is wrong.
    pub fn generate(now: Timestamp) -> Result<Credential, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Issue)?;
        let mut params = CertificateParams::default();
        set_validity(&mut params, now, AUTHORITY_LIFE)?;
        params.distinguished_name = common_name("mooring executor authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: vec![GeneralSubtree::DnsName(DOMAIN.to_owned())],
            excluded_subtrees: Vec::new(),
        });
        let certificate = params.self_signed(&key).map_err(AuthorityError::Issue)?.pem();
        Ok(Credential { certificate, key: key.serialize_pem().into() })
    }

    /// Takes up an authority that was kept.
    ///
    /// # Errors
    /// When it is no certificate with its own key.
    pub fn read(kept: &Credential) -> Result<Self, AuthorityError> {
        let key = KeyPair::from_pem(kept.key.expose_secret()).map_err(AuthorityError::Read)?;
        let certificate = CertificateDer::from_pem_slice(kept.certificate.as_bytes())
            .map_err(|_| AuthorityError::Read(rcgen::Error::CouldNotParseCertificate))?;
        let anchor = anchor_from_trusted_cert(&certificate).map_err(|_| AuthorityError::Anchor)?.to_owned();
        // The anchor has the content of the sequence that the key encodes whole.
        if !key.subject_public_key_info().ends_with(&anchor.subject_public_key_info) {
            return Err(AuthorityError::OtherKey);
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(AuthorityError::Read)?;
        Ok(Self { certificate: kept.certificate.clone(), anchor, issuer })
    }

    /// The certificate that peers trust, PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Issues a certificate with a new key, good for 30 days from `now`.
    ///
    /// # Errors
    /// When the system gives no randomness, or the clock is wrong.
    pub fn issue(&self, role: Role<'_>, now: Timestamp) -> Result<Credential, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Issue)?;
        let mut params = CertificateParams::new(vec![role.name()]).map_err(AuthorityError::Issue)?;
        set_validity(&mut params, now, LIFE)?;
        // Not the name: it may be longer than the 64 characters of a common name, and nobody compares this one.
        params.distinguished_name = common_name("mooring");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![role.purpose()];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer).map_err(AuthorityError::Issue)?.pem();
        Ok(Credential { certificate, key: key.serialize_pem().into() })
    }

    /// Whether a kept credential is this authority's, for exactly this role, with its own key, and not in the last third of
    /// its life at `now`.
    pub fn is_fresh(&self, role: Role<'_>, kept: &Credential, now: Timestamp) -> bool {
        let (Ok(key), Ok(certificate)) = (
            KeyPair::from_pem(kept.key.expose_secret()),
            CertificateDer::from_pem_slice(kept.certificate.as_bytes()),
        ) else {
            return false;
        };
        let (Ok(end_entity), Ok(name), Ok(seconds)) = (
            EndEntityCert::try_from(&certificate),
            ServerName::try_from(role.name()),
            u64::try_from((now + RENEWED_BEFORE_END).as_second()),
        ) else {
            return false;
        };
        let chain = end_entity.verify_for_usage(
            rustls::crypto::ring::default_provider().signature_verification_algorithms.all,
            std::slice::from_ref(&self.anchor),
            &[],
            UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
            role.key_usage(),
            None,
            None,
        );
        chain.is_ok()
            && end_entity.verify_is_valid_for_subject_name(&name).is_ok()
            && end_entity.valid_dns_names().count() == 1
            && end_entity.subject_public_key_info().as_ref() == key.subject_public_key_info()
    }
}

fn set_validity(
    params: &mut CertificateParams,
    now: Timestamp,
    life: Duration,
) -> Result<(), AuthorityError> {
    let seconds = u64::try_from(now.as_second()).map_err(|_| AuthorityError::Clock)?;
    let now = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    params.not_before = now - BACKDATED;
    params.not_after = now + life;
    Ok(())
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

#[cfg(test)]
mod tests;
