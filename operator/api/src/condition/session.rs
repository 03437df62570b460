//! Why a Session is as it is.

use super::reasons;

reasons! {
    /// Why a Session is as it is.
    SessionReason {
        Ready True Bound:
            "An executor is bound to the Session's volume, and the workspace is there."
            "Nothing.";
        Ready True NoFiles:
            "The profile has no files and no commands, so there is nothing to wait for."
            "Nothing.";

        Ready False VolumePending:
            "The volume claim is made and the cluster has not provided the volume yet."
            "Wait; if it lasts, look at the events of the claim.";
        Ready False PodPending:
            "The pod is made and has not started yet."
            "Wait; if it lasts, look at the events of the pod.";
        Ready False ImagePulling:
            "The node is fetching the class's image."
            "Wait; a large image takes minutes the first time on a node.";
        Ready False Binding:
            "The pod runs, and the operator is reaching its executor."
            "Wait; if it lasts, look at the log of the container `executor`.";
        Ready False Seeding:
            "*(planned)* The workspace is being filled from its source."
            "Wait.";

        Ready False ClassNotFound:
            "The ExecutorClass that the Session names is not in its namespace; without a name it is the one called `default`."
            "Create the class, or name another one.";
        Ready False ImageUnavailable:
            "The node cannot fetch the class's image, or there is none of that name."
            "Correct the image in the class, or give the nodes access to its registry.";
        Ready False StorageClassNotFound:
            "The storage class does not exist, or none was named and the cluster has no default one."
            "Name one that exists, in the class, or ask the platform team.";
        Ready False QuotaExceeded:
            "A quota of the namespace does not allow the pod or the claim."
            "Delete or suspend Sessions that are not needed, or ask for a larger quota.";
        Ready False Unschedulable:
            "No node has room for the pod or fits the class's selector."
            "Look at the message; make room, or change the class's requests, selector or tolerations.";
        Ready False PodRejected:
            "The API server or the node does not accept the pod as the class makes it."
            "Look at the message and correct the class, or the namespace's Pod Security level.";
        Ready False ClaimRejected:
            "The API server does not accept the volume claim."
            "Look at the message and correct the storage in the class, or make the Session anew with another one.";
        Ready False SourceUnsupported:
            "The operator does not know how to fill a workspace from this source."
            "Use another source, or a newer operator.";
        Ready False SourceFailed:
            "*(planned)* The workspace could not be filled from its source."
            "Look at the message: the address, the revision or the credentials are not right.";
        Ready False ClaimNotFound:
            "*(planned)* The volume claim that the source names is not in the namespace."
            "Create the claim, or make the Session anew with another one.";
        Ready False SecretNotFound:
            "A Secret, or a key in it, that the Session names is not in the namespace."
            "Create the Secret with that key.";
        Ready False NameConflict:
            "An object that is not ours has the name the Session's pod, claim or Secret must have; it was left alone."
            "Find out whose it is, and delete it if nobody needs it.";
        Ready False LandlockTooOld:
            "The node's kernel confines commands less than the class demands."
            "Let the class select nodes with a newer kernel, or lower its `minimumLandlock` knowingly.";
        Ready False BindRefused:
            "The executor did not accept the environment for a reason of its own."
            "Look at the message and at the log of the container `executor`.";
        Ready False WorkspaceMismatch:
            "The volume holds another environment than this Session's; nothing on it was touched."
            "Find out how the volume was exchanged; the Session goes on once its own one is back.";

        Ready False ExecutorLost:
            "The executor's process ended. A new pod is made over the same volume."
            "Nothing; commands that ran are lost and are told so.";
        Ready False ExecutorOutOfMemory:
            "The container with the executor used more memory than it may. A new pod is made over the same volume."
            "Report it if it comes again: the executor holds little.";
        Ready False PodDeleted:
            "Somebody deleted the pod. A new one is made over the same volume."
            "Nothing.";
        Ready False PodAltered:
            "Somebody changed the labels that the pod's network policy selects it by. A new pod is made over the same volume."
            "Leave labels of pods alone; find out who changed them.";
        Ready False Evicted:
            "The node evicted the pod: it was drained, or short of memory or disk. A new pod is made over the same volume."
            "Nothing; if it comes again, raise the class's requests.";
        Ready Unknown NodeUnreachable:
            "The node does not answer, so nobody knows whether the executor still runs. The volume is not given to another one meanwhile."
            "Wait for the node; if it is certain that it is off, delete its Node object.";
        Ready False StartDeadlineExceeded:
            "The start took longer than `lifecycle.startDeadline`; the message has the last reason. It is not tried again."
            "Remove that reason, then suspend the Session and wake it, or make it anew.";

        Ready False Asleep:
            "The Session is suspended: no pod, the volume stays."
            "Set `spec.suspended` to false.";
        Ready False Ended:
            "The Session has ended for good."
            "Look at the condition Retired; make a new Session.";
        Ready False Deleted:
            "The Session is being deleted."
            "Nothing.";

        Suspended True Requested:
            "The owner suspended it."
            "Set `spec.suspended` to false to wake it.";
        Suspended True Idle:
            "*(planned)* Nothing happened for as long as `lifecycle.idleTimeout` says."
            "Nothing: it wakes when its owner writes to it.";
        Suspended True FallingAsleep:
            "Its commands are being ended and its pod goes."
            "Nothing.";
        Suspended False Awake:
            "It is not asleep."
            "Nothing.";

        Retired True WorkspaceLost:
            "The volume, or what was on it, is gone. It is never replaced by an empty one."
            "Restore the work from where it was pushed to, in a new Session.";
        Retired True Expired:
            "*(planned)* It slept for as long as `lifecycle.ttlAfterFinished` says."
            "Make a new Session.";
        Retired False InUse:
            "*(planned)* It has not ended."
            "Nothing.";

        RunnerRestarted True RunnerOutOfMemory:
            "The commands together used more memory than the class allows, and all of them ended."
            "Run less at once, or raise the class's memory limit.";
        RunnerRestarted True RunnerExited:
            "The container with the commands ended and was started anew; all commands ended."
            "Look at the message; nothing else has changed.";

        Terminating True Draining:
            "Commands are being ended before the pod goes."
            "Nothing.";
        Terminating True DrainUnanswered:
            "The executor does not answer; the deletion goes on without it at its deadline."
            "Nothing.";
        Terminating True Removing:
            "*(planned)* The pod goes, then the volume as `storage.retain` says."
            "If it lasts, look at the events of the pod and of the claim.";
    }
}

