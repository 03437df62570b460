use std::time::{Duration, Instant};

use super::super::super::kernel::Status;
use super::super::super::spec::{End, EndKind, NotStarted};
use super::{Course, Move};

const SECOND: Duration = Duration::from_secs(1);
const NO_MEMORY: fn() -> bool = || false;

struct Trial {
    start: Instant,
    course: Course,
}

impl Trial {
    fn new(timeout: Option<Duration>, background: bool) -> Self {
        let start = Instant::now();
        Self { start, course: Course::new(start, timeout, background) }
    }

    fn next(&mut self, after: Duration) -> Move {
        self.course.next_move(self.start + after)
    }

    fn ended(&mut self, after: Duration, empty: bool, memory: bool) -> Option<EndKind> {
        self.course.ended(self.start + after, empty, || memory).map(|ended| End::from(ended).kind)
    }

    fn main_ended(&mut self, after: Duration, status: Status) {
        self.course.main_ended(self.start + after, status);
    }
}

#[test]
fn a_foreground_end_kills_survivors_and_counts_them() {
    let mut trial = Trial::new(None, false);
    trial.course.other_ended(Status::Signalled(9));
    trial.main_ended(SECOND, Status::Exited(3));
    assert_eq!(trial.ended(SECOND, false, false), None);
    assert_eq!(trial.next(SECOND), Move::Kill);
    trial.course.other_ended(Status::Signalled(9));
    trial.course.other_ended(Status::Exited(0));
    let ended = trial.course.ended(trial.start + SECOND, true, NO_MEMORY).map(End::from);
    let expected =
        End { kind: EndKind::Exited(3), duration: SECOND, survivors_killed: 1, memory_events: false };
    assert_eq!(ended, Some(expected));
    assert_eq!(trial.ended(SECOND, true, false), None);
}

#[test]
fn survivors_that_cannot_die_delay_the_end_by_half_a_second_only() {
    let mut trial = Trial::new(None, false);
    trial.main_ended(SECOND, Status::Exited(0));
    assert_eq!(trial.next(SECOND), Move::Kill);
    assert_eq!(trial.ended(SECOND + Duration::from_millis(499), false, false), None);
    assert_eq!(trial.ended(SECOND + Duration::from_millis(500), false, false), Some(EndKind::Exited(0)));
}

#[test]
fn a_background_end_is_told_while_survivors_live() {
    let mut trial = Trial::new(None, true);
    trial.main_ended(SECOND, Status::Exited(0));
    assert_eq!(trial.ended(SECOND, false, false), Some(EndKind::Exited(0)));
    assert_eq!(trial.next(2 * SECOND), Move::Wait);
    trial.course.cancel();
    assert_eq!(trial.next(3 * SECOND), Move::Terminate);
    assert_eq!(trial.next(5 * SECOND), Move::Kill);
    assert_eq!(trial.ended(5 * SECOND, true, false), None);
}

#[test]
fn a_timeout_is_term_then_two_seconds_then_kill_until_nothing_is_left() {
    let mut trial = Trial::new(Some(5 * SECOND), false);
    assert_eq!(trial.next(4 * SECOND), Move::Wait);
    assert_eq!(trial.course.next_deadline(), Some(trial.start + 5 * SECOND));
    assert_eq!(trial.next(5 * SECOND), Move::Terminate);
    assert_eq!(trial.next(6 * SECOND), Move::Wait);
    trial.main_ended(6 * SECOND, Status::Exited(0));
    assert_eq!(trial.next(6 * SECOND), Move::Wait);
    assert_eq!(trial.next(7 * SECOND), Move::Kill);
    assert_eq!(trial.next(7 * SECOND), Move::Wait);
    assert_eq!(trial.next(8 * SECOND), Move::Kill);
    assert_eq!(trial.ended(8 * SECOND, true, false), Some(EndKind::TimedOut { timeout: 5 * SECOND }));
}

#[test]
fn the_first_cause_stays() {
    let mut trial = Trial::new(Some(SECOND), false);
    assert_eq!(trial.next(SECOND), Move::Terminate);
    trial.course.cancel();
    trial.course.exceed(7);
    assert_eq!(trial.next(SECOND), Move::Kill);
    trial.main_ended(SECOND, Status::Signalled(9));
    assert_eq!(trial.ended(SECOND, true, true), Some(EndKind::TimedOut { timeout: SECOND }));
}

#[test]
fn an_end_before_the_limit_is_the_true_end() {
    let mut trial = Trial::new(Some(SECOND), false);
    trial.main_ended(SECOND, Status::Exited(1));
    assert_eq!(trial.ended(2 * SECOND, true, false), Some(EndKind::Exited(1)));
}

#[test]
fn out_of_memory_needs_a_kill_that_was_not_ours() {
    let killed_by_kernel = |signal: Option<i32>, memory: bool| {
        let mut trial = Trial::new(None, false);
        if let Some(signal) = signal {
            trial.course.note_signal(signal);
        }
        trial.main_ended(SECOND, Status::Signalled(9));
        trial.ended(SECOND, true, memory)
    };
    assert_eq!(killed_by_kernel(None, true), Some(EndKind::OutOfMemory));
    assert_eq!(killed_by_kernel(None, false), Some(EndKind::Signalled(9)));
    assert_eq!(killed_by_kernel(Some(9), true), Some(EndKind::Signalled(9)));
    assert_eq!(killed_by_kernel(Some(15), true), Some(EndKind::OutOfMemory));
}

#[test]
fn a_risen_memory_counter_is_a_note_beside_another_end() {
    let mut trial = Trial::new(None, false);
    trial.main_ended(SECOND, Status::Exited(1));
    let ended = trial.course.ended(trial.start + SECOND, true, || true).map(End::from);
    assert_eq!(ended.map(|end| (end.kind, end.memory_events)), Some((EndKind::Exited(1), true)));
}

#[test]
fn a_program_that_never_ran_has_no_exit_code() {
    let mut trial = Trial::new(None, false);
    trial.course.not_started(NotStarted::NotFound);
    trial.main_ended(SECOND, Status::Exited(127));
    assert_eq!(trial.ended(SECOND, true, false), Some(EndKind::NotStarted(NotStarted::NotFound)));
}

#[test]
fn too_many_processes_are_killed_at_once() {
    let mut trial = Trial::new(None, false);
    trial.course.exceed(100);
    assert_eq!(trial.next(Duration::ZERO), Move::Kill);
    trial.main_ended(SECOND, Status::Signalled(9));
    assert_eq!(trial.ended(SECOND, true, false), Some(EndKind::ProcessLimit { limit: 100 }));
}
