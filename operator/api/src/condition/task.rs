//! Why a Task is as it is.

use super::reasons;

reasons! {
    /// Why a Task is as it is.
    TaskReason {
        WorkspaceReady True Forked:
            "*(planned)* It has a workspace of its own."
            "Nothing.";
        WorkspaceReady True OfParent:
            "*(planned)* It works in its parent's workspace."
            "Nothing.";
        WorkspaceReady True NotNeeded:
            "*(planned)* It has no files."
            "Nothing.";
        WorkspaceReady False WaitingForSession:
            "*(planned)* Its Session is not ready."
            "Look at the conditions of the Session.";
        WorkspaceReady False Forking:
            "*(planned)* Its workspace is being made."
            "Wait.";
        WorkspaceReady False ForkFailed:
            "*(planned)* Its workspace could not be made."
            "Look at the message.";

        AwaitingApproval True QuestionOpen:
            "*(planned)* A call of it waits for the owner's answer."
            "Answer the Approval that the message names.";
        AwaitingApproval False NoQuestion:
            "*(planned)* No question is open."
            "Nothing.";

        Complete True Succeeded:
            "*(planned)* It says that it is done."
            "Look at its result.";
        Complete True Failed:
            "*(planned)* It could not go on."
            "Look at its result.";
        Complete True LimitReached:
            "*(planned)* A bound of it or of its Session was reached."
            "Hand on less at once, or allow more.";
        Complete True Stopped:
            "*(planned)* A person or its parent stopped it."
            "Nothing.";
        Complete True OwnerMismatch:
            "*(planned)* Its owner is not the owner of its Session; it was never begun."
            "Make it for the Session's owner.";
        Complete True NoFilesInSession:
            "*(planned)* It asks for files, and its Session's profile has none; it was never begun."
            "Make it with workspace `none`, or under another Session.";
        Complete True SessionNotFound:
            "*(planned)* Its Session is not in the namespace, or has ended."
            "Make it under another Session.";
        Complete False InProgress:
            "*(planned)* It has not ended."
            "Nothing.";
    }
}
