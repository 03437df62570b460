//! Effects at the executor: each id is stored before it is sent.

use jiff::Timestamp;
use sqlx::Row;

use super::{DatabaseRow, Store, StoreError, Write, id, optional_time, parsed, time};
use crate::session::{OperationId, RunId, SessionId};

/// One effect that was, or was about to be, sent to an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name at the executor.
    pub id: OperationId,
    /// The run.
    pub run: RunId,
    /// [`crate::session::ToolCall::id`].
    pub call: String,
    /// The executor process it was meant for. Another `boot_id` never knew it.
    pub boot_id: String,
    /// Where it stands.
    pub state: OperationState,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When its end was stored.
    pub finished_at: Option<Timestamp>,
}

closed_text! {
    /// Where an operation stands.
    OperationState {
        /// It may have been sent; its end is not known here.
        Sent = "sent",
        /// Its result is in the conversation.
        Finished = "finished",
        /// It cannot be known whether it happened; the model was told.
        Lost = "lost",
    }
}

impl Write {
    /// Stores an operation that is about to be sent. Commit before sending.
    ///
    /// # Errors
    /// [`StoreError::OperationExists`], [`StoreError::Database`].
    pub async fn record_operation(
        &mut self,
        operation: OperationId,
        run: RunId,
        call: &str,
        boot_id: &str,
    ) -> Result<(), StoreError> {
        let (session, now) = (self.session_text(), self.now_millis());
        let done = sqlx::query(
            "INSERT INTO operations (id, session_id, run_id, call_id, boot_id, state, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING",
        )
        .bind(operation.to_string())
        .bind(session)
        .bind(run.to_string())
        .bind(call)
        .bind(boot_id)
        .bind(OperationState::Sent.as_str())
        .bind(now)
        .execute(self.connection())
        .await?;
        if done.rows_affected() == 1 { Ok(()) } else { Err(StoreError::OperationExists) }
    }

    /// Stores the end of an operation; with the tool result in the same transaction it is never executed again.
    ///
    /// # Errors
    /// [`StoreError::NoSuchOperation`] if it is not this session's or has its end already.
    pub async fn finish_operation(
        &mut self,
        operation: OperationId,
        state: OperationState,
    ) -> Result<(), StoreError> {
        let (session, now) = (self.session_text(), self.now_millis());
        let done = sqlx::query(
            "UPDATE operations SET state = $3, finished_at = $4 WHERE id = $1 AND session_id = $2 AND state = 'sent'",
        )
        .bind(operation.to_string())
        .bind(session)
        .bind(state.as_str())
        .bind(now)
        .execute(self.connection())
        .await?;
        if done.rows_affected() == 1 { Ok(()) } else { Err(StoreError::NoSuchOperation) }
    }
}

impl Store {
    /// All operations of a run, in the order in which they were stored.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn operations(&self, session: SessionId, run: RunId) -> Result<Vec<Operation>, StoreError> {
        let rows = sqlx::query(
            "SELECT * FROM operations WHERE session_id = $1 AND run_id = $2 ORDER BY created_at, id",
        )
        .bind(session.to_string())
        .bind(run.to_string())
        .fetch_all(&self.readers)
        .await?;
        rows.iter().map(read).collect()
    }

    /// The operations of a session whose end is not known, of ended runs too (a background command outlives its turn).
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn unfinished_operations(&self, session: SessionId) -> Result<Vec<Operation>, StoreError> {
        let rows = sqlx::query(
            "SELECT * FROM operations WHERE session_id = $1 AND state = 'sent' ORDER BY created_at, id",
        )
        .bind(session.to_string())
        .fetch_all(&self.readers)
        .await?;
        rows.iter().map(read).collect()
    }
}

fn read(row: &DatabaseRow) -> Result<Operation, StoreError> {
    Ok(Operation {
        id: id(row, "id")?,
        run: id(row, "run_id")?,
        call: row.try_get("call_id")?,
        boot_id: row.try_get("boot_id")?,
        state: parsed(row, "state", OperationState::from_text)?,
        created_at: time(row, "created_at")?,
        finished_at: optional_time(row, "finished_at")?,
    })
}
