use std::collections::BTreeSet;

use super::*;

const CALLERS: [Caller; 3] = [Caller::Parent, Caller::Remote(Role::Harness), Caller::Remote(Role::Operator)];

/// Every call of the protocol as its own files spell it, with the health service.
fn every_call() -> BTreeSet<String> {
    let texts = [
        include_str!("../../../../proto/mooring/execution/v1/file.proto"),
        include_str!("../../../../proto/mooring/execution/v1/command.proto"),
        include_str!("../../../../proto/mooring/execution/v1/workspace.proto"),
    ];
    let mut calls = BTreeSet::from(["Check", "Watch"].map(|method| format!("/{HEALTH}/{method}")));
    for text in texts {
        let mut service = "";
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("service ") {
                service = name.trim_end_matches(" {");
            }
            if let Some((method, _)) = line.trim().strip_prefix("rpc ").and_then(|rpc| rpc.split_once('(')) {
                calls.insert(format!("/mooring.execution.v1.{service}/{method}"));
            }
        }
    }
    calls
}

#[test]
fn the_table_is_the_protocol() {
    let known = CALLS
        .iter()
        .flat_map(|(service, _, methods)| methods.iter().map(move |method| format!("/{service}/{method}")));
    assert_eq!(known.collect::<BTreeSet<_>>(), every_call());
}

#[test]
fn every_call_is_open_to_its_roles_and_to_no_other() {
    for call in every_call() {
        let (service, method) = call.rsplit_once('/').expect("a service and a method");
        let shared = ["ListWorkspaces", "Import", "Export", "Diff"].contains(&method);
        let is_workspaces = service.ends_with("WorkspaceService");
        let is_health = service.ends_with("Health");
        let expected = [true, !is_workspaces || shared, is_health || is_workspaces];
        assert_eq!(CALLERS.map(|caller| caller.may_call(&call)), expected, "{call}");
    }
}

#[test]
fn what_is_not_in_the_table_is_open_to_nobody() {
    for path in [
        "",
        "/",
        "//",
        "/mooring.execution.v1.FileService",
        "/mooring.execution.v1.FileService/",
        "/mooring.execution.v1.FileService/read",
        "/mooring.execution.v1.FileService/Read/",
        "/mooring.execution.v1.FileService/Bind",
        "mooring.execution.v1.FileService/Read",
        "/mooring.execution.v1.FileService/Read?",
        "/x/../mooring.execution.v1.FileService/Read",
        "/mooring.execution.v1.WorkspaceService/Unknown",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.health.v1.Health/List",
    ] {
        assert_eq!(CALLERS.map(|caller| caller.may_call(path)), [false; 3], "{path}");
    }
}
