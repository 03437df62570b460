use expect_test::expect;

use super::check;

mod begins {
    use super::*;

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
            create secret 1
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
            create secret 1
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
}

mod hindrances {
    use super::*;

    const STARTING: &str = "epoch=1 op=start:claim:5:1 ready=PodPending";

    #[track_caller]
    fn hindered(world: &str, expected: expect_test::Expect) {
        check(&format!(" | {STARTING} | {world}"), expected);
    }

    #[test]
    fn a_missing_class_is_named() {
        hindered(
            "no-class",
            expect![[r"
            status
              Ready=False ClassNotFound: there is no ExecutorClass default in this namespace
            event warning ClassNotFound
            again in 295 s
        "]],
        );
    }

    #[test]
    fn a_missing_storage_class_is_named_and_only_asked_for_when_there_is_no_claim() {
        hindered(
            "no-storage secret policy",
            expect![[r"
            status
              Ready=False StorageClassNotFound: there is no StorageClass fast
            event warning StorageClassNotFound
            again in 295 s
        "]],
        );
        hindered(
            "no-default secret policy",
            expect![[r"
            status
              Ready=False StorageClassNotFound: no StorageClass is named, and the cluster has no default one
            event warning StorageClassNotFound
            again in 295 s
        "]],
        );
        hindered(
            "no-storage claim secret policy",
            expect![[r"
            create pod 1
            status
              Ready=False PodPending: the pod is being made
            again in 295 s
        "]],
        );
    }

    #[test]
    fn an_image_that_cannot_be_had_is_told_in_the_node_s_words() {
        hindered(
            "claim policy pod=1:no-image",
            expect![[r"
            status
              Ready=False ImageUnavailable: ErrImagePull
            event warning ImageUnavailable
            again in 295 s
        "]],
        );
    }

    #[test]
    fn a_pod_that_no_node_takes_is_told_in_the_scheduler_s_words() {
        hindered(
            "claim policy pod=1:unschedulable",
            expect![[r"
            status
              Ready=False Unschedulable: 0/1 nodes
            event warning Unschedulable
            again in 295 s
        "]],
        );
    }

    #[test]
    fn what_the_api_server_refuses_is_told_and_not_tried_until_its_time() {
        hindered(
            "claim secret policy refused=pod:QuotaExceeded",
            expect![[r"
            status
              Ready=False QuotaExceeded: as the API server says
            event warning QuotaExceeded
            again in 4 s
        "]],
        );
        hindered(
            "claim secret policy refused=pod:PodRejected",
            expect![[r"
            status
              Ready=False PodRejected: as the API server says
            event warning PodRejected
            again in 4 s
        "]],
        );
        hindered(
            "secret policy refused=claim:QuotaExceeded",
            expect![[r"
            status
              Ready=False QuotaExceeded: as the API server says
            event warning QuotaExceeded
            again in 4 s
        "]],
        );
        hindered(
            "claim policy refused=secret:NameConflict",
            expect![[r"
            status
              Ready=False NameConflict: as the API server says
            event warning NameConflict
            again in 4 s
        "]],
        );
    }

    #[test]
    fn an_object_of_somebody_else_with_our_name_is_left_alone() {
        hindered(
            "claim:foreign secret policy",
            expect![[r"
            status
              Ready=False NameConflict: the volume claim with this session's name for it is not this session's
            event warning NameConflict
            again in 295 s
        "]],
        );
        hindered(
            "claim secret:foreign policy",
            expect![[r"
            status
              Ready=False NameConflict: the Secret with the name of this session's pod is not this session's
            event warning NameConflict
            again in 30 s
        "]],
        );
    }

    #[test]
    fn a_missing_secret_of_a_variable_is_told() {
        hindered(
            "claim policy pod=1:running dial=trying:SecretNotFound",
            expect![[r"
            status
              Ready=False SecretNotFound: as it says
            event warning SecretNotFound
            again in 295 s
        "]],
        );
    }

    #[test]
    fn a_kernel_that_confines_too_little_is_no_place_for_it() {
        hindered(
            "claim policy pod=1:running dial=bound:5",
            expect![[r"
            status
              Ready=False LandlockTooOld: Landlock ABI 5 on its node, the class demands 6
            event warning LandlockTooOld
            again in 295 s
        "]],
        );
    }

    #[test]
    fn a_start_over_its_deadline_is_given_up_with_its_last_reason() {
        check(
            "deadline=60 | epoch=1 op=start:claim:60:1 ready=ImageUnavailable | claim secret policy pod=1:no-image",
            expect![[r"
                delete pod 1
                delete secret 1
                status
                  Ready=False StartDeadlineExceeded: ImageUnavailable: as told before
                event warning StartDeadlineExceeded
            "]],
        );
        check(
            "deadline=60 | epoch=1 op=start:claim:90:1 ready=StartDeadlineExceeded | claim policy",
            expect![""],
        );
    }

    #[test]
    fn a_start_that_was_given_up_begins_anew_when_the_spec_is_another_one() {
        check(
            "deadline=60 generation=2 | epoch=1 op=start:claim:90:1 ready=StartDeadlineExceeded | claim policy",
            expect![[r"
                create secret 2
                status epoch=2 operation=Wake:Claim:0:wake-2
                  Ready=False PodPending: the pod is being made
            "]],
        );
    }

    #[test]
    fn a_replacement_has_no_deadline() {
        check(
            "deadline=60 | epoch=2 environment op=replace:claim:90:1 ready=Evicted | claim policy pod=2:unschedulable",
            expect![[r"
            status
              Ready=False Unschedulable: 0/1 nodes
            event warning Unschedulable
        "]],
        );
    }
}

mod keeps {
    use super::*;

    #[test]
    fn a_bound_executor_costs_nothing() {
        check(
            " | epoch=3 bound | claim policy pod=3:running:3600",
            expect![[r"
            again in 1724400 s
        "]],
        );
    }

    #[test]
    fn a_class_that_is_gone_or_changed_does_not_touch_a_bound_executor() {
        check(
            " | epoch=3 bound | no-class claim pod=3:running:3600",
            expect![[r"
            again in 1724400 s
        "]],
        );
    }

    #[test]
    fn a_restarted_runner_is_told_and_nothing_else() {
        check(
            " | epoch=3 bound | claim policy pod=3:running:3600 runner-restarted",
            expect![[r"
            status
              RunnerRestarted=True RunnerOutOfMemory: restart 1, OOMKilled, exit code 137
            event warning RunnerOutOfMemory
            again in 1724400 s
        "]],
        );
    }

    #[test]
    fn a_certificate_is_renewed_before_its_end() {
        check(
            " | epoch=3 bound | claim policy pod=3:running:1728000 secret:stale",
            expect![[r"
            renew secret 3
        "]],
        );
        check(
            " | epoch=3 bound | claim policy pod=3:running:1728000 secret",
            expect![[r"
            again in 86400 s
        "]],
        );
    }

    #[test]
    fn a_silent_node_is_waited_for() {
        check(
            " | epoch=3 bound | claim policy pod=3:running:3600 silent",
            expect![[r"
            status
              Ready=Unknown NodeUnreachable: node node-1 does not answer; the volume is given to no other pod while its own may still run
            event warning NodeUnreachable
            again in 1724400 s
        "]],
        );
        check(
            " | epoch=3 environment op=replace:clear:9:1 ready=NodeUnreachable | claim policy pod=3:leaving silent secret:unread",
            expect![[r"
                status
                  Ready=Unknown NodeUnreachable: node node-1 does not answer; the volume is given to no other pod while its own may still run
            "]],
        );
    }
}

mod losses {
    use super::*;

    #[test]
    fn a_lost_pod_is_told_at_once_with_its_reason() {
        check(
            " | epoch=3 bound | claim policy",
            expect![[r"
                create secret 4
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
            create secret 4
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
                create secret 8
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
            " | epoch=2 environment op=replace:claim:3:1 ready=Evicted | claim policy pod=2:running dial=wrong",
            expect![[r"
                status
                  Ready=False WorkspaceMismatch: the executor found another environment on the volume
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
}

mod sleeps {
    use super::*;

    #[test]
    fn a_suspended_session_lets_its_pod_go_and_keeps_its_volume() {
        check(
            "suspended | epoch=3 bound | claim policy pod=3:running secret",
            expect![[r"
            delete pod 3
            delete secret 3
            status executor=none operation=Sleep:DeletePod:0:sleep-3
              Ready=False Asleep: suspended; the volume stays
              Suspended=True FallingAsleep: its commands are being ended and its pod goes
            event normal Asleep
        "]],
        );
        check(
            "suspended | epoch=3 environment op=sleep:clear:2:1 ready=Asleep also=FallingAsleep | claim policy pod=3:leaving",
            expect![""],
        );
        check(
            "suspended | epoch=3 environment op=sleep:clear:2:1 ready=Asleep also=FallingAsleep | claim policy",
            expect![[r"
                status operation=none
                  Suspended=True Requested: suspended by its spec
            "]],
        );
    }

    #[test]
    fn a_sleeping_session_costs_nothing() {
        check("suspended | epoch=3 environment ready=Asleep also=Requested | claim policy", expect![""]);
    }

    #[test]
    fn a_session_that_is_suspended_from_the_first_has_nothing() {
        check(
            "suspended | | ",
            expect![[r"
            status
              Suspended=True Requested: suspended by its spec
              Ready=False Asleep: suspended; the volume stays
            event normal Asleep
        "]],
        );
    }

    #[test]
    fn a_woken_session_goes_on_over_its_volume_under_the_next_epoch() {
        check(
            " | epoch=3 environment ready=Asleep also=Requested | claim policy",
            expect![[r"
            create secret 4
            status epoch=4 operation=Wake:Claim:0:wake-4
              Ready=False PodPending: the pod is being made
              Suspended=False Awake: wanted awake
        "]],
        );
        check(
            " | epoch=3 environment op=sleep:clear:2:1 ready=Asleep also=FallingAsleep | claim policy pod=3:leaving",
            expect![[r"
                status operation=Wake:DeletePod:0:wake-4
                  Suspended=False Awake: wanted awake
            "]],
        );
    }
}

mod ends {
    use super::*;

    #[test]
    fn a_deleted_session_ends_its_pod_then_its_volume_then_goes() {
        check(
            "deleted=1 | epoch=3 bound | claim policy pod=3:running secret",
            expect![[r"
            delete pod 3
            delete secret 3
            status executor=none
              Ready=False Deleted: being deleted
              Terminating=True Draining: pod ses-1f6685236f58fb8260b3-3 is ending
            event normal Draining
            again in 59 s
        "]],
        );
        check(
            "deleted=9 | epoch=3 bound | claim policy pod=3:leaving",
            expect![[r"
            status executor=none
              Ready=False Deleted: being deleted
              Terminating=True Draining: pod ses-1f6685236f58fb8260b3-3 is ending
            event normal Draining
            again in 51 s
        "]],
        );
        check(
            "deleted=9 | epoch=3 bound | claim policy",
            expect![[r"
            delete claim
        "]],
        );
        check(
            "deleted=9 | epoch=3 bound | claim:leaving policy",
            expect![[r"
            remove finalizer
        "]],
        );
        check(
            "deleted=9 | epoch=3 bound | policy",
            expect![[r"
            remove finalizer
        "]],
        );
    }

    #[test]
    fn a_retained_volume_is_marked_and_stays() {
        check(
            "deleted=9 retain | epoch=3 bound | claim policy",
            expect![[r"
            retain claim
            event normal VolumeRetained
        "]],
        );
        check(
            "deleted=9 retain | epoch=3 bound | claim:retained policy",
            expect![[r"
            remove finalizer
        "]],
        );
    }

    #[test]
    fn an_executor_that_does_not_answer_delays_a_deletion_by_its_deadline() {
        check(
            "deleted=59 | epoch=3 environment ready=Deleted | claim policy pod=3:leaving silent",
            expect![[r"
                status
                  Terminating=True Draining: pod ses-1f6685236f58fb8260b3-3 is ending
                event normal Draining
                again in 1 s
            "]],
        );
        check(
            "deleted=61 | epoch=3 environment ready=Deleted | claim policy pod=3:leaving silent",
            expect![[r"
                status
                  Terminating=True DrainUnanswered: pod ses-1f6685236f58fb8260b3-3 has not ended; the cluster removes it once its node answers
                event warning DrainUnanswered
            "]],
        );
        check(
            "deleted=61 | epoch=3 environment ready=Deleted also=DrainUnanswered | claim:leaving policy pod=3:leaving silent",
            expect![[r"
                remove finalizer
            "]],
        );
    }

    #[test]
    fn a_session_that_is_deleted_before_it_began_goes_at_once() {
        check(
            "deleted=0 | | ",
            expect![[r"
            remove finalizer
        "]],
        );
        check(
            "deleted=0 | epoch=1 op=start:claim:0:1 ready=PodPending | claim:pending secret policy",
            expect![[r"
            delete secret 1
            delete claim
        "]],
        );
        check("deleted=0 bare | | ", expect![""]);
    }

    #[test]
    fn a_claim_of_somebody_else_is_not_deleted() {
        check(
            "deleted=9 | epoch=1 op=start:claim:9:1 ready=NameConflict | claim:foreign",
            expect![[r"
            remove finalizer
        "]],
        );
    }
}
