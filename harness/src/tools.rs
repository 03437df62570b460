//! The tools of the model: what it is told about them, how its calls are read, and what it is told afterwards.
//!
//! ```text
//! model ── name, arguments ──▶ call::parse ──▶ Call ──▶ authority (agent asks) ──▶ perform ──▶ executor
//!                                  │                                                  │
//!                                  └── CallError, in words ──▶ model ◀── fenced text ─┘
//! ```
//!
//! A call that is not whole and exact is never performed. What comes out of a workspace reaches the model as data
//! between marks that nothing inside can forge.

mod call;
mod capture;
mod catalogue;
mod command;
mod fence;
mod files;
mod perform;
mod refusal;
mod text;

pub use call::{
    Call, CallError, Edit, Glob, Grep, ListDir, Read, Remove, Shell, ShellStatus, Transfer, Write, parse,
};
pub use capture::Printed;
pub use catalogue::{TOOLS, catalogue, has};
pub use perform::{Performed, Scene, perform};
