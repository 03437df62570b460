//! Variables whose value is in a Secret that the Session names.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt as _};
use mooring_operator_api::SessionSpec;
use mooring_operator_api::condition::SessionReason;
use mooring_operator_api::variable::SecretKey;

use super::attempt::Failure;
use crate::labels;

/// Values by name. `Debug` shows names alone.
#[derive(Default)]
pub(super) struct Values(BTreeMap<String, Vec<u8>>);

impl Values {
    pub(super) fn into_pairs(self) -> BTreeMap<String, Vec<u8>> {
        self.0
    }
}

impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Reads the Secrets that a Session's variables name, each once.
pub(super) async fn from_secrets(
    client: &Client,
    namespace: &str,
    spec: &SessionSpec,
) -> Result<Values, Failure> {
    let mut read: BTreeMap<String, Secret> = BTreeMap::new();
    let mut values = Values::default();
    for variable in &spec.variables {
        let Some(from) = &variable.secret else { continue };
        let name = from.name.to_string();
        if !read.contains_key(&name) {
            let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
            let secret = secrets.get_opt(&name).await.map_err(|error| unreadable(&name, &error))?;
            read.insert(name.clone(), secret.ok_or_else(|| missing(format!("there is no Secret {name}")))?);
        }
        values.0.insert(variable.name.0.clone(), value(&read[&name], from)?);
    }
    Ok(values)
}

fn value(secret: &Secret, from: &SecretKey) -> Result<Vec<u8>, Failure> {
    // The keys of executors and of the authority are nobody's variables.
    if secret.labels().get(labels::MANAGED_BY).is_some_and(|it| it == mooring_operator_api::label::OPERATOR) {
        return Err(missing(format!("Secret {} is the operator's own", from.name)));
    }
    let found = secret.data.as_ref().and_then(|data| data.get(&from.key));
    found
        .map(|bytes| bytes.0.clone())
        .ok_or_else(|| missing(format!("Secret {} has no key {}", from.name, from.key)))
}

fn missing(message: String) -> Failure {
    Failure::later(SessionReason::SecretNotFound, message)
}

fn unreadable(name: &str, error: &kube::Error) -> Failure {
    if matches!(error, kube::Error::Api(status) if status.is_forbidden()) {
        missing(format!("the operator may not read Secret {name}"))
    } else {
        Failure::later(SessionReason::Binding, format!("cannot read Secret {name} now"))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use kube::api::ObjectMeta;

    use super::*;

    fn secret(managed_by: &str) -> Secret {
        Secret {
            metadata: ObjectMeta {
                labels: Some(labels::pairs([(labels::MANAGED_BY, managed_by)])),
                ..ObjectMeta::default()
            },
            data: Some([("token".to_owned(), ByteString(b"canary".to_vec()))].into()),
            ..Secret::default()
        }
    }

    fn told(result: Result<Vec<u8>, Failure>) -> Result<Vec<u8>, String> {
        result.map_err(|failure| match failure {
            Failure::Again { cause, .. } => format!("{} {}", cause.reason.as_str(), cause.message),
            Failure::Refused(refusal) => format!("{refusal:?}"),
        })
    }

    #[test]
    fn a_variable_has_the_value_under_its_key() {
        let from = |key: &str| SecretKey { name: "deploy".into(), key: key.to_owned() };
        assert_eq!(told(value(&secret("helm"), &from("token"))), Ok(b"canary".to_vec()));
        let refused = Err("SecretNotFound Secret deploy has no key other".to_owned());
        assert_eq!(told(value(&secret("helm"), &from("other"))), refused);
    }

    #[test]
    fn the_operator_s_own_secrets_are_nobody_s_variables() {
        let from = SecretKey { name: "ses-1".into(), key: "token".to_owned() };
        let refused = Err("SecretNotFound Secret ses-1 is the operator's own".to_owned());
        assert_eq!(told(value(&secret("mooring-operator"), &from)), refused);
    }

    #[test]
    fn values_are_not_shown() {
        let values = Values([("TOKEN_NAME".to_owned(), b"canary".to_vec())].into());
        assert_eq!(format!("{values:?}"), r#"{"TOKEN_NAME"}"#);
    }
}
