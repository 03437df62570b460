//! Whether the API server takes pods of a class, asked without making one: Pod Security, runtime class and limits of the
//! namespace are told to who writes the class, before a Session waits for it.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt as _};
use mooring_operator_api::ExecutorClass;
use mooring_operator_api::condition::SessionReason;

use crate::FIELD_MANAGER;
use crate::refusal::{self, Refusable};
use crate::session::trial_pod;
use crate::write::WriteError;

/// Why pods of this class are refused; `None` when they are taken, or when that is not to be found out: a quota that is used
/// up, or a webhook that takes no part in a dry run, says nothing about the class.
///
/// # Errors
/// When the API server does not answer the question.
pub(super) async fn rejection(client: &Client, class: &ExecutorClass) -> Result<Option<String>, WriteError> {
    let namespace = class.namespace().unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let params = PostParams { dry_run: true, field_manager: Some(FIELD_MANAGER.into()) };
    match pods.create(&params, &trial_pod(class)).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => Ok(told(&status)),
        Err(error) => Err(error.into()),
    }
}

fn told(status: &kube::core::Status) -> Option<String> {
    // The API server's words for a webhook with side effects (apiserver/pkg/admission/plugin/webhook/errors).
    if status.message.contains("does not support dry run") {
        return None;
    }
    let cause = refusal::cause(Refusable::Pod, status)?;
    (cause.reason == SessionReason::PodRejected).then_some(cause.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, message: &str) -> Option<String> {
        told(&kube::core::Status { code, message: message.to_owned(), ..kube::core::Status::failure("", "") })
    }

    #[test]
    fn only_what_is_the_class_s_counts_against_it() {
        let security = r#"pods "x" is forbidden: violates PodSecurity "restricted:latest": host namespaces"#;
        assert_eq!(answer(403, security).as_deref(), Some(security));
        assert_eq!(answer(422, "Pod is invalid").as_deref(), Some("Pod is invalid"));
        assert_eq!(answer(403, "forbidden: exceeded quota: small"), None);
        assert_eq!(answer(400, "admission webhook \"x\" does not support dry run"), None);
    }
}
