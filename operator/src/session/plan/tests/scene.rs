//! A Session and what is around it, from a line of words; and a plan as lines of words.
//!
//! Words of the spec: `suspended no-fs git retain deleted=<seconds ago> bare generation=<n> deadline=<seconds>`; of the
//! status: `epoch=<n> environment bound op=<type>:<step>:<seconds ago>:<generation> ready=<Reason>`; of the world, see
//! [`Scene::observe`].

use std::fmt::Write as _;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use mooring_operator_api::condition::SessionReason;
use mooring_operator_api::duration::WholeSeconds;
use mooring_operator_api::executor_class::ExecutorClassSpec;
use mooring_operator_api::session::{
    EmptySource, Executor, GitSource, Lifecycle, Operation, OperationStep, OperationType, Profile, Retain,
    SessionSpec, SessionStatus, Source, Storage, VolumeClaim, WorkspaceSpec,
};
use mooring_operator_api::{ExecutorClass, ObjectName, Session, Uid, label};

use super::super::super::claim::{Access, Revision};
use super::super::super::observed::pod::{Cause, PodFacts, PodState, RunnerRestart};
use super::super::super::observed::{ClaimFacts, Observed, OurClaim, PolicyFacts, SecretFacts, StorageFacts};
use super::super::{Plan, Step, environment};
use super::NOW;
use crate::dial::{Answer, BindRefusal, Dial, Progress, Target};
use crate::names;
use crate::refusal::{Refusable, Refused};

const UID: &str = "0f3a1c1e-52f5-4d0e-9d3f-6f3a4f0b2c11";
const REVISION: &str = "00112233445566778899aabbccddeeff";
const OTHER_REVISION: &str = "ffffffffffffffffffffffffffffffff";

/// A case.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) now: Timestamp,
    pub(super) session: Session,
    pub(super) class: Option<ExecutorClass>,
    pub(super) policy: PolicyFacts,
    pub(super) storage: StorageFacts,
    pub(super) claim: ClaimFacts,
    pub(super) pods: Vec<PodFacts>,
    pub(super) secret: SecretFacts,
    pub(super) dial: Option<Dial>,
    pub(super) refused: Option<Refused>,
}

impl Scene {
    pub(super) fn parse(case: &str) -> Self {
        let mut parts = case.split('|').map(|part| part.split_whitespace());
        let mut scene = Self::empty();
        for word in parts.next().into_iter().flatten() {
            scene.specify(word);
        }
        for word in parts.next().into_iter().flatten() {
            scene.record(word);
        }
        for word in parts.next().into_iter().flatten() {
            scene.observe(word);
        }
        scene
    }

    /// A Session that was just made, in a namespace with a class.
    pub(super) fn empty() -> Self {
        let mut session = Session::new("work", SessionSpec::of("jane".into()));
        session.metadata.namespace = Some("team-a".to_owned());
        session.metadata.uid = Some(UID.to_owned());
        session.metadata.generation = Some(1);
        session.metadata.finalizers = Some(vec![label::FINALIZER.to_owned()]);
        let mut class = ExecutorClass::new("default", ExecutorClassSpec::of("example.test/environment:1"));
        class.metadata.generation = Some(1);
        Self {
            now: NOW.parse().expect("a time"),
            session,
            class: Some(class),
            policy: PolicyFacts::Wanting,
            storage: StorageFacts::Known(Access::OneNode),
            claim: ClaimFacts::Absent,
            pods: Vec::new(),
            secret: SecretFacts::Absent,
            dial: None,
            refused: None,
        }
    }

    pub(super) fn observed(&self) -> Observed {
        Observed {
            session: Arc::new(self.session.clone()),
            class: self.class.clone().map(Arc::new),
            is_class_leaving: false,
            policy: self.policy,
            storage: self.storage.clone(),
            claim: self.claim.clone(),
            pods: self.pods.clone(),
            secret: self.secret.clone(),
            dial: self.dial.clone(),
            refused: self.refused.clone(),
        }
    }

