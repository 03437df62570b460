//! Rules about what a room may depend on, read from `cargo metadata` and `Cargo.lock`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::{check_none, has_extension, output, root, text, texts};

/// The dependency graph as cargo resolved it for this machine's target.
struct Graph {
    /// Package id to name.
    names: BTreeMap<String, String>,
    /// Package id to the ids of what it is built with and runs with; not what only its tests or its build need.
    normal: BTreeMap<String, Vec<String>>,
    /// Our own packages: name to metadata.
    rooms: BTreeMap<String, Value>,
    /// Our own packages: name to id.
    ids: BTreeMap<String, String>,
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

impl Graph {
    fn read() -> Self {
        let version = output(Command::new("rustc").arg("-vV"));
        let host =
            version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc tells its host");
        let metadata = output(
            Command::new(env!("CARGO"))
                .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", host])
                .current_dir(root()),
        );
        let metadata: Value = serde_json::from_str(&metadata).expect("cargo prints JSON");
        let members: BTreeSet<&str> =
            list(&metadata, "workspace_members").iter().filter_map(Value::as_str).collect();
        let mut graph = Self {
            names: BTreeMap::new(),
            normal: BTreeMap::new(),
            rooms: BTreeMap::new(),
            ids: BTreeMap::new(),
        };
        for package in list(&metadata, "packages") {
            let (id, name) = (word(package, "id"), word(package, "name"));
            if members.contains(id.as_str()) {
                graph.rooms.insert(name.clone(), package.clone());
                graph.ids.insert(name.clone(), id.clone());
            }
            graph.names.insert(id, name);
        }
        for node in list(&metadata["resolve"], "nodes") {
            let is_normal =
                |dependency: &&Value| list(dependency, "dep_kinds").iter().any(|kind| kind["kind"].is_null());
            let needed =
                list(node, "deps").iter().filter(is_normal).map(|dependency| word(dependency, "pkg"));
            graph.normal.insert(word(node, "id"), needed.collect());
        }
        assert!(graph.rooms.len() >= 5, "the rooms are there: {:?}", graph.rooms.keys());
        graph
    }

    /// What a room names in its own `Cargo.toml`. `kind` is `normal`, `dev` or `build`; none means all.
    fn direct(&self, room: &str, kind: Option<&str>) -> BTreeSet<String> {
        list(&self.rooms[room], "dependencies")
            .iter()
            .filter(|dependency| {
                kind.is_none_or(|kind| dependency["kind"].as_str().unwrap_or("normal") == kind)
            })
            .map(|dependency| word(dependency, "name"))
            .collect()
    }

