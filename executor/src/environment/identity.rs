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

    /// For a local environment its canonical root.
    pub fn id(&self) -> &str {
        &self.id
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

fn is_hex_128(text: &str) -> bool {
    text.len() == 32 && from_hex(text).is_some()
}
