//! The kubectl plugin.
//!
//! ```text
//!  args ──▶ run ──▶ session                     Sessions, at the API server, with the person's own credential
//!            │        │
//!            │        ▼
//!            │      cluster ── Exchange ──▶ gateway     a token, then gRPC over TLS to the harness
//!            │                                │
//!            ├────▶ push    tree, archive ────┤         a folder into the workspace
//!            ├────▶ pull    archive, place ───┤         a folder out of it, as if it were hostile
//!            ├────▶ exec    follow, input ────┤         one command, followed to its true end
//!            └────▶ files   ──────────────────┘         the ten calls on files
//! ```
//!
//! Holds no state: the credential is the kubeconfig's, the token lives as long as the process. Standard output has what was
//! asked for and nothing else; progress, warnings and errors go to standard error, with whatever comes from a workspace
//! escaped. Every failure of our own ends with [`exit::OWN_FAILURE`].

mod args;
mod cluster;
mod error;
mod exec;
mod exit;
mod files;
mod gateway;
mod link;
mod output;
mod progress;
mod pull;
mod push;
mod refusal;
pub mod run;
mod session;
mod shown;