    fn ago(&self, seconds: &str) -> Timestamp {
        self.now - SignedDuration::from_secs(seconds.parse().expect("seconds"))
    }

    fn workspace(&mut self) -> &mut WorkspaceSpec {
        self.session.spec.workspace.get_or_insert_default()
    }

    fn specify(&mut self, word: &str) {
        match word.split_once('=').unwrap_or((word, "")) {
            ("suspended", _) => self.session.spec.suspended = true,
            ("no-fs", _) => self.session.spec.profile = Some(Profile::NoFs),
            ("empty", _) => self.workspace().source = Some(Source::Empty(EmptySource {})),
            ("git", _) => {
                self.workspace().source = Some(Source::Git(GitSource {
                    url: "https://example.test/repository".to_owned(),
                    revision: None,
                    depth: None,
                    filter: None,
                    credentials_secret: None,
                }));
            }
            ("retain", _) => {
                self.workspace().storage =
                    Some(Storage { retain: Some(Retain::Retain), ..Storage::default() });
            }
            ("deleted", seconds) => {
                self.session.metadata.deletion_timestamp = Some(Time(self.ago(seconds)));
            }
            ("bare", _) => self.session.metadata.finalizers = None,
            ("generation", number) => self.session.metadata.generation = number.parse().ok(),
            ("deadline", seconds) => {
                let seconds = seconds.parse().expect("seconds");
                self.session.spec.lifecycle =
                    Some(Lifecycle { start_deadline: WholeSeconds::new(seconds), ..Lifecycle::default() });
            }
            _ => panic!("no word of a spec: {word}"),
        }
    }

    fn status(&mut self) -> &mut SessionStatus {
        self.session.status.get_or_insert_default()
    }

    fn record(&mut self, word: &str) {
        match word.split_once('=').unwrap_or((word, "")) {
            ("epoch", number) => self.status().epoch = number.parse().ok(),
            ("environment", _) => {
                self.status().environment = Some(environment(&self.session.clone(), REVISION));
                self.status().claim = Some(VolumeClaim {
                    name: names::claim(&UID.into()).as_str().into(),
                    uid: "claim-1".into(),
                });
            }
            // Now, or for so many seconds after losses that began so many seconds ago.
            ("bound", words) => {
                let (lived, recovering) = words.split_once(':').unwrap_or(("3600", ""));
                let recovering_since = (!recovering.is_empty()).then(|| Time(self.ago(recovering)));
                self.record("environment");
                let epoch = self.status().epoch.unwrap_or(1);
                let pod = names::pod(&UID.into(), epoch);
                self.status().executor = Some(Executor {
                    pod: ObjectName::from(pod),
                    pod_uid: uid(epoch),
                    class: Some("default".into()),
                    address: "192.0.2.1:7443".to_owned(),
                    boot_id: "b".repeat(32),
                    landlock: 7,
                    recovering_since,
                });
                self.record("ready=Bound");
                let bound_at = Time(self.ago(lived));
                if let Some(ready) = self.status().conditions.last_mut() {
                    ready.last_transition_time = bound_at;
                }
            }
            ("op", words) => {
                let words: Vec<&str> = words.split(':').collect();
                let [type_, step, seconds, generation] = words[..] else {
                    panic!("type:step:ago:generation")
                };
                let started_at = Time(self.ago(seconds));
                let epoch = self.status().epoch.unwrap_or(0);
                let is_end = matches!(type_, "sleep" | "retire");
                self.status().operation = Some(Operation {
                    id: format!("{type_}-{}", epoch + i64::from(step == "clear" && !is_end)),
                    type_: operation_type(type_),
                    step: if step == "clear" { OperationStep::DeletePod } else { OperationStep::Claim },
                    started_at,
                    generation: generation.parse().expect("a generation"),
                });
            }
            ("ready" | "also", reason) => {
                let row = SessionReason::ROWS.iter().find(|row| row.reason == reason).expect("a reason");
                let message = match reason {
                    "Bound" => {
                        let epoch = self.status().epoch.unwrap_or(1);
                        format!("epoch {epoch} on pod {}", names::pod(&UID.into(), epoch))
                    }
                    "Asleep" => "suspended; the volume stays".to_owned(),
                    "Requested" => "suspended by its spec".to_owned(),
                    "FallingAsleep" => "its commands are being ended and its pod goes".to_owned(),
                    "Deleted" => "being deleted".to_owned(),
                    _ => "as told before".to_owned(),
                };
                let condition =
                    row.condition(message, self.session.metadata.generation, Time(self.ago("3600")));
                self.status().conditions.push(condition);
            }
            _ => panic!("no word of a status: {word}"),
        }
    }

