//! What holds for the schema of every resource.

#![expect(clippy::needless_raw_string_hashes, reason = "as expect-test writes them")]

use expect_test::expect;
use mooring_operator_api::crd;
use serde_json::Value;

/// Every schema below the resources' own, with its path.
fn schemas() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for definition in crd::all() {
        let kind = definition.spec.names.kind.clone();
        for version in definition.spec.versions {
            let schema = version.schema.expect("a schema").open_api_v3_schema.expect("a schema");
            let schema = serde_json::to_value(schema).expect("a schema is JSON");
            for (name, field) in schema["properties"].as_object().expect("fields") {
                walk(field, &format!("{kind}.{name}"), &mut found);
            }
        }
    }
    found
}

fn walk(schema: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    found.push((path.to_owned(), schema.clone()));
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        walk(field, &format!("{path}.{name}"), found);
    }
    for (keyword, suffix) in [("items", "[]"), ("additionalProperties", ".*")] {
        if schema[keyword].is_object() {
            walk(&schema[keyword], &format!("{path}{suffix}"), found);
        }
    }
}

#[track_caller]
fn check_none(rule: &str, is_offence: impl Fn(&str, &Value) -> bool) {
    let offences: Vec<String> = schemas()
        .into_iter()
        .filter(|(path, schema)| is_offence(path, schema))
        .map(|(path, _)| path)
        .collect();
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}

#[test]
fn every_field_is_described() {
    check_none("without a description", |path, schema| {
        let is_field = !path.ends_with(']') && !path.ends_with('*');
        is_field && schema["description"].as_str().is_none_or(|text| text.trim().len() < 5)
    });
}

/// The API server estimates what a rule costs by the bounds, and refuses a definition that may cost too much.
#[test]
fn every_string_list_and_map_is_bounded() {
    check_none("without a bound", |_, schema| match schema["type"].as_str() {
        Some("string") => {
            let is_short = schema["enum"].is_array() || schema["format"] == "date-time";
            !is_short && schema["maxLength"].is_null()
        }
        Some("array") => schema["maxItems"].is_null(),
        Some("object") => schema["additionalProperties"].is_object() && schema["maxProperties"].is_null(),
        _ => false,
    });
}

/// Unsigned numbers are no Kubernetes format; what is not bounded below could be negative.
#[test]
fn every_number_is_signed_and_bounded_below() {
    check_none("not a number as Kubernetes has them", |_, schema| {
        schema["type"] == "integer"
            && (!matches!(schema["format"].as_str(), Some("int32" | "int64")) || schema["minimum"].is_null())
    });
}

/// A structural schema has neither, and a null is no value.
#[test]
fn no_schema_is_a_choice_or_may_be_null() {
    check_none("not structural", |_, schema| {
        let is_int_or_string = schema["x-kubernetes-int-or-string"] == true;
        let is_choice = ["anyOf", "oneOf", "allOf", "not"].iter().any(|keyword| !schema[keyword].is_null());
        !schema["nullable"].is_null() || (is_choice && !is_int_or_string)
    });
}

#[test]
fn a_list_of_named_things_is_merged_by_name() {
    check_none("a list with names that is not a map", |_, schema| {
        let required = schema["items"]["required"].as_array();
        let has_name = required.is_some_and(|required| required.contains(&Value::from("name")));
        has_name && schema["x-kubernetes-list-type"] != "map"
    });
}