    /// Everything that is in the room's program or library.
    fn inside(&self, room: &str) -> BTreeSet<&str> {
        let mut found: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![self.ids[room].as_str()];
        while let Some(id) = open.pop() {
            if found.insert(id) {
                open.extend(self.normal.get(id).into_iter().flatten().map(String::as_str));
            }
        }
        found.remove(self.ids[room].as_str());
        found.into_iter().map(|id| self.names[id].as_str()).collect()
    }
}

#[track_caller]
fn check_inside(graph: &Graph, room: &str, is_forbidden: impl Fn(&str) -> bool) {
    let offences: Vec<String> =
        graph.inside(room).into_iter().filter(|name| is_forbidden(name)).map(String::from).collect();
    check_none(&format!("inside {room} although it must not be"), &offences);
}

#[track_caller]
fn check_direct(graph: &Graph, room: &str, kind: Option<&str>, allowed: &[&str]) {
    let offences: Vec<String> =
        graph.direct(room, kind).into_iter().filter(|name| !allowed.contains(&name.as_str())).collect();
    check_none(&format!("{room} may not depend on"), &offences);
}

fn is_cluster(name: &str) -> bool {
    name.starts_with("kube") || name.starts_with("k8s-")
}

/// No input or output, no clock, no network: a decision is a function of what it is given.
#[test]
fn authority_is_a_shell_parser_and_serde() {
    let graph = Graph::read();
    check_direct(
        &graph,
        "mooring-authority",
        Some("normal"),
        &["brush-parser", "serde", "serde_json", "thiserror"],
    );
    let forbidden =
        ["axum", "futures", "hyper", "mio", "prost", "reqwest", "rustls", "sqlx", "tokio", "tonic", "tower"];
    check_inside(&graph, "mooring-authority", |name| {
        forbidden.contains(&name) || is_cluster(name) || name.starts_with("mooring-")
    });
}

#[test]
fn proto_is_prost_and_tonic() {
    let graph = Graph::read();
    let allowed = ["bytes", "prost", "thiserror", "tonic", "tonic-prost"];
    check_direct(&graph, "mooring-proto", Some("normal"), &allowed);
    check_inside(&graph, "mooring-proto", |name| is_cluster(name) || name.starts_with("mooring-"));
}

#[test]
fn the_executor_knows_no_cluster_and_no_other_program() {
    let graph = Graph::read();
    check_inside(&graph, "mooring-executor", |name| {
        is_cluster(name)
            || (name.starts_with("mooring-") && name != "mooring-proto")
            || matches!(name, "reqwest" | "sqlx")
    });
}

#[test]
fn the_harness_links_neither_the_executor_nor_the_operator() {
    let allowed = ["mooring-authority", "mooring-operator-api", "mooring-proto"];
    check_inside(&Graph::read(), "mooring-harness", |name| {
        name.starts_with("mooring-") && !allowed.contains(&name)
    });
}

/// It speaks to the API server and to the gateway; it links nobody's decisions and keeps nothing.
#[test]
fn the_plugin_knows_the_resources_and_the_protocol_alone() {
    let allowed = ["mooring-operator-api", "mooring-proto"];
    check_inside(&Graph::read(), "mooring-cli", |name| {
        (name.starts_with("mooring-") && !allowed.contains(&name)) || name == "sqlx"
    });
}

/// Types and their rules; who reads them chooses how to reach a cluster.
#[test]
fn the_resources_bring_no_client() {
    let forbidden = [
        "h2",
        "hyper",
        "kube",
        "kube-client",
        "kube-runtime",
        "mio",
        "reqwest",
        "rustls",
        "tokio",
        "tonic",
        "tower",
    ];
    check_inside(&Graph::read(), "mooring-operator-api", |name| {
        forbidden.contains(&name) || name.starts_with("mooring-")
    });
}

#[test]
fn the_operator_knows_the_resources_and_the_protocol_alone() {
    let allowed = ["mooring-operator-api", "mooring-proto"];
    check_inside(&Graph::read(), "mooring-operator", |name| {
        (name.starts_with("mooring-") && !allowed.contains(&name)) || name == "sqlx"
    });
}

/// It prepares workspaces; what is in them is none of its business.
#[test]
fn the_operator_calls_neither_files_nor_commands() {
    let sources = texts(|file| file.starts_with("operator/src") && has_extension(file, &["rs"]));
    let offences: Vec<String> = sources
        .iter()
        .filter(|(_, text)| {
            ["file_service", "FileService", "command_service", "CommandService"]
                .iter()
                .any(|name| text.contains(name))
        })
        .map(|(file, _)| file.display().to_string())
        .collect();
    check_none("the operator names a service that is not WorkspaceService", &offences);
}

#[test]
fn the_end_to_end_tests_know_the_programs_from_outside_alone() {
    let graph = Graph::read();
    let ours: Vec<String> =
        graph.direct("mooring-e2e", None).into_iter().filter(|name| name.starts_with("mooring-")).collect();
    assert_eq!(ours, ["mooring-proto"]);
    for room in graph.rooms.keys() {
        assert!(!graph.direct(room, None).contains("mooring-e2e"), "{room} depends on the end-to-end tests");
    }
}

/// Two providers in one build panic at the first use of TLS.
#[test]
fn there_is_one_tls_library_with_one_provider() {
    let lock: toml::Table = text("Cargo.lock").parse().expect("Cargo.lock is TOML");
    let packages: Vec<&str> = lock["package"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|package| package["name"].as_str())
        .collect();
    let count = |name: &str| packages.iter().filter(|package| **package == name).count();
    assert_eq!((count("rustls"), count("ring")), (1, 1));
    let forbidden = ["aws-lc-rs", "aws-lc-sys", "boring", "mbedtls", "native-tls", "openssl", "openssl-sys"];
    let offences: Vec<String> =
        forbidden.iter().filter(|name| count(name) > 0).map(ToString::to_string).collect();
    check_none("another TLS library or provider", &offences);
}

/// One version and one set of features for the whole workspace, and the same lints everywhere.
#[test]
fn every_room_takes_versions_and_lints_from_the_workspace() {
    let mut offences = Vec::new();
    for (name, package) in Graph::read().rooms {
        let manifest: toml::Table = std::fs::read_to_string(word(&package, "manifest_path"))
            .expect("the room's manifest")
            .parse()
            .expect("a manifest is TOML");
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(dependencies) = manifest.get(kind).and_then(toml::Value::as_table) else { continue };
            for (dependency, source) in dependencies {
                if source.get("workspace").and_then(toml::Value::as_bool) != Some(true) {
                    offences.push(format!("{name}: {dependency} has a version of its own"));
                }
            }
        }
        let lints =
            manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
        if lints != Some(true) {
            offences.push(format!("{name}: lints are not the workspace's"));
        }
    }
    check_none("a room that goes its own way", &offences);
}

/// `docs/dependencies.md` has a row `| name | what for | why this one |` for each, and none for what is gone.
#[test]
fn every_direct_dependency_has_its_reason() {
    let graph = Graph::read();
    let used: BTreeSet<String> = graph
        .rooms
        .keys()
        .flat_map(|room| graph.direct(room, None))
        .filter(|name| !name.starts_with("mooring-"))
        .collect();
    let told: BTreeSet<String> = text("docs/dependencies.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |").map(|(name, _)| name.to_owned()))
        .collect();
    let missing: Vec<String> = used.difference(&told).cloned().collect();
    check_none("no reason in docs/dependencies.md for", &missing);
    let gone: Vec<String> = told.difference(&used).cloned().collect();
    check_none("docs/dependencies.md gives reasons for what nobody uses", &gone);
}
