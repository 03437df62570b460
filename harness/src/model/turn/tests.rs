use expect_test::{Expect, expect};

use super::*;

/// One call piece: index, id, name, arguments text.
fn piece(index: u64, id: &str, name: &str, arguments: &str) -> String {
    let call = serde_json::json!({"index": index, "id": id, "type": "function",
        "function": {"name": name, "arguments": arguments}});
    delta(&serde_json::json!({"tool_calls": [call]}))
}

fn delta(delta: &Value) -> String {
    serde_json::json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
}

fn end(reason: &str) -> String {
    serde_json::json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}

fn assemble(chunks: &[String]) -> Result<Turn, TurnError> {
    let mut assembly = Assembly::default();
    for chunk in chunks {
        assembly.push(chunk)?;
    }
    assembly.finish(400)
}

fn render(result: Result<Turn, TurnError>) -> String {
    match result {
        Err(error) => format!("failed: {error}"),
        Ok(turn) => {
            let calls: Vec<String> = turn
                .calls
                .iter()
                .map(|call| {
                    let fault = call.fault.map_or(String::from("sound"), |fault| format!("{fault:?}"));
                    format!("{}:{}({}) {fault}", call.id, call.name, call.arguments)
                })
                .collect();
            format!("{:?} \"{}\" [{}]", turn.end, turn.text, calls.join(", "))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a table reads better without a reference in each row")]
#[track_caller]
fn check(chunks: &[String], expected: Expect) {
    expected.assert_eq(&render(assemble(chunks)));
}

#[test]
fn text_and_interleaved_calls_are_put_together_by_index() {
    check(
        &[
            delta(&serde_json::json!({"role": "assistant", "content": "Look"})),
            delta(&serde_json::json!({"content": "ing."})),
            piece(1, "b", "Grep", "{\"pat"),
            piece(0, "a", "Read", ""),
            piece(0, "", "", "{}"),
            piece(1, "b", "Grep", "tern\":1}"),
            end("tool_calls"),
        ],
        expect![[r#"Complete "Looking." [a:Read({}) sound, b:Grep({"pattern":1}) sound]"#]],
    );
}

#[test]
fn a_call_without_id_or_name_is_kept_with_its_fault() {
    check(
        &[piece(0, "", "Read", "{}"), piece(1, "b", "", "{}"), end("tool_calls")],
        expect![[r#"Complete "" [unnamed_0:Read({}) MissingId, b:({}) MissingName]"#]],
    );
}

#[test]
fn two_calls_with_one_id_are_both_invalid_and_their_sibling_is_not() {
    check(
        &[
            piece(0, "a", "Read", "{}"),
            piece(1, "a", "Shell", "{}"),
            piece(2, "c", "Read", "{}"),
            end("stop"),
        ],
        expect![[
            r#"Complete "" [unnamed_0:Read({}) DuplicateId, unnamed_1:Shell({}) DuplicateId, c:Read({}) sound]"#
        ]],
    );
}

#[test]
fn an_unusable_id_is_replaced_and_the_call_invalid() {
    check(
        &[piece(0, "a b\u{202e}", "Read", "{}"), piece(1, "unnamed_0", "Read", "{}"), end("stop")],
        expect![[r#"Complete "" [unnamed_0_:Read({}) BadId, unnamed_0:Read({}) sound]"#]],
    );
}

#[test]
fn pieces_that_disagree_make_the_call_invalid() {
    check(
        &[piece(0, "a", "Read", "{"), piece(0, "b", "Read", "}"), end("stop")],
        expect![[r#"Complete "" [a:Read({}) ConflictingId]"#]],
    );
    check(
        &[piece(0, "a", "Read", "{"), piece(0, "a", "Shell", "}"), end("stop")],
        expect![[r#"Complete "" [a:Read({}) ConflictingName]"#]],
    );
}

#[test]
fn a_gap_in_the_indices_invalidates_the_whole_turn() {
    check(
        &[piece(0, "a", "Read", "{}"), piece(2, "c", "Read", "{}"), end("tool_calls")],
        expect![[r#"Complete "" [a:Read({}) Gap, c:Read({}) Gap]"#]],
    );
}

#[test]
fn arguments_that_are_not_text_are_never_taken_for_arguments() {
    for arguments in ["[1]", "7", "{\"command\":\"ls\"}", "true"] {
        let chunk = format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"Shell","arguments":{arguments}}}}}]}}}}]}}"#
        );
        let turn = assemble(&[chunk, end("tool_calls")]).expect("turn");
        assert_eq!(turn.calls[0].fault, Some(CallFault::ArgumentsNotText), "{arguments}");
        assert_eq!(turn.calls[0].arguments, "");
    }
}

#[test]
fn a_turn_cut_at_its_length_executes_nothing() {
    check(
        &[piece(0, "a", "Read", "{}"), piece(1, "b", "Shell", "{\"command\":\"rm -rf /tmp/x"), end("length")],
        expect![[r#"Cut "" [a:Read({}) Cut, b:Shell({"command":"rm -rf /tmp/x) Cut]"#]],
    );
}

#[test]
fn a_thousand_calls_in_one_turn_execute_nothing() {
    let mut chunks: Vec<String> = (0..1000).map(|n| piece(n, &format!("c{n}"), "Read", "{}")).collect();
    chunks.push(end("tool_calls"));
    let turn = assemble(&chunks).expect("turn");
    assert_eq!(turn.calls.len(), MAX_CALLS);
    assert!(turn.calls.iter().all(|call| call.fault == Some(CallFault::TooMany)));
}

#[test]
fn what_is_not_a_sound_stream_is_never_an_answer() {
    let text = || delta(&serde_json::json!({"content": "hi"}));
    let cases: Vec<(Vec<String>, &str)> = vec![
        (vec![text()], "the model's stream ended early"),
        (vec![end("stop")], "the model's answer is empty"),
        (vec![text(), end("eos_token")], "the model's stream ended for an unknown reason"),
        (vec![text(), end("content_filter")], "the provider withheld the answer"),
        (vec![text(), end("tool_calls")], "the model's stream is malformed: calls announced, none sent"),
        (vec![text(), end("stop"), end("length")], "the model's stream is malformed: two finish reasons"),
        (
            vec![text(), end("stop"), piece(0, "a", "Read", "{}")],
            "the model's stream is malformed: a call after the end",
        ),
        (vec!["<html>".into()], "the model's stream is malformed: not a chunk"),
        (vec![r#"{"choices":[],"choices":[]}"#.into()], "the model's stream is malformed: not a chunk"),
        (
            vec![r#"{"choices":[{"index":1,"delta":{"content":"x"}}]}"#.into()],
            "the model's stream is malformed: more than one choice",
        ),
        (
            vec![text(), r#"{"error":{"message":"over\u0000loaded","code":502}}"#.into()],
            "the provider reported an error in the stream: overloaded",
        ),
        (
            vec![delta(&serde_json::json!({"function_call": {"name": "Shell", "arguments": "{}"}}))],
            "the model's stream is malformed: a call in the form before tool_calls",
        ),
        (
            vec![delta(&serde_json::json!({"tool_calls": [{"id": "a", "function": {"name": "Read"}}]}))],
            "the model's stream is malformed: not a chunk",
        ),
    ];
    for (chunks, expected) in cases {
        assert_eq!(render(assemble(&chunks)), format!("failed: {expected}"), "{chunks:?}");
    }
}

#[test]
fn usage_is_the_providers_or_says_that_it_is_an_estimate() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14}}"#;
    let text = delta(&serde_json::json!({"content": "12345678"}));
    let told = assemble(&[text.clone(), end("stop"), usage.into()]).expect("turn").usage;
    assert_eq!(told, Usage { input_tokens: 11, output_tokens: 3, estimated: false });
    let guessed = assemble(&[text, end("stop")]).expect("turn").usage;
    assert_eq!(guessed, Usage { input_tokens: 100, output_tokens: 2, estimated: true });
}
