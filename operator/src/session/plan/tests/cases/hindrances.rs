use expect_test::expect;

use crate::session::plan::tests::check;

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
fn a_pod_that_waits_is_made_anew_when_its_class_is_another_one() {
    hindered(
        "claim policy secret pod=1:outdated",
        expect![[r"
        delete pod 1
        delete secret 1
        status operation=Start:DeletePod:5:start-2
          Ready=False PodPending: the class has changed; the pod is made anew
        again in 295 s
    "]],
    );
    check(
        " | epoch=1 bound | claim policy pod=1:outdated",
        expect![[r"
        again in 1727940 s
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
              Ready=False NameConflict: Secret ses-1f6685236f58fb8260b3-1 is not this session's
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
