//! The execution protocol.
//!
//! Generated from `proto/mooring/execution/v1/*.proto`, where every field is described with its unit and bounds. By hand
//! here: how an [`ErrorDetail`](v1::ErrorDetail) travels in a gRPC status, and the numbers both ends must agree on.

pub mod certificate;
pub mod gateway;
mod status;

pub use status::{ErrorCodeExt, detail_of, refusal};

/// Messages, clients and servers of `mooring.execution.v1`.
#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    reason = "generated; the proto files carry the documentation"
)]
pub mod v1 {
    tonic::include_proto!("mooring.execution.v1");
}

/// The minor version of the protocol that this build speaks, and the oldest it still speaks.
pub const PROTOCOL: v1::ProtocolRange = v1::ProtocolRange { min: 1, max: 1 };

/// The most content bytes one frame of a stream carries: 1 MiB.
pub const MAX_FRAME_BYTES: usize = 1024 * 1024;

/// The largest encoded message either end accepts: a full frame, or the largest variables of a Bind, and room for the rest.
pub const MAX_MESSAGE_BYTES: usize = 6 * 1024 * 1024;
