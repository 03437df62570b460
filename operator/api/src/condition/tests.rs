use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;

use super::*;

fn time(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn tables() -> [(&'static str, &'static [Row]); 4] {
    [
        ("Session", SessionReason::ROWS),
        ("Task", TaskReason::ROWS),
        ("ExecutorClass", ClassReason::ROWS),
        ("Preferences", PreferencesReason::ROWS),
    ]
}

#[test]
fn a_reason_is_one_word_with_two_sentences_and_stands_once() {
    for (resource, rows) in tables() {
        let mut seen = BTreeSet::new();
        for row in rows {
            let Row { reason, meaning, remedy, .. } = row;
            assert!(seen.insert(reason), "{resource}: {reason} stands twice");
            let is_word = reason.starts_with(|c: char| c.is_ascii_uppercase())
                && reason.chars().all(|c| c.is_ascii_alphanumeric());
            assert!(is_word && reason.len() <= 128, "{resource}: {reason} is not one CamelCase word");
            for sentence in [meaning, remedy] {
                assert!(
                    sentence.ends_with('.') && !sentence.contains('|') && sentence.len() > 4,
                    "{resource}: {reason}: {sentence:?} is no sentence for a table"
                );
            }
        }
    }
}

#[test]
fn a_reason_names_its_own_row() {
    assert_eq!(SessionReason::Bound.as_str(), "Bound");
    let row = SessionReason::NodeUnreachable.row();
    assert_eq!((row.condition, row.status), (ConditionType::Ready, ConditionStatus::Unknown));
    let last = SessionReason::ROWS.last().unwrap();
    assert_eq!(SessionReason::Removing.row(), last);
}

#[test]
fn a_word_of_an_object_is_a_reason_or_one_of_a_newer_version() {
    for row in SessionReason::ROWS {
        assert_eq!(SessionReason::of(row.reason).map(SessionReason::row), Some(row));
    }
    assert_eq!(SessionReason::of("bound"), None);
}

#[test]
fn an_executor_is_gone_only_while_the_session_is_not_ready() {
    for row in SessionReason::ROWS {
        let is_gone = SessionReason::of(row.reason).is_some_and(SessionReason::is_executor_gone);
        let is_not_ready = row.condition == ConditionType::Ready && row.status == ConditionStatus::False;
        assert!(!is_gone || is_not_ready, "{}", row.reason);
    }
    assert!(SessionReason::Evicted.is_executor_gone() && !SessionReason::NodeUnreachable.is_executor_gone());
}

#[test]
fn the_time_of_transition_moves_with_the_status_alone() {
    let mut conditions = Vec::new();
    assert!(set(&mut conditions, SessionReason::PodPending.row().condition("one", Some(1), time(1))));
    assert!(!set(&mut conditions, SessionReason::PodPending.row().condition("one", Some(1), time(2))));
    assert!(set(&mut conditions, SessionReason::Binding.row().condition("two", Some(1), time(3))));
    assert_eq!((conditions[0].reason.as_str(), &conditions[0].last_transition_time), ("Binding", &time(1)));
    assert!(set(&mut conditions, SessionReason::Bound.row().condition("three", Some(1), time(4))));
    assert_eq!(conditions[0].last_transition_time, time(4));
    assert!(set(&mut conditions, SessionReason::Awake.row().condition("", Some(1), time(5))));
    let types: Vec<&str> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(types, ["Ready", "Suspended"]);
}

#[test]
fn a_long_message_is_cut() {
    let condition = SessionReason::Bound.row().condition("é".repeat(5000), None, time(0));
    assert_eq!(condition.message.chars().count(), LONGEST_MESSAGE);
}
