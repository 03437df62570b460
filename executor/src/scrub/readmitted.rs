//! Names that an operator lets through.

use std::collections::BTreeSet;

use super::name::{self, Verdict};

/// Names that stay although they look like secrets or hooks. Exact and case-sensitive, as the system compares them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readmitted(BTreeSet<String>);

/// Why a name cannot be re-admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadmittedError {
    /// Empty, not printable ASCII, or with `=`.
    #[error("{name:?} cannot be the name of a variable")]
    Malformed {
        /// The name as given.
        name: String,
    },
    /// It begins with `MOORING_`.
    #[error("{name} is Mooring's own and never reaches a command")]
    Product {
        /// The name as given.
        name: String,
    },
    /// It is a credential of a model provider.
    #[error("{name} is a model provider's credential and never reaches a command")]
    Provider {
        /// The name as given.
        name: String,
    },
}

impl Readmitted {
    /// Lets nothing through.
    pub const fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Takes names as an operator wrote them. A name that nothing would remove is accepted and changes nothing but that a
    /// URL in its value keeps its userinfo.
    ///
    /// # Errors
    /// The first name that is malformed, Mooring's own or a model provider's.
    pub fn parse<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Result<Self, ReadmittedError> {
        names.into_iter().map(|name| checked(name.into())).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn holds(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

fn checked(name: String) -> Result<String, ReadmittedError> {
    if name::parse(name.as_bytes()).is_none() {
        return Err(ReadmittedError::Malformed { name });
    }
    match Verdict::of(&name) {
        Verdict::Product => Err(ReadmittedError::Product { name }),
        Verdict::Provider => Err(ReadmittedError::Provider { name }),
        Verdict::Credential | Verdict::Hook | Verdict::Plain => Ok(name),
    }
}
