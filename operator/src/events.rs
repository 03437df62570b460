//! Events: what people should see at once, beside the conditions. Losing one loses no state.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Resource, ResourceExt as _};
use mooring_operator_api::{Uid, label};
use tokio::sync::mpsc;

use crate::names;
use crate::session::Notice;
use crate::telemetry::story;

/// Events that wait to be written; beyond them they are dropped.
const WAITING: usize = 512;
/// The longest note the API server takes is 1,024 bytes.
const LONGEST_NOTE: usize = 1000;

/// Where events are handed in.
#[derive(Clone)]
pub(crate) struct Events {
    sender: mpsc::Sender<Event>,
}

/// A place to hand events in, and what writes them.
pub(crate) fn events(client: Client) -> (Events, impl Future<Output = ()>) {
    let (sender, received) = mpsc::channel(WAITING);
    (Events { sender }, write(client, received))
}

impl Events {
    /// Hands in an event about an object. Never waits.
    pub(crate) fn publish<K: Resource<DynamicType = ()>>(&self, about: &K, notice: Notice) {
        let reason = notice.reason;
        if self.sender.try_send(event(about, notice, Timestamp::now())).is_err() {
            tracing::warn!(reason, "event dropped");
        }
    }
}

async fn write(client: Client, mut received: mpsc::Receiver<Event>) {
    while let Some(event) = received.recv().await {
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
        if let Err(error) = events.create(&PostParams::default(), &event).await {
            let reason = event.reason.as_deref();
            tracing::warn!(reason, error = story(&error), "event not written");
        }
    }
}

/// The event's own name is not made from the object's, which may be as long as a name can be.
fn event<K: Resource<DynamicType = ()>>(about: &K, notice: Notice, now: Timestamp) -> Event {
    let uid = Uid::from(about.meta().uid.clone().unwrap_or_default());
    let regarding: ObjectReference = about.object_ref(&());
    let mut note = notice.note;
    while note.len() > LONGEST_NOTE {
        note.pop();
    }
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{}.{:x}", names::claim(&uid), now.as_nanosecond())),
            namespace: about.namespace(),
            ..ObjectMeta::default()
        },
        action: Some("Reconcile".to_owned()),
        event_time: Some(MicroTime(now)),
        note: Some(note),
        reason: Some(notice.reason.to_owned()),
        regarding: Some(regarding),
        reporting_controller: Some(format!("{}/operator", mooring_operator_api::GROUP)),
        reporting_instance: Some(label::OPERATOR.to_owned()),
        type_: Some(if notice.is_warning { "Warning" } else { "Normal" }.to_owned()),
        ..Event::default()
    }
}
