//! Who acts at the API server, each under a real identity, and what they try there.

use anyhow::Context as _;
use axum::http::Method;
use mooring_e2e::platform::{Answer, Caller, DRY_RUN, Namespace, OPERATOR, SYSTEM};
use serde_json::{Value, json};

/// Those who appear. Ana, Bo and the robot hold `mooring-person` in the stage's namespace.
pub(super) struct Cast {
    /// The cluster's admin.
    pub(super) admin: Caller,
    /// A person, with a client certificate.
    pub(super) ana: Caller,
    /// Another one.
    pub(super) bo: Caller,
    /// A service account of the namespace.
    pub(super) robot: Caller,
    /// The harness's account.
    pub(super) harness: Caller,
    /// The operator's account.
    pub(super) operator: Caller,
    /// Who says nothing, as an executor pod would.
    pub(super) nobody: Caller,
}

impl Cast {
    pub(super) async fn come(namespace: &Namespace) -> anyhow::Result<Self> {
        let ground = &namespace.ground;
        namespace.kubectl(&["create", "serviceaccount", "robot"]).await?;
        let account = format!("--serviceaccount={}:robot", namespace.name);
        let role = "--clusterrole=mooring-person";
        let bind = ["create", "rolebinding", "people", role, "--user=ana", "--user=bo", &account];
        namespace.kubectl(&bind).await?;
        Ok(Self {
            admin: Caller::admin(ground).await?,
            ana: Caller::person(ground, "ana").await?,
            bo: Caller::person(ground, "bo").await?,
            robot: Caller::account(ground, &namespace.name, "robot").await?,
            harness: Caller::account(ground, SYSTEM, "mooring-harness").await?,
            operator: Caller::account(ground, SYSTEM, OPERATOR).await?,
            nobody: Caller::anonymous(ground).await?,
        })
    }
}

/// Lets these get tokens for the harness, users and the namespace's account `robot`, for as long as the namespace is there.
pub(super) async fn let_call(namespace: &Namespace, users: &[&str]) -> anyhow::Result<()> {
    let uid = ["get", "namespace", &namespace.name, "-o", "jsonpath={.metadata.uid}"];
    let uid = namespace.ground.kubectl.run(&uid).await?;
    let group = "rbac.authorization.k8s.io";
    let mut subjects = vec![json!({"kind": "ServiceAccount", "name": "robot", "namespace": namespace.name})];
    subjects.extend(users.iter().map(|name| json!({"kind": "User", "apiGroup": group, "name": name})));
    let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": namespace.name, "uid": uid});
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": namespace.name, "ownerReferences": [owner]},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "mooring-caller"},
        "subjects": subjects,
    });
    namespace.ground.kubectl.apply(&binding).await
}

/// Something that somebody tries.
pub(super) struct Attempt<'a> {
    who: &'a Caller,
    method: Method,
    path: String,
    body: Option<Value>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(who: &'a Caller, method: Method, path: String, body: Option<Value>) -> Self {
        Self { who, method, path, body }
    }

    pub(super) async fn made(&self) -> anyhow::Result<Answer> {
        self.who.ask(self.method.clone(), &self.path, self.body.as_ref()).await
    }
}

/// The objects of `mooring.dev` in one namespace, as somebody tries to use them.
pub(super) struct Desk<'a> {
    pub(super) who: &'a Caller,
    pub(super) namespace: &'a str,
}

impl<'a> Desk<'a> {
    /// Where objects of one of our kinds are.
    fn ours(&self, rest: &str) -> String {
        format!("/apis/mooring.dev/v1alpha1/namespaces/{}/{rest}", self.namespace)
    }

