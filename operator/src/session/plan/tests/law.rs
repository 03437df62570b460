//! Laws, over a small cluster that does what plans say, and whatever else happens to it.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use mooring_operator_api::condition::SessionReason;
use mooring_operator_api::label;
use proptest::prelude::*;

use super::super::super::claim::Revision;
use super::super::super::needs_secret;
use super::super::super::observed::pod::{Cause, PodFacts, PodState};
use super::super::super::observed::{ClaimFacts, OurClaim, PolicyFacts, SecretFacts};
use super::super::{Step, plan};
use super::scene::{Scene, uid};
use crate::dial::{Answer, BindRefusal, Dial, Progress};

/// Rounds that one reconcile may take.
const ROUNDS: usize = 16;

/// What happens to a cluster.
#[derive(Clone, Debug)]
enum Happening {
    /// Node and executor go on by one: a pod starts, gets an address, is bound; a leaving one goes.
    Progress,
    /// The executor ends by itself.
    Crash,
    /// Somebody deletes the pod.
    DeletePod,
    /// The pod is gone from one moment to the next.
    VanishPod,
    /// The node falls silent, or answers again.
    Silence(bool),
    /// The owner wants it asleep, or awake.
    Suspend(bool),
    /// The operator ends, and another one starts.
    Restart,
    /// The operator carries out only some of its next steps, and ends.
    Interrupted(u8),
    /// Time passes.
    Wait(i64),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => Just(Happening::Progress),
        1 => Just(Happening::Crash),
        1 => Just(Happening::DeletePod),
        1 => Just(Happening::VanishPod),
        1 => any::<bool>().prop_map(Happening::Silence),
        1 => any::<bool>().prop_map(Happening::Suspend),
        1 => Just(Happening::Restart),
        2 => any::<u8>().prop_map(Happening::Interrupted),
        2 => (0..400_i64).prop_map(Happening::Wait),
    ]
}

/// A cluster with one Session.
struct Cluster {
    scene: Scene,
    /// Epochs that a Secret exists for.
    secrets: BTreeSet<i64>,
    /// The highest epoch that the volume has seen.
    volume: i64,
    /// The claim has been bound once.
    was_bound: bool,
    is_gone: bool,
}

impl Cluster {
    fn new() -> Self {
        let mut scene = Scene::empty();
        scene.session.metadata.finalizers = None;
        // Starts of these tests may take as long as they like.
        scene.session.spec.lifecycle = Some(mooring_operator_api::session::Lifecycle {
            start_deadline: mooring_operator_api::duration::WholeSeconds::new(86_400),
            ..Default::default()
        });
        Self { scene, secrets: BTreeSet::new(), volume: 0, was_bound: false, is_gone: false }
    }

    fn epoch(&self) -> i64 {
        self.scene.session.status.as_ref().and_then(|status| status.epoch).unwrap_or(0)
    }

    fn steps(&mut self) -> Vec<Step> {
        let has_secret = self.secrets.contains(&self.epoch());
        let mut seen = self.scene.observed();
        let status = self.scene.session.status.clone().unwrap_or_default();
        seen.secret = match needs_secret(&seen, &status, self.scene.now) {
            true if has_secret => SecretFacts::Fresh,
            true => SecretFacts::Absent,
            false => SecretFacts::Unread,
        };
        plan(&seen, self.scene.now).steps
    }

    /// Carries out plans until there is nothing to do.
    fn settle(&mut self) {
        for _ in 0..ROUNDS {
            if self.is_gone {
                return;
            }
            let steps = self.steps();
            if steps.is_empty() {
                assert!(self.steps().is_empty(), "planning is a function");
                return;
            }
            for step in steps {
                self.carry_out(step);
            }
        }
        panic!("no end of it: {:?}", self.steps());
    }

