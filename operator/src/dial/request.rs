//! What an executor is bound with.

use std::collections::BTreeMap;

use mooring_operator_api::Session;
use mooring_operator_api::executor_class::{ExecutorClassSpec, Shell};
use mooring_proto::{PROTOCOL, v1};

use super::Target;
use super::variables::Values;
use crate::session::environment;

/// The request. Its variables may hold secrets: it is never logged.
pub(super) fn bind(
    session: &Session,
    class: &ExecutorClassSpec,
    target: &Target,
    secret: Values,
) -> v1::BindRequest {
    let environment = environment(session, &target.revision);
    let shell = match class.shell {
        Shell::Sh => v1::Shell::Sh,
        Shell::Bash => v1::Shell::Bash,
    };
    v1::BindRequest {
        environment: Some(v1::EnvironmentRef {
            kind: v1::EnvironmentKind::Kubernetes.into(),
            id: environment.id,
            revision: environment.revision,
        }),
        epoch: u64::try_from(target.epoch).unwrap_or(0),
        protocol: Some(PROTOCOL),
        limits: Some(limits(class)),
        variables: variables(session, class, secret),
        readmitted_names: class.readmitted_names.iter().map(|name| name.0.clone()).collect(),
        seed: Some(v1::Seed { seed: Some(v1::seed::Seed::Empty(v1::EmptySeed {})) }),
        local: None,
        shell: shell.into(),
        may_be_new: target.may_be_new,
    }
}

/// What the class leaves out is 0, which means the executor's default.
fn limits(class: &ExecutorClassSpec) -> v1::Limits {
    let Some(said) = &class.limits else { return v1::Limits::default() };
    let count = |said: Option<i32>| said.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    v1::Limits {
        max_timeout_millis: said
            .max_timeout
            .and_then(|span| i64::try_from(span.to_duration().as_millis()).ok())
            .unwrap_or(0),
        processes: count(said.processes),
        live_commands: count(said.live_commands),
        background_commands: count(said.background_commands),
        output_bytes: said.output_bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
    }
}

/// The class's, over them the Session's; sorted, so that the same request is the same bytes.
fn variables(session: &Session, class: &ExecutorClassSpec, secret: Values) -> Vec<v1::EnvironmentVariable> {
    let mut all: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for variable in &class.variables {
        all.insert(variable.name.0.clone(), variable.value.clone().into_bytes());
    }
    for variable in &session.spec.variables {
        if let Some(value) = &variable.value {
            all.insert(variable.name.0.clone(), value.clone().into_bytes());
        }
    }
    all.extend(secret.into_pairs());
    all.into_iter()
        .map(|(name, value)| v1::EnvironmentVariable { name: name.into_bytes().into(), value: value.into() })
        .collect()
}

#[cfg(test)]
mod tests;
