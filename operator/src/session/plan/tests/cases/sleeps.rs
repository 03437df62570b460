use expect_test::expect;

use crate::session::plan::tests::check;

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