    /// Creates an object of the plural `kind`.
    pub(super) fn create(&self, kind: &str, name: &str, spec: &Value) -> Attempt<'a> {
        Attempt::new(self.who, Method::POST, self.ours(kind), Some(object(kind, name, spec)))
    }

    /// Asks the harness for a token through the API server.
    pub(super) fn exchange(&self) -> Attempt<'a> {
        let exchange = json!({"apiVersion": "tokens.mooring.dev/v1alpha1", "kind": "Exchange", "metadata": {}, "spec": {}});
        let path = "/apis/tokens.mooring.dev/v1alpha1/exchanges".to_owned();
        Attempt::new(self.who, Method::POST, path, Some(exchange))
    }

    /// Creates it as if.
    pub(super) fn try_create(&self, kind: &str, name: &str, spec: &Value) -> Attempt<'a> {
        let path = self.ours(kind) + DRY_RUN;
        Attempt::new(self.who, Method::POST, path, Some(object(kind, name, spec)))
    }

    /// Merges into an object; `what` is `kind/name` or `kind/name/status`.
    pub(super) fn patch(&self, what: &str, patch: Value) -> Attempt<'a> {
        Attempt::new(self.who, Method::PATCH, self.ours(what), Some(patch))
    }

    /// Merges into it as if.
    pub(super) fn try_patch(&self, what: &str, patch: Value) -> Attempt<'a> {
        let path = self.ours(what) + DRY_RUN;
        Attempt::new(self.who, Method::PATCH, path, Some(patch))
    }

    pub(super) fn get(&self, what: &str) -> Attempt<'a> {
        Attempt::new(self.who, Method::GET, self.ours(what), None)
    }

    /// Deletes it as if.
    pub(super) fn try_delete(&self, what: &str) -> Attempt<'a> {
        let path = self.ours(what) + DRY_RUN;
        Attempt::new(self.who, Method::DELETE, path, None)
    }

    /// Asks for a path of Kubernetes' own within the namespace, such as `pods`.
    pub(super) fn core(&self, method: Method, what: &str, body: Option<Value>) -> Attempt<'a> {
        Attempt::new(self.who, method, format!("/api/v1/namespaces/{}/{what}", self.namespace), body)
    }
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let kind = match kind {
        "sessions" => "Session",
        "tasks" => "Task",
        "approvals" => "Approval",
        "preferences" => "Preferences",
        other => panic!("no kind for {other}"),
    };
    json!({"apiVersion": "mooring.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// A Task of `owner` for the Session `ana`.
pub(super) fn task(owner: &str) -> Value {
    json!({
        "owner": owner, "sessionName": "ana", "prompt": "Look at it.",
        "delegation": "background", "workspace": "none", "access": "readOnly",
    })
}

/// A question to `owner` in the Session `ana`.
pub(super) fn question(owner: &str) -> Value {
    json!({
        "owner": owner, "session": "ana",
        "call": {"tool": "Shell", "digest": "0".repeat(64), "display": "git push"},
        "because": {"kind": "egress"},
    })
}

/// What is awaited of an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// It is done.
    Done,
    /// No role gives the right: Forbidden, before anything is looked at.
    NoRight,
    /// A policy refuses: Forbidden, with these words in its sentence.
    Refused(&'static str),
    /// The object itself is refused: Invalid, with these words.
    Invalid(&'static str),
}

/// What went otherwise than awaited; nothing when all went so.
pub(super) fn offence(answer: &Answer, outcome: Outcome) -> Option<String> {
    let is_so = match (answer, outcome) {
        (Answer::Done(_), Outcome::Done) => true,
        (Answer::Refused { code: 403, reason, words }, Outcome::NoRight) => {
            reason == "Forbidden" && words.contains(" cannot ") && !words.contains("AdmissionPolicy")
        }
        (Answer::Refused { code: 403, reason, words }, Outcome::Refused(sentence)) => {
            reason == "Forbidden" && words.contains("ValidatingAdmissionPolicy") && words.contains(sentence)
        }
        (Answer::Refused { code: 422, reason, words }, Outcome::Invalid(sentence)) => {
            reason == "Invalid" && words.contains(sentence)
        }
        (Answer::Done(_) | Answer::Refused { .. }, _) => false,
    };
    (!is_so).then(|| match answer {
        Answer::Done(_) => format!("was done, but {outcome:?} was awaited"),
        Answer::Refused { code, reason, words } => format!("{code} {reason} {words}, not {outcome:?}"),
    })
}

/// A user's name as the API server has it for the requester of this object.
pub(super) fn owner_of(object: &Value) -> anyhow::Result<&str> {
    object["spec"]["owner"].as_str().context("an owner")
}
