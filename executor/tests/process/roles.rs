//! What each certificate's role may call, over real connections.

use mooring_proto::detail_of;
use mooring_proto::v1::{ErrorCode, ListRequest, RequestContext};
use tonic::Request;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use crate::fixture::{Ground, Pod, code_of, text};

/// Calls with an empty request, and says whether the role was refused.
async fn is_refused(channel: &Channel, path: &str) -> bool {
    let mut client = Grpc::new(channel.clone());
    client.ready().await.expect("a live connection");
    let path = PathAndQuery::try_from(path.to_owned()).expect("a path");
    let called = client.server_streaming(Request::new(()), path, ProstCodec::<(), ()>::default()).await;
    called.is_err_and(|status| {
        detail_of(&status).is_some_and(|detail| detail.code() == ErrorCode::PermissionDenied)
    })
}

#[tokio::test]
async fn a_role_may_call_what_is_its_own_and_nothing_else() {
    let ground = Ground::new();
    let pod = Pod::start_unbound(&ground).await;
    let of_both = [
        "grpc.health.v1.Health/Check",
        "grpc.health.v1.Health/Watch",
        "mooring.execution.v1.WorkspaceService/ListWorkspaces",
        "mooring.execution.v1.WorkspaceService/Import",
        "mooring.execution.v1.WorkspaceService/Export",
        "mooring.execution.v1.WorkspaceService/Diff",
    ];
    let files = ["Read", "ListDirectory", "Write", "Edit", "Copy", "Move", "Remove", "Grep", "Glob", "Stat"];
    let commands = ["Start", "Attach", "Status", "List", "Signal", "Cancel", "WriteInput", "ResizePty"];
    let of_harness = files.map(|method| format!("mooring.execution.v1.FileService/{method}"));
    let of_harness = of_harness
        .into_iter()
        .chain(commands.map(|method| format!("mooring.execution.v1.CommandService/{method}")));
    let of_operator = ["Bind", "Fork", "Drop", "Apply"]
        .map(|method| format!("mooring.execution.v1.WorkspaceService/{method}"));
    let of_nobody = [
        "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        "mooring.execution.v1.FileService/Shred",
        "mooring.execution.v1.AdminService/Do",
        "x",
    ];
    let open_to = |harness: bool, operator: bool| move |call: String| (call, harness, operator);
    let calls = of_both
        .map(str::to_owned)
        .into_iter()
        .map(open_to(true, true))
        .chain(of_harness.map(open_to(true, false)))
        .chain(of_operator.map(open_to(false, true)))
        .chain(of_nobody.map(str::to_owned).map(open_to(false, false)));
    for (call, harness, operator) in calls {
        let path = format!("/{call}");
        assert_eq!(is_refused(&pod.channel, &path).await, !harness, "{call} by the harness");
        assert_eq!(is_refused(&pod.operator, &path).await, !operator, "{call} by the operator");
    }
    pod.await_log("calls were refused to a role").await;
}

#[tokio::test]
async fn another_environment_is_as_unknown_to_a_harness_as_none() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    for id in ["team-b/fix-42/8d3bbf3a-6a52-4f6e-9f5c-0d6f5f9a4e11", "team-a/fix-42/0", "x", ""] {
        let mut context = pod.context_of("");
        context.environment.as_mut().expect("one").id = id.to_owned();
        let refused = pod.commands().list(ListRequest { context: Some(context) }).await.expect_err(id);
        assert_eq!(code_of(&refused), ErrorCode::WrongEnvironment);
        assert_eq!(refused.message(), "no such environment here");
    }
    let mut context = pod.context_of("");
    context.environment.as_mut().expect("one").revision.replace_range(..1, "f");
    let refused = pod.commands().list(ListRequest { context: Some(context) }).await.expect_err("revision");
    assert_eq!(code_of(&refused), ErrorCode::WrongEnvironment);
    for epoch in [0, 2] {
        let context = RequestContext { epoch, ..pod.context_of("") };
        let refused = pod.commands().list(ListRequest { context: Some(context) }).await.expect_err("epoch");
        assert_eq!(code_of(&refused), ErrorCode::StaleEpoch);
    }
    pod.await_log("calls for an environment that is not here were refused").await;
    assert_eq!(pod.run(text("echo served")).await.stdout_text(), "served\n");
}
