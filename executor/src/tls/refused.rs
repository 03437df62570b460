//! Why a peer that connected did not become a connection.

use rustls::{CertificateError, Error};

use crate::telemetry::Tally;

/// One of these ends every attempt that fails. What a peer can cause at will is counted and seldom said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// What came first was no TLS: plain HTTP, say.
    NotTls,
    /// An older TLS, or nothing that both sides can do.
    Incompatible,
    /// No certificate was shown.
    NoCertificate,
    /// The certificate is not of our authority, not valid at this time or not for a client.
    Certificate,
    /// The certificate is valid and names no role.
    NoRole,
    /// The handshake took too long, or too many others were begun after it.
    Slow,
    /// The caller's role has all the connections it may have.
    Crowded,
    /// The peer went away or broke the protocol.
    Broken,
}

const ALL: [Refused; 8] = [
    Refused::NotTls,
    Refused::Incompatible,
    Refused::NoCertificate,
    Refused::Certificate,
    Refused::NoRole,
    Refused::Slow,
    Refused::Crowded,
    Refused::Broken,
];

impl Refused {
    /// What a failed handshake says about the peer.
    #[expect(clippy::wildcard_enum_match_arm, reason = "another crate's errors, and more of them to come")]
    pub(super) fn of(error: &std::io::Error) -> Self {
        let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<Error>()) else {
            return Self::Broken;
        };
        match error {
            Error::InvalidMessage(_) => Self::NotTls,
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Self::Incompatible,
            Error::NoCertificatesPresented => Self::NoCertificate,
            Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => Self::NoRole,
            Error::InvalidCertificate(_) => Self::Certificate,
            _ => Self::Broken,
        }
    }
}

/// How often each happened.
#[derive(Debug, Default)]
pub(super) struct RefusedTally([Tally; ALL.len()]);

impl RefusedTally {
    pub(super) fn note(&self, refused: Refused) {
        let due = ALL.iter().position(|known| *known == refused).and_then(|index| self.0[index].note());
        if let Some(count) = due {
            tracing::warn!(?refused, count, "connections were refused");
        }
    }
}
