//! The provider's key: where it comes from, and that it leaves the environment before anything else happens.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use secrecy::{ExposeSecret, SecretString};

use crate::state::{StateError, read_private};

/// The variable that may hold the key when the program starts.
pub const KEY_VARIABLE: &str = "MOORING_PROVIDER_KEY";
/// Says that the key is on standard input.
pub const STDIN_FLAG: &str = "--provider-key-stdin";
/// Bytes of a key.
const MAX_KEY_BYTES: u64 = 4096;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not a private file.
    #[error("cannot read the provider key")]
    File(#[from] StateError),
    /// Standard input or the pipe for it failed.
    #[error("cannot pass the provider key on")]
    Pipe(#[source] io::Error),
    /// Empty, too long, or with blanks or control characters inside.
    #[error("the provider key is not one line of at most {MAX_KEY_BYTES} visible characters")]
    Malformed,
    /// The file lies where commands can read.
    #[error("the provider key file {path} lies in a folder that commands can read; hint: move it elsewhere")]
    Exposed {
        /// Which one.
        path: PathBuf,
    },
}

/// Removes the key from the environment by starting this program anew without it; the key goes over a pipe to standard
/// input. Returns only if there is nothing to remove.
///
/// A variable that is merely unset stays readable in `/proc/<pid>/environ` (proc_pid_environ(5): the file shows the memory
/// that execve(2) filled), which is why the program image is replaced. The process id stays the same. Call it first.
///
/// # Errors
/// [`KeyError::Pipe`], [`KeyError::Malformed`]: the program must not go on.
pub fn leave_environment() -> Result<(), KeyError> {
    let Some(key) = std::env::var_os(KEY_VARIABLE) else { return Ok(()) };
    if u64::try_from(key.len()).is_ok_and(|length| length > MAX_KEY_BYTES) {
        return Err(KeyError::Malformed);
    }
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| OsString::from("mooring"));
    let own = std::env::current_exe().map_err(KeyError::Pipe)?;
    let mut command = Command::new(own);
    command.arg0(name).env_remove(KEY_VARIABLE);
    let mut arguments = arguments.peekable();
    if !key.is_empty() && arguments.peek().is_some_and(|first| first == "serve") {
        let (reader, mut writer) = io::pipe().map_err(KeyError::Pipe)?;
        // A pipe holds at least a page (pipe(7)), so this cannot block.
        writer.write_all(key.as_bytes()).map_err(KeyError::Pipe)?;
        drop(writer);
        command.args(arguments.next()).arg(STDIN_FLAG).stdin(Stdio::from(reader));
    }
    Err(KeyError::Pipe(command.args(arguments).exec()))
}

/// Reads the key from standard input to its end.
///
/// # Errors
/// [`KeyError::Pipe`], [`KeyError::Malformed`].
pub fn read_stdin() -> Result<SecretString, KeyError> {
    let mut text = String::new();
    io::stdin().take(MAX_KEY_BYTES + 1).read_to_string(&mut text).map_err(KeyError::Pipe)?;
    check(&SecretString::from(text))
}

/// Reads the key from a file that its owner alone may read, and that lies in none of the folders of commands.
///
/// # Errors
/// [`KeyError::File`], [`KeyError::Exposed`], [`KeyError::Malformed`].
pub fn read_file(path: &Path, commands_read: &[PathBuf]) -> Result<SecretString, KeyError> {
    let text = read_private(path, MAX_KEY_BYTES)?;
    let place =
        std::fs::canonicalize(path).map_err(|source| StateError::Io { path: path.to_owned(), source })?;
    let exposed =
        |folder: &PathBuf| std::fs::canonicalize(folder).is_ok_and(|folder| place.starts_with(folder));
    if commands_read.iter().any(exposed) {
        return Err(KeyError::Exposed { path: place });
    }
    check(&text)
}

fn check(text: &SecretString) -> Result<SecretString, KeyError> {
    let key = text.expose_secret().trim_ascii();
    let fits = u64::try_from(key.len()).is_ok_and(|length| (1..=MAX_KEY_BYTES).contains(&length));
    if fits && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(SecretString::from(key))
    } else {
        Err(KeyError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn key_file(folder: &Path, text: &str, mode: u32) -> PathBuf {
        let path = folder.join("key");
        fs::write(&path, text).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
        path
    }

    #[test]
    fn a_key_is_read_from_a_private_file_outside_the_folders_of_commands() {
        let base = tempfile::tempdir().expect("folder");
        let path = key_file(base.path(), "sk-or-abc\n", 0o600);
        assert_eq!(read_file(&path, &[]).expect("key").expose_secret(), "sk-or-abc");
        let exposed = read_file(&path, &[base.path().to_owned()]);
        assert!(matches!(exposed, Err(KeyError::Exposed { .. })));
    }

    #[test]
    fn a_key_file_that_others_may_read_is_refused() {
        let base = tempfile::tempdir().expect("folder");
        for mode in [0o640, 0o604, 0o610] {
            let path = key_file(base.path(), "sk-or-abc", mode);
            let error = read_file(&path, &[]);
            assert!(matches!(error, Err(KeyError::File(StateError::NotPrivate { .. }))), "{mode:o}");
        }
        let path = key_file(base.path(), "sk-or-abc", 0o600);
        let link = base.path().join("link");
        std::os::unix::fs::symlink(path, &link).expect("link");
        assert!(matches!(read_file(&link, &[]), Err(KeyError::File(StateError::Io { .. }))));
    }

    #[test]
    fn a_key_is_one_word() {
        for text in ["", "\n", "two words", "line\nline", "\u{e9}"] {
            assert!(matches!(check(&SecretString::from(text)), Err(KeyError::Malformed)), "{text:?}");
        }
    }
}
