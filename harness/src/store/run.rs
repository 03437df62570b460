//! Runs: queued by a message, worked on by the lease holder, ended once.

use sqlx::Row;

use super::{DatabaseRow, Store, StoreError, Write, id, number, optional_time, signed, time};
use crate::session::{Counts, Event, Outcome, Run, RunId, RunState, SessionId};

impl Store {
    /// The oldest open run of a session: the one to work on.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn next_run(&self, session: SessionId) -> Result<Option<Run>, StoreError> {
        let row = sqlx::query(
            "SELECT * FROM runs WHERE session_id = $1 AND state IN ('queued', 'running', 'waiting') \
             ORDER BY message LIMIT 1",
        )
        .bind(session.to_string())
        .fetch_optional(&self.readers)
        .await?;
        row.as_ref().map(read).transpose()
    }

    /// One run.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`], [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn run(&self, session: SessionId, run: RunId) -> Result<Run, StoreError> {
        let row = sqlx::query("SELECT * FROM runs WHERE id = $1 AND session_id = $2")
            .bind(run.to_string())
            .bind(session.to_string())
            .fetch_optional(&self.readers)
            .await?
            .ok_or(StoreError::NoSuchRun)?;
        read(&row)
    }

    /// The sessions that have an open run: what a starting harness goes on with.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn sessions_with_open_runs(&self) -> Result<Vec<SessionId>, StoreError> {
        let rows = sqlx::query(
            "SELECT DISTINCT session_id FROM runs WHERE state IN ('queued', 'running', 'waiting') ORDER BY session_id",
        )
        .fetch_all(&self.readers)
        .await?;
        rows.iter().map(|row| id(row, "session_id")).collect()
    }

    /// Stops what a session is doing: the run at work is asked to end, queued runs end at once. Gives the runs concerned.
    ///
    /// # Errors
    /// [`StoreError::NoOpenRun`], [`StoreError::NoSuchSession`], [`StoreError::Database`].
    pub async fn interrupt(&self, session: SessionId) -> Result<Vec<RunId>, StoreError> {
        let mut write = self.write_unleased(session).await?;
        let open = write.open_runs().await?;
        if open.is_empty() {
            drop(write);
            self.last_event(session).await?;
            return Err(StoreError::NoOpenRun);
        }
        for (run, queued) in &open {
            if *queued {
                write.end_run(*run, &RunState::Interrupted).await?;
            } else {
                sqlx::query("UPDATE runs SET interrupt_requested = $2 WHERE id = $1")
                    .bind(run.to_string())
                    .bind(true)
                    .execute(write.connection())
                    .await?;
            }
        }
        write.commit().await?;
        Ok(open.into_iter().map(|(run, _)| run).collect())
    }
}

