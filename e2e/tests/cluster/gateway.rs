//! Files and commands through the gateway: for the owner, by exact identity, and for nobody else.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Service;
use mooring_e2e::execution::{Executor, Gateway, Program, Target, code};
use mooring_e2e::fixture::await_condition;
use mooring_e2e::platform::{Bound, Caller, SYSTEM, Session, SessionStatus};
use mooring_proto::detail_of;
use mooring_proto::v1::{
    ApplyRequest, AttachRequest, BindRequest, CancelRequest, DiffRequest, DropRequest, EnvironmentKind,
    ErrorCode, ExportRequest, ForkRequest, ListRequest, ListWorkspacesRequest, ResizePtyRequest,
    SignalRequest, StatusRequest, WriteInputRequest,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::cast::{Cast, Desk, let_call};
use super::stage::{Stage, on_stage};

const TOKEN_DEADLINE: Duration = Duration::from_secs(30);
/// From the loss of the pod to a Session that is Ready again, as its owner finds it.
const BACK_DEADLINE: Duration = Duration::from_mins(1);
const ACTIVITY_DEADLINE: Duration = Duration::from_secs(10);

/// The gateway, and those who come to it.
struct Outside {
    gateway: Gateway,
    cast: Box<Cast>,
    /// A person with no right but to call.
    dan: Caller,
}

impl Outside {
    async fn come(stage: &Stage) -> anyhow::Result<Self> {
        let cast = Box::new(Box::pin(Cast::come(&stage.namespace)).await?);
        let_call(&stage.namespace, &["ana", "dan"]).await?;
        let dan = Caller::person(&stage.ground, "dan").await?;
        let service = stage.ground.api::<Service>(SYSTEM).get("mooring-harness").await?;
        let address = service.spec.and_then(|spec| spec.cluster_ip).context("the address of the Service")?;
        let told = exchanged(&cast.ana).await?;
        let gateway = Gateway {
            address: format!("{address}:8080").parse()?,
            name: text(&told, "/status/gateway/serverName")?,
            authority: text(&told, "/status/gateway/certificateAuthority")?,
        };
        Ok(Self { gateway, cast, dan })
    }

    async fn client(
        &self,
        stage: &Stage,
        token: &str,
        session: &str,
        target: Target,
    ) -> anyhow::Result<Executor> {
        self.gateway.connect(&stage.product.place, token, session, target).await
    }

    /// A client of `who` for a Session of the stage's namespace, which leaves to the gateway what it may.
    async fn reach(&self, stage: &Stage, who: &Caller, session: &str) -> anyhow::Result<Executor> {
        let token = text(&exchanged(who).await?, "/status/token")?;
        let session = format!("{}/{session}", stage.namespace.name);
        self.client(stage, &token, &session, Target::default()).await
    }

    /// Ana's own Session, Ready.
    async fn session(&self, stage: &Stage, name: &str) -> anyhow::Result<(Session, Bound)> {
        let desk = Desk { who: &self.cast.ana, namespace: &stage.namespace.name };
        desk.create("sessions", name, &json!({})).made().await?.done()?;
        let mut session = Session::open(&stage.namespace, name);
        let bound = session.ready().await?;
        Ok((session, bound))
    }
}

/// What the exchange answers; asked again while the API server finds nobody who serves it.
async fn exchanged(who: &Caller) -> anyhow::Result<Value> {
    let desk = Desk { who, namespace: "" };
    await_condition(TOKEN_DEADLINE, "the exchange answers", async || {
        desk.exchange().made().await.ok()?.done().ok()
    })
    .await
}

fn text(value: &Value, pointer: &str) -> anyhow::Result<String> {
    let text = value.pointer(pointer).and_then(Value::as_str);
    text.map(str::to_owned).with_context(|| format!("no text at {pointer}"))
}

/// One call of every kind that the gateway has, and what came of it.
async fn all_calls(executor: &Executor) -> Vec<(&'static str, Result<(), Status>)> {
    let context = || Some(executor.context());
    let id = || "0".repeat(32);
    let mut commands = executor.commands();
    let mut workspaces = executor.workspaces();
    vec![
        ("Read", executor.read("a").await.map(drop)),
        ("ListDirectory", executor.list("").await.map(drop)),
        ("Write", executor.write("a", b"x").await.map(drop)),
        ("Edit", executor.edit("a", "x", "y").await.map(drop)),
        ("Copy", executor.copy("a", "b").await.map(drop)),
        ("Move", executor.rename("a", "c").await),
        ("Remove", executor.remove("a").await),
        ("Grep", executor.grep("x", "").await.map(drop)),
        ("Glob", executor.glob("*").await.map(drop)),
        ("Stat", executor.stat("a").await.map(drop)),
        ("Start", executor.start(&Program::argv(["true"])).await.map(drop)),
        ("Attach", {
            let request = AttachRequest { context: context(), command_id: id(), ..AttachRequest::default() };
            match commands.attach(request).await {
                Ok(stream) => stream.into_inner().message().await.map(drop),
                Err(status) => Err(status),
            }
        }),
        ("Status", {
            commands.status(StatusRequest { context: context(), command_id: id() }).await.map(drop)
        }),
        ("List", commands.list(ListRequest { context: context() }).await.map(drop)),
        ("Signal", {
            let request = SignalRequest { context: context(), command_id: id(), signal: 15 };
            commands.signal(request).await.map(drop)
        }),
        ("Cancel", {
            commands.cancel(CancelRequest { context: context(), command_id: id() }).await.map(drop)
        }),
        ("WriteInput", {
            let request = WriteInputRequest { context: context(), command_id: id(), ..Default::default() };
            commands.write_input(request).await.map(drop)
        }),
        ("ResizePty", {
            let request = ResizePtyRequest { context: context(), command_id: id(), size: None };
            commands.resize_pty(request).await.map(drop)
        }),
        ("Import", executor.import_bytes("", &[0; 1024]).await.map(drop)),
        ("Export", {
            let request = ExportRequest { context: context(), ..ExportRequest::default() };
            match workspaces.export(request).await {
                Ok(stream) => stream.into_inner().message().await.map(drop),
                Err(status) => Err(status),
            }
        }),
    ]
}

/// Every call is refused with this code; gives the messages, which are to be the same.
async fn all_refused(executor: &Executor, expected: ErrorCode) -> anyhow::Result<String> {
    let mut said = None;
    for (name, result) in all_calls(executor).await {
        let status = result.err().with_context(|| format!("{name} was answered"))?;
        ensure!(code(&status) == Some(expected), "{name}: {status:?}");
        let detail = detail_of(&status).context("a detail")?;
        let told = format!("{:?} {} {:?}", status.code(), status.message(), detail.fields);
        let first = said.get_or_insert_with(|| told.clone());
        ensure!(*first == told, "{name}: {told}, not {first}");
    }
    said.context("calls")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_reaches_files_and_commands_and_finds_them_again_after_a_loss() {
    on_stage("gateway", async |stage| {
        let outside = Box::pin(Outside::come(stage)).await?;
        let (mut session, bound) = outside.session(stage, "mine").await?;
        let ana = outside.reach(stage, &outside.cast.ana, "mine").await?;
        ensure!(ana.write("notes/a.txt", b"one\n").await?.created);
        let finished = ana.run(&Program::shell("cat notes/a.txt && id -un 2>&1; pwd")).await?;
        ensure!(finished.is_success() && finished.text().starts_with("one\n"), "{}", finished.told());
        for (name, result) in all_calls(&ana).await {
            let refused = result.err().and_then(|status| code(&status));
            ensure!(
                !matches!(refused, Some(ErrorCode::WrongEnvironment | ErrorCode::Unauthenticated)),
                "{name} is open to the owner"
            );
        }
        let find = |status: &SessionStatus| status.last_activity.clone();
        session.until(ACTIVITY_DEADLINE, "the last activity is told", find).await?;

        // By its exact name it is the same one; by another it is refused.
        let token = text(&exchanged(&outside.cast.ana).await?, "/status/token")?;
        let name = format!("{}/mine", stage.namespace.name);
        let exact = outside.client(stage, &token, &name, bound.target()).await?;
        assert_eq!(exact.read("notes/a.txt").await?, b"one\n");
        for change in [
            |target: &mut Target| target.environment.revision = "0".repeat(32),
            |target: &mut Target| target.environment.kind = EnvironmentKind::Local.into(),
            |target: &mut Target| target.environment.id.push('x'),
        ] {
            all_refused(&exact.with(change), ErrorCode::WrongEnvironment).await?;
        }
        let stale = exact.with(|target| target.epoch += 1).read("notes/a.txt").await.expect_err("stale");
        assert_eq!(code(&stale), Some(ErrorCode::StaleEpoch));

        let pod = bound.executor.pod.as_str();
        stage.namespace.kubectl(&["delete", "pod", pod, "--wait=false"]).await?;
        let (again, _) = session.ready_from(bound.epoch + 1).await?;
        assert_eq!(again.environment, bound.environment);
        let read = await_condition(BACK_DEADLINE, "the gateway reaches the new executor", async || {
            ana.read("notes/a.txt").await.ok()
        });
        assert_eq!(read.await?, b"one\n");
        let old = exact.read("notes/a.txt").await.expect_err("the old epoch");
        assert_eq!(code(&old), Some(ErrorCode::StaleEpoch));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_session_is_as_unknown_as_none_in_every_call() {
    on_stage("foreign", async |stage| {
        let outside = Box::pin(Outside::come(stage)).await?;
        outside.session(stage, "mine").await?;
        let (Cast { ana, robot, .. }, dan) = (&*outside.cast, &outside.dan);
        let unknown =
            all_refused(&outside.reach(stage, ana, "none").await?, ErrorCode::WrongEnvironment).await?;
        for who in [dan, robot] {
            let foreign = outside.reach(stage, who, "mine").await?;
            assert_eq!(all_refused(&foreign, ErrorCode::WrongEnvironment).await?, unknown, "{}", who.name);
        }
        // What makes and ends workspaces is nobody's from outside.
        let mine = outside.reach(stage, ana, "mine").await?;
        let (mut workspaces, context) = (mine.workspaces(), || Some(mine.context()));
        for refused in [
            workspaces.bind(BindRequest::default()).await.map(drop),
            workspaces.fork(ForkRequest { context: context(), ..Default::default() }).await.map(drop),
            workspaces.drop(DropRequest { context: context(), ..Default::default() }).await.map(drop),
            workspaces
                .list_workspaces(ListWorkspacesRequest { context: context(), ..Default::default() })
                .await
                .map(drop),
            workspaces.diff(DiffRequest { context: context() }).await.map(drop),
            workspaces.apply(ApplyRequest { context: context(), ..Default::default() }).await.map(drop),
        ] {
            assert_eq!(code(&refused.expect_err("refused")), Some(ErrorCode::PermissionDenied));
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_cannot_say_who_they_are_is_refused() {
    on_stage("token", async |stage| {
        let outside = Box::pin(Outside::come(stage)).await?;
        outside.session(stage, "mine").await?;
        let name = format!("{}/mine", stage.namespace.name);
        let good = text(&exchanged(&outside.cast.ana).await?, "/status/token")?;
        let (claims, mac) = good.split_once('.').context("two parts")?;
        let robot = |audience: &'static str| {
            let namespace = &stage.namespace;
            async move { namespace.kubectl(&["create", "token", "robot", audience]).await }
        };
        let strange = robot("--audience=somebody-else").await?;
        for bad in
            ["", "x", "a.b", "a.b.c", claims, &format!("{claims}.{}", mac.to_uppercase()), strange.trim()]
        {
            let client = outside.client(stage, bad, &name, Target::default()).await?;
            all_refused(&client, ErrorCode::Unauthenticated).await?;
        }
        // The robot is somebody, for the gateway or for the API server; only not the owner.
        for audience in ["--audience=mooring", "--duration=1h"] {
            let token = robot(audience).await?;
            let client = outside.client(stage, token.trim(), &name, Target::default()).await?;
            all_refused(&client, ErrorCode::WrongEnvironment).await?;
        }
        for bad in ["mine", "/mine", "a/b/c", "", "A/b"] {
            let client = outside.client(stage, &good, bad, Target::default()).await?;
            all_refused(&client, ErrorCode::InvalidArgument).await?;
        }
        Ok(())
    })
    .await;
}

/// A service account owns Sessions, too, and needs no exchange.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_reaches_its_own_session_with_its_own_token() {
    on_stage("robot", async |stage| {
        let outside = Box::pin(Outside::come(stage)).await?;
        let desk = Desk { who: &outside.cast.robot, namespace: &stage.namespace.name };
        desk.create("sessions", "its", &json!({})).made().await?.done()?;
        Session::open(&stage.namespace, "its").ready().await?;
        let token = stage.namespace.kubectl(&["create", "token", "robot", "--audience=mooring"]).await?;
        let name = format!("{}/its", stage.namespace.name);
        let client = outside.client(stage, token.trim(), &name, Target::default()).await?;
        let finished = client.run(&Program::shell("echo by itself")).await?;
        assert_eq!(finished.text(), "by itself\n");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_not_ready_says_why() {
    on_stage("unready", async |stage| {
        let outside = Box::pin(Outside::come(stage)).await?;
        let desk = Desk { who: &outside.cast.ana, namespace: &stage.namespace.name };
        desk.create("sessions", "waits", &json!({"executorClass": "nothing"})).made().await?.done()?;
        desk.create("sessions", "plain", &json!({"profile": "no-fs"})).made().await?.done()?;
        let mut waits = Session::open(&stage.namespace, "waits");
        waits.condition(BACK_DEADLINE, "Ready", "False", "ClassNotFound").await?;
        let mut plain = Session::open(&stage.namespace, "plain");
        plain.condition(BACK_DEADLINE, "Ready", "True", "NoFiles").await?;

        let client = outside.reach(stage, &outside.cast.ana, "waits").await?;
        let told = await_condition(BACK_DEADLINE, "the gateway has seen the reason", async || {
            let status = client.list("").await.err()?;
            let detail = detail_of(&status)?;
            (detail.fields.get("reason")? == "ClassNotFound").then_some((status, detail))
        });
        let (status, detail) = told.await?;
        assert_eq!(
            (status.code(), detail.code(), detail.retryable),
            (Code::Unavailable, ErrorCode::NotReady, true)
        );
        let client = outside.reach(stage, &outside.cast.ana, "plain").await?;
        all_refused(&client, ErrorCode::Unsupported).await.map(drop)
    })
    .await;
}
