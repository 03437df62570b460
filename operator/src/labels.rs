//! Labels, annotations and owner references of everything the operator makes.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt as _};
use mooring_operator_api::{ExecutorClass, Session, label};

use crate::names;

/// The recommended label that says which program keeps an object.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Of objects that belong to the operator itself.
pub(crate) fn own() -> BTreeMap<String, String> {
    pairs([(MANAGED_BY, label::OPERATOR), (label::APP_NAME, label::OPERATOR)])
}

/// Of the claim and the Secret of a Session.
pub(crate) fn of_session(session: &Session) -> BTreeMap<String, String> {
    pairs([
        (MANAGED_BY, label::OPERATOR),
        (label::APP_NAME, label::EXECUTOR),
        (label::SESSION_UID, session.uid().unwrap_or_default().as_str()),
        (label::SESSION, &names::label(&session.name_any())),
    ])
}

/// What the network policy of a class selects its pods by.
pub(crate) fn selector_of_class(class: &ExecutorClass) -> BTreeMap<String, String> {
    pairs([(label::APP_NAME, label::EXECUTOR), (label::CLASS, &names::label(&class.name_any()))])
}

/// Of the pod of a Session: those of the Session, and those that its class selects by.
pub(crate) fn of_pod(session: &Session, class: &ExecutorClass) -> BTreeMap<String, String> {
    let mut labels = of_session(session);
    labels.extend(selector_of_class(class));
    labels
}

/// The owner reference to an object in the same namespace. The garbage collector is the second barrier: what the operator
/// missed goes with its owner.
pub(crate) fn owned_by<K: Resource<DynamicType = ()>>(owner: &K) -> Vec<OwnerReference> {
    owner.controller_owner_ref(&()).into_iter().collect()
}

/// Whether the owner references name this UID as the controller.
pub(crate) fn is_owned_by(references: Option<&Vec<OwnerReference>>, uid: &str) -> bool {
    references
        .into_iter()
        .flatten()
        .any(|reference| reference.controller == Some(true) && reference.uid == uid)
}

/// Whether an object is one that was made for the Session with this UID. Its label or its owner reference says so: a deletion
/// that orphans takes the one away, and whoever may write the object either of them.
pub(crate) fn is_of(metadata: &ObjectMeta, session: &str) -> bool {
    let labelled = metadata.labels.as_ref().and_then(|labels| labels.get(label::SESSION_UID));
    labelled.is_some_and(|uid| uid == session) || is_owned_by(metadata.owner_references.as_ref(), session)
}

pub(crate) fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
