//! Who may do what at the API server: the operator, the harness, and people.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_yaml::Value;

use super::NOTICE;

const OURS: &str = "mooring.dev";
/// The API that the harness serves.
const TOKENS: &str = "tokens.mooring.dev";

/// One rule of a role.
struct Grant {
    /// What it is for.
    why: &'static str,
    group: &'static str,
    resources: &'static [&'static str],
    /// Only objects of these names; none means all.
    names: &'static [&'static str],
    verbs: &'static [&'static str],
}

impl Grant {
    const fn new(
        why: &'static str,
        group: &'static str,
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
    ) -> Self {
        Self { why, group, resources, names: &[], verbs }
    }

    const fn of(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }
}

const READ: &[&str] = &["get", "list", "watch"];

/// In every namespace.
const OPERATOR: &[Grant] = &[
    Grant::new(
        "What is asked for, and the finalizers. A spec is never written: admission refuses it.",
        OURS,
        &["sessions", "executorclasses"],
        &["get", "list", "watch", "patch"],
    ),
    Grant::new("What is observed.", OURS, &["sessions/status", "executorclasses/status"], &["patch"]),
    Grant::new(
        "Owner references that hold their owner back, where the API server asks for this right.",
        OURS,
        &["sessions/finalizers", "executorclasses/finalizers"],
        &["update"],
    ),
    Grant::new("Executors.", "", &["pods"], &["get", "list", "watch", "create", "delete"]),
    Grant::new(
        "Workspaces.",
        "",
        &["persistentvolumeclaims"],
        &["get", "list", "watch", "create", "patch", "delete"],
    ),
    Grant::new(
        "Keys of executors, and Secrets that a Session names: by name alone, never listed.",
        "",
        &["secrets"],
        &["get", "create", "update", "delete"],
    ),
    Grant::new(
        "Who reaches whom.",
        "networking.k8s.io",
        &["networkpolicies"],
        &["get", "list", "watch", "create", "update", "delete"],
    ),
    Grant::new("Whether a node answers.", "", &["nodes"], READ),
    Grant::new("Which volumes there can be.", "storage.k8s.io", &["storageclasses", "csidrivers"], READ),
    Grant::new("What people should see.", "events.k8s.io", &["events"], &["create"]),
];

/// In its own namespace.
const OPERATOR_HOME: &[Grant] =
    &[Grant::new("The harness's client certificate.", "", &["secrets"], &["patch"])
        .of(&["mooring-harness-client"])];

/// In every namespace. What it holds can ask and hand on; nothing in it can answer, or widen what is allowed.
const HARNESS: &[Grant] = &[
    Grant::new("What people ask for.", OURS, &["sessions", "tasks", "preferences"], READ),
    Grant::new(
        "Questions, work handed on, Sessions of callers it has verified. Admission says how far.",
        OURS,
        &["approvals", "tasks", "sessions"],
        &["create"],
    ),
    Grant::new(
        "What becomes of them; of a Session the last activity alone, which admission sees to.",
        OURS,
        &["approvals/status", "tasks/status", "sessions/status"],
        &["patch"],
    ),
];

/// Asking the harness for a token: says who one is, and grants nothing.
const EXCHANGE: Grant = Grant::new(
    "To be known to the harness. Only a binding in the whole cluster gives this: exchanges have no namespace.",
    TOKENS,
    &["exchanges"],
    &["create"],
);

/// Who works here.
const PERSON: &[Grant] = &[
    Grant::new(
        "One's own.",
        OURS,
        &["sessions", "preferences"],
        &["get", "list", "watch", "create", "update", "patch", "delete"],
    ),
    Grant::new("A Task never changes.", OURS, &["tasks"], &["get", "list", "watch", "create", "delete"]),
    Grant::new("To answer.", OURS, &["approvals"], &["get", "list", "watch", "update", "patch", "delete"]),
    Grant::new("To choose one.", OURS, &["executorclasses"], READ),
    EXCHANGE,
];

/// Who only calls the harness.
const CALLER: &[Grant] = &[EXCHANGE];

/// Who clears up in a namespace. The verb is asked for by admission alone.
const STEWARD: &[Grant] = &[Grant::new(
    "To delete what belongs to others, and change its metadata. Never its spec.",
    OURS,
    &["sessions", "tasks", "approvals", "preferences"],
    &["steward"],
)];

/// Who looks on. Not at Preferences: what is in them is a person's own.
const VIEWER: &[Grant] =
    &[Grant::new("To look.", OURS, &["sessions", "tasks", "approvals", "executorclasses"], READ)];

