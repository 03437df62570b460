//! Starting, restarting, and what is described.

use mooring_harness::environment::SettingsError;
use mooring_harness::run::Harness;
use mooring_harness::state::StateError;
use serde_json::Value;

use crate::wire::{Server, config};

#[tokio::test]
async fn everything_is_still_there_after_a_restart() {
    let server = Server::start().await;
    let id = server.session(r#"{"limits":{"turns":8,"wallTimeSeconds":60},"model":"scripted"}"#).await;
    let path = format!("/v1/sessions/{id}");
    let before = server.ask("GET", &path, "").await.body;
    assert_eq!((&before["limits"]["turns"], &before["limits"]["wallTimeSeconds"]), (&8.into(), &60.into()));
    let token = server.token.clone();
    let server = server.again().await;
    assert_eq!(server.token, token);
    assert_eq!(server.ask("GET", &path, "").await.body, before);
    assert_eq!(server.ask("DELETE", &path, "").await.status, 204);
    assert_eq!(server.ask("GET", &path, "").await.status, 404);
    server.harness.stop().await;
}

#[tokio::test]
async fn one_state_folder_serves_one_process() {
    let server = Server::start().await;
    let second = Harness::start(config(&server.path(""))).await;
    let error = second.err().expect("refused");
    assert!(matches!(error.downcast_ref(), Some(StateError::InUse { .. })), "{error:#}");
    server.harness.stop().await;
}

#[tokio::test]
async fn a_state_folder_inside_the_served_one_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::create_dir(folder.path().join("tree")).expect("tree");
    let mut inside = config(folder.path());
    inside.state = folder.path().join("tree/state");
    let error = Harness::start(inside).await.err().expect("refused");
    assert!(matches!(error.downcast_ref(), Some(SettingsError::Overlap { .. })), "{error:#}");
    assert!(!folder.path().join("tree/state").exists(), "it was made all the same");
}

#[tokio::test]
async fn a_session_without_files_creates_nothing_but_itself() {
    let server = Server::start().await;
    let entries = |path| std::fs::read_dir(path).expect("list").count();
    let before = (entries(server.path("tree")), entries(server.path("state")));
    let id = server.session(r#"{"profile":"no-fs"}"#).await;
    assert_eq!((entries(server.path("tree")), entries(server.path("state"))), before);
    let described = server.ask("GET", &format!("/v1/sessions/{id}"), "").await.body;
    assert_eq!((&described["state"], &described["trusted"]), (&"idle".into(), &false.into()));
    server.harness.stop().await;
}

#[tokio::test]
async fn the_document_lists_every_route_and_no_other() {
    let server = Server::start().await;
    let session = server.session(r#"{"profile":"no-fs"}"#).await;
    let document = server.ask("GET", "/v1/openapi.json", "").await.body;
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let methods = methods.as_object().expect("methods");
        let concrete =
            path.replace("{session}", &session).replace("{run}", &session).replace("{approval}", &session);
        for method in ["get", "post", "put", "patch"] {
            if concrete.ends_with("/events") && method == "get" {
                continue;
            }
            let reply = server.ask(&method.to_uppercase(), &concrete, r#"{"nonsense":1}"#).await;
            let exists = !matches!(reply.code(), "route_not_found" | "method_not_allowed");
            assert_eq!(exists, methods.contains_key(method), "{method} {path}: {reply:?}");
            let documented = &methods.get(method).map_or(&Value::Null, |found| &found["responses"]);
            if exists {
                assert!(
                    documented.get(reply.status.to_string()).is_some(),
                    "{method} {path}: {}",
                    reply.status
                );
            }
        }
    }
    let text = document.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap_or_default();
        assert!(schemas.contains_key(name), "{name} is referred to and not there");
    }
    server.harness.stop().await;
}

/// Answers have exactly the fields of their schema.
#[tokio::test]
async fn answers_agree_with_their_schemas() {
    let server = Server::start().await;
    let session = server.session(r#"{"profile":"no-fs"}"#).await;
    let document = server.ask("GET", "/v1/openapi.json", "").await.body;
    for (path, schema) in [
        (format!("/v1/sessions/{session}"), "Session"),
        ("/v1/sessions".to_owned(), "SessionList"),
        (format!("/v1/sessions/{session}/messages"), "MessageList"),
        (format!("/v1/sessions/{session}/transcript"), "Transcript"),
        ("/v1/approvals".to_owned(), "ApprovalList"),
        ("/v1/tools".to_owned(), "ToolList"),
        ("/v1/models".to_owned(), "ModelList"),
        ("/v1/info".to_owned(), "Info"),
        ("/v1/nothing".to_owned(), "Error"),
    ] {
        let body = server.ask("GET", &path, "").await.body;
        let names = |value: &Value| value.as_object().expect("object").keys().cloned().collect::<Vec<_>>();
        let properties = &document["components"]["schemas"][schema]["properties"];
        assert_eq!(names(&body), names(properties), "{path}");
    }
    server.harness.stop().await;
}

#[tokio::test]
async fn the_file_tools_are_absent_without_files() {
    let server = Server::start().await;
    let names = |body: &Value| {
        let tools = body["tools"].as_array().expect("tools").clone();
        tools.iter().map(|tool| tool["name"].as_str().expect("name").to_owned()).collect::<Vec<_>>()
    };
    let all = names(&server.ask("GET", "/v1/tools", "").await.body);
    assert_eq!(
        all,
        [
            "Read",
            "ListDir",
            "Write",
            "Edit",
            "Copy",
            "Move",
            "Remove",
            "Grep",
            "Glob",
            "Shell",
            "ShellStatus"
        ]
    );
    let without = names(&server.ask("GET", "/v1/tools?profile=no-fs", "").await.body);
    assert_eq!(without, Vec::<String>::new());
    server.harness.stop().await;
}
