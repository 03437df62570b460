//! The agent loop: one owner task per session works on the session's runs, one after the other.
//!
//! ```text
//! http ── rows in the store, then a nudge ──▶ Runs ── one task per session ──▶ session ── lease ──▶ work (one run)
//!                                                                                                     │
//!            conversation::next: what the stored conversation asks for, and nothing else              │
//!            ┌───────────────────────────────┬────────────────────────────────┬───────────────────────┘
//!            ▼ Settle: calls without result  ▼ Ask: one model turn            ▼ Finish
//!          settle ── judge ──▶ authority    turn ──▶ model                   end
//!            └── tools ──▶ executor
//! ```
//!
//! Everything is recomputed from what is stored, so a run that was cut anywhere goes on by the same path that it takes
//! otherwise: a call with a result is never carried out again, a call with an operation is asked for by its id from the
//! same executor or told as lost, a question stays a question, and a turn of which nothing is stored is asked again.

mod conversation;
mod departed;
mod judge;
mod prompt;
mod runs;
mod session;
mod settle;
mod stream;
#[cfg(test)]
mod tests;
mod turn;
mod work;

pub use runs::{AgentParts, AgentSettings, Runs};
