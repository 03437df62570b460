//! Session descriptions.

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::Row;

use super::{DatabaseRow, Store, StoreError, Write, id, number, parsed, signed, time};
use crate::session::{
    Creator, EnvironmentKind, EnvironmentRef, Event, Limits, NewSession, RunId, Session, SessionId,
    SessionPatch, SessionState, Usage, mode_from_text, profile_from_text, profile_text,
};

/// Columns of a session with the state of its open run.
const SELECT: &str = "SELECT s.*, \
    EXISTS (SELECT 1 FROM runs r WHERE r.session_id = s.id AND r.state = 'waiting') AS has_waiting, \
    EXISTS (SELECT 1 FROM runs r WHERE r.session_id = s.id AND r.state IN ('queued', 'running')) AS has_running \
    FROM sessions s WHERE ($1 IS NULL OR s.id = $1) ORDER BY s.created_at DESC, s.id DESC LIMIT $2";

/// What a deleted session may have left at its executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departed {
    /// Its id, which no other session gets.
    pub session: SessionId,
    /// Where it worked.
    pub environment: Option<EnvironmentRef>,
    /// One above the last holder's, which is thereby fenced.
    pub lease_epoch: u64,
    /// Under which ids it started things there.
    pub operations: BTreeSet<String>,
}

impl Store {
    /// Stores a session: one row, and its first event.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn create_session(&self, new: &NewSession) -> Result<Session, StoreError> {
        let mut write = self.write_unleased(new.id).await?;
        let (text, now) = (write.session_text(), write.now_millis());
        sqlx::query(
            "INSERT INTO sessions (id, profile, mode, trusted, suspended, model, limit_turns, limit_tool_calls, \
             limit_tokens, limit_failures, limit_wall_millis, usage_input_tokens, usage_output_tokens, usage_requests, \
             taints, environment_kind, environment_id, environment_revision, creator, created_at, updated_at, \
             last_event, last_message, last_item, lease_epoch, lease_expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, \
             $8, $9, $10, $11, 0, 0, 0, '[]', $12, $13, $14, $15, $16, $16, 0, 0, 0, 0, 0)",
        )
        .bind(text)
        .bind(profile_text(new.profile))
        .bind(new.mode.as_str())
        .bind(false)
        .bind(false)
        .bind(&new.model)
        .bind(i64::from(new.limits.turns))
        .bind(i64::from(new.limits.tool_calls))
        .bind(signed(new.limits.tokens))
        .bind(i64::from(new.limits.failures))
        .bind(signed(u64::try_from(new.limits.wall_time.as_millis()).unwrap_or(u64::MAX)))
        .bind(new.environment.kind.as_str())
        .bind(&new.environment.id)
        .bind(&new.environment.revision)
        .bind(new.creator.as_str())
        .bind(now)
        .execute(write.connection())
        .await?;
        write.append_event(&Event::SessionCreated {}).await?;
        write.commit().await?;
        self.session(new.id).await
    }

    /// One session.
    ///
    /// # Errors
    /// [`StoreError::NoSuchSession`], [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn session(&self, session: SessionId) -> Result<Session, StoreError> {
        let row = sqlx::query(SELECT)
            .bind(session.to_string())
            .bind(1_i64)
            .fetch_optional(&self.readers)
            .await?
            .ok_or(StoreError::NoSuchSession)?;
        read(&row)
    }

    /// At most `limit` sessions, newest first.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn sessions(&self, limit: u32) -> Result<Vec<Session>, StoreError> {
        let rows =
            sqlx::query(SELECT).bind(None::<String>).bind(i64::from(limit)).fetch_all(&self.readers).await?;
        rows.iter().map(read).collect()
    }

    /// Changes a session's description, by its owner's word.
    ///
    /// # Errors
    /// [`StoreError::NoSuchSession`], [`StoreError::Database`].
    pub async fn patch_session(
        &self,
        session: SessionId,
        patch: SessionPatch,
    ) -> Result<Session, StoreError> {
        let mut write = self.write_unleased(session).await?;
        let (text, now) = (write.session_text(), write.now_millis());
        let done = sqlx::query(
            "UPDATE sessions SET mode = COALESCE($2, mode), suspended = COALESCE($3, suspended), \
             trusted = COALESCE($4, trusted), updated_at = $5 WHERE id = $1",
        )
        .bind(text)
        .bind(patch.mode.map(crate::session::Mode::as_str))
        .bind(patch.suspended)
        .bind(patch.trusted)
        .bind(now)
        .execute(write.connection())
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::NoSuchSession);
        }
        write
            .append_event(&Event::SessionChanged {
                mode: patch.mode.map(|mode| mode.as_str().to_owned()),
                suspended: patch.suspended,
                trusted: patch.trusted,
            })
            .await?;
        write.commit().await?;
        self.session(session).await
    }

    /// Deletes a session and all its text: messages, conversation, events, approvals. The lease holder's next write is
    /// [`StoreError::LeaseLost`]. The workspace is not touched.
    ///
    /// # Errors
    /// [`StoreError::NoSuchSession`], [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn delete_session(&self, session: SessionId) -> Result<Departed, StoreError> {
        let environment = self.session(session).await?.environment;
        let mut write = self.write_unleased(session).await?;
        let text = write.session_text();
        let rows = sqlx::query("SELECT id FROM operations WHERE session_id = $1")
            .bind(text.clone())
            .fetch_all(write.connection())
            .await?;
        let operations = rows.iter().map(|row| row.try_get("id")).collect::<Result<_, _>>()?;
        let row = sqlx::query("DELETE FROM sessions WHERE id = $1 RETURNING lease_epoch")
            .bind(text)
            .fetch_optional(write.connection())
            .await?
            .ok_or(StoreError::NoSuchSession)?;
        let epoch: i64 = row.try_get("lease_epoch")?;
        write.commit().await?;
        // What was deleted is still in the write-ahead log until it is folded back.
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&self.writer).await?;
        let lease_epoch = u64::try_from(epoch).unwrap_or(0).saturating_add(1);
        Ok(Departed { session, environment, lease_epoch, operations })
    }
}

