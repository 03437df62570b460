//! Names of labels, annotations and finalizers. All carry the group, so that no other controller's are met.

/// Finalizer of a Session: its pod and its volume are ended before the object goes. Added by admission, and by the operator
/// where it is missing.
pub const FINALIZER: &str = "mooring.dev/environment";

/// Label of pods, claims and Secrets: the UID of the Session they serve.
pub const SESSION_UID: &str = "mooring.dev/session-uid";
/// Label of pods, claims and Secrets: the name of the Session, or a hash of it where it is longer than 63 characters.
pub const SESSION: &str = "mooring.dev/session";
/// Label of pods and network policies: the name of the class, or a hash of it where it is longer than 63 characters.
pub const CLASS: &str = "mooring.dev/class";
/// The recommended label that names the program; [`EXECUTOR`], [`OPERATOR`] or [`HARNESS`].
pub const APP_NAME: &str = "app.kubernetes.io/name";
/// Value of [`APP_NAME`] on executor pods.
pub const EXECUTOR: &str = "mooring-executor";
/// Value of [`APP_NAME`] on the operator's pods.
pub const OPERATOR: &str = "mooring-operator";
/// Value of [`APP_NAME`] on the harness's pods.
pub const HARNESS: &str = "mooring-harness";

/// Annotation of executor pods: the epoch they are bound under, decimal.
pub const EPOCH: &str = "mooring.dev/epoch";
/// Annotation of executor pods: SHA-256 over the class they were made from, 64 lower-case hexadecimal digits.
pub const CLASS_DIGEST: &str = "mooring.dev/class-digest";
/// Annotation of a volume claim: the revision of the environment on it, 32 lower-case hexadecimal digits, set in the
/// create call and never changed.
pub const REVISION: &str = "mooring.dev/revision";
/// Annotation of a Secret with git credentials: the one host they are for. Nothing reads it yet.
pub const GIT_HOST: &str = "mooring.dev/git-host";
