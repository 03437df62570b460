//! Files and commands of one environment.

pub mod path;
pub mod root;
pub mod scrub;
