//! Who may do what: each power of the table tried at the API server under the identity it is for.

use anyhow::{Context as _, ensure};
use axum::http::Method;
use k8s_openapi::api::core::v1::Pod;
use mooring_e2e::platform::{Answer, Session};
use serde_json::{Value, json};

use super::cast::{Attempt, Cast, Desk, Outcome, let_call, offence, question, task};
use super::stage::{Stage, on_stage, tell};

use Outcome::{Done, Invalid, NoRight, Refused};

/// One cell: who, in which words, what is awaited, and the attempt.
type Cell<'a> = (&'static str, &'static str, Outcome, Attempt<'a>);

#[tokio::test(flavor = "multi_thread")]
async fn everybody_can_do_what_the_table_of_powers_says_and_nothing_else() {
    on_stage("powers", async |stage| {
        let cast = Cast::come(&stage.namespace).await?;
        let pod = scene(stage, &cast).await?;
        let_call(&stage.namespace, &["ana"]).await?;
        let mut rows = Vec::new();
        let mut offences = Vec::new();
        for (who, what, outcome, attempt) in cells(stage, &cast, &pod) {
            let answer = attempt.made().await?;
            let said = match &answer {
                Answer::Done(_) => "done".to_owned(),
                Answer::Refused { code, reason, words } => {
                    let by = match (words.contains("AdmissionPolicy"), code) {
                        (true, _) => "by admission",
                        (false, 422) => "by the definition",
                        (false, _) => "no right",
                    };
                    format!("{code} {reason}, {by}")
                }
            };
            rows.push(format!("{who:14} | {what:62} | {said}"));
            if let Some(offence) = offence(&answer, outcome) {
                offences.push(format!("{who}: {what}: {offence}"));
            }
        }
        tell(&format!("who            | what{:58} | what the API server says\n{}", "", rows.join("\n")));
        ensure!(offences.is_empty(), "{} offences:\n  {}", offences.len(), offences.join("\n  "));
        has_no_credential(stage, &pod).await
    })
    .await;
}

/// A Session of Ana's with its pod, and an object of each other kind, made by those who may. Gives the pod's name.
async fn scene(stage: &Stage, cast: &Cast) -> anyhow::Result<String> {
    let namespace = stage.namespace.name.as_str();
    let ana = Desk { who: &cast.ana, namespace };
    ana.create("sessions", "ana", &json!({})).made().await?.done()?;
    ana.create("preferences", "ana", &json!({"owner": "ana"})).made().await?.done()?;
    ana.create("tasks", "ana", &task("ana")).made().await?.done()?;
    let robot = Desk { who: &cast.robot, namespace };
    robot.create("sessions", "robot", &json!({"suspended": true})).made().await?.done()?;
    let harness = Desk { who: &cast.harness, namespace };
    for (name, owner) in [("one", "ana"), ("two", "ana"), ("robot", cast.robot.name.as_str())] {
        harness.create("approvals", name, &question(owner)).made().await?.done()?;
    }
    stage.namespace.kubectl(&["create", "secret", "generic", "word", "--from-literal=word=x"]).await?;
    Ok(Session::open(&stage.namespace, "ana").ready().await?.executor.pod)
}

fn cells<'a>(stage: &'a Stage, cast: &'a Cast, pod: &str) -> Vec<Cell<'a>> {
    let namespace = stage.namespace.name.as_str();
    let mut cells = persons(namespace, cast);
    cells.extend(others(namespace, cast));
    cells.extend(harness_may(namespace, cast));
    cells.extend(harness_may_not(namespace, cast, pod));
    cells.extend(operator(namespace, cast, pod));
    let nobody = Desk { who: &cast.nobody, namespace };
    let who = "executor pod";
    cells.extend([
        (who, "reads its Session", NoRight, nobody.get("sessions/ana")),
        (who, "reads a Secret", NoRight, nobody.core(Method::GET, "secrets/word", None)),
        (who, "answers a question", NoRight, nobody.patch("approvals/two", answer("allow"))),
    ]);
    cells
}

