//! What admission accepts and refuses beyond the table of powers, each rule with both.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use axum::http::Method;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use mooring_e2e::platform::{Answer, Caller, Ground, Namespace, OPERATOR, SYSTEM, Sighting, Watch};
use serde_json::{Value, json};

use super::cast::{Attempt, Cast, Desk, Outcome, offence, owner_of, question, task};
use super::stage::{Stage, on_stage};

use Outcome::{Done, Invalid, Refused};

/// The garbage collector of a busy machine.
const COLLECTION_DEADLINE: Duration = Duration::from_mins(1);

/// Makes each attempt and collects what goes otherwise.
async fn judge(cases: Vec<(&str, Outcome, Attempt<'_>)>) -> anyhow::Result<()> {
    let mut offences = Vec::new();
    for (what, outcome, attempt) in cases {
        if let Some(said) = offence(&attempt.made().await?, outcome) {
            offences.push(format!("{what}: {said}"));
        }
    }
    ensure!(offences.is_empty(), "{} offences:\n  {}", offences.len(), offences.join("\n  "));
    Ok(())
}

fn desk<'a>(stage: &'a Stage, who: &'a Caller) -> Desk<'a> {
    Desk { who, namespace: &stage.namespace.name }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_owner_is_the_requesters_and_has_its_finalizer_at_once() {
    on_stage("defaults", async |stage| {
        let cast = Cast::come(&stage.namespace).await?;
        for who in [&cast.ana, &cast.robot, &cast.admin] {
            let made = desk(stage, who).try_create("sessions", "one", &json!({})).made().await?.done()?;
            assert_eq!(owner_of(&made)?, who.name);
            assert_eq!(made["metadata"]["finalizers"], json!(["mooring.dev/environment"]));
        }
        let path =
            format!("/apis/mooring.dev/v1alpha1/namespaces/{}/sessions?dryRun=All", stage.namespace.name);
        for (finalizers, expected) in [
            (json!(["example.com/mine"]), json!(["example.com/mine", "mooring.dev/environment"])),
            (json!(["mooring.dev/environment"]), json!(["mooring.dev/environment"])),
        ] {
            let object = json!({
                "apiVersion": "mooring.dev/v1alpha1", "kind": "Session",
                "metadata": {"name": "one", "finalizers": finalizers},
            });
            let made = cast.ana.ask(Method::POST, &path, Some(&object)).await?.done()?;
            assert_eq!((owner_of(&made)?, &made["metadata"]["finalizers"]), ("ana", &expected));
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_the_requester_or_assigned_and_never_one_of_us() {
    on_stage("owners", async |stage| {
        let cast = Cast::come(&stage.namespace).await?;
        let (ana, admin, robot) =
            (desk(stage, &cast.ana), desk(stage, &cast.admin), desk(stage, &cast.robot));
        let for_bo = json!({"owner": "bo"});
        let expected = format!("spec.owner must be {}", cast.robot.name);
        let before = robot.try_create("sessions", "two", &for_bo).made().await?;
        ensure!(
            matches!(&before, Answer::Refused { code: 403, words, .. } if words.contains(&expected)),
            "{before:?}"
        );
        // As a controller that applies what is in a repository would.
        let verbs = ["create", "role", "assign", "--verb=assign-owner", "--resource=sessions.mooring.dev"];
        stage.namespace.kubectl(&verbs).await?;
        let account = format!("--serviceaccount={}:robot", stage.namespace.name);
        stage.namespace.kubectl(&["create", "rolebinding", "assign", "--role=assign", &account]).await?;
        let ours = ["mooring-harness", OPERATOR].map(|name| format!("system:serviceaccount:{SYSTEM}:{name}"));
        let mut cases = vec![
            ("one's own name", Done, ana.try_create("sessions", "one", &json!({"owner": "ana"}))),
            ("another's", Refused("spec.owner must be ana"), ana.try_create("sessions", "one", &for_bo)),
            ("another's by an admin", Done, admin.try_create("sessions", "one", &for_bo)),
            ("another's by who may assign", Done, robot.create("sessions", "two", &for_bo)),
            (
                "the spec, by who assigned it",
                Refused("it belongs to bo"),
                robot.try_patch("sessions/two", json!({"spec": {"suspended": true}})),
            ),
            (
                "a service account's",
                Done,
                admin.try_create("sessions", "one", &json!({"owner": cast.robot.name})),
            ),
            (
                "a node's",
                Invalid("a person or a service account"),
                admin.try_create("sessions", "one", &json!({"owner": "system:node:node1"})),
            ),
            ("one's own Task", Done, ana.try_create("tasks", "one", &task("ana"))),
            (
                "another's Task",
                Refused("spec.owner must be ana"),
                ana.try_create("tasks", "one", &task("bo")),
            ),
            (
                "even by an admin",
                Refused("spec.owner must be"),
                admin.try_create("tasks", "one", &task("bo")),
            ),
            ("one's own Preferences", Done, ana.try_create("preferences", "one", &json!({"owner": "ana"}))),
            ("another's", Refused("spec.owner must be ana"), ana.try_create("preferences", "one", &for_bo)),
            (
                "even by an admin",
                Refused("spec.owner must be"),
                admin.try_create("preferences", "one", &for_bo),
            ),
        ];
        for name in &ours {
            let spec = json!({"owner": name});
            let said = Invalid("neither the harness nor the operator");
            cases.push(("one of us", said, admin.try_create("sessions", "one", &spec)));
            let harness = desk(stage, &cast.harness);
            cases.push(("one of us by the harness", said, harness.try_create("sessions", "one", &spec)));
            cases.push(("a Task of one of us", said, harness.try_create("tasks", "one", &task(name))));
        }
        judge(cases).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_clears_up_deletes_and_relabels_but_changes_no_spec() {
    on_stage("stewards", async |stage| {
        let cast = Cast::come(&stage.namespace).await?;
        stage
            .namespace
            .kubectl(&["create", "rolebinding", "chief", "--clusterrole=admin", "--user=chief"])
            .await?;
        let chief = Caller::person(&stage.ground, "chief").await?;
        desk(stage, &cast.ana).create("sessions", "ana", &json!({})).made().await?.done()?;
        desk(stage, &cast.ana).create("preferences", "ana", &json!({"owner": "ana"})).made().await?.done()?;
        desk(stage, &cast.harness).create("approvals", "one", &question("ana")).made().await?.done()?;
        let label = || json!({"metadata": {"labels": {"x": "y"}}});
        let mut cases = Vec::new();
        for who in [&chief, &cast.admin] {
            let desk = desk(stage, who);
            let answer = json!({"spec": {"decision": {"answer": "allow"}}});
            cases.extend([
                ("relabels", Done, desk.try_patch("sessions/ana", label())),
                (
                    "changes a spec",
                    Refused("ana, who alone changes its spec"),
                    desk.try_patch("sessions/ana", json!({"spec": {"suspended": true}})),
                ),
                (
                    "answers",
                    Refused("ana, who alone changes its spec"),
                    desk.try_patch("approvals/one", answer),
                ),
                (
                    "changes Preferences",
                    Refused("ana, who alone changes its spec"),
                    desk.try_patch("preferences/ana", json!({"spec": {"environmentNote": "x"}})),
                ),
                ("deletes", Done, desk.try_delete("sessions/ana")),
                ("deletes Preferences", Done, desk.try_delete("preferences/ana")),
            ]);
        }
        judge(cases).await
    })
    .await;
}

fn with_secrets<'a>(names: impl IntoIterator<Item = &'a str>) -> Value {
    let variable = |(at, name)| json!({"name": format!("V{at}"), "secret": {"name": name, "key": "k"}});
    json!({"variables": names.into_iter().enumerate().map(variable).collect::<Vec<_>>()})
}

#[tokio::test(flavor = "multi_thread")]
async fn only_secrets_and_claims_the_requester_may_use_are_named_anew() {
    on_stage("credentials", async |stage| {
        let cast = Cast::come(&stage.namespace).await?;
        let names: Vec<String> = (0..17).map(|at| format!("s{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut role = vec!["create", "role", "reader", "--verb=get", "--resource=secrets"];
        let resources: Vec<String> = names.iter().map(|name| format!("--resource-name={name}")).collect();
        role.extend(resources.iter().map(String::as_str));
        stage.namespace.kubectl(&role).await?;
        stage.namespace.kubectl(&["create", "rolebinding", "reader", "--role=reader", "--user=ana"]).await?;
        let claims = "--resource=persistentvolumeclaims";
        let role = ["create", "role", "claimer", "--verb=update", claims, "--resource-name=mine"];
        stage.namespace.kubectl(&role).await?;
        stage.namespace.kubectl(&["create", "rolebinding", "claimer", "--role=claimer", "--user=ana"]).await?;
        let git = |secret: &str| json!({"workspace": {"source": {"git": {"url": "https://git.example/a.git", "credentialsSecret": secret}}}});
        let claim = |name: &str| json!({"workspace": {"source": {"claim": {"name": name}}}});
        let ana = desk(stage, &cast.ana);
        let many = with_secrets(std::iter::repeat_n(names[0], 64));
        let not_mine = Refused("ana may not get each of the Secrets named anew");
        judge(vec![
            ("hers", Done, ana.create("sessions", "kept", &with_secrets([names[0]]))),
            ("not hers", not_mine, ana.try_create("sessions", "one", &with_secrets(["other"]))),
            ("not hers among hers", not_mine, ana.try_create("sessions", "one", &with_secrets([names[0], names[1], names[2], "other"]))),
            ("one of hers in 64 variables", Done, ana.try_create("sessions", "one", &many)),
            ("16 of hers", Done, ana.try_create("sessions", "one", &with_secrets(names[..16].iter().copied()))),
            ("17 of hers", Refused("at most 16 Secrets"), ana.try_create("sessions", "one", &with_secrets(names.iter().copied()))),
            ("17 by who may get all", Done, desk(stage, &cast.admin).try_create("sessions", "one", &with_secrets(names.iter().copied()))),
            ("her git credentials", Done, ana.try_create("sessions", "one", &git(names[0]))),
            ("others' git credentials", not_mine, ana.try_create("sessions", "one", &git("other"))),
            ("her claim", Done, ana.try_create("sessions", "one", &claim("mine"))),
            ("another claim", Refused("may not update the volume claim theirs"), ana.try_create("sessions", "one", &claim("theirs"))),
            ("one more of hers", Done, ana.try_patch("sessions/kept", json!({"spec": with_secrets([names[0], names[1]])}))),
            ("one more, not hers", not_mine, ana.try_patch("sessions/kept", json!({"spec": with_secrets([names[0], "other"])}))),
        ])
        .await?;
        // What is named already stays, whatever becomes of the right.
        stage.namespace.kubectl(&["delete", "rolebinding", "reader"]).await?;
        judge(vec![
            ("the rest, without the right", Done, ana.try_patch("sessions/kept", json!({"spec": {"suspended": true}}))),
            ("another name, without the right", not_mine, ana.try_patch("sessions/kept", json!({"spec": with_secrets([names[1]])}))),
        ])
        .await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_while_it_is_pending_and_a_mode_is_raised_by_a_person() {
    on_stage("pending", async |stage| {
        let cast = Cast::come(&stage.namespace).await?;
        let (ana, robot, harness) =
            (desk(stage, &cast.ana), desk(stage, &cast.robot), desk(stage, &cast.harness));
        for name in ["new", "pending", "answered", "expired", "consumed"] {
            harness.create("approvals", name, &question("ana")).made().await?.done()?;
        }
        for (name, state) in [
            ("pending", "Pending"),
            ("answered", "Answered"),
            ("expired", "Expired"),
            ("consumed", "Consumed"),
        ] {
            let status = json!({"status": {"state": state}});
            harness.patch(&format!("approvals/{name}/status"), status).made().await?.done()?;
        }
        ana.create("sessions", "ana", &json!({"mode": "askFirst"})).made().await?.done()?;
        robot.create("sessions", "robot", &json!({"mode": "askFirst"})).made().await?.done()?;
        let answer = || json!({"spec": {"decision": {"answer": "allow"}}});
        let mode = |mode: &str| json!({"spec": {"mode": mode}});
        let trusted = || json!({"spec": {"workspace": {"trusted": true}}});
        let over = Refused("no longer pending");
        judge(vec![
            ("new", Done, ana.try_patch("approvals/new", answer())),
            ("pending", Done, ana.try_patch("approvals/pending", answer())),
            ("answered", over, ana.try_patch("approvals/answered", answer())),
            ("expired", over, ana.try_patch("approvals/expired", answer())),
            ("consumed", over, ana.try_patch("approvals/consumed", answer())),
            ("a person raises", Done, ana.try_patch("sessions/ana", mode("fullTrust"))),
            ("an account lowers", Done, robot.try_patch("sessions/robot", mode("readOnly"))),
            (
                "an account raises",
                Refused("only a person raises"),
                robot.try_patch("sessions/robot", mode("auto")),
            ),
            ("a person trusts", Done, ana.try_patch("sessions/ana", trusted())),
            (
                "an account trusts",
                Refused("only a person begins"),
                robot.try_patch("sessions/robot", trusted()),
            ),
        ])
        .await
    })
    .await;
}

/// A value for each field of a Session's status. A new field needs one here.
fn status_samples() -> Value {
    json!({
        "environment": {"kind": "kubernetes", "id": "a", "revision": "b"},
        "epoch": 9,
        "executor": {"pod": "a", "podUID": "b", "address": "192.0.2.1:1", "bootID": "c", "landlock": 7},
        "claim": {"name": "a", "uid": "b"},
        "sourceCommit": "0".repeat(40),
        "lastActivity": "2030-01-01T00:00:00Z",
        "idleSince": "2030-01-01T00:00:00Z",
        "operation": {"id": "start-1", "type": "Start", "step": "Claim", "startedAt": "2030-01-01T00:00:00Z"},
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Bound", "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }],
    })
}

/// The fields of a Session's status, as the API server has its definition.
async fn status_fields(ground: &Ground) -> anyhow::Result<BTreeSet<String>> {
    let definitions: Api<CustomResourceDefinition> = Api::all(ground.client.clone());
    let definition = definitions.get("sessions.mooring.dev").await?;
    let schema = definition.spec.versions.into_iter().next().context("a version")?.schema;
    let schema = schema.and_then(|schema| schema.open_api_v3_schema).context("a schema")?;
    let status = schema.properties.context("properties")?.remove("status").context("a status")?;
    Ok(status.properties.context("fields")?.into_keys().collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_sessions_status_the_harness_writes_the_last_activity_and_the_operator_the_rest() {
    on_stage("status", async |stage| {
        let fields = Box::pin(status_fields(&stage.ground)).await?;
        let samples = status_samples();
        let sampled: BTreeSet<String> =
            samples.as_object().into_iter().flatten().map(|(field, _)| field.clone()).collect();
        assert_eq!(fields, sampled, "a sample for each field of the schema");

        let cast = Cast::come(&stage.namespace).await?;
        // One that the operator leaves alone, with and without a status before.
        let namespace = Namespace::bare(&stage.ground, "fields").await?;
        let admin = Desk { who: &cast.admin, namespace: &namespace.name };
        admin.create("sessions", "one", &json!({"suspended": true})).made().await?.done()?;
        let (harness, operator) = (
            Desk { who: &cast.harness, namespace: &namespace.name },
            Desk { who: &cast.operator, namespace: &namespace.name },
        );
        let mut offences = Vec::new();
        for (field, sample) in samples.as_object().into_iter().flatten() {
            let is_activity = field == "lastActivity";
            for (desk, may, said) in [
                (&harness, is_activity, "lastActivity and nothing else"),
                (&operator, !is_activity, "is the harness's"),
            ] {
                let outcome = if may { Done } else { Refused(said) };
                let patch = json!({"status": {field: sample}});
                let answer = desk.try_patch("sessions/one/status", patch).made().await?;
                offences.extend(
                    offence(&answer, outcome).map(|said| format!("{}: {field}: {said}", desk.who.name)),
                );
            }
        }
        // Nor does one take away what is the other's.
        let activity = json!({"status": {"lastActivity": samples["lastActivity"]}});
        harness.patch("sessions/one/status", activity).made().await?.done()?;
        let nothing = |field: &str| json!({"status": {field: null}});
        judge(vec![
            (
                "taken away",
                Refused("is the harness's"),
                operator.try_patch("sessions/one/status", nothing("lastActivity")),
            ),
            (
                "taken away",
                Refused("and nothing else"),
                harness.try_patch("sessions/one/status", nothing("conditions")),
            ),
        ])
        .await?;
        namespace.remove().await?;
        ensure!(offences.is_empty(), "{} offences:\n  {}", offences.len(), offences.join("\n  "));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_itself_collects_and_ends_what_belongs_to_people() {
    on_stage("collected", async |stage| {
        let namespace = Namespace::make(&stage.ground, "ended").await?;
        let cast = Cast::come(&namespace).await?;
        let (ana, harness) = (Desk { who: &cast.ana, namespace: &namespace.name }, Desk { who: &cast.harness, namespace: &namespace.name });
        let session = ana.create("sessions", "one", &json!({"suspended": true})).made().await?.done()?;
        ana.create("sessions", "two", &json!({"suspended": true})).made().await?.done()?;
        ana.create("preferences", "ana", &json!({"owner": "ana"})).made().await?.done()?;
        ana.create("tasks", "one", &task("ana")).made().await?.done()?;
        harness.create("approvals", "kept", &question("ana")).made().await?.done()?;
        let owned = json!({
            "apiVersion": "mooring.dev/v1alpha1", "kind": "Approval", "spec": question("ana"),
            "metadata": {"name": "owned", "ownerReferences": [{
                "apiVersion": "mooring.dev/v1alpha1", "kind": "Session", "name": "one", "uid": session["metadata"]["uid"],
            }]},
        });
        let path = format!("/apis/mooring.dev/v1alpha1/namespaces/{}/approvals", namespace.name);
        cast.harness.ask(Method::POST, &path, Some(&owned)).await?.done()?;
        namespace.kubectl(&["delete", "session.mooring.dev", "one", "--wait=false"]).await?;
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("mooring.dev", "v1alpha1", "Approval"));
        let approvals = Api::<DynamicObject>::namespaced_with(stage.ground.client.clone(), &namespace.name, &kind);
        let mut watch = Watch::of(approvals, "owned");
        let find = |seen: &[Sighting<DynamicObject>]| seen.last().filter(|last| last.object.is_none()).map(drop);
        watch.until(COLLECTION_DEADLINE, "the question goes with its Session", find, |_| String::new()).await?;
        namespace.remove_whole().await
    })
    .await;
}
