//! Which folder on which file system a local environment's revision stands for.

use jiff::Timestamp;
use sqlx::Row;
use uuid::Uuid;

use super::{Store, StoreError, parsed, time};
use crate::session::{EnvironmentKind, EnvironmentRef};

/// What was at a canonical root when its revision was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalBinding {
    /// Random, 32 hexadecimal digits.
    pub revision: String,
    /// `f_fsid` of statfs(2).
    pub filesystem: u64,
    /// `st_ino` of the root.
    pub inode: u64,
    /// When it was bound.
    pub created_at: Timestamp,
}

impl Store {
    /// The binding of a canonical root, if it has one.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn local_binding(&self, root: &str) -> Result<Option<LocalBinding>, StoreError> {
        let row = sqlx::query("SELECT * FROM local_bindings WHERE root = $1")
            .bind(root)
            .fetch_optional(&self.readers)
            .await?;
        row.map(|row| {
            Ok(LocalBinding {
                revision: row.try_get("revision")?,
                filesystem: parsed(&row, "filesystem", |text| text.parse().ok())?,
                inode: parsed(&row, "inode", |text| text.parse().ok())?,
                created_at: time(&row, "created_at")?,
            })
        })
        .transpose()
    }

    /// The reference of the folder that is at this canonical root now.
    ///
    /// The same folder keeps its revision for ever. Another folder at the same path is another environment: it gets a new
    /// revision, and whoever holds a reference with the old one gets a mismatch.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn bind_local(
        &self,
        root: &str,
        filesystem: u64,
        inode: u64,
    ) -> Result<EnvironmentRef, StoreError> {
        let row = sqlx::query(
            "INSERT INTO local_bindings (root, revision, filesystem, inode, created_at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (root) DO UPDATE SET \
               revision = CASE WHEN local_bindings.filesystem = excluded.filesystem \
                 AND local_bindings.inode = excluded.inode THEN local_bindings.revision ELSE excluded.revision END, \
               created_at = CASE WHEN local_bindings.filesystem = excluded.filesystem \
                 AND local_bindings.inode = excluded.inode THEN local_bindings.created_at ELSE excluded.created_at END, \
               filesystem = excluded.filesystem, inode = excluded.inode \
             RETURNING revision",
        )
        .bind(root)
        .bind(Uuid::new_v4().as_simple().to_string())
        .bind(filesystem.to_string())
        .bind(inode.to_string())
        .bind(self.now().as_millisecond())
        .fetch_one(&self.writer)
        .await?;
        Ok(EnvironmentRef {
            kind: EnvironmentKind::Local,
            id: root.to_owned(),
            revision: row.try_get("revision")?,
        })
    }
}
