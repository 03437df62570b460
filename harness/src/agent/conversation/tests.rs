use expect_test::{Expect, expect};

use super::*;

/// `W:text` owner's words, `N:text` note, `A:text|id=args,…` answer, `R:id=text` result. One run.
fn items(run: RunId, script: &[&str]) -> Vec<StoredItem> {
    script
        .iter()
        .zip(1..)
        .map(|(line, number)| {
            let (kind, rest) = line.split_at(2);
            let item = match kind {
                "W:" => Item::Words { message: number, origin: Origin::Owner, text: rest.to_owned() },
                "N:" => Item::Note { text: rest.to_owned() },
                "R:" => {
                    let (call, text) = rest.split_once('=').expect("result");
                    Item::ToolResult { call: call.to_owned(), text: text.to_owned(), is_error: false }
                }
                _ => {
                    let (text, calls) = rest.split_once('|').unwrap_or((rest, ""));
                    let call = |call: &str| {
                        let (id, arguments) = call.split_once('=').expect("call");
                        ToolCall {
                            id: id.to_owned(),
                            name: "Read".to_owned(),
                            arguments: arguments.to_owned(),
                        }
                    };
                    let calls = calls.split(';').filter(|call| !call.is_empty()).map(call).collect();
                    Item::Assistant { text: text.to_owned(), calls }
                }
            };
            StoredItem { number, run, item }
        })
        .collect()
}

fn show(messages: &[ChatMessage]) -> String {
    let line = |message: &ChatMessage| match message {
        ChatMessage::System { content } => format!("system {content}"),
        ChatMessage::User { content } => format!("user {content:?}"),
        ChatMessage::Assistant { content, tool_calls } => {
            let calls: Vec<String> = tool_calls
                .iter()
                .map(|call| serde_json::to_value(call).expect("call")["function"]["arguments"].to_string())
                .collect();
            format!("assistant {} {}", content.as_deref().unwrap_or("-"), calls.join(" "))
        }
        ChatMessage::Tool { tool_call_id, content } => format!("tool {tool_call_id} {content}"),
    };
    messages.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check_next(script: &[&str], expected: &str) {
    let run = RunId::new();
    let next = match next(&items(run, script), run) {
        Next::Settle(calls) => calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>().join(","),
        Next::Ask => "ask".to_owned(),
        Next::Finish => "finish".to_owned(),
    };
    assert_eq!(next, expected, "{script:?}");
}

#[test]
fn the_conversation_alone_says_what_comes_next() {
    check_next(&[], "ask");
    check_next(&["W:hi"], "ask");
    check_next(&["W:hi", "A:done"], "finish");
    check_next(&["W:hi", "A:done", "W:more"], "ask");
    check_next(&["W:hi", "A:cut", "N:go on"], "ask");
    check_next(&["W:hi", "A:|a={};b={}"], "a,b");
    check_next(&["W:hi", "A:|a={};b={}", "R:b=x"], "a");
    check_next(&["W:hi", "A:|a={}", "R:a=x"], "ask");
    check_next(&["W:hi", "A:|a={}", "R:a=x", "A:|a={}"], "a");
}

#[test]
fn calls_and_answers_of_another_run_are_not_this_ones() {
    let other = items(RunId::new(), &["W:hi", "A:|a={}"]);
    assert_eq!(next(&other, RunId::new()), Next::Ask);
    let other = items(RunId::new(), &["W:hi", "A:done"]);
    assert_eq!(next(&other, RunId::new()), Next::Ask);
}

#[expect(clippy::needless_pass_by_value, reason = "a table reads better without a reference in each row")]
#[track_caller]
fn check_messages(script: &[&str], budget: usize, expected: Expect) {
    let messages = messages("S", &items(RunId::new(), script), budget).expect("messages");
    expected.assert_eq(&show(&messages));
}

#[test]
fn every_call_is_answered_right_after_its_turn() {
    check_messages(
        &["W:one", "N:note", "A:look|a={};b=[1];c={\"x\":1,\"x\":2}", "R:b=B", "N:late", "R:a=A"],
        10_000,
        expect![[r#"
            system S
            user "one\n\n[Note of the product, not of a person] note"
            assistant look "{}" "{}" "{}"
            tool a A
            tool b B
            tool c No result of this call was recorded.
            user "[Note of the product, not of a person] late""#]],
    );
}

#[test]
fn old_results_go_first_then_old_arguments_and_words_never() {
    let long = "x".repeat(1000);
    let (result_a, result_b) = (format!("R:a={long}"), format!("R:b={long}"));
    let turn_a = format!("A:|a={{\"v\":\"{long}\"}}");
    let words = format!("W:{}", "w".repeat(1000));
    let script = [words.as_str(), &turn_a, &result_a, "A:|b={}", &result_b];
    let run = RunId::new();
    let lengths = |budget| {
        messages("S", &items(run, &script), budget)
            .map(|messages| messages.iter().map(size).collect::<Vec<_>>())
            .map_err(|error| error.budget)
    };
    assert_eq!(lengths(5000), Ok(vec![1, 1000, 1008, 1000, 2, 1000]));
    assert_eq!(lengths(3500), Ok(vec![1, 1000, 1008, 54, 2, 1000]));
    assert_eq!(lengths(2200), Ok(vec![1, 1000, 38, 54, 2, 1000]));
    assert_eq!(lengths(2000), Err(2000));
}
