//! Who may connect to an executor in a pod: callers whose certificate the operator's authority issued to a known role.
//!
//! ```text
//!   TcpListener ─▶ Listener (bounded, sheds the oldest handshake) ─▶ Credentials (files, re-read) ─▶ rustls
//!                                                                            │ role by exact name
//!   grpc ◀── Connection {Caller, slot, idle limit} ◀─────────────────────────┘
//! ```

mod connection;
mod credentials;
#[cfg(test)]
mod fixture;
mod listener;
mod refused;
mod role;

pub use connection::Connection;
pub use credentials::{Credentials, CredentialsError};
pub use listener::Listener;