fn answer(word: &str) -> Value {
    json!({"spec": {"decision": {"answer": word}}})
}

fn exec(pod: &str) -> String {
    format!("pods/{pod}/exec?command=true&container=runner&stdout=true")
}

fn persons<'a>(namespace: &'a str, cast: &'a Cast) -> Vec<Cell<'a>> {
    let ana = Desk { who: &cast.ana, namespace };
    let who = "person";
    let state = json!({"status": {"state": "Answered"}});
    vec![
        (who, "makes a Session", Done, ana.try_create("sessions", "more", &json!({}))),
        (
            who,
            "changes the Session's spec",
            Done,
            ana.try_patch("sessions/ana", json!({"spec": {"mode": "fullTrust"}})),
        ),
        (who, "deletes the Session", Done, ana.try_delete("sessions/ana")),
        (who, "makes a Task", Done, ana.try_create("tasks", "more", &task("ana"))),
        (
            who,
            "writes Preferences",
            Done,
            ana.try_patch("preferences/ana", json!({"spec": {"environmentNote": "x"}})),
        ),
        (who, "answers a question", Done, ana.patch("approvals/one", answer("allow"))),
        (
            who,
            "answers it again",
            Invalid("a decision is set once"),
            ana.patch("approvals/one", answer("deny")),
        ),
        (who, "gets a token for the harness", Done, ana.exchange()),
        (who, "asks a question", NoRight, ana.try_create("approvals", "more", &question("ana"))),
        (
            who,
            "writes a Session's status",
            NoRight,
            ana.try_patch("sessions/ana/status", json!({"status": {"epoch": 9}})),
        ),
        (who, "writes a Task's status", NoRight, ana.try_patch("tasks/ana/status", json!({"status": {}}))),
        (who, "writes an Approval's status", NoRight, ana.try_patch("approvals/two/status", state)),
        (
            who,
            "writes the rules in Preferences' status",
            NoRight,
            ana.try_patch("preferences/ana/status", json!({"status": {"rules": []}})),
        ),
    ]
}

fn others<'a>(namespace: &'a str, cast: &'a Cast) -> Vec<Cell<'a>> {
    let bo = Desk { who: &cast.bo, namespace };
    let robot = Desk { who: &cast.robot, namespace };
    let (who, account) = ("another person", "person's robot");
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    vec![
        (who, "reads the Session", Done, bo.get("sessions/ana")),
        (who, "gets a token, bound in the namespace alone", NoRight, bo.exchange()),
        (
            who,
            "changes its spec",
            Refused("it belongs to ana"),
            bo.try_patch("sessions/ana", json!({"spec": {"suspended": true}})),
        ),
        (who, "changes its metadata", Refused("it belongs to ana"), bo.try_patch("sessions/ana", label)),
        (who, "deletes it", Refused("it belongs to ana"), bo.try_delete("sessions/ana")),
        (
            who,
            "makes one in the person's name",
            Refused("spec.owner must be bo"),
            bo.try_create("sessions", "more", &json!({"owner": "ana"})),
        ),
        (
            who,
            "makes a Task in the person's name",
            Refused("spec.owner must be bo"),
            bo.try_create("tasks", "more", &task("ana")),
        ),
        (
            who,
            "changes the person's Preferences",
            Refused("it belongs to ana"),
            bo.try_patch("preferences/ana", json!({"spec": {"environmentNote": "x"}})),
        ),
        (who, "deletes them", Refused("it belongs to ana"), bo.try_delete("preferences/ana")),
        (
            who,
            "answers the person's question",
            Refused("denied request"),
            bo.patch("approvals/two", answer("allow")),
        ),
        (account, "gets a token for the harness", Done, robot.exchange()),
        (account, "makes a Session of its own", Done, robot.try_create("sessions", "more", &json!({}))),
        (
            account,
            "changes it",
            Done,
            robot.try_patch("sessions/robot", json!({"spec": {"mode": "readOnly"}})),
        ),
        (
            account,
            "raises its mode",
            Refused("only a person raises spec.mode"),
            robot.try_patch("sessions/robot", json!({"spec": {"mode": "fullTrust"}})),
        ),
        (
            account,
            "answers its own question",
            Refused("only a person answers"),
            robot.patch("approvals/robot", answer("allow")),
        ),
        (
            account,
            "has Preferences",
            Refused("only a person has Preferences"),
            robot.try_create("preferences", "robot", &json!({"owner": cast.robot.name})),
        ),
        (
            account,
            "answers the person's question",
            Refused("denied request"),
            robot.patch("approvals/two", answer("allow")),
        ),
    ]
}

