use serde_json::json;

use super::*;

fn conversation(messages: &serde_json::Value) -> Conversation {
    serde_json::from_value(json!({ "messages": messages })).expect("conversation")
}

fn said(script: &Script, messages: &serde_json::Value) -> String {
    script.answer(&conversation(messages)).expect("answer").say.unwrap_or_default()
}

#[test]
fn the_same_conversation_gets_the_same_step_again() {
    let script = Script::parse(
        "steps:\n  - {when: {turn: 0, last: user}, call: [{tool: Read, arguments: {path: a}}]}\n  - {when: {tool: Read}, say: done}\n",
    )
    .expect("script");
    let first = json!([{"role": "user", "content": "go"}]);
    let answer = script.answer(&conversation(&first)).expect("answer");
    assert_eq!(script.answer(&conversation(&first)).expect("answer"), answer);
    let id = answer.calls[0].id.clone().expect("id");
    let second = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": null,
         "tool_calls": [{"id": id, "type": "function", "function": {"name": "Read", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": id, "content": "text"},
    ]);
    assert_eq!(said(&script, &second), "done");
}

#[test]
fn a_value_is_captured_from_the_newest_tool_result() {
    let script = Script::parse(
        "steps:\n- {capture: [{name: job, after: 'job ', until: ' '}], say: 'it is {{job}} of {{who}}, {{ not a name }}'}\n",
    )
    .expect("script")
    .with("who", "us");
    let messages = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [
            {"id": "a", "function": {"name": "Shell"}}, {"id": "b", "function": {"name": "Shell"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "job 1 started"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "job 2 started"}]},
    ]);
    assert_eq!(said(&script, &messages), "it is 2 of us, {{ not a name }}");
}

#[test]
fn a_conversation_no_provider_would_take_is_refused() {
    let call = json!({"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "Read"}}]});
    let twice = json!({"role": "assistant", "tool_calls": [
        {"id": "a", "function": {"name": "Read"}}, {"id": "a", "function": {"name": "Read"}}]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": ""});
    let user = json!({"role": "user", "content": "go"});
    for bad in [
        json!([]),
        json!([user, call]),
        json!([user, result]),
        json!([user, call, user]),
        json!([user, twice]),
    ] {
        assert!(conversation(&bad).check().is_err(), "{bad}");
    }
    assert_eq!(conversation(&json!([user, call, result, user])).check(), Ok(()));
}

#[test]
fn an_error_in_a_script_names_its_line() {
    let unknown = Script::parse("steps:\n  - say: a\n  - say: b\n    sya: c\n").expect_err("unknown field");
    assert!(
        matches!(&unknown, ScriptError::Yaml(cause) if cause.location().is_some_and(|at| at.line() >= 3)),
        "{unknown}"
    );
    let meaningless =
        Script::parse("# first\nsteps:\n  - say: a\n\n  - name: empty\n").expect_err("says nothing");
    assert!(matches!(meaningless, ScriptError::Step { line: 5, number: 2, .. }), "{meaningless}");
    let both =
        Script::parse("steps:\n- call:\n  - {tool: Read, arguments: {}, raw: ''}\n").expect_err("both");
    assert!(matches!(both, ScriptError::Step { line: 2, number: 1, .. }), "{both}");
}

#[test]
fn a_conversation_without_a_step_is_told_so() {
    let script = Script::parse("steps:\n- {when: {turn: 3}, say: a}\n").expect("script");
    let none = script.answer(&conversation(&json!([{"role": "user", "content": "go"}])));
    assert_eq!(none, Err(SelectError::NoStep { turn: 0, last: "go".to_owned() }));
}

#[test]
fn repeated_calls_have_ids_of_their_own() {
    let script = Script::parse("steps:\n- {call: [{tool: Read, raw: '{', repeat: 3}]}\n").expect("script");
    let answer = script.answer(&conversation(&json!([{"role": "user", "content": "go"}]))).expect("answer");
    let ids: std::collections::HashSet<_> = answer.calls.iter().map(|call| call.id.clone()).collect();
    assert_eq!((answer.calls.len(), ids.len()), (3, 3));
}

#[test]
fn a_note_of_the_product_begins_no_new_turn() {
    let script = Script::parse("steps:\n- {when: {turn: 1, tool: Shell}, say: going on}\n").expect("script");
    let messages = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "Shell"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "executor_lost"},
        {"role": "user", "content": "[Note of the product, not of a person] The process was replaced."},
    ]);
    assert_eq!(said(&script, &messages), "going on");
}
