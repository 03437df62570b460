//! Files and commands of one environment.
//!
//! ```text
//!   main ─▶ args ─▶ run ─┬─ serve ────────────────────────────────────────────┐      ┌─ run ─────────────┐
//!                        │  inherited socket (local)   tls::Listener (pod)    │      │                   │
//!                        │              └─────────┬───────────┘               │      │                   │
//!                        │                  grpc::Roles, by caller            │      │                   │
//!                        │                        ▼                           │ link │  runner           │
//!                        │  environment::enter: identity, epoch, lease        │◀────▶│   one supervisor  │
//!                        │                        ▼                           │ fds  │   per command     │
//!                        │              operation (once per id)               │      │                   │
//!                        ├─▶ files ─▶ root (openat2)                          │      │                   │
//!                        ├─▶ commands ─▶ scrub ─▶ runner::LinkSlot ─▶ Link    │      │                   │
//!                        └────────────────────────────────────────────────────┘      └───────────────────┘
//! ```
//!
//! Two processes of one binary. The serving half holds the environment and never runs what an agent wrote; the running half
//! holds nothing that is worth stealing. Whoever of them, or of their parent, dies: no command lives on.

pub mod archive;
pub mod args;
pub mod commands;
pub mod environment;
pub mod files;
pub mod grpc;
pub mod inherited;
pub mod operation;
pub mod path;
pub mod root;
pub mod run;
pub mod runner;
pub mod scrub;
pub mod telemetry;
pub mod tls;
