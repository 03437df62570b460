//! Which role a certificate names.

use std::sync::Arc;

use mooring_proto::certificate::{HARNESS, OPERATOR};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, DnsName, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use webpki::EndEntityCert;

use crate::grpc::Role;

/// The one role that `certificate` is valid for. A certificate that fits both, as one with a wildcard would, names none.
///
/// Only the name is looked at: whether the certificate can be trusted is for the verifier to say first.
pub(super) fn role_of(certificate: &CertificateDer<'_>) -> Option<Role> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let fits = |name: &'static str| {
        let name = DnsName::try_from(name).expect("the names of roles are DNS names");
        certificate.verify_is_valid_for_subject_name(&ServerName::DnsName(name)).is_ok()
    };
    match (fits(HARNESS), fits(OPERATOR)) {
        (true, false) => Some(Role::Harness),
        (false, true) => Some(Role::Operator),
        (false, false) | (true, true) => None,
    }
}

/// Accepts what the inner verifier accepts, when it also names a role.
#[derive(Debug)]
pub(super) struct RoleVerifier(pub(super) Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for RoleVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.0.verify_client_cert(end_entity, intermediates, now)?;
        match role_of(end_entity) {
            Some(_) => Ok(verified),
            // Told to the peer as `access_denied` (RFC 8446, section 6.2): valid, but not allowed.
            None => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[track_caller]
    fn check(names: &[&str], expected: Option<Role>) {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate =
            CertificateParams::new(names).expect("names").self_signed(&key).expect("a certificate");
        assert_eq!(role_of(certificate.der()), expected);
    }

    #[test]
    fn a_role_is_one_exact_name() {
        check(&[HARNESS], Some(Role::Harness));
        check(&[OPERATOR], Some(Role::Operator));
        check(&["HARNESS.mooring.internal"], Some(Role::Harness));
        check(&[], None);
        check(&["a.b.executor.mooring.internal"], None);
        check(&["harness.mooring.internal.example.org"], None);
        check(&["x.harness.mooring.internal"], None);
        check(&["mooring.internal"], None);
    }

    #[test]
    fn a_certificate_that_fits_both_roles_names_none() {
        check(&[HARNESS, OPERATOR], None);
        check(&["*.mooring.internal"], None);
    }

    #[test]
    fn what_is_no_certificate_names_no_role() {
        assert_eq!(role_of(&CertificateDer::from_slice(b"")), None);
        assert_eq!(role_of(&CertificateDer::from_slice(&[0x30; 64])), None);
    }
}