    fn carry_out(&mut self, step: Step) {
        let epoch = self.epoch();
        match step {
            Step::AddFinalizer => {
                self.scene.session.metadata.finalizers = Some(vec![label::FINALIZER.to_owned()]);
            }
            Step::RemoveFinalizer => {
                assert!(self.live() == 0 || self.is_overdue(), "a pod is left");
                let is_released = matches!(
                    &self.scene.claim,
                    ClaimFacts::Absent | ClaimFacts::Ours(OurClaim { is_leaving: true, .. })
                );
                assert!(is_released, "the claim is left");
                assert!(!self.secrets.contains(&epoch), "the key is left");
                self.is_gone = true;
            }
            Step::WriteStatus(status) => {
                assert!(status.epoch.unwrap_or(0) >= epoch, "an epoch was set back");
                self.scene.session.status = Some(*status);
            }
            Step::CreateClaim(_) => {
                assert!(!self.was_bound, "a volume was replaced by an empty one");
                self.scene.claim = ClaimFacts::Ours(OurClaim {
                    uid: "claim-1".into(),
                    revision: Revision::read(&"0".repeat(32)),
                    is_leaving: false,
                    is_lost: false,
                    is_bound: false,
                    is_retained: false,
                });
            }
            Step::DeleteClaim(_) | Step::RetainClaim(_) => {
                if let ClaimFacts::Ours(claim) = &mut self.scene.claim {
                    claim.is_leaving = true;
                }
            }
            Step::ApplyPolicy => self.scene.policy = PolicyFacts::Current,
            Step::CreateSecret(epoch) | Step::RenewSecret(epoch) => {
                self.secrets.insert(epoch);
            }
            Step::DeleteSecret(epoch) => {
                self.secrets.remove(&epoch);
            }
            Step::CreatePod(new) => {
                assert_eq!(new, epoch, "the epoch is recorded before its pod is made");
                assert_eq!(self.live(), 0, "two pods over one volume");
                assert!(self.secrets.contains(&new) && self.scene.policy == PolicyFacts::Current);
                assert!(matches!(self.scene.claim, ClaimFacts::Ours(_)));
                self.scene.pods.push(pending(new, self.scene.now));
            }
            Step::DeletePod { name, uid } => {
                let pod = self.scene.pods.iter_mut().find(|pod| pod.name == name && pod.uid == uid);
                if let Some(pod) = pod {
                    self.secrets.remove(&pod.epoch);
                    pod.leaving = Some(Cause::new(SessionReason::PodDeleted, "being deleted"));
                }
            }
            Step::Dial(target) => self.scene.dial = Some(Dial { target, progress: Progress::Trying(None) }),
            Step::HangUp => self.scene.dial = None,
        }
    }

    fn live(&self) -> usize {
        self.scene.pods.iter().filter(|pod| !pod.is_over).count()
    }

    fn is_overdue(&self) -> bool {
        let deleted = self.scene.session.metadata.deletion_timestamp.as_ref();
        deleted.is_some_and(|at| self.scene.now.duration_since(at.0) >= SignedDuration::from_secs(60))
    }

    fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::Progress => self.progress(),
            Happening::Crash => {
                let now = self.scene.now;
                for pod in self.scene.pods.iter_mut().filter(|pod| pod.state == PodState::Running) {
                    let cause = Cause::new(SessionReason::ExecutorLost, "exit code 1");
                    pod.state = PodState::Ended { cause, at: Some(now) };
                }
            }
            Happening::DeletePod => {
                for pod in &mut self.scene.pods {
                    pod.leaving = Some(Cause::new(SessionReason::PodDeleted, "being deleted"));
                }
            }
            Happening::VanishPod => self.scene.pods.clear(),
            Happening::Silence(is_silent) => {
                for pod in &mut self.scene.pods {
                    pod.silent_node = is_silent.then(|| "node-1".to_owned());
                }
            }
            Happening::Suspend(is_wanted) => {
                let spec = &mut self.scene.session.spec;
                if spec.suspended != *is_wanted {
                    spec.suspended = *is_wanted;
                    let generation = &mut self.scene.session.metadata.generation;
                    *generation = generation.map(|number| number + 1);
                }
            }
            Happening::Restart => self.scene.dial = None,
            Happening::Interrupted(which) => {
                for (at, step) in self.steps().into_iter().enumerate() {
                    if which & (1 << (at % 8)) != 0 && !self.is_gone {
                        self.carry_out(step);
                    }
                }
                self.scene.dial = None;
            }
            Happening::Wait(seconds) => self.scene.now += SignedDuration::from_secs(*seconds),
        }
    }

    /// One step of node, volume provisioner and executor.
    fn progress(&mut self) {
        self.scene.now += SignedDuration::from_millis(300);
        let is_held = |pod: &PodFacts| pod.leaving.is_none() || pod.silent_node.is_some();
        self.scene.pods.retain(is_held);
        if let ClaimFacts::Ours(claim) = &mut self.scene.claim {
            claim.is_bound |= !self.scene.pods.is_empty();
        }
        for pod in self.scene.pods.iter_mut().filter(|pod| pod.silent_node.is_none()) {
            match &pod.state {
                PodState::Waiting(_) => pod.state = PodState::Running,
                PodState::Running => pod.address = "192.0.2.1".parse().ok(),
                PodState::Ended { .. } => pod.is_over = true,
            }
        }
        self.answer();
    }

    fn answer(&mut self) {
        let Some(dial) = &mut self.scene.dial else { return };
        let is_there = self.scene.pods.iter().any(|pod| {
            pod.uid == dial.target.pod_uid && pod.state == PodState::Running && pod.silent_node.is_none()
        });
        if !is_there || !matches!(dial.progress, Progress::Trying(_)) {
            return;
        }
        dial.progress = if dial.target.epoch < self.volume {
            Progress::Refused(BindRefusal::StaleEpoch { current: self.volume })
        } else {
            assert!(dial.target.may_be_new || self.was_bound);
            self.volume = dial.target.epoch;
            self.was_bound = true;
            Progress::Bound(Answer { boot_id: "b".repeat(32), landlock: 7 })
        };
    }

    fn is_ready(&self) -> bool {
        let conditions = self.scene.session.status.as_ref().map(|status| status.conditions.as_slice());
        conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
    }
}

