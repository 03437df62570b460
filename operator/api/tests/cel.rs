//! Accepted and refused objects for every bound and rule, as data in `tests/cel`, judged without an API server.
//! The same files are sent to a real one by the end-to-end tests; `tests/cel/README.md` describes them.

#[path = "offline/case.rs"]
mod case;
#[path = "offline/judge.rs"]
mod judge;
#[path = "offline/structure.rs"]
mod structure;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;

use case::{Case, Suite};
use judge::{Judge, Refusal};
use mooring_operator_api::{Approval, ExecutorClass, Preferences, Session, Task};
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

fn suites() -> Vec<Suite> {
    Suite::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cel"))
}

fn refusals(judge: &Judge, suite: &Suite, case: &Case, patch: &Value) -> Vec<Refusal> {
    let mut old = None;
    for patch in &case.before {
        let state = suite.object(&case.name, patch);
        let refusals = judge.refusals(&state, old.as_ref());
        assert_eq!(refusals, [], "{}: {}: what is changed must be right itself", suite.kind, case.name);
        old = Some(state);
    }
    judge.refusals(&suite.object(&case.name, patch), old.as_ref())
}

#[test]
fn what_is_right_is_accepted() {
    let mut offences = Vec::new();
    for suite in suites() {
        let judge = Judge::of(&suite.kind);
        for case in &suite.cases {
            for (at, patch) in case.accepted.iter().enumerate() {
                for refusal in refusals(&judge, &suite, case, patch) {
                    offences.push(format!("{}: {} [{at}]: {refusal}", suite.kind, case.name));
                }
            }
        }
    }
    assert!(offences.is_empty(), "refused:\n  {}", offences.join("\n  "));
}

#[test]
fn what_is_wrong_is_refused_for_its_own_reason_alone() {
    let mut offences = Vec::new();
    for suite in suites() {
        let judge = Judge::of(&suite.kind);
        for case in &suite.cases {
            let expected = Refusal { path: case.path.clone(), message: case.message.clone() };
            for (at, patch) in case.refused.iter().enumerate() {
                let found = refusals(&judge, &suite, case, patch);
                if found != [expected.clone()] {
                    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                    offences.push(format!("{}: {} [{at}]: {found:?}", suite.kind, case.name));
                }
            }
        }
    }
    assert!(offences.is_empty(), "not refused as expected:\n  {}", offences.join("\n  "));
}

/// The schema and the types agree: what the API server keeps is read, and written back as it was meant.
#[test]
fn what_is_accepted_is_read_by_its_type() {
    for suite in suites() {
        let judge = Judge::of(&suite.kind);
        for case in &suite.cases {
            for patch in &case.accepted {
                let object = judge.defaulted(&suite.object(&case.name, patch));
                match suite.kind.as_str() {
                    "Approval" => check_read::<Approval>(&object),
                    "ExecutorClass" => check_read::<ExecutorClass>(&object),
                    "Preferences" => check_read::<Preferences>(&object),
                    "Session" => check_read::<Session>(&object),
                    "Task" => check_read::<Task>(&object),
                    other => panic!("no type for {other}"),
                }
            }
        }
    }
}

/// Also with a field of a later version, which is skipped.
#[track_caller]
fn check_read<T: DeserializeOwned + Serialize + PartialEq + Debug>(object: &Value) {
    let mut newer = object.clone();
    newer["spec"]["addedLater"] = json!({"a": 1});
    newer["status"] = json!({"addedLater": true});
    let read: T = serde_json::from_value(newer).unwrap_or_else(|error| panic!("{error}: {object}"));
    let written = serde_json::to_value(&read).expect("an object is JSON");
    let fields = |object: &Value| -> BTreeSet<String> {
        object["spec"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    assert!(
        fields(&written).is_subset(&fields(object)),
        "a field that nobody wrote: {written} from {object}"
    );
    assert_eq!(serde_json::from_value::<T>(written).expect("what is written is read"), read);
}

#[test]
fn the_examples_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("an example");
        for document in serde_yaml::Deserializer::from_str(&text) {
            let mut object = Value::deserialize(document).expect("YAML");
            if object["kind"] == "Session" && object["spec"]["owner"].is_null() {
                // As admission fills it in.
                object["spec"]["owner"] = json!("ana");
            }
            let kind = object["kind"].as_str().expect("a kind");
            if object["apiVersion"] == "mooring.dev/v1alpha1" {
                assert_eq!(Judge::of(kind).refusals(&object, None), [], "{}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 2, "the examples are there");
}

#[test]
fn every_rule_has_an_accepted_and_a_refused_object() {
    let mut offences = Vec::new();
    for suite in suites() {
        let shown: BTreeSet<&str> = suite
            .cases
            .iter()
            .filter(|case| !case.accepted.is_empty() && !case.refused.is_empty())
            .map(|case| case.message.as_str())
            .collect();
        for message in Judge::of(&suite.kind).messages() {
            if !shown.contains(message.as_str()) {
                offences.push(format!("{}: {message}", suite.kind));
            }
        }
    }
    assert!(offences.is_empty(), "rules without their pair:\n  {}", offences.join("\n  "));
}

#[test]
fn every_case_is_named_once_and_says_something() {
    for suite in suites() {
        let names: BTreeSet<&str> = suite.cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), suite.cases.len(), "{}: two cases of one name", suite.kind);
        for case in &suite.cases {
            assert!(!case.refused.is_empty() && !case.message.is_empty(), "{}: {}", suite.kind, case.name);
        }
    }
}