#[test]
fn every_resource_is_namespaced_with_a_status_of_its_own() {
    let told: Vec<String> = crd::all()
        .into_iter()
        .map(|definition| {
            let names = definition.spec.names;
            let version = &definition.spec.versions[0];
            let has_status =
                version.subresources.as_ref().is_some_and(|subresources| subresources.status.is_some());
            let columns = version.additional_printer_columns.as_ref().map_or(0, Vec::len);
            format!(
                "{} {} {} {:?} {} {} status={has_status} columns={columns}",
                definition.spec.group,
                version.name,
                names.plural,
                names.short_names.unwrap_or_default(),
                names.kind,
                definition.spec.scope,
            )
        })
        .collect();
    expect![[r#"
        mooring.dev v1alpha1 approvals ["appr"] Approval Namespaced status=true columns=7
        mooring.dev v1alpha1 executorclasses ["exc"] ExecutorClass Namespaced status=true columns=5
        mooring.dev v1alpha1 preferences ["prefs"] Preferences Namespaced status=true columns=3
        mooring.dev v1alpha1 sessions ["ses"] Session Namespaced status=true columns=8
        mooring.dev v1alpha1 tasks ["task"] Task Namespaced status=true columns=7"#]]
    .assert_eq(&told.join("\n"));
}

/// The fields of a class are a closed set: a new one must be looked at for what it lets a class reach.
#[test]
fn a_class_has_no_field_that_reaches_the_host() {
    let fields: Vec<String> = schemas()
        .into_iter()
        .map(|(path, _)| path)
        .filter_map(|path| path.strip_prefix("ExecutorClass.spec.").map(str::to_owned))
        .collect();
    expect![[r#"
        egress
        egress.dns
        egress.rules
        egress.rules[]
        egress.rules[].cidr
        egress.rules[].except
        egress.rules[].except[]
        egress.rules[].ports
        egress.rules[].ports[]
        egress.rules[].ports[].endPort
        egress.rules[].ports[].port
        egress.rules[].ports[].protocol
        image
        limits
        limits.backgroundCommands
        limits.liveCommands
        limits.maxTimeout
        limits.outputBytes
        limits.processes
        minimumLandlock
        nodeSelector
        nodeSelector.*
        readmittedNames
        readmittedNames[]
        resources
        resources.limits
        resources.limits.cpu
        resources.limits.ephemeral-storage
        resources.limits.memory
        resources.requests
        resources.requests.cpu
        resources.requests.ephemeral-storage
        resources.requests.memory
        runtimeClassName
        shell
        storage
        storage.className
        storage.size
        tolerations
        tolerations[]
        tolerations[].effect
        tolerations[].key
        tolerations[].operator
        tolerations[].tolerationSeconds
        tolerations[].value
        variables
        variables[]
        variables[].name
        variables[].value
        warm
        warm.maxRefillPerSecond
        warm.replicas"#]]
    .assert_eq(&fields.join("\n"));
}

/// Exactly as they are written in the documents of the resources.
#[test]
fn words_on_the_wire_are_these() {
    let words: Vec<String> = schemas()
        .into_iter()
        .filter_map(|(path, schema)| {
            let words: Vec<&str> = schema["enum"].as_array()?.iter().filter_map(Value::as_str).collect();
            Some(format!("{path}: {}", words.join(" ")))
        })
        .collect();
    expect![[r#"
        Approval.spec.because.harm: moderate severe
        Approval.spec.decision.answer: allow deny
        Approval.status.state: Pending Answered Expired Consumed
        ExecutorClass.spec.egress.rules[].ports[].protocol: TCP UDP
        ExecutorClass.spec.shell: sh bash
        ExecutorClass.spec.tolerations[].effect: NoSchedule PreferNoSchedule NoExecute
        ExecutorClass.spec.tolerations[].operator: Equal Exists
        ExecutorClass.status.conditions[].status: True False Unknown
        Preferences.spec.tools.*: ask off
        Preferences.status.conditions[].status: True False Unknown
        Session.spec.mode: readOnly askFirst auto fullTrust
        Session.spec.onQuestion: wait deny
        Session.spec.profile: default no-fs
        Session.spec.workspace.storage.retain: Retain Delete
        Session.status.conditions[].status: True False Unknown
        Session.status.environment.kind: local kubernetes none
        Session.status.operation.step: Claim Secret Pod Bind Seed Drain DeletePod DeleteClaim
        Session.status.operation.type: Start Replace Wake Sleep Retire
        Task.spec.access: readOnly readWrite
        Task.spec.delegation: subagent branch member background
        Task.spec.mode: readOnly askFirst auto fullTrust
        Task.spec.placement: shared dedicated
        Task.spec.workspace: worktree forceCopy parent none
        Task.status.conditions[].status: True False Unknown
        Task.status.environment.kind: local kubernetes none
        Task.status.result.outcome: succeeded failed limitReached stopped"#]]
    .assert_eq(&words.join("\n"));
}
