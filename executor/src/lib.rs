//! Files and commands of one environment.

pub mod environment;
pub mod grpc;
pub mod operation;
pub mod path;
pub mod root;
pub mod scrub;
pub mod runner;
