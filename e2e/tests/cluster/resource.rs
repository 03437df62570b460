//! The resources as a real API server knows them: their definitions are taken, and their rules say no by name.

use anyhow::{Context as _, bail, ensure};
use futures::{StreamExt as _, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use mooring_e2e::platform::{Caller, Ground, Namespace, Product, SYSTEM};
use serde_json::Value;

use super::case::{Case, Suite};
use super::stage::{conclude, in_peace, judged};

/// Calls under way at once.
const AT_ONCE: usize = 8;
/// How often an update is tried anew when the operator wrote in between.
const ATTEMPTS: usize = 10;
/// A case of the schema alone: admission fills in what is left out.
const FILLED_IN: &str = "owner-is-needed";

#[tokio::test(flavor = "multi_thread")]
async fn the_definitions_of_all_five_resources_are_established() {
    in_peace(async {
        let ground = Ground::open().await.expect("a cluster");
        Product::installed(&ground).await.expect("the product");
        let definitions: Api<CustomResourceDefinition> = Api::all(ground.client.clone());
        let all = definitions.list(&ListParams::default()).await.expect("definitions").items;
        let ours = all.into_iter().filter(|definition| definition.spec.group == "mooring.dev");
        let mut established: Vec<String> = ours
            .filter(|definition| {
                let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_ref());
                let is = |kind: &str, status: &str| {
                    let mut all = conditions.into_iter().flatten();
                    all.any(|condition| condition.type_ == kind && condition.status == status)
                };
                // A schema that is not structural is served all the same, and says so.
                is("Established", "True") && !is("NonStructuralSchema", "True")
            })
            .map(|definition| definition.spec.names.kind)
            .collect();
        established.sort();
        assert_eq!(established, ["Approval", "ExecutorClass", "Preferences", "Session", "Task"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_accepts_what_is_right_and_names_itself_to_what_is_wrong() {
    in_peace(async {
        let ground = Ground::open().await.expect("a cluster");
        Product::installed(&ground).await.expect("the product");
        // Without a class, so that nothing is made for the Sessions among them.
        let namespace = Namespace::bare(&ground, "rules").await.expect("a namespace");
        let played = judged(&ground, &namespace, judge(&namespace)).await;
        namespace.remove().await.expect("the namespace is removed");
        conclude(played);
    })
    .await;
}

async fn judge(namespace: &Namespace) -> anyhow::Result<()> {
    let suites = Suite::all();
    let callers = Callers {
        owner: Caller::almighty(&namespace.ground, "ana").await?,
        harness: Caller::almighty(
            &namespace.ground,
            &format!("system:serviceaccount:{SYSTEM}:mooring-harness"),
        )
        .await?,
    };
    let callers = &callers;
    let cases: Vec<(&Suite, &Case)> = suites
        .iter()
        .flat_map(|suite| suite.cases.iter().map(move |case| (suite, case)))
        .filter(|(_, case)| case.name != FILLED_IN)
        .collect();
    ensure!(cases.len() > 50, "only {} cases", cases.len());
    let offences = stream::iter(cases)
        .map(|(suite, case)| async move {
            let offences = Trial { namespace, callers, suite, case }.run().await;
            let told = |offence: String| format!("{}: {}: {offence}", suite.kind, case.name);
            offences
                .unwrap_or_else(|cause| vec![format!("{cause:#}")])
                .into_iter()
                .map(told)
                .collect::<Vec<_>>()
        })
        .buffer_unordered(AT_ONCE)
        .concat()
        .await;
    ensure!(offences.is_empty(), "{} offences:\n  {}", offences.len(), offences.join("\n  "));
    Ok(())
}

/// Who writes the objects, so that admission has nothing against it.
struct Callers {
    owner: Caller,
    harness: Caller,
}

/// One case before the API server.
struct Trial<'a> {
    namespace: &'a Namespace,
    callers: &'a Callers,
    suite: &'a Suite,
    case: &'a Case,
}

impl Trial<'_> {
    /// What went otherwise than the case says.
    async fn run(&self) -> anyhow::Result<Vec<String>> {
        let name = self.name();
        for (at, patch) in self.case.before.iter().enumerate() {
            let object = self.object(patch)?;
            let sent = if at == 0 {
                self.api(true).create(&PostParams::default(), &object).await.map(drop)
            } else {
                self.replace(&name, &object, false).await
            };
            sent.with_context(|| format!("before [{at}]"))?;
        }
        let mut offences = Vec::new();
        for (at, patch) in self.case.accepted.iter().enumerate() {
            if let Err(refusal) = self.send(&name, patch).await {
                offences.push(format!("accepted [{at}] was refused: {refusal}"));
            }
        }
        for (at, patch) in self.case.refused.iter().enumerate() {
            match self.send(&name, patch).await {
                Ok(()) => offences.push(format!("refused [{at}] was accepted")),
                Err(error) => {
                    if let Some(said) = self.otherwise(error)? {
                        offences.push(format!("refused [{at}]: {said}"));
                    }
                }
            }
        }
        Ok(offences)
    }

    /// Creates or changes an object, as if.
    async fn send(&self, name: &str, patch: &Value) -> Result<(), kube::Error> {
        let object = self.object(patch).map_err(|cause| kube::Error::Service(cause.into()))?;
        if self.case.before.is_empty() {
            let as_if = PostParams { dry_run: true, ..PostParams::default() };
            return self.api(true).create(&as_if, &object).await.map(drop);
        }
        self.replace(name, &object, true).await
    }

    async fn replace(&self, name: &str, object: &DynamicObject, dry_run: bool) -> Result<(), kube::Error> {
        let params = PostParams { dry_run, ..PostParams::default() };
        let mut last = Ok(());
        for _ in 0..ATTEMPTS {
            let mut object = object.clone();
            let current = self.api(false).get(name).await?;
            object.metadata = current.metadata;
            last = self.api(false).replace(name, &params, &object).await.map(drop);
            match &last {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Ok(()) | Err(_) => return last,
            }
        }
        last
    }

    /// What a refusal says otherwise than it should: about another field, in other words, or about more than one thing.
    fn otherwise(&self, error: kube::Error) -> anyhow::Result<Option<String>> {
        let kube::Error::Api(status) = error else { bail!("no answer: {error}") };
        let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
        // Said in addition, when an object is so wrong that rules cannot run on it.
        let are_said = |cause: &&kube::core::response::StatusCause| {
            cause.field != "<nil>" && !cause.message.contains("rule evaluation error")
        };
        let said: Vec<_> = causes.iter().filter(are_said).collect();
        let is_named = said.len() == 1
            && said
                .iter()
                .all(|cause| cause.field == self.case.path && cause.message.contains(&self.case.message));
        Ok((status.code != 422 || !is_named).then(|| format!("{} {said:?}", status.message)))
    }

    /// Objects of two suites may share a case's name, never a kind.
    fn name(&self) -> String {
        self.case.name.clone()
    }

    fn object(&self, patch: &Value) -> anyhow::Result<DynamicObject> {
        Ok(serde_json::from_value(self.suite.object(&self.name(), patch))?)
    }

    fn api(&self, is_creation: bool) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("mooring.dev", "v1alpha1", &self.suite.kind));
        // A word that is its own plural.
        let kind = if self.suite.kind == "Preferences" {
            ApiResource { plural: "preferences".to_owned(), ..kind }
        } else {
            kind
        };
        let is_question = is_creation && self.suite.kind == "Approval";
        let caller = if is_question { &self.callers.harness } else { &self.callers.owner };
        Api::namespaced_with(caller.client(), &self.namespace.name, &kind)
    }
}
