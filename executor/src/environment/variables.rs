//! What the commands of an environment start from.

use mooring_proto::v1::EnvironmentVariable;

use super::BindError;
use crate::scrub::{Readmitted, scrub};

const MAX_ENTRIES: usize = 4096;
const MAX_TOTAL_BYTES: usize = 4 * 1024 * 1024;
const MAX_NAME_BYTES: usize = 256;
const MAX_VALUE_BYTES: usize = 1024 * 1024;
const MAX_READMITTED: usize = 256;

/// A name and a value, as bytes.
pub type Variable = (Vec<u8>, Vec<u8>);

/// The environment's own variables after scrubbing. What was taken out is forgotten but for its name.
pub struct Variables {
    kept: Vec<Variable>,
    removed: Vec<String>,
    readmitted: Readmitted,
}

impl Variables {
    /// Checks and scrubs the variables of a Bind, over those `of_image`.
    pub(super) fn parse(
        of_image: &[Variable],
        variables: Vec<EnvironmentVariable>,
        readmitted: Vec<String>,
    ) -> Result<Self, BindError> {
        if readmitted.len() > MAX_READMITTED || readmitted.iter().any(|name| !is_name(name.as_bytes())) {
            return Err(BindError::Malformed("readmitted_names has at most 256 names of 1..=256 bytes"));
        }
        let readmitted = Readmitted::parse(readmitted)?;
        let variables =
            check_variables(variables, MAX_ENTRIES, MAX_TOTAL_BYTES).map_err(BindError::Malformed)?;
        let scrubbed = scrub(of_image.iter().cloned().chain(variables), &readmitted);
        Ok(Self { kept: scrubbed.kept, removed: scrubbed.removed, readmitted })
    }

    /// What is left.
    pub fn kept(&self) -> &[Variable] {
        &self.kept
    }

    /// Names taken out, sorted.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Names that scrubbing lets through.
    pub fn readmitted(&self) -> &Readmitted {
        &self.readmitted
    }
}

impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Variables({} kept, {} removed)", self.kept.len(), self.removed.len())
    }
}

/// `variables` as pairs, each within its bounds and together at most `max_entries` and `max_total_bytes`.
pub(crate) fn check_variables(
    variables: Vec<EnvironmentVariable>,
    max_entries: usize,
    max_total_bytes: usize,
) -> Result<Vec<Variable>, &'static str> {
    if variables.len() > max_entries {
        return Err("too many variables");
    }
    let total: usize = variables.iter().map(|variable| variable.name.len() + variable.value.len()).sum();
    if total > max_total_bytes {
        return Err("the variables are too long together");
    }
    variables
        .into_iter()
        .map(|variable| {
            if !is_name(&variable.name) {
                return Err("a variable's name has 1..=256 bytes, no `=` and no NUL");
            }
            if variable.value.len() > MAX_VALUE_BYTES || variable.value.contains(&0) {
                return Err("a variable's value has at most 1 MiB and no NUL");
            }
            Ok((variable.name.into(), variable.value.into()))
        })
        .collect()
}

fn is_name(name: &[u8]) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(&b'=') && !name.contains(&0)
}
