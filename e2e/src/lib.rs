//! Tests over the binaries as processes, and what they need: nothing here links the harness or the executor.
//!
//! ```text
//!  bin/mooring-scripted-model ─▶ model ─▶ script      a model that does what a YAML file says, misbehaviour included
//!  bin/mooring-demo-local ─────▶ demo ──┐
//!  tests/*.rs ─────────────────────────┼▶ fixture    starts `mooring serve --local`, speaks HTTP, looks into /proc
//!  bin/mooring-bench ──────────▶ bench ─┘             executor halves over socket pairs, ours beside the reference
//!
//!  bin/mooring-cluster ────────▶ cluster              a Kubernetes on this machine: programs, images, runs
//!  tests/cluster*, bench ──────▶ platform             the product on any cluster: kubectl, helm, Sessions, watches
//!                                 └────▶ execution    a client of executors in pods
//! ```

pub mod bench;
pub mod cluster;
pub mod demo;
pub mod digest;
pub mod execution;
pub mod fixture;
pub mod model;
pub mod platform;
pub mod program;
pub mod script;

/// Makes `ring` the process's crypto provider; reqwest's client wants one even for plain HTTP. Safe to repeat.
pub fn install_crypto() {
    // An error only says that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
