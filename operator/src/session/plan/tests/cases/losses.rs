use expect_test::expect;

use crate::session::plan::tests::check;

#[test]
fn an_executor_that_is_lost_again_and_again_is_replaced_ever_later() {
    // Recovered: bound for longer than a minute.
    check(
        " | epoch=3 bound=61:90 | claim policy pod=3:failed:65",
        expect![[r"
        delete pod 3
        status epoch=4 executor=none operation=Replace:Claim:0:replace-4
          Ready=False ExecutorLost: Error, exit code 1
        event warning ExecutorLost
    "]],
    );
    check(
        " | epoch=3 bound=10:40 | claim policy pod=3:failed:12",
        expect![[r"
        status executor=none operation=Replace:DeletePod:40:replace-4
          Ready=False ExecutorLost: Error, exit code 1
        event warning ExecutorLost
        again in 40 s
    "]],
    );
    check(
        " | epoch=4 bound=10:400 | claim policy pod=4:failed:12",
        expect![[r"
        status executor=none operation=Replace:DeletePod:400:replace-5
          Ready=False ExecutorLost: Error, exit code 1
        event warning ExecutorLost
        again in 300 s
    "]],
    );
}

#[test]
fn a_pod_that_its_policy_selects_no_more_is_replaced() {
    check(
        " | epoch=3 bound | claim policy pod=3:altered",
        expect![[r"
        delete pod 3
        status executor=none operation=Replace:DeletePod:0:replace-4
          Ready=False PodAltered: the labels of pod ses-1f6685236f58fb8260b3-3 are not what they were made
        event warning PodAltered
        again in 2 s
    "]],
    );
    check(
        " | epoch=1 op=start:claim:5:1 | claim policy secret pod=1:altered",
        expect![[r"
        delete pod 1
        delete secret 1
        status operation=Start:DeletePod:5:start-2
          Ready=False PodAltered: the labels of pod ses-1f6685236f58fb8260b3-1 are not what they were made
        event warning PodAltered
        again in 2 s
    "]],
    );
}

#[test]
fn no_epoch_follows_the_highest() {
    check(
        " | epoch=9007199254740991 environment op=replace:clear:3:1 | claim policy",
        expect![[r"
        status
          Ready=False WorkspaceMismatch: the volume or a pod claims the highest epoch there is; no executor can follow it
        event warning WorkspaceMismatch
    "]],
    );
    check(
        " | epoch=3 environment op=replace:claim:3:1 | claim policy pod=3:running dial=stale:9223372036854775807",
        expect![[r"
            hang up
            delete pod 3
            status epoch=9007199254740991 operation=Replace:DeletePod:3:replace-9007199254740992
              Ready=False BindRefused: the volume has seen epoch 9223372036854775807
            event warning BindRefused
        "]],
    );
}

#[test]
fn an_eviction_is_told_once_the_node_says_so() {
    check(
        " | epoch=3 environment op=replace:clear:3:1 ready=ExecutorLost | claim policy pod=3:evicting",
        expect![[r"
            status
              Ready=False Evicted: low on memory
            event warning Evicted
        "]],
    );
}

#[test]
fn a_lost_pod_is_told_at_once_with_its_reason() {
    check(
        " | epoch=3 bound | claim policy",
        expect![[r"
            status epoch=4 executor=none operation=Replace:Claim:0:replace-4
              Ready=False PodDeleted: pod ses-1f6685236f58fb8260b3-3 is gone
            event warning PodDeleted
        "]],
    );
    check(
        " | epoch=3 bound | claim policy pod=3:leaving",
        expect![[r"
        status executor=none operation=Replace:DeletePod:0:replace-4
          Ready=False PodDeleted: the pod is being deleted
        event warning PodDeleted
    "]],
    );
    check(
        " | epoch=3 bound | claim policy pod=3:ended:3600 secret",
        expect![[r"
        delete secret 3
        status executor=none operation=Replace:DeletePod:0:replace-4
          Ready=False ExecutorLost: Error, exit code 1
        event warning ExecutorLost
    "]],
    );
    check(
        " | epoch=3 bound | claim policy pod=3:failed:3600 secret",
        expect![[r"
            delete secret 3
            status executor=none operation=Replace:DeletePod:0:replace-4
              Ready=False ExecutorLost: Error, exit code 1
            event warning ExecutorLost
        "]],
    );
    check(
        " | epoch=3 bound | claim policy pod=3:oom:3600 secret",
        expect![[r"
            delete secret 3
            status executor=none operation=Replace:DeletePod:0:replace-4
              Ready=False ExecutorOutOfMemory: OOMKilled, exit code 137
            event warning ExecutorOutOfMemory
        "]],
    );
    check(
        " | epoch=3 bound | claim policy pod=3:evicted:3600 secret",
        expect![[r"
            delete secret 3
            status executor=none operation=Replace:DeletePod:0:replace-4
              Ready=False Evicted: low on memory
            event warning Evicted
        "]],
    );
}

#[test]
fn the_next_epoch_begins_once_nothing_of_the_old_one_runs() {
    let lost = "epoch=3 environment op=replace:clear:2:1 ready=Evicted";
    check(
        &format!(" | {lost} | claim policy pod=3:leaving secret"),
        expect![[r"
            delete secret 3
        "]],
    );
    check(
        &format!(" | {lost} | claim policy secret"),
        expect![[r"
            delete secret 3
        "]],
    );
    check(
        &format!(" | {lost} | claim policy"),
        expect![[r"
            status epoch=4 operation=Replace:Claim:2:replace-4
        "]],
    );
    check(
        &format!(" | {lost} | claim policy pod=3:evicted:3600"),
        expect![[r"
            again in 2 s
        "]],
    );
}

#[test]
fn the_reason_of_a_loss_stays_until_the_successor_is_bound_or_hindered() {
    let replacing = "epoch=4 environment op=replace:claim:9:1 ready=Evicted";
    check(
        &format!(" | {replacing} | claim policy secret"),
        expect![[r"
        create pod 4
    "]],
    );
    check(&format!(" | {replacing} | claim policy pod=4:pending"), expect![""]);
    check(
        &format!(" | {replacing} | claim policy pod=4:unschedulable"),
        expect![[r"
        status
          Ready=False Unschedulable: 0/1 nodes
        event warning Unschedulable
    "]],
    );
    check(
        &format!(" | {replacing} | claim policy pod=4:running dial=bound"),
        expect![[r"
        status executor=pod-4 operation=none
          Ready=True Bound: epoch 4 on pod ses-1f6685236f58fb8260b3-4
        event normal Bound
    "]],
    );
}

#[test]
fn a_pod_that_ends_before_it_is_bound_is_followed_by_another_after_a_pause_that_doubles() {
    check(
        " | epoch=1 op=start:claim:40:1 ready=PodPending | claim policy pod=1:failed:20 secret:unread",
        expect![[r"
            status operation=Start:DeletePod:40:start-2
              Ready=False ExecutorLost: Error, exit code 1
            event warning ExecutorLost
            again in 40 s
        "]],
    );
    check(
        " | epoch=1 op=start:clear:40:1 ready=ExecutorLost | claim policy pod=1:failed:20",
        expect![[r"
            again in 40 s
        "]],
    );
}

#[test]
fn an_executor_that_keeps_dying_young_is_not_replaced_at_once() {
    check(
        " | epoch=7 bound | claim policy pod=7:failed:1 secret:unread",
        expect![[r"
        status executor=none operation=Replace:DeletePod:0:replace-8
          Ready=False ExecutorLost: Error, exit code 1
        event warning ExecutorLost
        again in 4 s
    "]],
    );
}

#[test]
fn a_stale_epoch_leads_to_the_next_one_above_what_the_volume_has_seen() {
    check(
        " | epoch=2 environment op=replace:claim:3:1 ready=Evicted | claim policy pod=2:running dial=stale:7",
        expect![[r"
            hang up
            delete pod 2
            status epoch=7 operation=Replace:DeletePod:3:replace-8
              Ready=False BindRefused: the volume has seen epoch 7
            event warning BindRefused
        "]],
    );
    check(
        " | epoch=7 environment op=replace:clear:3:1 ready=BindRefused | claim policy",
        expect![[r"
            status epoch=8 operation=Replace:Claim:3:replace-8
              Ready=False PodPending: the pod is being made
        "]],
    );
}

#[test]
fn other_arguments_lead_to_another_executor() {
    check(
        " | epoch=2 environment op=replace:claim:3:1 ready=Evicted | claim policy pod=2:running dial=other-arguments",
        expect![[r"
            hang up
            delete pod 2
            status operation=Replace:DeletePod:3:replace-3
              Ready=False BindRefused: the executor was bound with other arguments before
            event warning BindRefused
        "]],
    );
}

#[test]
fn an_emptied_volume_ends_the_session_for_good() {
    check(
        " | epoch=2 environment op=replace:claim:3:1 ready=Evicted | claim policy pod=2:running dial=empty",
        expect![[r"
            status operation=Retire:DeletePod:0:retire-2
              Ready=False Ended: the volume holds nothing of this environment
              Retired=True WorkspaceLost: the volume holds nothing of this environment
            event warning WorkspaceLost
        "]],
    );
    check(
        " | epoch=2 environment op=retire:clear:3:1 ready=Ended also=WorkspaceLost | claim policy pod=2:running secret",
        expect![[r"
        delete pod 2
        delete secret 2
    "]],
    );
    check(
        " | epoch=2 environment op=retire:clear:3:1 ready=Ended also=WorkspaceLost | claim policy",
        expect![""],
    );
}

#[test]
fn another_environment_on_the_volume_is_told_and_left_alone() {
    check(
        " | epoch=2 environment op=replace:claim:3:1 ready=Evicted | claim policy pod=2:running dial=trying:WorkspaceMismatch",
        expect![[r"
            status
              Ready=False WorkspaceMismatch: as it says
            event warning WorkspaceMismatch
        "]],
    );
    check(
        " | epoch=2 environment op=replace:claim:3:1 ready=Evicted | claim:edited policy secret",
        expect![[r"
        status
          Ready=False WorkspaceMismatch: the revision in the claim's annotation is not the one of this session's environment
        event warning WorkspaceMismatch
    "]],
    );
}

#[test]
fn a_claim_that_is_gone_after_it_was_bound_is_never_replaced() {
    let replacing = "epoch=4 environment op=replace:claim:9:1 ready=Evicted";
    check(
        &format!(" | {replacing} | policy secret"),
        expect![[r"
        status operation=Retire:DeletePod:0:retire-4
          Ready=False Ended: the volume claim is gone
          Retired=True WorkspaceLost: the volume claim is gone
        event warning WorkspaceLost
    "]],
    );
    check(
        &format!(" | {replacing} | claim:lost policy secret"),
        expect![[r"
        status operation=Retire:DeletePod:0:retire-4
          Ready=False Ended: the claim has lost its volume
          Retired=True WorkspaceLost: the claim has lost its volume
        event warning WorkspaceLost
    "]],
    );
    check(
        &format!(" | {replacing} | claim:other policy secret"),
        expect![[r"
        status operation=Retire:DeletePod:0:retire-4
          Ready=False Ended: the volume claim was replaced by another one
          Retired=True WorkspaceLost: the volume claim was replaced by another one
        event warning WorkspaceLost
    "]],
    );
    check(
        &format!(" | {replacing} | claim:leaving policy secret"),
        expect![[r"
        status
          Ready=False VolumePending: the volume claim is being deleted
    "]],
    );
}

#[test]
fn a_claim_that_is_gone_before_it_was_ever_bound_is_made_anew() {
    check(
        " | epoch=1 op=start:claim:9:1 ready=PodPending | policy secret",
        expect![[r"
        create claim OneNode
        status
          Ready=False PodPending: the pod is being made
        again in 291 s
    "]],
    );
}
