//! Who is let in: exact identity, epoch, workspace, actor and lease.

use mooring_proto::v1::{
    EnvironmentKind, EnvironmentRef, ErrorCode, ListRequest, RequestContext, StartRequest,
};
use tonic::Status;

use crate::fixture::{Executor, Folder, code_of, lease, person, text};

type Change = fn(&mut RequestContext);

async fn look(executor: &Executor, context: RequestContext) -> Result<(), Status> {
    executor.commands().list(ListRequest { context: Some(context) }).await.map(drop)
}

async fn act(executor: &Executor, context: RequestContext) -> Result<(), Status> {
    executor.start_command(StartRequest { context: Some(context), ..text("true") }).await.map(drop)
}

fn environment(context: &mut RequestContext) -> &mut EnvironmentRef {
    context.environment.as_mut().expect("an environment")
}

#[tokio::test]
async fn nothing_is_let_in_before_bind() {
    let executor = Executor::start_unbound(Folder::new()).await;
    let refused = look(&executor, executor.context_of("")).await.expect_err("unbound");
    assert_eq!(code_of(&refused), ErrorCode::WrongEnvironment);
    let refused = act(&executor, executor.context_of("x")).await.expect_err("unbound");
    assert_eq!(code_of(&refused), ErrorCode::WrongEnvironment);
}

#[tokio::test]
async fn a_context_that_differs_in_anything_is_refused() {
    let executor = Executor::start().await;
    let cases: [(&str, Change, ErrorCode); 13] = [
        ("revision", |c| environment(c).revision.replace_range(..1, "f"), ErrorCode::WrongEnvironment),
        ("upper case", |c| environment(c).revision.make_ascii_uppercase(), ErrorCode::WrongEnvironment),
        ("id", |c| environment(c).id.push('/'), ErrorCode::WrongEnvironment),
        ("kind", |c| environment(c).kind = EnvironmentKind::Kubernetes.into(), ErrorCode::WrongEnvironment),
        ("no environment", |c| c.environment = None, ErrorCode::WrongEnvironment),
        ("epoch 0", |c| c.epoch = 0, ErrorCode::StaleEpoch),
        ("epoch 2", |c| c.epoch = 2, ErrorCode::StaleEpoch),
        ("another workspace", |c| c.workspace_id = "0".repeat(32), ErrorCode::NotFound),
        ("no workspace id", |c| c.workspace_id = "main".to_owned(), ErrorCode::InvalidArgument),
        ("no actor", |c| c.actor = None, ErrorCode::InvalidArgument),
        ("an empty session", |c| c.actor = Some(lease("", 1)), ErrorCode::InvalidArgument),
        ("lease epoch 0", |c| c.actor = Some(lease("s", 0)), ErrorCode::InvalidArgument),
        ("a long name", |c| c.actor = Some(person(&"x".repeat(254))), ErrorCode::InvalidArgument),
    ];
    for (case, change, code) in cases {
        let mut context = executor.context_of("an-id");
        change(&mut context);
        let refused = look(&executor, context.clone()).await.expect_err(case);
        assert_eq!(code_of(&refused), code, "{case}");
        let refused = act(&executor, context).await.expect_err(case);
        assert_eq!(code_of(&refused), code, "{case}");
    }
    for id in ["", "a b", "a/b", "ä", &"x".repeat(129)] {
        let refused = act(&executor, executor.context_of(id)).await.expect_err(id);
        assert_eq!(code_of(&refused), ErrorCode::InvalidArgument, "{id}");
    }
    let refused = executor.commands().list(ListRequest { context: None }).await.expect_err("none");
    assert_eq!(code_of(&refused), ErrorCode::InvalidArgument);
    let mut by_default = executor.context_of("by-default");
    by_default.workspace_id.clear();
    act(&executor, by_default).await.expect("the main workspace");
}

#[tokio::test]
async fn an_overtaken_lease_acts_no_more_even_after_a_restart() {
    let folder = Folder::new();
    let executor = Executor::start_bound(folder.clone(), folder.bind_request()).await;
    let under = |executor: &Executor, id: &str, actor| RequestContext {
        actor: Some(actor),
        ..executor.context_of(id)
    };
    act(&executor, under(&executor, "a", lease("s", 7))).await.expect("the first");
    act(&executor, under(&executor, "b", lease("s", 7))).await.expect("the same");
    let refused = act(&executor, under(&executor, "c", lease("s", 6))).await.expect_err("overtaken");
    assert_eq!(code_of(&refused), ErrorCode::StaleLease);
    look(&executor, under(&executor, "", lease("s", 6))).await.expect("reads are not fenced");
    look(&executor, under(&executor, "", lease("s", 9))).await.expect("reads do not fence");
    act(&executor, under(&executor, "d", lease("s", 7))).await.expect("still the highest");
    act(&executor, under(&executor, "e", lease("other", 1))).await.expect("another session");
    act(&executor, under(&executor, "f", person("alice"))).await.expect("a person has no lease");
    drop(executor);

    let executor = Executor::start_bound(folder.clone(), folder.bind_request()).await;
    let refused = act(&executor, under(&executor, "c", lease("s", 6))).await.expect_err("overtaken");
    assert_eq!(code_of(&refused), ErrorCode::StaleLease);
    act(&executor, under(&executor, "g", lease("s", 8))).await.expect("taken over");
}
