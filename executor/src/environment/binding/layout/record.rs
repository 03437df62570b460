//! Whose an environment's folder is: written once, before anything in it is used, and compared ever after.

use std::time::{SystemTime, UNIX_EPOCH};

use super::BindError;
use crate::environment::identity::{Identity, from_hex, to_hex};
use crate::environment::state::Records;
use crate::environment::workspace::WorkspaceId;

const HEADER: &str = "mooring environment 1";
/// A header, a revision, a workspace id, a time and an id of 4096 bytes in hexadecimal.
const MAX_BYTES: usize = 16 * 1024;

/// What belongs to an environment beside its identity.
#[derive(Debug)]
pub(super) struct Record {
    /// The name of its main workspace.
    pub(super) workspace: WorkspaceId,
    pub(super) created_unix_millis: i64,
}

impl Record {
    /// The record `name`, which must be of `identity`, or `None` where there is none. A folder never changes hands.
    pub(super) fn find(
        records: &Records,
        name: &str,
        identity: &Identity,
    ) -> Result<Option<Self>, BindError> {
        let Some(text) = records.read(name, MAX_BYTES)? else { return Ok(None) };
        let (id, revision, record) = Self::parse(&text).ok_or(BindError::Damaged)?;
        let is_ours = id == identity.id() && revision == identity.revision();
        if is_ours { Ok(Some(record)) } else { Err(BindError::WrongEnvironment) }
    }

    /// Makes the record of a new environment. It is on disk when this returns.
    pub(super) fn make(records: &Records, name: &str, identity: &Identity) -> Result<Self, BindError> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = Self {
            workspace: WorkspaceId::new(random),
            created_unix_millis: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
        };
        records.write(name, &record.print(identity))?;
        Ok(record)
    }

    fn print(&self, identity: &Identity) -> String {
        format!(
            "{HEADER}\nid {}\nrevision {}\nworkspace {}\ncreated {}\n",
            to_hex(identity.id().as_bytes()),
            identity.revision(),
            self.workspace,
            self.created_unix_millis
        )
    }

    fn parse(text: &str) -> Option<(String, String, Self)> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next()? != HEADER {
            return None;
        }
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let id = String::from_utf8(from_hex(field("id")?)?).ok()?;
        let revision = field("revision")?.to_owned();
        let workspace = WorkspaceId::parse(field("workspace")?)?;
        let created_unix_millis = field("created")?.parse().ok()?;
        lines.next().is_none().then_some((id, revision, Self { workspace, created_unix_millis }))
    }
}
