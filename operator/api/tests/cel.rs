//! Accepted and refused objects for every bound and rule, as data in `tests/cel`, judged without an API server.
//! The same files are sent to a real one by the end-to-end tests; `tests/cel/README.md` describes them.

#[path = "offline/case.rs"]
mod case;
#[path = "offline/judge.rs"]
mod judge;
#[path = "offline/structure.rs"]
mod structure;

use std::collections::BTreeSet;
use std::path::Path;

use case::{Case, Suite};
use judge::{Judge, Refusal, is_evaluation_error};
use serde_json::Value;

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
                let mut found = refusals(&judge, &suite, case, patch);
                // A value that a rule cannot read at all lets the rules above it fail to run.
                found.retain(|refusal| !is_evaluation_error(refusal));
                if found != [expected.clone()] {
                    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                    offences.push(format!("{}: {} [{at}]: {found:?}", suite.kind, case.name));
                }
            }
        }
    }
    assert!(offences.is_empty(), "not refused as expected:\n  {}", offences.join("\n  "));
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
