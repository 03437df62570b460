//! What every reconcile works with.

use std::sync::Arc;

use kube::Client;

use crate::caches::Caches;
use crate::certificate::Authority;
use crate::dial::Dials;
use crate::events::Events;
use crate::refusal::Pauses;

/// What every reconcile works with.
pub(crate) struct Context {
    /// For writes, and for reads past the caches. The watches have a connection of their own.
    pub(crate) client: Client,
    /// The operator's own namespace.
    pub(crate) namespace: String,
    /// What the watches show.
    pub(crate) caches: Arc<Caches>,
    /// Issues certificates.
    pub(crate) authority: Arc<Authority>,
    /// Reaches executors.
    pub(crate) dials: Dials,
    /// Tells people.
    pub(crate) events: Events,
    /// What is not tried again yet.
    pub(crate) pauses: Arc<Pauses>,
}
