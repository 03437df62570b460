//! The folder of the product's own state: one process at a time, nobody else reads it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::fs::{FlockOperation, flock};
use secrecy::{ExposeSecret, SecretString};

/// Bytes of the token before it is written as text.
const TOKEN_BYTES: usize = 32;
/// Characters of the token: base64url of 32 bytes, without padding (RFC 4648 §5).
const TOKEN_CHARACTERS: usize = 43;
/// Permissions that anybody but the owner has.
const OTHERS: u32 = 0o077;

/// Why there is no state folder to work in.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// There is neither `XDG_DATA_HOME` nor `HOME`.
    #[error("no folder for the state; hint: name one with --state")]
    NoHome,
    /// Others may enter it, or it is someone else's.
    #[error("{path} is not the caller's alone; hint: chmod 700 for a folder, 600 for a file")]
    NotPrivate {
        /// Which one.
        path: PathBuf,
    },
    /// Another process works in it.
    #[error("another mooring works in {path}; hint: stop it, or name another folder with --state")]
    InUse {
        /// Which one.
        path: PathBuf,
    },
    /// The token file holds something else.
    #[error("{path} holds no token; hint: remove it and start again")]
    BadToken {
        /// Which one.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot use {path}")]
    Io {
        /// What it was about.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl StateError {
    /// The stable word for it.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoHome => "no_state_folder",
            Self::NotPrivate { .. } => "state_not_private",
            Self::InUse { .. } => "state_in_use",
            Self::BadToken { .. } => "bad_token_file",
            Self::Io { .. } => "state_unusable",
        }
    }
}

/// The state folder, locked for this process until it is dropped.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    _lock: File,
}

impl StateFolder {
    /// `$XDG_DATA_HOME/mooring`, else `$HOME/.local/share/mooring` (XDG Base Directory Specification: a relative
    /// `XDG_DATA_HOME` does not count).
    ///
    /// # Errors
    /// [`StateError::NoHome`].
    pub fn default_path(
        variable: impl Fn(&str) -> Option<std::ffi::OsString>,
    ) -> Result<PathBuf, StateError> {
        let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
        Ok(data.ok_or(StateError::NoHome)?.join("mooring"))
    }

    /// Opens the folder, makes it (0700) if it is missing, and locks it.
    ///
    /// # Errors
    /// [`StateError::NotPrivate`], [`StateError::InUse`], [`StateError::Io`].
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let failed = |source| StateError::Io { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let path = fs::canonicalize(path).map_err(failed)?;
        let found = fs::symlink_metadata(&path).map_err(failed)?;
        if !is_private(&found) {
            return Err(StateError::NotPrivate { path });
        }
        let lock_path = path.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock_path)
            .map_err(|source| StateError::Io { path: lock_path.clone(), source })?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StateError::InUse { path }),
            Err(error) => Err(StateError::Io { path: lock_path, source: error.into() }),
        }
    }

    /// Where it is: canonical.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the database is.
    pub fn database(&self) -> PathBuf {
        self.path.join("mooring.db")
    }

    /// Where the token is.
    pub fn token_file(&self) -> PathBuf {
        self.path.join("token")
    }

    /// The token that speaks for the person; made the first time, whole or not at all.
    ///
    /// # Errors
    /// [`StateError::NotPrivate`], [`StateError::BadToken`], [`StateError::Io`].
    pub fn token(&self) -> Result<SecretString, StateError> {
        let path = self.token_file();
        match read_private(&path, 256) {
            Err(StateError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                self.make_token()
            }
            Err(error) => Err(error),
            Ok(text) => {
                let token = text.expose_secret().trim_ascii();
                let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
                if token.len() == TOKEN_CHARACTERS && token.bytes().all(is_token) {
                    Ok(SecretString::from(token))
                } else {
                    Err(StateError::BadToken { path })
                }
            }
        }
    }

    fn make_token(&self) -> Result<SecretString, StateError> {
        let path = self.token_file();
        let failed = |source| StateError::Io { path: path.clone(), source };
        let mut random = [0_u8; TOKEN_BYTES];
        getrandom::fill(&mut random).map_err(|error| failed(io::Error::other(error.to_string())))?;
        let token = SecretString::from(URL_SAFE_NO_PAD.encode(random));
        let partial = self.path.join("token.new");
        match fs::remove_file(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial).map_err(failed)?;
        file.write_all(token.expose_secret().as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&partial, &path).map_err(failed)?;
        Ok(token)
    }
}

