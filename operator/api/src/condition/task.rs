//! Why a Task is as it is.

use super::reasons;

reasons! {
    /// Why a Task is as it is.
    TaskReason {
        WorkspaceReady True Forked:
            "It has a workspace of its own."
            "Nothing.";
        WorkspaceReady True OfParent:
            "It works in its parent's workspace."
            "Nothing.";
        WorkspaceReady True NotNeeded:
            "It has no files."
            "Nothing.";
        WorkspaceReady False WaitingForSession:
            "Its Session is not ready."
            "Look at the conditions of the Session.";
        WorkspaceReady False Forking:
            "Its workspace is being made."
            "Wait.";
        WorkspaceReady False ForkFailed:
            "Its workspace could not be made."
            "Look at the message.";

        AwaitingApproval True QuestionOpen:
            "A call of it waits for the owner's answer."
            "Answer the Approval that the message names.";
        AwaitingApproval False NoQuestion:
            "No question is open."
            "Nothing.";

        Complete True Succeeded:
            "It says that it is done."
            "Look at its result.";
        Complete True Failed:
            "It could not go on."
            "Look at its result.";
        Complete True LimitReached:
            "A bound of it or of its Session was reached."
            "Hand on less at once, or allow more.";
        Complete True Stopped:
            "A person or its parent stopped it."
            "Nothing.";
        Complete True OwnerMismatch:
            "Its owner is not the owner of its Session; it was never begun."
            "Make it for the Session's owner.";
        Complete True NoFilesInSession:
            "It asks for files, and its Session's profile has none; it was never begun."
            "Make it with workspace `none`, or under another Session.";
        Complete True SessionNotFound:
            "Its Session is not in the namespace, or has ended."
            "Make it under another Session.";
        Complete False InProgress:
            "It has not ended."
            "Nothing.";
    }
}