impl Write {
    /// Adds what one model call used to the session's sum, and says so in the log.
    ///
    /// # Errors
    /// [`StoreError::NoSuchSession`], [`StoreError::Database`].
    pub async fn add_usage(&mut self, run: RunId, usage: Usage) -> Result<(), StoreError> {
        let session = self.session_text();
        sqlx::query(
            "UPDATE sessions SET usage_input_tokens = usage_input_tokens + $2, \
             usage_output_tokens = usage_output_tokens + $3, usage_requests = usage_requests + $4 WHERE id = $1",
        )
        .bind(session)
        .bind(signed(usage.input_tokens))
        .bind(signed(usage.output_tokens))
        .bind(signed(usage.requests))
        .execute(self.connection())
        .await?;
        self.append_event(&Event::Usage {
            run: run.to_string(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
        })
        .await?;
        Ok(())
    }

    /// Adds to what the session has read. Never takes anything away.
    ///
    /// # Errors
    /// [`StoreError::NoSuchSession`], [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn add_taint(&mut self, taint: &str) -> Result<(), StoreError> {
        let session = self.session_text();
        let row = sqlx::query("SELECT taints FROM sessions WHERE id = $1")
            .bind(&session)
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NoSuchSession)?;
        let mut taints = parsed(&row, "taints", read_taints)?;
        if taints.insert(taint.to_owned()) {
            let json =
                serde_json::to_string(&taints).map_err(|_| StoreError::Corrupt { column: "taints" })?;
            sqlx::query("UPDATE sessions SET taints = $2 WHERE id = $1")
                .bind(&session)
                .bind(json)
                .execute(self.connection())
                .await?;
        }
        Ok(())
    }
}

fn read(row: &DatabaseRow) -> Result<Session, StoreError> {
    Ok(Session {
        id: id(row, "id")?,
        profile: parsed(row, "profile", profile_from_text)?,
        mode: parsed(row, "mode", mode_from_text)?,
        trusted: row.try_get("trusted")?,
        suspended: row.try_get("suspended")?,
        model: row.try_get("model")?,
        limits: Limits {
            turns: number(row, "limit_turns")?,
            tool_calls: number(row, "limit_tool_calls")?,
            tokens: number(row, "limit_tokens")?,
            failures: number(row, "limit_failures")?,
            wall_time: Duration::from_millis(number(row, "limit_wall_millis")?),
        },
        usage: Usage {
            input_tokens: number(row, "usage_input_tokens")?,
            output_tokens: number(row, "usage_output_tokens")?,
            requests: number(row, "usage_requests")?,
        },
        taints: parsed(row, "taints", read_taints)?,
        environment: read_environment(row)?,
        creator: parsed(row, "creator", Creator::from_text)?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        state: read_state(row)?,
    })
}

fn read_taints(json: &str) -> Option<BTreeSet<String>> {
    serde_json::from_str(json).ok()
}

/// A kind that this version does not know is an error, never "no reference".
fn read_environment(row: &DatabaseRow) -> Result<Option<EnvironmentRef>, StoreError> {
    let kind: Option<String> = row.try_get("environment_kind")?;
    let Some(kind) = kind else { return Ok(None) };
    let kind = EnvironmentKind::from_text(&kind).ok_or(StoreError::Corrupt { column: "environment_kind" })?;
    Ok(Some(EnvironmentRef {
        kind,
        id: row.try_get("environment_id")?,
        revision: row.try_get("environment_revision")?,
    }))
}

fn read_state(row: &DatabaseRow) -> Result<SessionState, StoreError> {
    let (waiting, running): (bool, bool) = (row.try_get("has_waiting")?, row.try_get("has_running")?);
    Ok(match (waiting, running) {
        (true, _) => SessionState::Waiting,
        (false, true) => SessionState::Running,
        (false, false) => SessionState::Idle,
    })
}
