use expect_test::expect;

use crate::session::plan::tests::check;

#[test]
fn a_session_gets_our_finalizer_before_anything_is_made() {
    check(
        "bare | | ",
        expect![[r"
        add finalizer
    "]],
    );
}

#[test]
fn a_new_session_records_its_epoch_and_makes_all_but_the_pod() {
    check(
        " | | ",
        expect![[r"
            create claim OneNode
            apply policy
            status epoch=1 operation=Start:Claim:0:start-1
              Ready=False PodPending: the pod is being made
        "]],
    );
}

#[test]
fn the_pod_is_made_once_everything_it_needs_is_there() {
    check(
        " | epoch=1 op=start:claim:0:1 ready=PodPending | claim:pending secret policy",
        expect![[r"
        create pod 1
        again in 1 s
    "]],
    );
}

#[test]
fn no_pod_without_its_secret_its_policy_and_its_claim() {
    check(
        " | epoch=1 op=start:claim:0:1 ready=PodPending | secret policy",
        expect![[r"
        create claim OneNode
        again in 1 s
    "]],
    );
    check(
        " | epoch=1 op=start:claim:0:1 ready=PodPending | claim policy",
        expect![[r"
        create secret 1
        again in 1 s
    "]],
    );
    check(
        " | epoch=1 op=start:claim:0:1 ready=PodPending | claim secret",
        expect![[r"
        apply policy
        again in 1 s
    "]],
    );
    check(
        " | epoch=1 op=start:claim:0:1 ready=PodPending | claim secret:stale policy",
        expect![[r"
        renew secret 1
        again in 1 s
    "]],
    );
}

#[test]
fn a_start_is_quiet_for_a_second_and_then_says_what_it_waits_for() {
    check(
        " | epoch=1 op=start:claim:0:1 ready=PodPending | claim:pending policy pod=1:pending",
        expect![[r"
        again in 1 s
    "]],
    );
    check(
        " | epoch=1 op=start:claim:2:1 ready=PodPending | claim:pending policy pod=1:pending",
        expect![[r"
        status
          Ready=False VolumePending: the cluster has not provided the volume yet
        again in 298 s
    "]],
    );
    check(
        " | epoch=1 op=start:claim:2:1 ready=VolumePending | claim policy pod=1:running",
        expect![[r"
        status
          Ready=False Binding: the executor is being reached
        again in 298 s
    "]],
    );
}

#[test]
fn an_executor_is_dialled_as_soon_as_it_has_an_address() {
    check(
        " | epoch=1 op=start:claim:0:1 ready=PodPending | claim policy pod=1:pending addressed",
        expect![[r"
        dial epoch 1, may be new
        again in 1 s
    "]],
    );
    check(
        " | epoch=1 op=start:claim:0:1 ready=PodPending | claim policy pod=1:running dial=trying",
        expect![[r"
        again in 1 s
    "]],
    );
    check(
        " | epoch=1 op=start:claim:5:1 ready=PodPending | claim policy pod=1:running dial=trying:Binding",
        expect![[r"
            status
              Ready=False Binding: as it says
            again in 295 s
        "]],
    );
}

#[test]
fn a_bound_executor_is_one_write() {
    check(
        " | epoch=1 op=start:claim:1:1 ready=PodPending | claim policy pod=1:running dial=bound",
        expect![[r"
        status environment=Some(Kubernetes) claim=claim-1 executor=pod-1 operation=none
          Ready=True Bound: epoch 1 on pod ses-1f6685236f58fb8260b3-1
        event normal Bound
        again in 299 s
    "]],
    );
}

#[test]
fn a_session_without_files_is_ready_with_nothing_made() {
    check(
        "no-fs bare | | no-class",
        expect![[r"
        status environment=Some(None)
          Ready=True NoFiles: a session without files and commands
    "]],
    );
}

#[test]
fn other_sources_are_told_apart_from_the_empty_one() {
    check(
        "empty | | ",
        expect![[r"
            create claim OneNode
            apply policy
            status epoch=1 operation=Start:Claim:0:start-1
              Ready=False PodPending: the pod is being made
        "]],
    );
    check(
        "git | | ",
        expect![[r"
        status
          Ready=False SourceUnsupported: workspaces from a git source are not supported yet
        event warning SourceUnsupported
    "]],
    );
}
