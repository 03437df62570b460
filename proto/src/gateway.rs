//! What a call through the harness's gateway carries beside its message.
//!
//! The gateway answers `FileService` and `CommandService` in whole, and of `WorkspaceService` Import and Export, over TLS. It
//! fills in what only it knows: of [`RequestContext`](crate::v1::RequestContext) a caller may leave out `environment` (the
//! session's present one is meant; one that is given is compared exactly), `epoch` (0: the present one) and `actor`. The
//! actor is always the person of the token; another one is refused.

/// Metadata: `Bearer ` and a token.
pub const AUTHORIZATION: &str = "authorization";

/// Metadata: the session a call is for, as `namespace/name`, at most 63 + 1 + 253 bytes.
pub const SESSION: &str = "mooring-session";

/// The port of the gateway.
pub const GATEWAY_PORT: u16 = 8080;
