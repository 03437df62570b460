//! Names in certificates: who a peer is, between the programs of one cluster.
//!
//! Each name is the only DNS subject alternative name of its certificate. All are issued by the operator's own authority,
//! and none can be resolved: they are compared, never looked up.

/// The harness, as a client: files, commands, and the content of workspaces.
pub const HARNESS: &str = "harness.mooring.internal";

/// The operator, as a client: workspaces alone.
pub const OPERATOR: &str = "operator.mooring.internal";

/// The port that an executor pod listens on.
pub const EXECUTOR_PORT: u16 = 7443;

/// The executor of one pod, as a server. `pod` is one DNS label (1..=63 bytes), `namespace` another.
pub fn executor(pod: &str, namespace: &str) -> String {
    format!("{pod}.{namespace}.executor.mooring.internal")
}
