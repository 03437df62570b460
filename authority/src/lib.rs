//! What may run, and on whose word: pure decisions, no IO, no clock, no async.
//!
//! ```text
//!  harness ── Call, Context ──▶ decide ──▶ Decision { Allow | Deny | Ask }
//!                                 │
//!                 reading ◀───────┤   a shell command becomes simple commands, nested text included
//!                                 ├──▶ protected   the product's own state, interface and programs
//!                                 ├──▶ risk        one file per kind of harm, the worst part decides
//!                                 └──▶ question    what a person reads on the card
//! ```
//!
//! The caller gathers facts; nothing here looks at the machine. The sandbox is the barrier: reading a command decides
//! whether a person is asked, not what the command is able to reach.

mod call;
mod context;
mod count;
mod decide;
mod decision;
mod message;
mod mode;
mod place;
mod protected;
mod question;
mod reading;
mod reads;
mod risk;
mod tool;
mod visible;

pub use call::{Annotations, Call};
pub use context::{
    ApiAddress, Context, Git, OWN_PROGRAMS, Profile, Protected, Remote, Taint, Tools, Workspace,
};
pub use count::{CountLimit, Counts};
pub use decide::decide;
pub use decision::{Because, Decision, Malformed, Reason, ReviewRequest, Rule, Step};
pub use message::{Message, Origin, owner_words};
pub use mode::{Mode, no_more_than};
pub use question::Question;
pub use risk::{Harm, Kind, Risk};
pub use visible::visible;
