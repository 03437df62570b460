//! Why an ExecutorClass is as it is.

use super::reasons;

reasons! {
    /// Why an ExecutorClass is as it is.
    ClassReason {
        Valid True Accepted:
            "Pods can be made from it."
            "Nothing.";
        Valid False PodsRejected:
            "The API server does not accept pods as the class makes them."
            "Look at the message and correct the class, or the namespace's Pod Security level.";
        Valid False InUse:
            "It is being deleted and goes once no pod is left of it; no new pod is made from it."
            "Delete or suspend the Sessions of the pods in the message.";
    }
}