/// Reads a file that only its owner, the caller, may read: a regular file, no link, at most `limit` bytes of UTF-8.
///
/// # Errors
/// [`StateError::NotPrivate`], [`StateError::Io`].
pub fn read_private(path: &Path, limit: u64) -> Result<SecretString, StateError> {
    let failed = |source| StateError::Io { path: path.to_owned(), source };
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let custom = i32::try_from(flags.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(custom).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() || !is_private(&found) {
        return Err(StateError::NotPrivate { path: path.to_owned() });
    }
    let mut text = String::new();
    file.take(limit.saturating_add(1)).read_to_string(&mut text).map_err(failed)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > limit {
        return Err(failed(io::Error::from(io::ErrorKind::FileTooLarge)));
    }
    Ok(SecretString::from(text))
}

fn is_private(found: &fs::Metadata) -> bool {
    found.mode() & OTHERS == 0 && found.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("metadata").mode() & 0o777
    }

    #[test]
    fn the_folder_and_the_token_are_made_once_and_for_their_owner_alone() {
        let base = tempfile::tempdir().expect("folder");
        let path = base.path().join("a/mooring");
        let state = StateFolder::open(&path).expect("open");
        let token = state.token().expect("token").expose_secret().to_owned();
        assert_eq!((mode(&path), mode(&state.token_file())), (0o700, 0o600));
        assert_eq!(token.len(), TOKEN_CHARACTERS);
        assert_eq!(state.token().expect("again").expose_secret(), token);
    }

    #[test]
    fn a_second_process_is_told_that_the_folder_is_in_use() {
        let base = tempfile::tempdir().expect("folder");
        let first = StateFolder::open(&base.path().join("s")).expect("open");
        assert!(matches!(StateFolder::open(&base.path().join("s")), Err(StateError::InUse { .. })));
        drop(first);
        StateFolder::open(&base.path().join("s")).expect("free again");
    }

    #[test]
    fn what_others_may_read_is_refused() {
        let base = tempfile::tempdir().expect("folder");
        let state = StateFolder::open(&base.path().join("s")).expect("open");
        state.token().expect("token");
        fs::set_permissions(state.token_file(), fs::Permissions::from_mode(0o640)).expect("chmod");
        assert!(matches!(state.token(), Err(StateError::NotPrivate { .. })));
        drop(state);
        fs::set_permissions(base.path().join("s"), fs::Permissions::from_mode(0o755)).expect("chmod");
        assert!(matches!(StateFolder::open(&base.path().join("s")), Err(StateError::NotPrivate { .. })));
    }

    #[test]
    fn a_token_file_that_holds_something_else_is_refused() {
        let base = tempfile::tempdir().expect("folder");
        let state = StateFolder::open(&base.path().join("s")).expect("open");
        state.token().expect("token");
        fs::write(state.token_file(), "short").expect("write");
        assert!(matches!(state.token(), Err(StateError::BadToken { .. })));
    }

    #[test]
    fn the_default_folder_follows_the_base_directory_specification() {
        let with = |data: &str, home: &str| {
            StateFolder::default_path(|name| match name {
                "XDG_DATA_HOME" => Some(data.into()),
                "HOME" => Some(home.into()),
                _ => None,
            })
        };
        assert_eq!(with("/d", "/h").expect("path"), Path::new("/d/mooring"));
        assert_eq!(with("relative", "/h").expect("path"), Path::new("/h/.local/share/mooring"));
        assert!(matches!(with("", ""), Err(StateError::NoHome)));
    }
}
