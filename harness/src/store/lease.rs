//! One writer per session at a time.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::Row;

use super::{Connection, Store, StoreError, signed};
use crate::session::SessionId;

/// Proof that its holder is the session's writer, until another takes it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    session: SessionId,
    epoch: i64,
    holder: String,
}

impl Lease {
    /// The session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Rises by one with each acquisition, from 1. The executor refuses lower ones.
    pub fn epoch(&self) -> u64 {
        u64::try_from(self.epoch).unwrap_or(0)
    }
}

impl Store {
    /// Takes the session's lease for `time`, under a new epoch. `holder` names the process for a reader, 1–253 characters.
    ///
    /// # Errors
    /// [`StoreError::LeaseHeld`] while another's lease has not expired, [`StoreError::NoSuchSession`].
    pub async fn acquire_lease(
        &self,
        session: SessionId,
        holder: &str,
        time: Duration,
    ) -> Result<Lease, StoreError> {
        let mut write = self.write_unleased(session).await?;
        let (text, now) = (write.session_text(), write.now_millis());
        let held = sqlx::query("SELECT lease_expires_at FROM sessions WHERE id = $1")
            .bind(&text)
            .fetch_optional(write.connection())
            .await?
            .ok_or(StoreError::NoSuchSession)?;
        let until: i64 = held.try_get("lease_expires_at")?;
        if until > now {
            let until = Timestamp::from_millisecond(until)
                .map_err(|_| StoreError::Corrupt { column: "lease_expires_at" })?;
            return Err(StoreError::LeaseHeld { until });
        }
        let row = sqlx::query(
            "UPDATE sessions SET lease_epoch = lease_epoch + 1, lease_holder = $2, lease_expires_at = $3 \
             WHERE id = $1 RETURNING lease_epoch",
        )
        .bind(&text)
        .bind(holder)
        .bind(expiry(now, time))
        .fetch_one(write.connection())
        .await?;
        let epoch = row.try_get("lease_epoch")?;
        write.commit().await?;
        Ok(Lease { session, epoch, holder: holder.to_owned() })
    }

    /// Holds the lease for `time` from now. An expired lease that nobody took is still good.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`].
    pub async fn renew_lease(&self, lease: &Lease, time: Duration) -> Result<(), StoreError> {
        let mut write = self.write(lease).await?;
        let (text, until) = (write.session_text(), expiry(write.now_millis(), time));
        sqlx::query("UPDATE sessions SET lease_expires_at = $2 WHERE id = $1")
            .bind(text)
            .bind(until)
            .execute(write.connection())
            .await?;
        write.commit_quietly().await
    }

    /// Gives the lease back. The epoch stays, so a late write under it still fails once another has taken it.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if it was lost before.
    pub async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut write = self.write(lease).await?;
        let text = write.session_text();
        sqlx::query("UPDATE sessions SET lease_holder = NULL, lease_expires_at = 0 WHERE id = $1")
            .bind(text)
            .execute(write.connection())
            .await?;
        write.commit_quietly().await
    }

    /// Frees every lease that an earlier process left behind. Only for a caller that knows that no other process uses
    /// this store (the lock of the state folder). Epochs stay.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn free_leases(&self) -> Result<(), StoreError> {
        sqlx::query("UPDATE sessions SET lease_holder = NULL, lease_expires_at = 0")
            .execute(&self.writer)
            .await?;
        Ok(())
    }
}

/// Whether the lease still holds, read inside the transaction that depends on it.
pub(super) async fn check_lease(connection: &mut Connection, lease: &Lease) -> Result<(), StoreError> {
    let row = sqlx::query("SELECT 1 FROM sessions WHERE id = $1 AND lease_epoch = $2 AND lease_holder = $3")
        .bind(lease.session.to_string())
        .bind(lease.epoch)
        .bind(&lease.holder)
        .fetch_optional(connection)
        .await?;
    row.map(|_| ()).ok_or(StoreError::LeaseLost)
}

fn expiry(now: i64, time: Duration) -> i64 {
    now.saturating_add(signed(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}
