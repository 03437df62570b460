//! Creating a file, or replacing one that was read and is unchanged.

use rustix::fs::{Access, AtFlags, Stat};

use super::kind::Kind;
use super::stage::{Install, NEW_FILE_MODE};
use super::stop::Stop;
use super::target::Target;
use super::upload::{Place, Uploaded};
use super::version::{HASHED_UP_TO_BYTES, StatVersion, Version};
use super::{FileError, Files, Inner, Weight};
use crate::path::WorkspacePath;
use crate::root::Fault;

/// What a Write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The version that is in the ledger now.
    pub version: Version,
    /// Nothing was there before.
    pub created: bool,
    /// Bytes of the whole file.
    pub size: u64,
}

impl Files {
    /// Puts `content` at `path` in one step.
    ///
    /// Absent: the file is created with mode 0644, missing directories are made, and a file that somebody else creates at
    /// the same time is never overwritten. Present: it must be a regular file that `actor` has read and that is unchanged; its
    /// mode, and its owner where the system allows, stay. Other hard links keep the old content. When the caller goes away
    /// before the last step nothing has changed.
    ///
    /// # Errors
    /// [`FileError::Unread`] and [`FileError::Stale`]; [`FileError::NotRegular`] for a link, directory or special file. After any
    /// error the old bytes are in place and no temporary is left.
    pub async fn write(
        &self,
        actor: &str,
        path: WorkspacePath,
        content: Uploaded,
    ) -> Result<Written, FileError> {
        let key = self.inner.ledger_key(actor, &path);
        let target = self
            .blocking(Weight::Light, move |inner, _| {
                Target::open_making_parents(&inner.root, &path, "written")
            })
            .await?;
        let lane = self.inner.lanes.enter(target.lane()).await;
        self.blocking(Weight::Light, move |inner, stop| {
            let _lane = lane;
            let written = inner.write(key, &target, content, stop);
            if written.is_err() {
                target.undo_parents();
            }
            written
        })
        .await
    }
}

impl Inner {
    fn write(
        &self,
        key: super::LedgerKey,
        target: &Target,
        content: Uploaded,
        stop: &Stop,
    ) -> Result<Written, FileError> {
        let path = &target.path;
        let present = self.check_replaceable(key, target)?;
        let staged = match content.place {
            Place::Stage(staged) => staged,
            Place::Memory(bytes) => {
                let mut staged = self.stage.create_for(target)?;
                staged.append(path, &bytes)?;
                staged
            }
        };
        match &present {
            Some((stat, _)) => {
                staged.adopt(path, stat)?;
                let (old, _) = target.open_regular()?;
                staged.keep_attributes(&old);
            }
            None => staged.set_mode(path, NEW_FILE_MODE)?,
        }
        staged.sync(path)?;
        let how = match present {
            Some((_, known)) => {
                ensure_current(target, known, stop)?;
                Install::Replace
            }
            None => Install::Create,
        };
        stop.check()?;
        let before = rustix::fs::fstat(staged.file()).map_err(|errno| target.system(errno))?;
        let installed = self.stage.install(staged, target, how).map_err(|error| {
            // Somebody created it first: it exists, and this actor has not read it.
            let is_there = matches!(error, FileError::System { fault: Fault::AlreadyExists, .. });
            if is_there { FileError::Unread { path: path.clone() } } else { error }
        })?;
        let created = how == Install::Create;
        if content.size <= HASHED_UP_TO_BYTES {
            let version = Version::Content(content.sha256);
            self.pool.ledger.record(key, version);
            return Ok(Written { version, created, size: content.size });
        }
        let after = rustix::fs::fstat(&installed).map_err(|errno| target.system(errno))?;
        let version = Version::Stat(StatVersion::of(&after));
        // Somebody who wrote to it in between has made content that this actor does not know.
        if (before.st_size, before.st_mtime, before.st_mtime_nsec)
            == (after.st_size, after.st_mtime, after.st_mtime_nsec)
        {
            self.pool.ledger.record(key, version);
        }
        Ok(Written { version, created, size: content.size })
    }

    /// What may be replaced: nothing there, or a regular file that this actor has read and may write.
    pub(super) fn check_replaceable(
        &self,
        key: super::LedgerKey,
        target: &Target,
    ) -> Result<Option<(Stat, Version)>, FileError> {
        if target.is_directory {
            return Err(target.not_regular(Kind::Directory));
        }
        let Some(stat) = target.stat()? else { return Ok(None) };
        let kind = Kind::of(&stat);
        if kind != Kind::Regular {
            return Err(target.not_regular(kind));
        }
        let known =
            self.pool.ledger.known(key).ok_or_else(|| FileError::Unread { path: target.path.clone() })?;
        // A rename asks the directory alone; a file that is write-protected stays so.
        rustix::fs::accessat(&target.parent, &target.name, Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(|errno| target.system(errno))?;
        Ok(Some((stat, known)))
    }
}

/// The last look before a rename: what is there must be what the actor knows.
pub(super) fn ensure_current(target: &Target, known: Version, stop: &Stop) -> Result<(), FileError> {
    let stale = || FileError::Stale { path: target.path.clone() };
    let (file, stat) = match target.open_regular() {
        Err(FileError::System { fault: Fault::NotFound, .. }) => return Err(stale()),
        other => other?,
    };
    if Version::of_file(&target.path, &file, &stat, stop)? == known { Ok(()) } else { Err(stale()) }
}
