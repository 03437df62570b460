//! The conditions of every resource: their types, and each reason with what it means and what a person does about it.
//!
//! A reason stands under one type with one status, so a caller says the reason alone:
//!
//! ```
//! use mooring_operator_api::condition::{SessionReason, set};
//! # use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
//! # let (mut conditions, generation, now) = (Vec::new(), Some(3), Time(Timestamp::UNIX_EPOCH));
//! let bound = SessionReason::Bound.row().condition("epoch 4 on pod ses-…-4", generation, now);
//! assert!(set(&mut conditions, bound));
//! ```
//!
//! `docs/conditions.md` is written from this table.

mod class;
mod preferences;
mod session;
mod task;

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::{Schema, SchemaGenerator, json_schema};

pub use class::ClassReason;
pub use preferences::PreferencesReason;
pub use session::SessionReason;
pub use task::TaskReason;

/// A message longer than this many characters is cut: a person reads it, programs read the reason.
pub const LONGEST_MESSAGE: usize = 1024;

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// Session: the environment is bound and seeded.
    Ready,
    /// Session: it sleeps; no pod, the volume stays.
    Suspended,
    /// Session: it has ended for good.
    Retired,
    /// Session: the container with the commands was started anew under a bound executor.
    RunnerRestarted,
    /// Session: it is deleted, and what belongs to it is being ended.
    Terminating,
    /// ExecutorClass: pods can be made from it.
    Valid,
    /// Task: its files are there.
    WorkspaceReady,
    /// Task: it waits for the owner's answer.
    AwaitingApproval,
    /// Task: it has ended.
    Complete,
    /// Preferences: these are the ones that count for their owner.
    Effective,
}

impl ConditionType {
    /// The type as it is in an object.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Suspended => "Suspended",
            Self::Retired => "Retired",
            Self::RunnerRestarted => "RunnerRestarted",
            Self::Terminating => "Terminating",
            Self::Valid => "Valid",
            Self::WorkspaceReady => "WorkspaceReady",
            Self::AwaitingApproval => "AwaitingApproval",
            Self::Complete => "Complete",
            Self::Effective => "Effective",
        }
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether what a condition is about is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// It is.
    True,
    /// It is not.
    False,
    /// It cannot be seen at the moment.
    Unknown,
}

impl ConditionStatus {
    /// The status as it is in an object.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One reason, and everything that follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What the condition is about.
    pub condition: ConditionType,
    /// Whether it is so, for this reason.
    pub status: ConditionStatus,
    /// The reason as it is in an object: one word.
    pub reason: &'static str,
    /// What it means, one sentence; after *(planned)* where nothing sets it yet.
    pub meaning: &'static str,
    /// What a person does about it, one sentence.
    pub remedy: &'static str,
}

impl Row {
    /// The condition for this reason. `message` is cut at [`LONGEST_MESSAGE`] characters; `now` becomes the time of
    /// transition unless [`set`] finds the status unchanged.
    pub fn condition(
        &self,
        message: impl AsRef<str>,
        observed_generation: Option<i64>,
        now: Time,
    ) -> Condition {
        Condition {
            type_: self.condition.as_str().to_owned(),
            status: self.status.as_str().to_owned(),
            reason: self.reason.to_owned(),
            message: message.as_ref().chars().take(LONGEST_MESSAGE).collect(),
            observed_generation,
            last_transition_time: now,
        }
    }
}

/// Puts a condition in the place of the one of its type, or at the end. The time of transition stays where the status
/// does. Answers whether anything is different now.
pub fn set(conditions: &mut Vec<Condition>, mut new: Condition) -> bool {
    let Some(old) = conditions.iter_mut().find(|old| old.type_ == new.type_) else {
        conditions.push(new);
        return true;
    };
    if old.status == new.status {
        new.last_transition_time = old.last_transition_time.clone();
    }
    let is_changed = *old != new;
    *old = new;
    is_changed
}

/// The schema of a list of conditions: one for each type, merged by type on server-side apply.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One aspect of the observed state.",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {
                    "type": "string", "minLength": 1, "maxLength": 316,
                    "description": "What it is about."
                },
                "status": {
                    "type": "string", "enum": ["True", "False", "Unknown"],
                    "description": "Whether it is so."
                },
                "reason": {
                    "type": "string", "minLength": 1, "maxLength": 128,
                    "description": "Why, in one word; docs/conditions.md says what each means and what to do."
                },
                "message": {
                    "type": "string", "maxLength": 32768,
                    "description": "The facts, for a person."
                },
                "observedGeneration": {
                    "type": "integer", "format": "int64", "minimum": 0,
                    "description": "The generation of the object that this is about."
                },
                "lastTransitionTime": {
                    "type": "string", "format": "date-time",
                    "description": "When the status last changed."
                },
            },
        },
    })
}

/// Declares the reasons of one resource: an enum, and its table.
macro_rules! reasons {
    ($(#[$attribute:meta])* $name:ident {
        $($condition:ident $status:ident $reason:ident: $meaning:literal $remedy:literal;)*
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $meaning] $reason,)*
        }

        impl $name {
            /// Every reason with what follows from it, in the order of the documentation.
            pub const ROWS: &[$crate::condition::Row] = &[$($crate::condition::Row {
                condition: $crate::condition::ConditionType::$condition,
                status: $crate::condition::ConditionStatus::$status,
                reason: stringify!($reason),
                meaning: $meaning,
                remedy: $remedy,
            },)*];

            /// The reason that stands in an object as this word; nothing for a word of a newer version.
            pub fn of(word: &str) -> Option<Self> {
                [$(Self::$reason,)*].into_iter().find(|reason| reason.as_str() == word)
            }

            /// What follows from this reason.
            pub const fn row(self) -> &'static $crate::condition::Row {
                &Self::ROWS[self as usize]
            }

            /// The reason as it is in an object.
            pub const fn as_str(self) -> &'static str {
                self.row().reason
            }
        }
    };
}
pub(crate) use reasons;

#[cfg(test)]
mod tests;
