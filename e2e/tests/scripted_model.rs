//! The scripted model as a program of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use mooring_e2e::fixture::binary;
use serde_json::{Value, json};

#[tokio::test]
async fn it_prints_its_address_and_serves_the_script() {
    mooring_e2e::install_crypto();
    let folder = tempfile::tempdir().expect("folder");
    let script = folder.path().join("script.yaml");
    std::fs::write(&script, "model: parrot\nsteps:\n- {say: 'hello {{who}}'}\n").expect("script");
    let program = binary("mooring-scripted-model").expect("binary");
    let mut child = Command::new(program)
        .arg(&script)
        .args(["--set", "who=you"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("start");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("address");
    let url = serde_json::from_str::<Value>(&line).expect("JSON")["url"].as_str().expect("url").to_owned();
    let client = reqwest::Client::builder().no_proxy().build().expect("client");
    let text = client.get(format!("{url}/models")).send().await.expect("models").text().await.expect("body");
    let models: Value = serde_json::from_str(&text).expect("models");
    assert_eq!(models["data"][0]["id"], "parrot");
    let ask = json!({"messages": [{"role": "user", "content": "hi"}]}).to_string();
    let sent = client.post(format!("{url}/chat/completions")).body(ask).send().await.expect("answer");
    let answer: Value = serde_json::from_str(&sent.text().await.expect("body")).expect("answer");
    assert_eq!(answer["choices"][0]["message"]["content"], "hello you");
    child.kill().expect("end it");
    child.wait().expect("wait");
}

#[test]
fn a_script_that_cannot_be_served_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("folder");
    let script = folder.path().join("script.yaml");
    std::fs::write(&script, "steps:\n- say: hello\n- name: nothing\n").expect("script");
    let output =
        Command::new(binary("mooring-scripted-model").expect("binary")).arg(&script).output().expect("run");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && said.contains("line 3, step 2"), "{said}");
}