/// Who declares classes.
const CLASS_AUTHOR: &[Grant] = &[Grant::new(
    "Image, sizes and reach of environments.",
    OURS,
    &["executorclasses"],
    &["get", "list", "watch", "create", "update", "patch", "delete"],
)];

/// `operator.yaml`, `harness.yaml` and `people.yaml`.
pub(super) fn files() -> Vec<(String, String)> {
    let home = "{{ .Release.Namespace }}";
    let mut operator = format!("# {NOTICE}\n");
    role(&mut operator, "ClusterRole", "mooring-operator", &[], OPERATOR);
    Binding::of("mooring-operator").write(&mut operator);
    role(&mut operator, "Role", "mooring-operator", &[], OPERATOR_HOME);
    Binding { namespace: Some(home), role_kind: "Role", ..Binding::of("mooring-operator") }
        .write(&mut operator);
    let mut harness = format!("# {NOTICE}\n");
    role(&mut harness, "ClusterRole", "mooring-harness", &[], HARNESS);
    let own = Binding::of("mooring-harness");
    own.write(&mut harness);
    // What every aggregated API needs: to have tokens and rights judged, and to know who vouches for callers.
    Binding { name: "mooring-harness-delegator", role: "system:auth-delegator", ..own }.write(&mut harness);
    let reader = Binding {
        namespace: Some("kube-system"),
        role_kind: "Role",
        role: "extension-apiserver-authentication-reader",
        ..own
    };
    reader.write(&mut harness);
    let mut people = format!(
        "# {NOTICE}\n# Bind them in a namespace. With `rbac.aggregate` whoever has view, edit or admin there has them already.\n"
    );
    role(&mut people, "ClusterRole", "mooring-viewer", &["view"], VIEWER);
    role(&mut people, "ClusterRole", "mooring-person", &["edit", "admin"], PERSON);
    role(&mut people, "ClusterRole", "mooring-caller", &[], CALLER);
    role(&mut people, "ClusterRole", "mooring-steward", &["admin"], STEWARD);
    role(&mut people, "ClusterRole", "mooring-class-author", &["admin"], CLASS_AUTHOR);
    [("operator", operator), ("harness", harness), ("people", people)]
        .map(|(name, text)| (name.to_owned(), text))
        .to_vec()
}

fn role(text: &mut String, kind: &str, name: &str, aggregated_to: &[&str], grants: &[Grant]) {
    let namespace = (kind == "Role").then_some("{{ .Release.Namespace }}");
    head(text, kind, name, namespace, aggregated_to);
    text.push_str("rules:\n");
    for Grant { why, group, resources, names, verbs } in grants {
        let group = if group.is_empty() { "\"\"" } else { group };
        let mut line = |line: String| writeln!(text, "{line}").expect("a string takes everything");
        line(format!("  # {why}"));
        line(format!("  - apiGroups: [{group}]"));
        line(format!("    resources: [{}]", resources.join(", ")));
        if !names.is_empty() {
            line(format!("    resourceNames: [{}]", names.join(", ")));
        }
        line(format!("    verbs: [{}]", verbs.join(", ")));
    }
}

/// A role given to one of our accounts.
#[derive(Clone, Copy)]
struct Binding {
    name: &'static str,
    /// Where; none means everywhere.
    namespace: Option<&'static str>,
    role_kind: &'static str,
    role: &'static str,
    account: &'static str,
}

impl Binding {
    /// The account's own ClusterRole, everywhere.
    const fn of(account: &'static str) -> Self {
        Self { name: account, namespace: None, role_kind: "ClusterRole", role: account, account }
    }

    fn write(&self, text: &mut String) {
        let Self { name, namespace, role_kind, role, account } = self;
        let kind = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        head(text, kind, name, *namespace, &[]);
        write!(
            text,
            "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {role_kind}\n  name: {role}\n\
             subjects:\n  - kind: ServiceAccount\n    name: {account}\n    namespace: {{{{ .Release.Namespace }}}}\n"
        )
        .expect("a string takes everything");
    }
}