fn pending(epoch: i64, now: jiff::Timestamp) -> PodFacts {
    PodFacts {
        name: crate::names::pod(&"0f3a1c1e-52f5-4d0e-9d3f-6f3a4f0b2c11".into(), epoch),
        uid: uid(epoch),
        epoch,
        class_label: Some("default".to_owned()),
        is_watched: true,
        class_digest: Scene::empty().class.as_ref().map(crate::class::digest),
        created: now,
        address: None,
        state: PodState::Waiting(Cause::new(SessionReason::PodPending, "being started")),
        leaving: None,
        is_over: false,
        silent_node: None,
        runner_restart: None,
    }
}

/// Each happening, and whether the operator comes to its end before it.
fn story() -> impl Strategy<Value = Vec<(bool, Happening)>> {
    prop::collection::vec((prop::bool::weighted(0.7), happening()), 0..40)
}

fn after(story: &[(bool, Happening)]) -> Cluster {
    let mut cluster = Cluster::new();
    for (settles, happening) in story {
        if *settles {
            cluster.settle();
        }
        cluster.happen(happening);
    }
    cluster
}

proptest! {
    /// Planning comes to an end, whatever happened, and then there is nothing left to do.
    #[test]
    fn every_reconcile_comes_to_its_end(story in story()) {
        after(&story).settle();
    }

    /// Once nothing hinders it, every Session that is wanted awake becomes ready, over the volume it always had.
    #[test]
    fn a_session_that_is_left_alone_becomes_ready(story in story()) {
        let mut cluster = after(&story);
        cluster.happen(&Happening::Suspend(false));
        cluster.happen(&Happening::Silence(false));
        for _ in 0..40 {
            cluster.settle();
            cluster.progress();
            cluster.happen(&Happening::Wait(20));
        }
        cluster.settle();
        prop_assert!(cluster.is_ready(), "{:?}", cluster.scene.session.status);
        prop_assert_eq!(cluster.live(), 1);
        prop_assert_eq!(cluster.secrets.len(), 1);
    }

    /// A deleted Session goes, at the latest at its deadline, and leaves no key, no claim and no pod that runs on.
    #[test]
    fn a_deleted_session_goes_and_leaves_nothing(story in story()) {
        let mut cluster = after(&story);
        cluster.scene.session.metadata.deletion_timestamp = Some(Time(cluster.scene.now));
        for _ in 0..10 {
            cluster.settle();
            cluster.progress();
            cluster.happen(&Happening::Wait(30));
        }
        let has_finalizer = cluster.scene.session.metadata.finalizers.is_some();
        prop_assert!(cluster.is_gone || !has_finalizer);
        prop_assert!(cluster.secrets.is_empty());
    }
}
