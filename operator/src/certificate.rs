//! The authority that executors and their callers trust: one for the cluster, with the names of `mooring_proto::certificate`.
//!
//! ```text
//!   Secret mooring-ca ◀─ keep ─▶ Authority ─┬─▶ Secret of each executor pod      (server, one pod's name)
//!                                           ├─▶ Secret mooring-harness-client    (client)
//!                                           └─▶ the operator's own, in memory    (client)
//! ```

mod authority;
mod keep;

pub(crate) use authority::RENEWED_AFTER;
pub use authority::{Authority, AuthorityError, Credential, Role};
pub use keep::{CA_SECRET, HARNESS_SECRET, KeepError, keep_harness_client, load_authority};
pub(crate) use keep::{entries, is_fresh};
