//! Sessions become environments: a volume, a pod over it, an executor bound in it; and back again when one of them is lost.
//!
//! ```text
//!  main ─▶ args ─▶ run ─┬─▶ caches ◀─watch─ API server ◀──────────────write────────────┐
//!                       │     │ who is concerned                                       │
//!                       │     ▼                                                        │
//!                       ├─▶ session: observed ─▶ plan (pure) ─▶ act ─┬─────────────────┤
//!                       │     ▲                                      │ pods, claims,   │
//!                       │     │ what came of it                      │ Secrets, status │
//!                       │     └──────────── dial ◀── Step::Dial ─────┘                 │
//!                       │                    └──gRPC mTLS: Bind──▶ executor            │
//!                       ├─▶ class: network policy ─────────────────────────────────────┤
//!                       ├─▶ certificate: the authority, the harness's certificate ─────┤
//!                       ├─▶ events ────────────────────────────────────────────────────┘
//!                       └─▶ health
//! ```
//!
//! Only `act` and `class`, through `write` what both do, `certificate` and `events` write. A plan is a function of what is observed and the time, so
//! there is no progress in memory to lose: a new operator goes on where the old one was.

pub mod args;
mod cache;
mod caches;
pub mod certificate;
mod class;
mod context;
mod dial;
mod events;
mod health;
mod labels;
pub mod names;
mod reconcile;
mod refusal;
pub mod run;
mod session;
pub mod telemetry;
mod write;

/// Who the API server records as the writer of fields.
pub const FIELD_MANAGER: &str = "mooring-operator";
