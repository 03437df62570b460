//! Limits on how often. No words, rule or review lifts one.

use crate::mode::Mode;

/// What the run's own log counts, this call included. Zero means that the call is not of that sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Deletions in this turn.
    pub deletions_in_turn: u32,
    /// Items this one delete takes.
    pub items_in_delete: u32,
    /// Recipients of this one send.
    pub recipients: u32,
    /// Sends since the day began.
    pub sends_today: u32,
    /// How often this very change was made in this turn.
    pub identical_changes_in_turn: u32,
}

/// A count that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountLimit {
    /// So many deletions in one turn.
    Deletions(u32),
    /// So many items in one delete.
    ItemsInDelete(u32),
    /// So many recipients of one send.
    Recipients(u32),
    /// So many sends in a day.
    Sends(u32),
    /// The same change so many times in one turn.
    IdenticalChanges(u32),
}

impl Counts {
    /// The count that refuses the call, if any.
    pub(crate) fn stop(self) -> Option<CountLimit> {
        if self.recipients >= 500 {
            Some(CountLimit::Recipients(self.recipients))
        } else if self.sends_today >= 500 {
            Some(CountLimit::Sends(self.sends_today))
        } else {
            None
        }
    }

    /// The count that asks, if any.
    pub(crate) fn ask(self, mode: Mode) -> Option<CountLimit> {
        let every = |count: u32, step: u32| count > 0 && count.is_multiple_of(step);
        let deletions = if mode == Mode::FullTrust { 50 } else { 10 };
        if every(self.deletions_in_turn, deletions) {
            Some(CountLimit::Deletions(self.deletions_in_turn))
        } else if self.items_in_delete >= 25 {
            Some(CountLimit::ItemsInDelete(self.items_in_delete))
        } else if self.recipients >= 20 {
            Some(CountLimit::Recipients(self.recipients))
        } else if every(self.sends_today, 100) {
            Some(CountLimit::Sends(self.sends_today))
        } else if every(self.identical_changes_in_turn, 5) {
            Some(CountLimit::IdenticalChanges(self.identical_changes_in_turn))
        } else {
            None
        }
    }
}

impl std::fmt::Display for CountLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Deletions(n) => write!(f, "it is deletion number {n} of this turn"),
            Self::ItemsInDelete(n) => write!(f, "it deletes {n} items at once"),
            Self::Recipients(n) => write!(f, "it goes to {n} recipients"),
            Self::Sends(n) => write!(f, "it is send number {n} today"),
            Self::IdenticalChanges(n) => write!(f, "it is the same change for the {n}th time in this turn"),
        }
    }
}
