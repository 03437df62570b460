//! The chart's admission policies, judged without an API server.

use std::path::Path;

use kube_core::cel::{AdmissionRequest, VapEvaluator, VapExpression};
use serde::Deserialize as _;
use serde_json::{Value, json};

const OPERATOR: &str = "system:serviceaccount:mooring-system:mooring-operator";

/// The policy of this name as the chart renders it into `mooring-system`.
fn policy(file: &str, name: &str) -> Value {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/mooring/templates/admission").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let text = text.replace("{{ .Release.Namespace }}", "mooring-system");
    let plain: Vec<&str> = text.lines().filter(|line| !line.contains("{{")).collect();
    serde_yaml::Deserializer::from_str(&plain.join("\n"))
        .map(|document| Value::deserialize(document).expect("YAML"))
        .find(|document| {
            document["kind"] == "ValidatingAdmissionPolicy" && document["metadata"]["name"] == name
        })
        .unwrap_or_else(|| panic!("no policy {name} in {file}"))
}

fn expressions(list: &Value) -> Vec<VapExpression> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|item| VapExpression {
            expression: item["expression"].as_str().expect("an expression").to_owned(),
            message: item["message"].as_str().map(str::to_owned),
            message_expression: None,
        })
        .collect()
}

/// What the policy says to a request: nothing, or its sentences.
fn refusals(policy: &Value, user: &str, operation: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
    let request = AdmissionRequest {
        operation: operation.to_owned(),
        username: user.to_owned(),
        namespace: "work".to_owned(),
        ..AdmissionRequest::default()
    };
    let mut evaluator = VapEvaluator::builder().object(object.clone()).request(request);
    if let Some(old) = old {
        evaluator = evaluator.old_object(old.clone());
    }
    let evaluator = evaluator.build();
    let conditions = evaluator.evaluate(&expressions(&policy["spec"]["matchConditions"]));
    if conditions.iter().any(|condition| !condition.passed) {
        return Vec::new();
    }
    let results = evaluator.evaluate(&expressions(&policy["spec"]["validations"]));
    results
        .into_iter()
        .filter(|result| !result.passed)
        .map(|result| result.message.unwrap_or_default())
        .collect()
}

#[test]
fn the_operator_changes_no_spec() {
    let policy = policy("operator.yaml", "mooring-operator-writes-no-spec");
    let refused = ["the operator makes no object of this group and changes no spec"];
    let old = json!({"metadata": {"name": "a"}, "spec": {"owner": "ana", "suspended": false}});
    let mut held = old.clone();
    held["metadata"]["finalizers"] = json!(["mooring.dev/environment"]);
    let mut suspended = old.clone();
    suspended["spec"]["suspended"] = json!(true);
    let mut more = old.clone();
    more["spec"]["mode"] = json!("fullTrust");

    let change = |user, object: &Value| refusals(&policy, user, "UPDATE", object, Some(&old));
    assert_eq!(change(OPERATOR, &held), [""; 0], "a finalizer is the operator's");
    assert_eq!(change(OPERATOR, &suspended), refused);
    assert_eq!(change(OPERATOR, &more), refused);
    assert_eq!(refusals(&policy, OPERATOR, "CREATE", &old, None), refused);
    for user in ["ana", "system:serviceaccount:elsewhere:mooring-operator"] {
        assert_eq!(change(user, &more), [""; 0], "{user} is not this policy's business");
    }
}