    /// `no-class policy no-storage no-default claim claim:<pending|lost|leaving|retained|other|foreign|edited> secret
    /// secret:<stale|foreign|unread> pod=<epoch>:<state>[:age] silent addressed dial=<outcome> refused=<step>:<Reason>`.
    fn observe(&mut self, word: &str) {
        match word.split_once('=').unwrap_or((word, "")) {
            ("no-class", _) => self.class = None,
            ("policy", _) => self.policy = PolicyFacts::Current,
            ("no-storage", _) => self.storage = StorageFacts::Missing("fast".to_owned()),
            ("no-default", _) => self.storage = StorageFacts::NoDefault,
            ("claim", _) => self.claim = ClaimFacts::Ours(claim()),
            ("claim:foreign", _) => self.claim = ClaimFacts::Foreign,
            ("claim:pending", _) => self.claim = ClaimFacts::Ours(OurClaim { is_bound: false, ..claim() }),
            ("claim:lost", _) => self.claim = ClaimFacts::Ours(OurClaim { is_lost: true, ..claim() }),
            ("claim:leaving", _) => self.claim = ClaimFacts::Ours(OurClaim { is_leaving: true, ..claim() }),
            ("claim:retained", _) => self.claim = ClaimFacts::Ours(OurClaim { is_retained: true, ..claim() }),
            ("claim:other", _) => {
                self.claim = ClaimFacts::Ours(OurClaim { uid: "claim-2".into(), ..claim() });
            }
            ("claim:edited", _) => {
                let revision = Revision::read(OTHER_REVISION);
                self.claim = ClaimFacts::Ours(OurClaim { revision, ..claim() });
            }
            ("secret", _) => self.secret = SecretFacts::Fresh,
            ("secret:stale", _) => self.secret = SecretFacts::Stale,
            ("secret:foreign", _) => self.secret = SecretFacts::Foreign,
            ("secret:unread", _) => self.secret = SecretFacts::Unread,
            ("pod", words) => {
                let pod = self.pod(words);
                self.pods.push(pod);
            }
            ("silent", _) => self.last_pod().silent_node = Some("node-1".to_owned()),
            ("addressed", _) => self.last_pod().address = "192.0.2.1".parse().ok(),
            ("runner-restarted", _) => {
                let cause =
                    Cause::new(SessionReason::RunnerOutOfMemory, "restart 1, OOMKilled, exit code 137");
                self.last_pod().runner_restart = Some(RunnerRestart { count: 1, cause });
            }
            ("dial", outcome) => {
                self.last_pod().address = "192.0.2.1".parse().ok();
                self.dial = Some(Dial { target: self.target(), progress: progress(outcome) });
            }
            ("refused", words) => {
                let (step, reason) = words.split_once(':').expect("step:Reason");
                let step = match step {
                    "claim" => Refusable::Claim,
                    "pod" => Refusable::Pod,
                    _ => Refusable::Secret,
                };
                let cause = Cause::new(reason_of(reason), "as the API server says");
                self.refused = Some(Refused { step, cause, until: self.now + SignedDuration::from_secs(4) });
            }
            _ => panic!("no word of a world: {word}"),
        }
    }

