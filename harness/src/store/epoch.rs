//! Epochs of environments, and which executor process a session last worked with.

use sqlx::Row;

use super::{Store, StoreError, Write};
use crate::session::{EnvironmentRef, SessionId};

impl Store {
    /// The epoch for the next executor of an environment: 1, then one more each time. Never given twice.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn next_environment_epoch(&self, environment: &EnvironmentRef) -> Result<u64, StoreError> {
        let row = sqlx::query(
            "INSERT INTO environment_epochs (kind, id, revision, epoch) VALUES ($1, $2, $3, 1) \
             ON CONFLICT (kind, id, revision) DO UPDATE SET epoch = environment_epochs.epoch + 1 RETURNING epoch",
        )
        .bind(environment.kind.as_str())
        .bind(&environment.id)
        .bind(&environment.revision)
        .fetch_one(&self.writer)
        .await?;
        let epoch: i64 = row.try_get("epoch")?;
        u64::try_from(epoch).map_err(|_| StoreError::Corrupt { column: "environment_epochs.epoch" })
    }

    /// The executor process with which the session worked last, if it ever worked with one.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn last_boot(&self, session: SessionId) -> Result<Option<String>, StoreError> {
        let row = sqlx::query("SELECT boot_id FROM session_boots WHERE session_id = $1")
            .bind(session.to_string())
            .fetch_optional(&self.readers)
            .await?;
        row.map(|row| row.try_get("boot_id")).transpose().map_err(StoreError::from)
    }
}

impl Write {
    /// Remembers the executor process with which the session works now.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn set_last_boot(&mut self, boot_id: &str) -> Result<(), StoreError> {
        let session = self.session_text();
        sqlx::query(
            "INSERT INTO session_boots (session_id, boot_id) VALUES ($1, $2) \
             ON CONFLICT (session_id) DO UPDATE SET boot_id = excluded.boot_id",
        )
        .bind(session)
        .bind(boot_id)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Remembers the first executor process with which the session works, or the first after one was noted as gone.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn set_first_boot(&mut self, boot_id: &str) -> Result<(), StoreError> {
        let session = self.session_text();
        sqlx::query(
            "INSERT INTO session_boots (session_id, boot_id) VALUES ($1, $2) \
             ON CONFLICT (session_id) DO UPDATE SET boot_id = excluded.boot_id WHERE session_boots.boot_id = ''",
        )
        .bind(session)
        .bind(boot_id)
        .execute(self.connection())
        .await?;
        Ok(())
    }
}
