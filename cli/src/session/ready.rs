//! Waiting for a Session.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::{WatchStreamExt as _, watcher};
use mooring_operator_api::Session;
use mooring_operator_api::condition::{ConditionType, SessionReason};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::progress::tell;

/// What no waiting changes.
const FINAL: [SessionReason; 4] = [
    SessionReason::StartDeadlineExceeded,
    SessionReason::SourceUnsupported,
    SessionReason::Ended,
    SessionReason::Deleted,
];

/// The condition Ready.
pub(super) fn condition(session: &Session) -> Option<&Condition> {
    let conditions = &session.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.type_ == ConditionType::Ready.as_str())
}

/// Waits until a Session is ready, telling each reason why it is not.
///
/// # Errors
/// [`Error::NotReady`] after `patience`, or at once for a reason that waiting does not change.
pub(crate) async fn await_ready(cluster: &Cluster, name: &str, patience: Duration) -> Result<Session, Error> {
    let mut last: Option<(String, String)> = None;
    if let Ok(ended) = tokio::time::timeout(patience, follow(cluster, name, &mut last)).await {
        return ended;
    }
    let unseen = || ("no condition".to_owned(), "no operator has looked at it yet".to_owned());
    let (reason, message) = last.unwrap_or_else(unseen);
    Err(Error::NotReady { name: name.to_owned(), reason, message })
}

async fn follow(
    cluster: &Cluster,
    name: &str,
    last: &mut Option<(String, String)>,
) -> Result<Session, Error> {
    let what = || format!("wait for session {name}");
    let watch = watcher::watch_object(cluster.sessions(), name).default_backoff();
    let mut seen = watch.boxed();
    loop {
        let session = match seen.try_next().await {
            Ok(Some(Some(session))) => session,
            Ok(Some(None)) => {
                let message = "there is no such session".to_owned();
                return Err(Error::ApiServer { what: what(), message, code: 404 });
            }
            Ok(None) => return Err(Error::Broken("the watch ended".to_owned())),
            Err(error) => match refused(error) {
                Some(error) => return Err(Error::cluster(what(), error)),
                None => continue,
            },
        };
        let Some(ready) = condition(&session) else { continue };
        let is_current =
            ready.observed_generation.is_none_or(|seen| Some(seen) >= session.metadata.generation);
        if !is_current {
            continue;
        }
        if ready.status == "True" {
            return Ok(session);
        }
        let told = (ready.reason.clone(), ready.message.clone());
        if SessionReason::of(&told.0).is_some_and(|reason| FINAL.contains(&reason)) {
            return Err(Error::NotReady { name: name.to_owned(), reason: told.0, message: told.1 });
        }
        if last.as_ref() != Some(&told) {
            tell(&format!("{name}: {}: {}", told.0, told.1));
            *last = Some(told);
        }
    }
}

/// The API server's refusal of a watch, when it would refuse the next one too.
fn refused(error: watcher::Error) -> Option<kube::Error> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            if matches!(status.code, 401 | 403) =>
        {
            Some(kube::Error::Api(status))
        }
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchError(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}
