//! The append-only event log of each session.

use sqlx::Row;

use super::{DatabaseRow, Store, StoreError, Write, time};
use crate::session::{Event, SessionId, StoredEvent};

impl Write {
    /// Appends to the session's log; gives the event's id.
    ///
    /// # Errors
    /// [`StoreError::NoSuchSession`], [`StoreError::Database`].
    pub async fn append_event(&mut self, event: &Event) -> Result<i64, StoreError> {
        let (session, now) = (self.session_text(), self.now_millis());
        let row =
            sqlx::query("UPDATE sessions SET last_event = last_event + 1 WHERE id = $1 RETURNING last_event")
                .bind(&session)
                .fetch_optional(self.connection())
                .await?
                .ok_or(StoreError::NoSuchSession)?;
        let id: i64 = row.try_get("last_event")?;
        let body = serde_json::to_string(event).map_err(|_| StoreError::Corrupt { column: "events.body" })?;
        sqlx::query("INSERT INTO events (session_id, id, at, kind, body) VALUES ($1, $2, $3, $4, $5)")
            .bind(&session)
            .bind(id)
            .bind(now)
            .bind(event.kind())
            .bind(body)
            .execute(self.connection())
            .await?;
        Ok(id)
    }
}

impl Store {
    /// At most `limit` events with an id above `after`, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`]. An unknown session has no events.
    pub async fn events(
        &self,
        session: SessionId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, at, kind, body FROM events WHERE session_id = $1 AND id > $2 ORDER BY id LIMIT $3",
        )
        .bind(session.to_string())
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(&self.readers)
        .await?;
        rows.iter().map(read).collect()
    }

    /// Whether the session's log holds an event with this id.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn has_event(&self, session: SessionId, id: i64) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT 1 FROM events WHERE session_id = $1 AND id = $2")
            .bind(session.to_string())
            .bind(id)
            .fetch_optional(&self.readers)
            .await?;
        Ok(row.is_some())
    }

    /// The id of the session's last event, 0 if it has none.
    ///
    /// # Errors
    /// [`StoreError::NoSuchSession`], [`StoreError::Database`].
    pub async fn last_event(&self, session: SessionId) -> Result<i64, StoreError> {
        let row = sqlx::query("SELECT last_event FROM sessions WHERE id = $1")
            .bind(session.to_string())
            .fetch_optional(&self.readers)
            .await?
            .ok_or(StoreError::NoSuchSession)?;
        Ok(row.try_get("last_event")?)
    }
}

fn read(row: &DatabaseRow) -> Result<StoredEvent, StoreError> {
    let body: String = row.try_get("body")?;
    Ok(StoredEvent {
        id: row.try_get("id")?,
        at: time(row, "at")?,
        kind: row.try_get("kind")?,
        event: serde_json::from_str(&body).map_err(|_| StoreError::Corrupt { column: "events.body" })?,
    })
}
