//! How much a chat may do unasked.

use serde::{Deserialize, Serialize};

/// How much a chat may do without a question, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reads; every change is refused.
    ReadOnly,
    /// Asks before every change.
    AskFirst,
    /// Asks about real risk only. The default.
    Auto,
    /// Asks for critical steps, for counts, and for changes once other people's words are in the chat.
    FullTrust,
}

impl Mode {
    /// Every mode, from least to most.
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::AskFirst, Self::Auto, Self::FullTrust];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "readOnly",
            Self::AskFirst => "askFirst",
            Self::Auto => "auto",
            Self::FullTrust => "fullTrust",
        }
    }
}

/// The weaker of the two: what a task gets that wants `wanted` under a parent in `parent`.
pub fn no_more_than(wanted: Mode, parent: Mode) -> Mode {
    wanted.min(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_never_gets_more_than_its_parent_has_or_than_it_wanted() {
        for wanted in Mode::ALL {
            for parent in Mode::ALL {
                let got = no_more_than(wanted, parent);
                assert!(got <= wanted && got <= parent && (got == wanted || got == parent));
            }
        }
    }

    #[test]
    fn a_mode_is_written_as_it_is_named() {
        for mode in Mode::ALL {
            assert_eq!(serde_json::to_value(mode).unwrap(), serde_json::json!(mode.as_str()));
        }
        assert!(serde_json::from_str::<Mode>("\"Auto\"").is_err());
        assert!(serde_json::from_str::<Mode>("\"\"").is_err());
    }
}