    fn last_pod(&mut self) -> &mut PodFacts {
        self.pods.last_mut().expect("a pod before it")
    }

    fn target(&mut self) -> Target {
        let may_be_new = self.status().environment.is_none();
        let generation = self.session.metadata.generation.unwrap_or(0);
        let pod = self.last_pod();
        Target {
            pod: pod.name.clone(),
            pod_uid: pod.uid.clone(),
            epoch: pod.epoch,
            address: pod.address.expect("an address"),
            revision: REVISION.to_owned(),
            may_be_new,
            generations: (generation, 1),
        }
    }

    fn pod(&self, words: &str) -> PodFacts {
        let words: Vec<&str> = words.split(':').collect();
        let epoch: i64 = words[0].parse().expect("an epoch");
        let created = self.ago(words.get(2).copied().unwrap_or("60"));
        let pending = |reason, message| PodState::Waiting(Cause::new(reason, message));
        let ended =
            |reason, message| PodState::Ended { cause: Cause::new(reason, message), at: Some(self.now) };
        let (state, leaving, is_over) = match words[1] {
            "pending" => (pending(SessionReason::PodPending, "the pod is being started"), None, false),
            "unschedulable" => (pending(SessionReason::Unschedulable, "0/1 nodes"), None, false),
            // Held up, and made when the class was another one.
            "no-image" | "outdated" => {
                (pending(SessionReason::ImageUnavailable, "ErrImagePull"), None, false)
            }
            "running" | "altered" => (PodState::Running, None, false),
            "leaving" => {
                let cause = Cause::new(SessionReason::PodDeleted, "the pod is being deleted");
                (PodState::Running, Some(cause), false)
            }
            "ended" => (ended(SessionReason::ExecutorLost, "Error, exit code 1"), None, false),
            "failed" => (ended(SessionReason::ExecutorLost, "Error, exit code 1"), None, true),
            "oom" => (ended(SessionReason::ExecutorOutOfMemory, "OOMKilled, exit code 137"), None, true),
            "evicted" => (ended(SessionReason::Evicted, "low on memory"), None, true),
            "evicting" => (ended(SessionReason::Evicted, "low on memory"), None, false),
            other => panic!("no state of a pod: {other}"),
        };
        PodFacts {
            name: names::pod(&UID.into(), epoch),
            uid: uid(epoch),
            epoch,
            class_label: (words[1] != "altered").then(|| "default".to_owned()),
            is_watched: words[1] != "altered",
            class_digest: self.class.as_ref().filter(|_| words[1] != "outdated").map(crate::class::digest),
            created,
            address: None,
            state,
            leaving,
            is_over,
            silent_node: None,
            runner_restart: None,
        }
    }

    /// The plan, a step a line; of the status only what changes.
    pub(super) fn render(&self, plan: &Plan) -> String {
        let mut text = String::new();
        for step in &plan.steps {
            let _ = match step {
                Step::WriteStatus(status) => writeln!(text, "status{}", self.difference(status)),
                Step::CreateClaim(access) => writeln!(text, "create claim {access:?}"),
                Step::DeletePod { name, uid } => {
                    let own = self.pods.iter().find(|pod| pod.name == *name).expect("one of the pods");
                    assert_eq!(own.uid, *uid);
                    writeln!(text, "delete pod {}", own.epoch)
                }
                Step::CreateSecret(epoch)
                | Step::RenewSecret(epoch)
                | Step::DeleteSecret(epoch)
                | Step::CreatePod(epoch) => writeln!(text, "{} {epoch}", step.name()),
                Step::Dial(target) => {
                    let new = if target.may_be_new { ", may be new" } else { "" };
                    writeln!(text, "dial epoch {}{new}", target.epoch)
                }
                Step::AddFinalizer
                | Step::RemoveFinalizer
                | Step::DeleteClaim(_)
                | Step::RetainClaim(_)
                | Step::ApplyPolicy
                | Step::HangUp => writeln!(text, "{}", step.name()),
            };
        }
        for notice in &plan.notices {
            let kind = if notice.is_warning { "warning" } else { "normal" };
            let _ = writeln!(text, "event {kind} {}", notice.reason);
        }
        if let Some(until) = plan.until {
            let _ = writeln!(text, "again in {} s", until.duration_since(self.now).as_secs());
        }
        text
    }

