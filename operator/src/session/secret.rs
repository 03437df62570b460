//! The Secret with the certificate of one pod: made before it, deleted before the next one.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};
use mooring_operator_api::{Session, Uid};

use crate::certificate::{Authority, AuthorityError, Role};
use crate::{labels, names};

/// The Secret of one epoch's pod, with a certificate that is issued for it now.
///
/// # Errors
/// When no certificate can be issued.
pub(crate) fn desired_secret(
    session: &Session,
    epoch: i64,
    authority: &Authority,
    now: Timestamp,
) -> Result<Secret, AuthorityError> {
    let name = names::pod(&Uid::from(session.uid().unwrap_or_default()), epoch);
    let namespace = session.namespace().unwrap_or_default();
    let issued = authority.issue(Role::Executor { pod: &name, namespace: &namespace }, now)?;
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: session.meta().namespace.clone(),
            labels: Some(labels::of_session(session)),
            owner_references: Some(labels::owned_by(session)),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(crate::certificate::entries(&issued, authority.certificate())),
        ..Secret::default()
    })
}
