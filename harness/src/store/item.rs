//! The model conversation.

use serde::{Deserialize, Serialize};
use sqlx::Row;

use super::{Store, StoreError, Write, id};
use crate::session::{Item, RunId, SessionId, StoredItem, ToolCall, origin_from_text, origin_text};

impl Write {
    /// Appends to the session's conversation; gives the item's number.
    ///
    /// # Errors
    /// [`StoreError::NoSuchSession`], [`StoreError::Database`].
    pub async fn append_item(&mut self, run: RunId, item: &Item) -> Result<i64, StoreError> {
        let session = self.session_text();
        let row =
            sqlx::query("UPDATE sessions SET last_item = last_item + 1 WHERE id = $1 RETURNING last_item")
                .bind(&session)
                .fetch_optional(self.connection())
                .await?
                .ok_or(StoreError::NoSuchSession)?;
        let number: i64 = row.try_get("last_item")?;
        let body = Body::from(item);
        let json = serde_json::to_string(&body).map_err(|_| StoreError::Corrupt { column: "items.body" })?;
        sqlx::query("INSERT INTO items (session_id, number, run_id, kind, body) VALUES ($1, $2, $3, $4, $5)")
            .bind(&session)
            .bind(number)
            .bind(run.to_string())
            .bind(body.kind())
            .bind(json)
            .execute(self.connection())
            .await?;
        Ok(number)
    }
}

impl Store {
    /// The whole conversation, in order.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`]. An unknown session has none.
    pub async fn conversation(&self, session: SessionId) -> Result<Vec<StoredItem>, StoreError> {
        let rows =
            sqlx::query("SELECT number, run_id, body FROM items WHERE session_id = $1 ORDER BY number")
                .bind(session.to_string())
                .fetch_all(&self.readers)
                .await?;
        rows.iter()
            .map(|row| {
                let json: String = row.try_get("body")?;
                let body: Body =
                    serde_json::from_str(&json).map_err(|_| StoreError::Corrupt { column: "items.body" })?;
                let item = Item::try_from(body)?;
                Ok(StoredItem { number: row.try_get("number")?, run: id(row, "run_id")?, item })
            })
            .collect()
    }
}

/// The stored form.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Body {
    Words { message: i64, origin: String, text: String },
    Assistant { text: String, calls: Vec<CallBody> },
    ToolResult { call: String, text: String, is_error: bool },
    Note { text: String },
}

#[derive(Serialize, Deserialize)]
struct CallBody {
    id: String,
    name: String,
    arguments: String,
}

impl Body {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Words { .. } => "words",
            Self::Assistant { .. } => "assistant",
            Self::ToolResult { .. } => "toolResult",
            Self::Note { .. } => "note",
        }
    }
}

impl From<&Item> for Body {
    fn from(item: &Item) -> Self {
        match item.clone() {
            Item::Words { message, origin, text } => {
                Self::Words { message, origin: origin_text(&origin), text }
            }
            Item::Assistant { text, calls } => {
                let call = |ToolCall { id, name, arguments }| CallBody { id, name, arguments };
                Self::Assistant { text, calls: calls.into_iter().map(call).collect() }
            }
            Item::ToolResult { call, text, is_error } => Self::ToolResult { call, text, is_error },
            Item::Note { text } => Self::Note { text },
        }
    }
}

impl TryFrom<Body> for Item {
    type Error = StoreError;

    fn try_from(body: Body) -> Result<Self, StoreError> {
        Ok(match body {
            Body::Words { message, origin, text } => {
                let origin = origin_from_text(&origin).ok_or(StoreError::Corrupt { column: "items.body" })?;
                Self::Words { message, origin, text }
            }
            Body::Assistant { text, calls } => {
                let call = |CallBody { id, name, arguments }| ToolCall { id, name, arguments };
                Self::Assistant { text, calls: calls.into_iter().map(call).collect() }
            }
            Body::ToolResult { call, text, is_error } => Self::ToolResult { call, text, is_error },
            Body::Note { text } => Self::Note { text },
        })
    }
}
