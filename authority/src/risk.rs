//! What could go wrong with a call, by kind.

mod credentials;
mod disrupt;
mod egress;
mod exfiltration;
mod history;
mod infra;
mod install;
mod persistence;
mod privilege;
mod publish;
mod remote_code;
mod safety;
mod scene;
mod table;
mod wipe;

use std::fmt;

use crate::context::Workspace;
use crate::reading::{Part, Reading};
use crate::visible::visible;
use scene::Scene;

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
    /// Data leaves by a way made for hiding it.
    Exfiltration,
    /// A package of doubtful origin is installed.
    Install,
    /// Code from elsewhere, or hidden code, is run.
    RemoteCode,
    /// More power than the chat has.
    Privilege,
    /// Something stays and runs later.
    Persistence,
    /// A protection is taken away.
    SafetyOff,
    /// Running systems are changed.
    Infra,
    /// Something becomes public.
    Publish,
    /// The machine or its processes stop.
    Disrupt,
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
            Self::Exfiltration => "Let data leave on a hidden way?",
            Self::Install => "Install this package?",
            Self::RemoteCode => "Run code that nobody has seen?",
            Self::Privilege => "Give it more power than it has?",
            Self::Persistence => "Leave something that runs later?",
            Self::SafetyOff => "Take a protection away?",
            Self::Infra => "Change running systems?",
            Self::Publish => "Publish this?",
            Self::Disrupt => "Stop the machine or its processes?",
        }
    }
}

/// Harm and lasting in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    SevereLasting,
    SevereUndoable,
    ModerateLasting,
    ModerateUndoable,
}

impl Risk {
    fn new(kind: Kind, weight: Weight, reason: &'static str, part: &Part) -> Self {
        let (harm, lasting) = match weight {
            Weight::SevereLasting => (Harm::Severe, true),
            Weight::SevereUndoable => (Harm::Severe, false),
            Weight::ModerateLasting => (Harm::Moderate, true),
            Weight::ModerateUndoable => (Harm::Moderate, false),
        };
        Self { kind, harm, lasting, askable: true, critical: false, reason, part: visible(&part.shown()) }
    }

    /// A tool that says of itself that it destroys.
    pub(crate) fn of_destructive_tool(tool: &str) -> Self {
        Self {
            kind: Kind::Wipe,
            harm: Harm::Severe,
            lasting: true,
            askable: true,
            critical: false,
            reason: "the tool says that it may destroy what is there",
            part: visible(tool),
        }
    }

    /// No words, rule or review speaks for it.
    fn unaskable(mut self) -> Self {
        self.askable = false;
        self
    }

    /// Asked about in every mode.
    fn critical(mut self) -> Self {
        self.critical = true;
        self.askable = false;
        self
    }
}

/// Every risk of a command, the worst first.
pub(crate) fn of_command(reading: &Reading, workspace: &Workspace) -> Vec<Risk> {
    let scene = Scene { reading, workspace };
    let kinds: [fn(&Part, &Scene) -> Option<Risk>; 13] = [
        wipe::of,
        history::of,
        egress::of,
        credentials::of,
        exfiltration::of,
        remote_code::of,
        install::of,
        privilege::of,
        persistence::of,
        safety::of,
        infra::of,
        publish::of,
        disrupt::of,
    ];
    let mut risks: Vec<Risk> =
        reading.parts.iter().flat_map(|part| kinds.iter().filter_map(|kind| kind(part, &scene))).collect();
    risks.extend(reading.unread.iter().map(|unread| {
        let risk =
            Risk::new(Kind::Unread, Weight::SevereLasting, unread.reason(), &Part::default()).unaskable();
        if unread.is_blind() { risk.critical() } else { risk }
    }));
    risks.sort_by_key(|risk| std::cmp::Reverse((risk.critical, risk.base(), !risk.askable)));
    risks
}

#[cfg(test)]
pub(crate) mod tests;
