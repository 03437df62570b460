//! Approvals: a question is answered once, and its answer is used once.

use jiff::Timestamp;
use serde_json::Value;
use sqlx::Row;

use super::{Connection, DatabaseRow, Store, StoreError, Write, id, optional_time, parsed, time};
use crate::session::{Answer, Approval, ApprovalId, ApprovalState, Event, NewApproval, RunId, SessionId};

impl Store {
    /// One approval. A pending one whose time is over reads as expired.
    ///
    /// # Errors
    /// [`StoreError::NoSuchApproval`], [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn approval(&self, approval: ApprovalId) -> Result<Approval, StoreError> {
        let mut connection = self.readers.acquire().await?;
        find(&mut connection, approval, self.now()).await
    }

    /// The latest approvals, at most `limit`, newest first; of one session and in one state if given.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn approvals(
        &self,
        session: Option<SessionId>,
        state: Option<ApprovalState>,
        limit: u32,
    ) -> Result<Vec<Approval>, StoreError> {
        let now = self.now();
        let rows = sqlx::query(
            "SELECT * FROM (SELECT a.*, CASE WHEN a.state = 'pending' AND a.expires_at <= $1 THEN 'expired' \
             ELSE a.state END AS shown FROM approvals a) seen \
             WHERE ($2 IS NULL OR session_id = $2) AND ($3 IS NULL OR shown = $3) \
             ORDER BY created_at DESC, id DESC LIMIT $4",
        )
        .bind(now.as_millisecond())
        .bind(session.map(|id| id.to_string()))
        .bind(state.map(ApprovalState::as_str))
        .bind(i64::from(limit))
        .fetch_all(&self.readers)
        .await?;
        rows.iter().map(|row| read(row, now)).collect()
    }

    /// Answers a question, once, by a person's own word. `by` names the person.
    ///
    /// # Errors
    /// [`StoreError::NoSuchApproval`]; [`StoreError::NotPending`] if it has an answer, is too late or its run has ended.
    pub async fn decide(
        &self,
        approval: ApprovalId,
        answer: Answer,
        by: &str,
    ) -> Result<Approval, StoreError> {
        let session = self.approval(approval).await?.session;
        let mut write = self.write_unleased(session).await?;
        let now = write.now();
        let found = find(write.connection(), approval, now).await?;
        match found.state {
            ApprovalState::Pending => {}
            state @ (ApprovalState::Allowed
            | ApprovalState::Denied
            | ApprovalState::Expired
            | ApprovalState::Consumed) => return Err(StoreError::NotPending { state }),
        }
        let state = match answer {
            Answer::Allow => ApprovalState::Allowed,
            Answer::Deny => ApprovalState::Denied,
        };
        sqlx::query("UPDATE approvals SET state = $2, decided_at = $3, decided_by = $4 WHERE id = $1")
            .bind(approval.to_string())
            .bind(state.as_str())
            .bind(now.as_millisecond())
            .bind(by)
            .execute(write.connection())
            .await?;
        write.log_resolved(approval, &found.call, state).await?;
        write.commit().await?;
        self.approval(approval).await
    }

    /// Expires every question whose time is over; gives the sessions concerned, so that they can be woken.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn expire_due_approvals(&self) -> Result<Vec<SessionId>, StoreError> {
        let rows = sqlx::query(
            "SELECT DISTINCT session_id FROM approvals WHERE state = 'pending' AND expires_at <= $1",
        )
        .bind(self.now().as_millisecond())
        .fetch_all(&self.readers)
        .await?;
        let sessions: Vec<SessionId> =
            rows.iter().map(|row| id(row, "session_id")).collect::<Result<_, _>>()?;
        for session in &sessions {
            let mut write = self.write_unleased(*session).await?;
            write.expire_due().await?;
            write.commit().await?;
        }
        Ok(sessions)
    }
}

