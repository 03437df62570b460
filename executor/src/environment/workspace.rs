//! One workspace: a tree with its own home, temporary files, stage, operations and commands.

use std::path::PathBuf;
use std::sync::Arc;

use mooring_proto::v1;

use super::identity::{from_hex, to_hex};
use crate::files::Files;
use crate::operation::Operations;
use crate::root::Root;

/// 128 random bits that name one workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkspaceId([u8; 16]);

impl WorkspaceId {
    /// From 128 random bits.
    pub fn new(random: [u8; 16]) -> Self {
        Self(random)
    }

    /// The id in `text`, 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        from_hex(text)?.try_into().ok().map(Self)
    }
}

impl std::fmt::Display for WorkspaceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

/// A tree and what belongs to it alone. Held open by descriptor from Bind on, so that a path that is swapped afterwards
/// leads nobody astray.
#[derive(Debug)]
pub struct Workspace {
    /// Its name on the wire.
    pub id: WorkspaceId,
    /// The tree, open; its visible path is absolute, canonical and UTF-8.
    pub root: Arc<Root>,
    /// HOME of its commands.
    pub home: PathBuf,
    /// TMPDIR of its commands.
    pub tmp: PathBuf,
    /// Its files, for every call but a command's.
    pub files: Files,
    /// When it was first made, in milliseconds since 1970-01-01 UTC.
    pub created_unix_millis: i64,
    /// Effects that were asked for in it.
    pub operations: Arc<Operations>,
}

impl Workspace {
    /// As it travels.
    pub fn to_wire(&self) -> v1::Workspace {
        v1::Workspace {
            workspace_id: self.id.to_string(),
            root: self.root.visible().to_string_lossy().into_owned(),
            origin: None,
            owner: String::new(),
            created_unix_millis: self.created_unix_millis,
        }
    }
}
