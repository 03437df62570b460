//! Who an environment is, exactly.

use std::fmt::Write as _;

use mooring_proto::v1::{EnvironmentKind, EnvironmentRef};

/// Bytes an environment id has at most.
const MAX_ID_BYTES: usize = 4096;

/// Kind, id and revision of an environment. Compared as a whole, always.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    kind: EnvironmentKind,
    id: String,
    revision: String,
}

impl Identity {
    /// The identity in `reference`, or what is wrong with it.
    ///
    /// # Errors
    /// A sentence about the first field that is out of bounds.
    pub fn parse(reference: Option<&EnvironmentRef>) -> Result<Self, &'static str> {
        let reference = reference.ok_or("environment is absent")?;
        let kind = match EnvironmentKind::try_from(reference.kind) {
            Ok(kind @ (EnvironmentKind::Local | EnvironmentKind::Kubernetes)) => kind,
            Ok(EnvironmentKind::Unspecified) | Err(_) => return Err("environment kind is unknown"),
        };
        if !(1..=MAX_ID_BYTES).contains(&reference.id.len()) {
            return Err("environment id has 1..=4096 bytes");
        }
        if !is_hex_128(&reference.revision) {
            return Err("revision has 32 lower-case hexadecimal digits");
        }
        Ok(Self { kind, id: reference.id.clone(), revision: reference.revision.clone() })
    }

    /// Whether `reference` names exactly this environment.
    pub fn is(&self, reference: Option<&EnvironmentRef>) -> bool {
        reference.is_some_and(|reference| {
            reference.kind == i32::from(self.kind)
                && reference.id == self.id
                && reference.revision == self.revision
        })
    }

    /// What resolves it.
    pub fn kind(&self) -> EnvironmentKind {
        self.kind
    }

    /// For a local environment its canonical root, else `<namespace>/<session>/<session UID>`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the id has the form of kind `kubernetes`.
    pub(super) fn names_session(&self) -> bool {
        is_session(&self.id)
    }

    /// 32 lower-case hexadecimal digits.
    pub fn revision(&self) -> &str {
        &self.revision
    }
}

/// How often an environment was bound: 1..=2^63-1, rising by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(u64);

impl Epoch {
    /// `None` when out of bounds.
    pub fn new(epoch: u64) -> Option<Self> {
        (epoch != 0 && i64::try_from(epoch).is_ok()).then_some(Self(epoch))
    }

    /// As it travels.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// 128 random bits of one executor process, as 32 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootId(String);

impl BootId {
    /// From 128 random bits.
    pub fn new(random: [u8; 16]) -> Self {
        Self(to_hex(&random))
    }

    /// As it travels.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `bytes` as lower-case hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that lower-case hexadecimal `text` stands for.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// `<namespace>/<session>/<session UID>`: a DNS label, a DNS subdomain, and what API servers make for uids, which is opaque.
fn is_session(id: &str) -> bool {
    let is_label = |text: &str, max: usize| {
        let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        (1..=max).contains(&bytes.len())
            && bytes.iter().all(|byte| inside(*byte) || *byte == b'-')
            && bytes.first().is_some_and(|byte| inside(*byte))
            && bytes.last().is_some_and(|byte| inside(*byte))
    };
    let is_uid = |text: &str| {
        (1..=128).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let mut parts = id.split('/');
    let (Some(namespace), Some(session), Some(uid), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let is_subdomain = session.len() <= 253 && session.split('.').all(|label| is_label(label, 253));
    is_label(namespace, 63) && is_subdomain && is_uid(uid)
}

fn is_hex_128(text: &str) -> bool {
    text.len() == 32 && from_hex(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_session_has_three_parts_of_their_form() {
        let uid = "8d3bbf3a-6a52-4f6e-9f5c-0d6f5f9a4e11";
        for id in [format!("team-a/fix-42/{uid}"), format!("0/a.b-c/{uid}"), "n/s/1".to_owned()] {
            assert!(is_session(&id), "{id}");
        }
        for id in [
            "",
            "/",
            "//",
            "team-a/fix-42",
            "team-a//1",
            "/s/1",
            "n/s/",
            "n/s/1/",
            "n/s/1/2",
            "N/s/1",
            "n/S/1",
            "-n/s/1",
            "n/s-/1",
            "n/s..t/1",
            "n/.s/1",
            "n/s/1 ",
            "n/s/../1",
            &format!("{}/s/1", "n".repeat(64)),
            &format!("n/{}/1", "s".repeat(254)),
            &format!("n/s/{}", "1".repeat(129)),
        ] {
            assert!(!is_session(id), "{id}");
        }
    }
}
