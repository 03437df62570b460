//! What could go wrong with a call, by kind.

use std::fmt;

/// The kind of harm. One file each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// It could not be read, and so is judged at its worst.
    Unread,
    /// Files are lost.
    Wipe,
    /// Work kept by git is lost.
    History,
    /// Data leaves.
    Egress,
    /// Keys and tokens are read.
    Credentials,
    /// More power than the chat has.
    Privilege,
}

/// How bad it is if it goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Harm {
    /// Counts 1.
    Moderate,
    /// Counts 2.
    Severe,
}

/// One risk of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Risk {
    /// What kind.
    pub kind: Kind,
    /// How bad.
    pub harm: Harm,
    /// Whether it cannot be taken back. Counts 1.
    pub lasting: bool,
    /// Whether the owner's words, a rule or a review may ever speak for it.
    pub askable: bool,
    /// Whether it is asked about in every mode.
    pub critical: bool,
    /// The product's own words for it.
    pub reason: &'static str,
    /// The part of the command it is about.
    pub part: String,
}

/// A score from which a person is asked.
pub(crate) const ASKS: u8 = 3;

impl Risk {
    /// Harm and lasting alone: 1 to 3.
    pub fn base(&self) -> u8 {
        let harm = match self.harm {
            Harm::Moderate => 1,
            Harm::Severe => 2,
        };
        harm + u8::from(self.lasting)
    }

    /// [`Risk::base`], and one more if the chat has read something that is not the owner's word.
    pub fn score(&self, tainted: bool) -> u8 {
        self.base() + u8::from(tainted)
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.part.is_empty() {
            f.write_str(self.reason)
        } else {
            write!(f, "{} ({})", self.reason, self.part)
        }
    }
}

impl Kind {
    /// The question on a card.
    pub(crate) fn question(self) -> &'static str {
        match self {
            Self::Unread => "Run this command, which could not be read in full?",
            Self::Wipe => "Delete this for good?",
            Self::History => "Throw away work kept by git?",
            Self::Egress => "Send this out of the workspace?",
            Self::Credentials => "Let it read keys or tokens?",
            Self::Privilege => "Give it more power than it has?",
        }
    }
}
