use expect_test::expect;

use crate::session::plan::tests::check;

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