fn head(text: &mut String, kind: &str, name: &str, namespace: Option<&str>, aggregated_to: &[&str]) {
    let namespace = namespace.map(|namespace| format!("  namespace: {namespace}\n")).unwrap_or_default();
    write!(
        text,
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n{namespace}  labels:\n    \
         {{{{- include \"mooring.labels\" . | nindent 4 }}}}\n"
    )
    .expect("a string takes everything");
    if !aggregated_to.is_empty() {
        text.push_str("    {{- if .Values.rbac.aggregate }}\n");
        for role in aggregated_to {
            writeln!(text, "    rbac.authorization.k8s.io/aggregate-to-{role}: \"true\"")
                .expect("a string takes everything");
        }
        text.push_str("    {{- end }}\n");
    }
}

/// Every rule as it is written: role, group, resource, verb.
fn rights() -> BTreeSet<[String; 4]> {
    let mut rights = BTreeSet::new();
    let words = |value: &Value| -> Vec<String> {
        value
            .as_sequence()
            .expect("a list")
            .iter()
            .map(|word| word.as_str().expect("a word").to_owned())
            .collect()
    };
    for (_, text) in files() {
        let plain: Vec<&str> = text.lines().filter(|line| !line.contains("{{")).collect();
        for document in serde_yaml::Deserializer::from_str(&plain.join("\n")) {
            let document: Value = serde::Deserialize::deserialize(document).expect("YAML");
            let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            for rule in document["rules"].as_sequence().into_iter().flatten() {
                for group in words(&rule["apiGroups"]) {
                    for resource in words(&rule["resources"]) {
                        for verb in words(&rule["verbs"]) {
                            rights.insert([name.clone(), group.clone(), resource.clone(), verb]);
                        }
                    }
                }
            }
        }
    }
    assert!(rights.len() > 50, "the roles are there: {rights:?}");
    rights
}

#[track_caller]
fn check_none(rule: &str, is_offence: impl Fn(&str, &str, &str, &str) -> bool) {
    let offences: Vec<String> = rights()
        .into_iter()
        .filter(|[role, group, resource, verb]| is_offence(role, group, resource, verb))
        .map(|right| right.join(" "))
        .collect();
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}

#[test]
fn no_role_has_everything_or_can_get_more() {
    check_none("too much", |_, group, resource, verb| {
        group == "*"
            || resource.contains('*')
            || verb == "*"
            || matches!(verb, "escalate" | "bind" | "impersonate" | "deletecollection" | "approve" | "sign")
            || group == "rbac.authorization.k8s.io"
            || group == "admissionregistration.k8s.io"
            || matches!(
                resource,
                "pods/exec"
                    | "pods/attach"
                    | "pods/portforward"
                    | "pods/proxy"
                    | "pods/ephemeralcontainers"
                    | "nodes/proxy"
                    | "serviceaccounts"
                    | "serviceaccounts/token"
            )
    });
}

/// A list or a watch shows what is in them, as `get` does, but of all of them.
#[test]
fn nobody_lists_secrets() {
    check_none("Secrets by name alone", |_, _, resource, verb| {
        resource == "secrets" && matches!(verb, "list" | "watch")
    });
}

/// Finalizers are the one thing beside the status; RBAC cannot tell fields apart, admission does.
#[test]
fn the_operator_writes_nothing_of_ours_but_status_and_finalizers() {
    check_none("the operator writes a spec", |role, group, resource, verb| {
        let is_read = READ.contains(&verb);
        let is_own_part = resource.ends_with("/status") || resource.ends_with("/finalizers");
        let is_finalizer = matches!(resource, "sessions" | "executorclasses") && verb == "patch";
        role == "mooring-operator" && group == OURS && !is_read && !is_own_part && !is_finalizer
    });
}

/// The table of powers, whole: a right more is a decision, not a change of a list.
#[test]
fn the_harness_reads_asks_and_hands_on_and_nothing_else() {
    let expected = [
        ("approvals", "create"),
        ("approvals/status", "patch"),
        ("preferences", "get"),
        ("preferences", "list"),
        ("preferences", "watch"),
        ("sessions", "create"),
        ("sessions", "get"),
        ("sessions", "list"),
        ("sessions", "watch"),
        ("sessions/status", "patch"),
        ("tasks", "create"),
        ("tasks", "get"),
        ("tasks", "list"),
        ("tasks", "watch"),
        ("tasks/status", "patch"),
    ];
    let held: Vec<[String; 4]> =
        rights().into_iter().filter(|[role, ..]| role.starts_with("mooring-harness")).collect();
    let expected = expected
        .map(|(resource, verb)| ["mooring-harness", OURS, resource, verb].map(str::to_owned))
        .to_vec();
    assert_eq!(held, expected);
}

#[test]
fn people_write_no_status_and_ask_nothing_in_the_harness_name() {
    check_none("what is not a person's", |role, group, resource, verb| {
        let is_token = group == TOKENS && resource == "exchanges" && verb == "create";
        let is_ours =
            group == OURS && !resource.contains('/') && !(resource == "approvals" && verb == "create");
        !matches!(role, "mooring-operator" | "mooring-harness") && !is_token && !is_ours
    });
}

/// The verb that lets somebody make Sessions in another's name is a platform team's to give, with a role of its own.
#[test]
fn no_role_of_ours_makes_sessions_for_others() {
    check_none("assign-owner", |_, _, _, verb| verb == "assign-owner");
}
