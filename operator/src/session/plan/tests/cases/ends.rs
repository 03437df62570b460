use expect_test::expect;

use crate::session::plan::tests::check;

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
