//! What must survive the process: sessions, messages, runs, the conversation, events, operations, approvals.
//!
//! ```text
//! http ──▶ Store ── post_message, steer, interrupt, decide ──▶ one transaction ──▶ Changes ──▶ SSE, agent loop
//! loop ──▶ Store::write(&lease) ──▶ Write: every row of one step, conditional on the lease epoch ──▶ commit
//! ```
//!
//! SQLite in WAL mode with `synchronous=FULL`: a committed transaction survives a power cut. There is one writing
//! connection, so a [`Write`] must not be held across a model call or a tool. The SQL is the common subset of SQLite and
//! PostgreSQL. Deleted text is overwritten (`secure_delete`).

mod approval;
mod binding;
mod change;
mod epoch;
mod error;
mod event;
mod item;
mod lease;
mod message;
mod operation;
mod run;
mod session;
#[cfg(test)]
mod tests;
mod write;

pub use binding::LocalBinding;
pub use change::Changes;
pub use error::StoreError;
pub use lease::Lease;
pub use operation::{Operation, OperationState};
pub use session::Departed;
pub use write::Write;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Row, SqlitePool};

use change::Watchers;

/// Reads the time. An argument, so that a test decides what time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The wall clock.
pub fn wall_clock() -> Clock {
    Arc::new(Timestamp::now)
}

/// The store. Cheap to clone; all clones share connections and watchers.
#[derive(Clone)]
pub struct Store {
    writer: SqlitePool,
    readers: SqlitePool,
    watchers: Arc<Watchers>,
    clock: Clock,
}

impl Store {
    /// Opens the database file, makes it if it is missing, and brings its schema up to date.
    ///
    /// The folder must exist and belong to one process at a time.
    ///
    /// # Errors
    /// [`StoreError::Database`] if it cannot be opened, [`StoreError::Migrate`] if its schema is newer than this program
    /// or was changed by hand.
    pub async fn open(file: &Path, clock: Clock) -> Result<Self, StoreError> {
        // For its owner alone; the files that SQLite puts beside it get the same mode (sqlite.org/wal.html).
        let made = OpenOptions::new().create(true).append(true).mode(0o600).open(file);
        made.map_err(sqlx::Error::Io)?;
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(10))
            .pragma("secure_delete", "ON")
            .pragma("trusted_schema", "OFF");
        let writer = SqlitePoolOptions::new().max_connections(1).connect_with(options.clone()).await?;
        sqlx::migrate!("./migrations").run(&writer).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(4)
            .connect_with(options.pragma("query_only", "ON"))
            .await?;
        Ok(Self { writer, readers, watchers: Arc::default(), clock })
    }

    /// Follows the changes of one session: whatever is committed about it from now on wakes the receiver.
    pub fn watch(&self, session: crate::session::SessionId) -> Changes {
        self.watchers.watch(session)
    }

    /// The time as this store reads it.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Closes all connections after their work. Later calls fail.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// The connection type of the one database there is so far.
type Connection = SqliteConnection;
/// Its row.
type DatabaseRow = SqliteRow;

/// Reads a column through its text form.
fn parsed<T>(
    row: &DatabaseRow,
    column: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, StoreError> {
    let text: String = row.try_get(column)?;
    parse(&text).ok_or(StoreError::Corrupt { column })
}

/// Reads an id.
fn id<T: std::str::FromStr>(row: &DatabaseRow, column: &'static str) -> Result<T, StoreError> {
    parsed(row, column, |text| text.parse().ok())
}

/// Reads an unsigned number that fits its type.
fn number<T: TryFrom<i64>>(row: &DatabaseRow, column: &'static str) -> Result<T, StoreError> {
    let value: i64 = row.try_get(column)?;
    T::try_from(value).map_err(|_| StoreError::Corrupt { column })
}

/// Reads a time.
fn time(row: &DatabaseRow, column: &'static str) -> Result<Timestamp, StoreError> {
    Timestamp::from_millisecond(row.try_get(column)?).map_err(|_| StoreError::Corrupt { column })
}

/// Reads a time that may be absent.
fn optional_time(row: &DatabaseRow, column: &'static str) -> Result<Option<Timestamp>, StoreError> {
    let value: Option<i64> = row.try_get(column)?;
    value
        .map(|millis| Timestamp::from_millisecond(millis).map_err(|_| StoreError::Corrupt { column }))
        .transpose()
}

/// An unsigned number as the database holds it; beyond the signed range it stays at the end of it.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