    fn difference(&self, after: &SessionStatus) -> String {
        let before = self.session.status.clone().unwrap_or_default();
        let mut text = String::new();
        if before.epoch != after.epoch {
            let _ = write!(text, " epoch={}", after.epoch.unwrap_or(0));
        }
        if before.environment != after.environment {
            let _ = write!(text, " environment={:?}", after.environment.as_ref().map(|it| it.kind));
        }
        if before.claim != after.claim {
            let _ = write!(text, " claim={}", after.claim.as_ref().map_or("none", |it| it.uid.as_str()));
        }
        if before.executor != after.executor {
            let pod = after.executor.as_ref().map_or("none".to_owned(), |it| it.pod_uid.to_string());
            let _ = write!(text, " executor={pod}");
        }
        if before.operation != after.operation {
            let shown = after.operation.as_ref().map_or("none".to_owned(), |it| {
                format!(
                    "{:?}:{:?}:{}:{}",
                    it.type_,
                    it.step,
                    self.now.duration_since(it.started_at.0).as_secs(),
                    it.id
                )
            });
            let _ = write!(text, " operation={shown}");
        }
        for condition in &after.conditions {
            if !before.conditions.contains(condition) {
                let _ = write!(
                    text,
                    "\n  {}={} {}: {}",
                    condition.type_, condition.status, condition.reason, condition.message
                );
            }
        }
        for condition in &before.conditions {
            if after.conditions.iter().all(|it| it.type_ != condition.type_) {
                let _ = write!(text, "\n  {} is dropped", condition.type_);
            }
        }
        text
    }
}

fn claim() -> OurClaim {
    OurClaim {
        uid: "claim-1".into(),
        revision: Revision::read(REVISION),
        is_leaving: false,
        is_lost: false,
        is_bound: true,
        is_retained: false,
    }
}

pub(super) fn uid(epoch: i64) -> Uid {
    Uid::from(format!("pod-{epoch}"))
}

fn operation_type(word: &str) -> OperationType {
    match word {
        "start" => OperationType::Start,
        "replace" => OperationType::Replace,
        "wake" => OperationType::Wake,
        "sleep" => OperationType::Sleep,
        "retire" => OperationType::Retire,
        other => panic!("no operation: {other}"),
    }
}

fn progress(outcome: &str) -> Progress {
    match outcome.split_once(':').unwrap_or((outcome, "")) {
        ("trying", "") => Progress::Trying(None),
        ("trying", reason) => Progress::Trying(Some(Cause::new(reason_of(reason), "as it says"))),
        ("bound", landlock) => {
            Progress::Bound(Answer { boot_id: "b".repeat(32), landlock: landlock.parse().unwrap_or(7) })
        }
        ("stale", current) => {
            Progress::Refused(BindRefusal::StaleEpoch { current: current.parse().expect("an epoch") })
        }
        ("other-arguments", _) => Progress::Refused(BindRefusal::OtherArguments),
        ("empty", _) => Progress::Refused(BindRefusal::EmptyWorkspace),
        other => panic!("no outcome: {other:?}"),
    }
}

/// The reasons that cases name.
fn reason_of(word: &str) -> SessionReason {
    use SessionReason as R;
    let known = [
        R::QuotaExceeded,
        R::PodRejected,
        R::ClaimRejected,
        R::NameConflict,
        R::SecretNotFound,
        R::BindRefused,
        R::Binding,
        R::WorkspaceMismatch,
    ];
    known.into_iter().find(|reason| reason.as_str() == word).expect("a reason that cases name")
}
