use serde_json::{Value, json};

use super::*;

async fn post(script: &str, body: Value) -> (u16, String, RunningModel) {
    let model = RunningModel::start(Script::parse(script).expect("script")).await.expect("model");
    let (status, text) = ask(&model, &body).await;
    (status, text, model)
}

async fn ask(model: &RunningModel, body: &Value) -> (u16, String) {
    crate::install_crypto();
    let client = reqwest::Client::builder().no_proxy().build().expect("client");
    let sent = client.post(format!("{}/chat/completions", model.url())).body(body.to_string());
    let response = sent.send().await.expect("response");
    let status = response.status().as_u16();
    (status, response.text().await.unwrap_or_else(|cause| format!("broken: {cause}")))
}

fn request(stream: bool) -> Value {
    json!({"model": "scripted", "stream": stream, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "go"}]})
}

fn deltas(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).expect("chunk")).collect()
}

#[tokio::test]
async fn arguments_stream_in_pieces_and_usage_comes_last() {
    let script = "steps:\n- say: wait\n  call: [{tool: Read, arguments: {path: 'é.txt'}, piece_bytes: 4}]\n";
    let (status, text, _model) = post(script, request(true)).await;
    assert_eq!(status, 200);
    assert!(text.ends_with("data: [DONE]\n\n"));
    let deltas = deltas(&text);
    let arguments: String = deltas
        .iter()
        .filter_map(|delta| delta["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str())
        .collect();
    assert_eq!(arguments, r#"{"path":"é.txt"}"#);
    let last = deltas.last().expect("last");
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["total_tokens"].as_u64().is_some_and(|tokens| tokens > 1));
    assert_eq!(deltas[deltas.len() - 2]["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn a_whole_answer_is_one_object() {
    let (status, text, _model) = post("steps:\n- {say: hello}\n", request(false)).await;
    let body: Value = serde_json::from_str(&text).expect("json");
    assert_eq!((status, &body["choices"][0]["message"]["content"]), (200, &json!("hello")));
}

#[tokio::test]
async fn refusals_are_counted_and_then_it_answers() {
    let script = "steps:\n- {say: a, misbehave: {status: {code: 429, times: 2, retry_after_seconds: 0}}}\n";
    let (first, _, model) = post(script, request(true)).await;
    let (second, _) = ask(&model, &request(true)).await;
    let (third, _) = ask(&model, &request(true)).await;
    assert_eq!((first, second, third), (429, 429, 200));
    let seen: Vec<_> = model.requests().iter().map(|request| (request.step, request.status)).collect();
    assert_eq!(seen, [(Some(0), 429), (Some(0), 429), (Some(0), 200)]);
}

#[tokio::test]
async fn a_cut_stream_breaks_and_a_split_one_does_not() {
    let (_, cut, _model) =
        post("steps:\n- {say: a, misbehave: {cut_after_bytes: 40}}\n", request(true)).await;
    assert!(cut.starts_with("broken"), "{cut}");
    let (_, split, _model) =
        post("steps:\n- {say: 'žluť', misbehave: {write_bytes: 1}}\n", request(true)).await;
    let text: String = deltas(&split)
        .iter()
        .filter_map(|delta| delta["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(text, "žluť");
}

#[tokio::test]
async fn an_error_in_the_stream_ends_it() {
    let (_, text, _model) =
        post("steps:\n- {say: a, misbehave: {error_mid_stream: overloaded}}\n", request(true)).await;
    assert_eq!(deltas(&text).last().expect("last")["error"]["message"], "overloaded");
    assert!(!text.contains("[DONE]"));
}

#[tokio::test]
async fn a_request_that_no_provider_takes_is_refused() {
    let body = json!({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]});
    let (status, text, _model) = post("steps:\n- {say: a}\n", body).await;
    assert_eq!(status, 400, "{text}");
}