impl SessionReason {
    /// Whether, for this reason of the condition Ready, the executor that was bound before is no more, and every command with it.
    pub const fn is_executor_gone(self) -> bool {
        match self {
            Self::ExecutorLost
            | Self::ExecutorOutOfMemory
            | Self::PodDeleted
            | Self::PodAltered
            | Self::Evicted
            | Self::Asleep
            | Self::Ended
            | Self::Deleted => true,
            // Nothing had begun, or what had goes on, or nobody knows.
            Self::Bound
            | Self::NoFiles
            | Self::VolumePending
            | Self::PodPending
            | Self::ImagePulling
            | Self::Binding
            | Self::Seeding
            | Self::ClassNotFound
            | Self::ImageUnavailable
            | Self::StorageClassNotFound
            | Self::QuotaExceeded
            | Self::Unschedulable
            | Self::PodRejected
            | Self::ClaimRejected
            | Self::SourceUnsupported
            | Self::SourceFailed
            | Self::ClaimNotFound
            | Self::SecretNotFound
            | Self::NameConflict
            | Self::LandlockTooOld
            | Self::BindRefused
            | Self::WorkspaceMismatch
            | Self::NodeUnreachable
            | Self::StartDeadlineExceeded
            | Self::Requested
            | Self::Idle
            | Self::FallingAsleep
            | Self::Awake
            | Self::WorkspaceLost
            | Self::Expired
            | Self::InUse
            | Self::RunnerOutOfMemory
            | Self::RunnerExited
            | Self::Draining
            | Self::DrainUnanswered
            | Self::Removing => false,
        }
    }
}