fn harness_may<'a>(namespace: &'a str, cast: &'a Cast) -> Vec<Cell<'a>> {
    let harness = Desk { who: &cast.harness, namespace };
    let who = "harness";
    let activity = json!({"status": {"lastActivity": "2030-01-01T00:00:00Z"}});
    let summary = json!({"status": {"result": {"outcome": "succeeded", "summary": "Looked."}}});
    vec![
        (who, "reads Sessions", Done, harness.get("sessions")),
        (who, "reads Tasks", Done, harness.get("tasks")),
        (who, "reads Preferences", Done, harness.get("preferences")),
        (who, "asks a question", Done, harness.try_create("approvals", "more", &question("ana"))),
        (who, "makes a Task for the person", Done, harness.try_create("tasks", "more", &task("ana"))),
        (
            who,
            "makes a Session for the person",
            Done,
            harness.try_create("sessions", "more", &json!({"owner": "ana", "mode": "auto"})),
        ),
        (
            who,
            "writes an Approval's status",
            Done,
            harness.try_patch("approvals/two/status", json!({"status": {"state": "Expired"}})),
        ),
        (who, "writes a Task's status", Done, harness.try_patch("tasks/ana/status", summary)),
        (who, "writes a Session's last activity", Done, harness.patch("sessions/ana/status", activity)),
    ]
}

fn harness_may_not<'a>(namespace: &'a str, cast: &'a Cast, pod: &str) -> Vec<Cell<'a>> {
    let harness = Desk { who: &cast.harness, namespace };
    let who = "harness";
    let mut decided = question("ana");
    decided["decision"] = json!({"answer": "allow"});
    let session = |more: Value| {
        let mut spec = json!({"owner": "ana"});
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        harness.try_create("sessions", "more", &spec)
    };
    let secret = json!({"variables": [{"name": "WORD", "secret": {"name": "word", "key": "word"}}]});
    let git = json!({"workspace": {"source": {"git": {"url": "https://git.example/a.git", "credentialsSecret": "word"}}}});
    let claim = json!({"workspace": {"source": {"claim": {"name": "any"}}}});
    vec![
        (
            who,
            "asks one that is answered",
            Invalid("made undecided"),
            harness.try_create("approvals", "more", &decided),
        ),
        (who, "answers a question", NoRight, harness.patch("approvals/two", answer("allow"))),
        (who, "deletes a question", NoRight, harness.try_delete("approvals/two")),
        (
            who,
            "writes more of a Session's status",
            Refused("lastActivity and nothing else"),
            harness.try_patch("sessions/ana/status", json!({"status": {"epoch": 9}})),
        ),
        (
            who,
            "makes a Session of its own",
            Invalid("neither the harness nor the operator"),
            harness.try_create("sessions", "more", &json!({})),
        ),
        (
            who,
            "makes one that trusts everything",
            Refused("mode auto at most"),
            session(json!({"mode": "fullTrust"})),
        ),
        (
            who,
            "makes one with a trusted workspace",
            Refused("without workspace.trusted"),
            session(json!({"workspace": {"trusted": true}})),
        ),
        (who, "makes one with a Secret as a variable", Refused("name no Secret"), session(secret)),
        (who, "makes one with a Secret for git", Refused("name no Secret"), session(git)),
        (who, "makes one with somebody's volume", Refused("name no volume claim"), session(claim)),
        (
            who,
            "changes a Session's spec",
            NoRight,
            harness.try_patch("sessions/ana", json!({"spec": {"suspended": true}})),
        ),
        (who, "deletes a Session", NoRight, harness.try_delete("sessions/ana")),
        (
            who,
            "makes Preferences",
            NoRight,
            harness.try_create("preferences", "more", &json!({"owner": "ana"})),
        ),
        (
            who,
            "changes Preferences",
            NoRight,
            harness.try_patch("preferences/ana", json!({"spec": {"environmentNote": "x"}})),
        ),
        (
            who,
            "keeps a rule in Preferences' status",
            NoRight,
            harness.try_patch("preferences/ana/status", json!({"status": {"rules": []}})),
        ),
        (who, "reads a Secret", NoRight, harness.core(Method::GET, "secrets/word", None)),
        (who, "reads pods", NoRight, harness.core(Method::GET, "pods", None)),
        (who, "executes in a pod", NoRight, harness.core(Method::POST, &exec(pod), None)),
    ]
}

