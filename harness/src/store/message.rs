//! Messages: words as they came, and when the model gets them.

use sqlx::Row;

use super::{DatabaseRow, Store, StoreError, Write, id, parsed, time};
use crate::session::{Event, Item, Message, Origin, RunId, SessionId, origin_from_text, origin_text};

/// Open runs that a session may have, the one at work included.
pub(crate) const MAX_OPEN_RUNS: i64 = 32;

impl Store {
    /// Stores somebody's words and the run that they start. Runs go one after the other.
    ///
    /// # Errors
    /// [`StoreError::NoSuchSession`], [`StoreError::Suspended`], [`StoreError::TooManyRuns`], [`StoreError::Database`].
    pub async fn post_message(
        &self,
        session: SessionId,
        origin: &Origin,
        text: &str,
    ) -> Result<Message, StoreError> {
        let mut write = self.write_unleased(session).await?;
        write.refuse_suspended().await?;
        if write.open_runs().await?.len() >= usize::try_from(MAX_OPEN_RUNS).unwrap_or(usize::MAX) {
            return Err(StoreError::TooManyRuns { limit: MAX_OPEN_RUNS });
        }
        let number = write.next_message_number().await?;
        let run = RunId::new();
        write.insert_run(run, number).await?;
        let message = write.insert_message(number, origin, text, run, false).await?;
        write.commit().await?;
        Ok(message)
    }

    /// Stores the owner's words for the run that is at work (or next to be).
    ///
    /// # Errors
    /// [`StoreError::NoOpenRun`], [`StoreError::NoSuchSession`], [`StoreError::Suspended`], [`StoreError::Database`].
    pub async fn steer(&self, session: SessionId, text: &str) -> Result<Message, StoreError> {
        let mut write = self.write_unleased(session).await?;
        write.refuse_suspended().await?;
        let run = write.open_runs().await?.first().map(|(run, _)| *run).ok_or(StoreError::NoOpenRun)?;
        let number = write.next_message_number().await?;
        let message = write.insert_message(number, &Origin::Owner, text, run, true).await?;
        write.commit().await?;
        Ok(message)
    }

    /// All messages with a number above `after`, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`]. An unknown session has none.
    pub async fn messages(&self, session: SessionId, after: i64) -> Result<Vec<Message>, StoreError> {
        let rows =
            sqlx::query("SELECT * FROM messages WHERE session_id = $1 AND number > $2 ORDER BY number")
                .bind(session.to_string())
                .bind(after)
                .fetch_all(&self.readers)
                .await?;
        rows.iter().map(read).collect()
    }
}

impl Write {
    /// Puts all words that the model has not got yet into the conversation, and gives them: the run's own, those that
    /// steer it, and what was left by a run that failed or came to its limit. Words of an interrupted run stay out.
    ///
    /// Call it when a run starts, between turns, and in the transaction that would end the run: if it gives words there,
    /// go on instead, so that no word is lost.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn take_words(&mut self, run: RunId) -> Result<Vec<Message>, StoreError> {
        let session = self.session_text();
        let rows = sqlx::query(
            "SELECT m.* FROM messages m JOIN runs r ON r.id = m.run_id WHERE m.session_id = $1 AND m.delivered = $3 \
             AND (m.run_id = $2 OR r.state IN ('failed', 'finished')) ORDER BY m.number",
        )
        .bind(&session)
        .bind(run.to_string())
        .bind(false)
        .fetch_all(self.connection())
        .await?;
        let messages: Vec<Message> = rows.iter().map(read).collect::<Result<_, _>>()?;
        for message in &messages {
            sqlx::query("UPDATE messages SET delivered = $3 WHERE session_id = $1 AND number = $2")
                .bind(&session)
                .bind(message.number)
                .bind(true)
                .execute(self.connection())
                .await?;
            let item = Item::Words {
                message: message.number,
                origin: message.origin.clone(),
                text: message.text.clone(),
            };
            self.append_item(run, &item).await?;
        }
        Ok(messages)
    }

    async fn refuse_suspended(&mut self) -> Result<(), StoreError> {
        let session = self.session_text();
        let row = sqlx::query("SELECT suspended FROM sessions WHERE id = $1")
            .bind(session)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NoSuchSession)?;
        if row.try_get("suspended")? { Err(StoreError::Suspended) } else { Ok(()) }
    }

    async fn next_message_number(&mut self) -> Result<i64, StoreError> {
        let session = self.session_text();
        let row = sqlx::query(
            "UPDATE sessions SET last_message = last_message + 1 WHERE id = $1 RETURNING last_message",
        )
        .bind(session)
        .fetch_one(self.connection())
        .await?;
        Ok(row.try_get("last_message")?)
    }

    async fn insert_message(
        &mut self,
        number: i64,
        origin: &Origin,
        text: &str,
        run: RunId,
        steers: bool,
    ) -> Result<Message, StoreError> {
        let (session, now) = (self.session_text(), self.now_millis());
        sqlx::query(
            "INSERT INTO messages (session_id, number, origin, text, run_id, steers, delivered, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(session)
        .bind(number)
        .bind(origin_text(origin))
        .bind(text)
        .bind(run.to_string())
        .bind(steers)
        .bind(false)
        .bind(now)
        .execute(self.connection())
        .await?;
        self.append_event(&Event::MessageCreated {
            number,
            origin: origin_text(origin),
            text: text.to_owned(),
            run: run.to_string(),
            steers,
        })
        .await?;
        Ok(Message {
            number,
            origin: origin.clone(),
            text: text.to_owned(),
            run,
            steers,
            delivered: false,
            created_at: self.now(),
        })
    }
}

fn read(row: &DatabaseRow) -> Result<Message, StoreError> {
    Ok(Message {
        number: row.try_get("number")?,
        origin: parsed(row, "origin", origin_from_text)?,
        text: row.try_get("text")?,
        run: id(row, "run_id")?,
        steers: row.try_get("steers")?,
        delivered: row.try_get("delivered")?,
        created_at: time(row, "created_at")?,
    })
}
