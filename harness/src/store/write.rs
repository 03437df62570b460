//! One transaction about one session.

use std::sync::Arc;

use jiff::Timestamp;
use sqlx::{Sqlite, Transaction};

use super::change::Watchers;
use super::lease::{Lease, check_lease};
use super::{Connection, Store, StoreError};
use crate::session::SessionId;

/// One transaction about one session: all of it is stored by [`Write::commit`], or nothing when it is dropped.
///
/// It holds the only writing connection. Do not await anything but its own methods while it lives.
pub struct Write {
    transaction: Transaction<'static, Sqlite>,
    watchers: Arc<Watchers>,
    session: SessionId,
    now: Timestamp,
}

impl Store {
    /// Begins a transaction of the session's lease holder.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if another holder took the session or it was deleted: stop all work on it.
    pub async fn write(&self, lease: &Lease) -> Result<Write, StoreError> {
        let mut write = self.write_unleased(lease.session()).await?;
        check_lease(write.connection(), lease).await?;
        Ok(write)
    }

    /// Begins a transaction of a person's call, which needs no lease: it adds rows that the holder consumes.
    pub(super) async fn write_unleased(&self, session: SessionId) -> Result<Write, StoreError> {
        let transaction = self.writer.begin_with("BEGIN IMMEDIATE").await?;
        Ok(Write { transaction, watchers: Arc::clone(&self.watchers), session, now: self.now() })
    }
}

impl Write {
    /// Stores everything and wakes all who watch the session.
    ///
    /// # Errors
    /// [`StoreError::Database`]: nothing was stored.
    pub async fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().await?;
        self.watchers.notify(self.session);
        Ok(())
    }

    /// Stores everything without waking anybody: nothing that a watcher reads has changed.
    pub(super) async fn commit_quietly(self) -> Result<(), StoreError> {
        self.transaction.commit().await?;
        Ok(())
    }

    /// The session it is about.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The time that its rows carry.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.transaction
    }

    /// The time as the database holds it.
    pub(super) fn now_millis(&self) -> i64 {
        self.now.as_millisecond()
    }

    /// The session id as the database holds it.
    pub(super) fn session_text(&self) -> String {
        self.session.to_string()
    }
}