impl Write {
    /// Marks a run as at work. The first time it logs `run.started`, from then on `run.resumed`.
    ///
    /// # Errors
    /// [`StoreError::RunEnded`], [`StoreError::Database`].
    pub async fn start_run(&mut self, run: RunId) -> Result<(), StoreError> {
        let row = sqlx::query("SELECT started_at FROM runs WHERE id = $1")
            .bind(run.to_string())
            .fetch_optional(self.connection())
            .await?
            .ok_or(StoreError::NoSuchRun)?;
        let first = optional_time(&row, "started_at")?.is_none();
        let now = self.now_millis();
        let session = self.session_text();
        let done = sqlx::query(
            "UPDATE runs SET state = 'running', started_at = COALESCE(started_at, $3) \
             WHERE id = $1 AND session_id = $2 AND state IN ('queued', 'running', 'waiting')",
        )
        .bind(run.to_string())
        .bind(session)
        .bind(now)
        .execute(self.connection())
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::RunEnded);
        }
        let run = run.to_string();
        self.append_event(&if first { Event::RunStarted { run } } else { Event::RunResumed { run } }).await?;
        Ok(())
    }

    /// Marks a run as waiting for the person, or as going on again.
    ///
    /// # Errors
    /// [`StoreError::RunEnded`], [`StoreError::Database`].
    pub async fn set_waiting(&mut self, run: RunId, waiting: bool) -> Result<(), StoreError> {
        let state = if waiting { RunState::Waiting } else { RunState::Running };
        let session = self.session_text();
        let done = sqlx::query(
            "UPDATE runs SET state = $3 WHERE id = $1 AND session_id = $2 AND state IN ('running', 'waiting')",
        )
        .bind(run.to_string())
        .bind(session)
        .bind(state.as_str())
        .execute(self.connection())
        .await?;
        if done.rows_affected() == 1 { Ok(()) } else { Err(StoreError::RunEnded) }
    }

    /// Stores what a run has used of its limits.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn set_counts(&mut self, run: RunId, counts: Counts) -> Result<(), StoreError> {
        let session = self.session_text();
        sqlx::query(
            "UPDATE runs SET turns = $3, tool_calls = $4, tokens = $5, failures = $6 WHERE id = $1 AND session_id = $2",
        )
        .bind(run.to_string())
        .bind(session)
        .bind(i64::from(counts.turns))
        .bind(i64::from(counts.tool_calls))
        .bind(signed(counts.tokens))
        .bind(i64::from(counts.failures))
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// Ends a run, once. `end` is an end; its unanswered questions expire; `run.finished` is logged.
    ///
    /// # Errors
    /// [`StoreError::RunEnded`] if it has ended before or `end` is not an end, [`StoreError::Database`].
    pub async fn end_run(&mut self, run: RunId, end: &RunState) -> Result<(), StoreError> {
        let (outcome, error) = match end {
            RunState::Finished(outcome) => (Some(outcome.as_str()), None),
            RunState::Interrupted => (None, None),
            RunState::Failed { code, message } => (None, Some((code.as_str(), message.as_str()))),
            RunState::Queued | RunState::Running | RunState::Waiting => return Err(StoreError::RunEnded),
        };
        let (session, now) = (self.session_text(), self.now_millis());
        let done = sqlx::query(
            "UPDATE runs SET state = $3, outcome = $4, error_code = $5, error_message = $6, finished_at = $7 \
             WHERE id = $1 AND session_id = $2 AND state IN ('queued', 'running', 'waiting')",
        )
        .bind(run.to_string())
        .bind(session)
        .bind(end.as_str())
        .bind(outcome)
        .bind(error.map(|(code, _)| code))
        .bind(error.map(|(_, message)| message))
        .bind(now)
        .execute(self.connection())
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::RunEnded);
        }
        self.expire_approvals_of(run).await?;
        self.append_event(&Event::RunFinished {
            run: run.to_string(),
            state: end.as_str().to_owned(),
            outcome: outcome.map(ToOwned::to_owned),
            code: error.map(|(code, _)| code.to_owned()),
            message: error.map(|(_, message)| message.to_owned()),
        })
        .await?;
        Ok(())
    }

    /// Stores a queued run.
    pub(super) async fn insert_run(&mut self, run: RunId, message: i64) -> Result<(), StoreError> {
        let (session, now) = (self.session_text(), self.now_millis());
        sqlx::query(
            "INSERT INTO runs (id, session_id, message, state, interrupt_requested, turns, tool_calls, tokens, \
             failures, created_at) VALUES ($1, $2, $3, 'queued', $4, 0, 0, 0, 0, $5)",
        )
        .bind(run.to_string())
        .bind(session)
        .bind(message)
        .bind(false)
        .bind(now)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// The session's open runs, oldest first, and whether each is queued.
    pub(super) async fn open_runs(&mut self) -> Result<Vec<(RunId, bool)>, StoreError> {
        let session = self.session_text();
        let rows = sqlx::query(
            "SELECT id, state FROM runs WHERE session_id = $1 AND state IN ('queued', 'running', 'waiting') \
             ORDER BY message",
        )
        .bind(session)
        .fetch_all(self.connection())
        .await?;
        rows.iter().map(|row| Ok((id(row, "id")?, row.try_get::<String, _>("state")? == "queued"))).collect()
    }
}

fn read(row: &DatabaseRow) -> Result<Run, StoreError> {
    Ok(Run {
        id: id(row, "id")?,
        session: id(row, "session_id")?,
        message: row.try_get("message")?,
        state: read_state(row)?,
        interrupt_requested: row.try_get("interrupt_requested")?,
        counts: Counts {
            turns: number(row, "turns")?,
            tool_calls: number(row, "tool_calls")?,
            tokens: number(row, "tokens")?,
            failures: number(row, "failures")?,
        },
        created_at: time(row, "created_at")?,
        started_at: optional_time(row, "started_at")?,
        finished_at: optional_time(row, "finished_at")?,
    })
}

fn read_state(row: &DatabaseRow) -> Result<RunState, StoreError> {
    let state: String = row.try_get("state")?;
    match state.as_str() {
        "queued" => Ok(RunState::Queued),
        "running" => Ok(RunState::Running),
        "waiting" => Ok(RunState::Waiting),
        "interrupted" => Ok(RunState::Interrupted),
        "finished" => {
            let outcome: Option<String> = row.try_get("outcome")?;
            let outcome = outcome.as_deref().and_then(Outcome::from_text);
            outcome.map(RunState::Finished).ok_or(StoreError::Corrupt { column: "runs.outcome" })
        }
        "failed" => {
            let code: Option<String> = row.try_get("error_code")?;
            let message: Option<String> = row.try_get("error_message")?;
            Ok(RunState::Failed { code: code.unwrap_or_default(), message: message.unwrap_or_default() })
        }
        _ => Err(StoreError::Corrupt { column: "runs.state" }),
    }
}
