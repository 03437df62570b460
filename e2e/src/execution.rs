//! A client of an executor in a pod, as a program of somebody else would write it: a certificate with a role, the exact
//! environment, and the calls of `mooring.execution.v1`.
//!
//! ```text
//!  identity   who calls: the harness's own certificate, or one signed for a test
//!  place      from where on the network a connection is made
//!  gateway    the harness's, with a token in place of a certificate
//!  executor ─▶ files, command, archive     the calls, each with the context of its environment
//! ```

mod archive;
mod command;
mod executor;
mod files;
mod gateway;
mod identity;
mod place;

pub use archive::{Imported, Tree};
pub use command::{Finished, Program};
pub use executor::{Executor, Target, Wire};
pub use gateway::Gateway;
pub use identity::{Authority, Identity};
pub use place::{Duplex, Place};

use mooring_proto::v1::ErrorCode;

/// The typed code of a refusal; `None` when the answer is none of an executor's: a broken connection, for instance.
pub fn code(status: &tonic::Status) -> Option<ErrorCode> {
    mooring_proto::detail_of(status).map(|detail| detail.code())
}
