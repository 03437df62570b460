//! One place knows the interface; every case is data: `spec | status | world` to steps and conditions.

mod cases;
mod law;
mod scene;

use expect_test::Expect;
use scene::Scene;

/// The time of every case.
const NOW: &str = "2026-11-30T12:00:00Z";

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "an expectation is written where it is checked")]
fn check(case: &str, expected: Expect) {
    let scene = Scene::parse(case);
    expected.assert_eq(&scene.render(&super::plan(&scene.observed(), scene.now)));
}
