//! The resources of `mooring.dev/v1alpha1`: what a person, the harness and the operator write and read.
//!
//! ```text
//!              spec                                  status
//!  person ───▶ Session, ExecutorClass, Preferences   Session, ExecutorClass, Preferences ◀── operator
//!  person ───▶ Approval: the decision alone          Session: the last activity alone    ◀── harness
//!  harness ──▶ Approval, Task                        Approval, Task                      ◀── harness, operator
//! ```
//!
//! Types alone: nothing here reaches a cluster or decides anything. What the API server must refuse stands beside the
//! field it is about, as a schema bound or a CEL rule with the sentence its writer reads; `tests/cel` holds an accepted
//! and a refused object for each. [`crd::all`] gives the definitions that are installed.
//!
//! What a description calls "not built yet" is accepted, and no program reads or writes it.
//!
//! A field that an older object may lack is optional or has a default, and a field that is not known is skipped, so one
//! newer object never stops an older reader's watch.

#![expect(unreachable_pub, reason = "the schema derive copies each struct, `pub` and all, into a function")]
#![expect(clippy::duplicated_attributes, reason = "several printer columns are several columns")]

pub mod approval;
pub mod condition;
pub mod crd;
pub mod duration;
pub mod exchange;
pub mod executor_class;
pub mod label;
pub mod mode;
pub mod name;
pub mod preferences;
pub mod quantity;
mod rule;
pub mod session;
pub mod task;
pub mod variable;

pub use approval::{Approval, ApprovalSpec, ApprovalStatus};
pub use exchange::{Exchange, ExchangeSpec, ExchangeStatus, GatewayEndpoint, TOKENS_GROUP};
pub use executor_class::{ExecutorClass, ExecutorClassSpec, ExecutorClassStatus};
pub use mode::Mode;
pub use name::{ObjectName, Uid, UserName};
pub use preferences::{Preferences, PreferencesSpec, PreferencesStatus};
pub use session::{Session, SessionSpec, SessionStatus};
pub use task::{Task, TaskSpec, TaskStatus};

/// The API group of every resource here.
pub const GROUP: &str = "mooring.dev";
/// The one version of the group.
pub const VERSION: &str = "v1alpha1";