fn operator<'a>(namespace: &'a str, cast: &'a Cast, pod: &str) -> Vec<Cell<'a>> {
    let operator = Desk { who: &cast.operator, namespace };
    let who = "operator";
    let policies = format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}});
    let activity = json!({"status": {"lastActivity": "2031-01-01T00:00:00Z"}});
    vec![
        (who, "reads pods", Done, operator.core(Method::GET, "pods", None)),
        (who, "reads volume claims", Done, operator.core(Method::GET, "persistentvolumeclaims", None)),
        (who, "reads network policies", Done, Attempt::new(&cast.operator, Method::GET, policies, None)),
        (who, "makes a Secret", Done, operator.core(Method::POST, "secrets?dryRun=All", Some(secret))),
        (who, "deletes a Secret", Done, operator.core(Method::DELETE, "secrets/word?dryRun=All", None)),
        (who, "gets a Secret by its name", Done, operator.core(Method::GET, "secrets/word", None)),
        (who, "lists Secrets", NoRight, operator.core(Method::GET, "secrets", None)),
        (
            who,
            "writes a Session's status",
            Done,
            operator.try_patch("sessions/ana/status", json!({"status": {"epoch": 9}})),
        ),
        (
            who,
            "writes its last activity",
            Refused("lastActivity is the harness's"),
            operator.try_patch("sessions/ana/status", activity),
        ),
        (
            who,
            "takes a finalizer off",
            Done,
            operator.try_patch("sessions/ana", json!({"metadata": {"finalizers": null}})),
        ),
        (
            who,
            "changes a Session's spec",
            Refused("changes no spec"),
            operator.try_patch("sessions/ana", json!({"spec": {"suspended": true}})),
        ),
        (who, "makes a Session", NoRight, operator.try_create("sessions", "more", &json!({"owner": "ana"}))),
        (who, "answers a question", NoRight, operator.patch("approvals/two", answer("allow"))),
        (who, "asks a question", NoRight, operator.try_create("approvals", "more", &question("ana"))),
        (
            who,
            "changes Preferences",
            NoRight,
            operator.try_patch("preferences/ana", json!({"spec": {"environmentNote": "x"}})),
        ),
        (who, "executes in a pod", NoRight, operator.core(Method::POST, &exec(pod), None)),
    ]
}

/// No token is mounted, by the pod's own words and by what Kubernetes added to them; so it is the nobody of the table.
async fn has_no_credential(stage: &Stage, name: &str) -> anyhow::Result<()> {
    let pod = stage.ground.api::<Pod>(&stage.namespace.name).get(name).await?.spec.context("a spec")?;
    assert_eq!(pod.automount_service_account_token, Some(false));
    for volume in pod.volumes.iter().flatten() {
        let tokens = volume.projected.iter().flat_map(|it| it.sources.iter().flatten());
        let has_token = tokens.filter(|source| source.service_account_token.is_some()).count() > 0;
        ensure!(!has_token, "volume {} holds a token", volume.name);
    }
    tell("executor pod   | holds a token: no; what its commands see of keys is the test of `secrecy`");
    Ok(())
}