impl Write {
    /// Stores a question about one exact call, and logs it.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn create_approval(&mut self, new: &NewApproval) -> Result<ApprovalId, StoreError> {
        let approval = ApprovalId::new();
        let (session, now) = (self.session_text(), self.now_millis());
        sqlx::query(
            "INSERT INTO approvals (id, session_id, run_id, call_id, tool, arguments, digest, question, state, \
             created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'pending', $9, $10)",
        )
        .bind(approval.to_string())
        .bind(session)
        .bind(new.run.to_string())
        .bind(&new.call)
        .bind(&new.tool)
        .bind(&new.arguments)
        .bind(&new.digest)
        .bind(new.question.to_string())
        .bind(now)
        .bind(new.expires_at.as_millisecond())
        .execute(self.connection())
        .await?;
        self.append_event(&Event::ApprovalRequested {
            run: new.run.to_string(),
            call: new.call.clone(),
            approval: approval.to_string(),
            tool: new.tool.clone(),
            arguments: new.arguments.clone(),
            question: new.question.clone(),
            expires_at: new.expires_at,
        })
        .await?;
        Ok(approval)
    }

    /// Uses a permission, once, for the call with this digest. Commit it with the operation that it permits.
    ///
    /// # Errors
    /// [`StoreError::NoSuchApproval`] (another session's too), [`StoreError::OtherCall`], [`StoreError::NotAllowed`].
    pub async fn consume_approval(&mut self, approval: ApprovalId, digest: &str) -> Result<(), StoreError> {
        let (session, now) = (self.session(), self.now());
        let found = find(self.connection(), approval, now).await?;
        if found.session != session {
            return Err(StoreError::NoSuchApproval);
        }
        if found.digest != digest {
            return Err(StoreError::OtherCall);
        }
        match found.state {
            ApprovalState::Allowed => {}
            state @ (ApprovalState::Pending
            | ApprovalState::Denied
            | ApprovalState::Expired
            | ApprovalState::Consumed) => return Err(StoreError::NotAllowed { state }),
        }
        sqlx::query("UPDATE approvals SET state = 'consumed' WHERE id = $1")
            .bind(approval.to_string())
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Expires the unanswered questions of a run.
    pub(super) async fn expire_approvals_of(&mut self, run: RunId) -> Result<(), StoreError> {
        let rows = self.pending(Some(run)).await?;
        self.expire(&rows).await
    }

    /// Expires the session's questions whose time is over.
    async fn expire_due(&mut self) -> Result<(), StoreError> {
        let now = self.now();
        let due =
            self.pending(None).await?.into_iter().filter(|found| found.expires_at <= now).collect::<Vec<_>>();
        self.expire(&due).await
    }

    async fn pending(&mut self, run: Option<RunId>) -> Result<Vec<Approval>, StoreError> {
        let session = self.session_text();
        let rows = sqlx::query(
            "SELECT * FROM approvals WHERE session_id = $1 AND state = 'pending' AND ($2 IS NULL OR run_id = $2)",
        )
        .bind(session)
        .bind(run.map(|id| id.to_string()))
        .fetch_all(self.connection())
        .await?;
        rows.iter().map(|row| read(row, Timestamp::MIN)).collect()
    }

    async fn expire(&mut self, approvals: &[Approval]) -> Result<(), StoreError> {
        for found in approvals {
            sqlx::query("UPDATE approvals SET state = 'expired' WHERE id = $1")
                .bind(found.id.to_string())
                .execute(self.connection())
                .await?;
            self.log_resolved(found.id, &found.call, ApprovalState::Expired).await?;
        }
        Ok(())
    }

    async fn log_resolved(
        &mut self,
        approval: ApprovalId,
        call: &str,
        state: ApprovalState,
    ) -> Result<(), StoreError> {
        self.append_event(&Event::ApprovalResolved {
            approval: approval.to_string(),
            call: call.to_owned(),
            state: state.as_str().to_owned(),
        })
        .await?;
        Ok(())
    }
}

async fn find(
    connection: &mut Connection,
    approval: ApprovalId,
    now: Timestamp,
) -> Result<Approval, StoreError> {
    let row = sqlx::query("SELECT * FROM approvals WHERE id = $1")
        .bind(approval.to_string())
        .fetch_optional(connection)
        .await?
        .ok_or(StoreError::NoSuchApproval)?;
    read(&row, now)
}

fn read(row: &DatabaseRow, now: Timestamp) -> Result<Approval, StoreError> {
    let expires_at = time(row, "expires_at")?;
    let stored = parsed(row, "state", ApprovalState::from_text)?;
    let state =
        if stored == ApprovalState::Pending && expires_at <= now { ApprovalState::Expired } else { stored };
    let decided_by: Option<String> = row.try_get("decided_by")?;
    Ok(Approval {
        id: id(row, "id")?,
        session: id(row, "session_id")?,
        run: id(row, "run_id")?,
        call: row.try_get("call_id")?,
        tool: row.try_get("tool")?,
        arguments: row.try_get("arguments")?,
        digest: row.try_get("digest")?,
        question: parsed(row, "question", |json| serde_json::from_str::<Value>(json).ok())?,
        state,
        created_at: time(row, "created_at")?,
        expires_at,
        decided: optional_time(row, "decided_at")?.zip(decided_by),
    })
}
