//! What a command is started with and how it ends.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

/// What to run.
#[derive(Clone, PartialEq, Eq)]
pub enum Program {
    /// Argument vector, entry 0 resolved on the command's own `PATH` unless it has a slash. Not empty, no NUL.
    Argv(Vec<Vec<u8>>),
    /// Text for a fresh shell, no NUL. Handed over by descriptor: never on a command line, never inherited.
    ShellText {
        /// Which shell reads it.
        shell: Shell,
        /// The text, byte for byte.
        text: Vec<u8>,
    },
}

/// The shell that reads a [`Program::ShellText`]. Neither reads a profile or rc file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// `/bin/sh`.
    Sh,
    /// `/bin/bash`.
    Bash,
}

/// Where a command's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`.
    Null,
    /// A pipe whose other end is [`super::Running::stdin`].
    Pipe,
}

/// What a command may touch beside the system folders, which every command may read and execute.
///
/// Paths are absolute and free of links: a path that meets a link is not granted, so that a folder a command can write
/// never turns into a grant for another. A missing read-only folder is skipped; a missing read-write one refuses the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Folders to read, write and execute in: the workspace's tree, home and tmp.
    pub read_write: Vec<PathBuf>,
    /// Folders or files to read and execute.
    pub read_only: Vec<PathBuf>,
}

impl Confinement {
    /// The confinement of a workspace's own commands.
    pub fn of_workspace(tree: PathBuf, home: PathBuf, tmp: PathBuf) -> Self {
        Self { read_write: vec![tree, home, tmp], read_only: Vec::new() }
    }
}

/// The folder that a command starts in: its path, and which folder that has to be.
///
/// The runner opens the path itself. A descriptor of ours would start the command on a mount of our container, from where
/// `..` leads into our files and no path leads to where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Folder {
    /// The one that is open as `directory`, by the kernel's own name for it: links are resolved.
    ///
    /// # Errors
    /// Any error of reading its name and attributes.
    pub fn of(directory: &OwnedFd) -> io::Result<Self> {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))?;
        let status = fstat(directory)?;
        Ok(Self { path, device: status.st_dev, inode: status.st_ino })
    }

    /// Absolute, and free of links when it was read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As it came over the link.
    pub(super) fn told(path: &[u8], device: u64, inode: u64) -> Self {
        Self { path: PathBuf::from(OsStr::from_bytes(path)), device, inode }
    }

    /// Device and inode.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Opens it from this process's root (`O_PATH`), and no other that has come to its place.
    ///
    /// # Errors
    /// `ESTALE` for another folder, and any error of openat2(2).
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let directory = openat2(CWD, &self.path, flags, Mode::empty(), resolve)?;
        let status = fstat(&directory)?;
        if (status.st_dev, status.st_ino) != self.identity() {
            return Err(Errno::STALE.into());
        }
        Ok(directory)
    }
}

/// One command, complete. The environment is used as it is: scrubbing is the caller's part.
pub struct StartSpec {
    /// What to run.
    pub program: Program,
    /// Folder to start in.
    pub cwd: Folder,
    /// The whole environment: names without `=`, neither with NUL. [`Program::ShellText`] drops `ENV` and `BASH_ENV`, which
    /// name rc files.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where standard input comes from.
    pub stdin: Stdin,
    /// Wall-clock limit on a monotonic clock; `None`: unlimited.
    pub timeout: Option<Duration>,
    /// Processes that may live at once, counted every 100 ms; `None`: not limited here.
    pub process_limit: Option<u32>,
    /// Survivors of the main process live on until cancelled; otherwise they are killed with its end.
    pub background: bool,
    /// What it may touch.
    pub confinement: Confinement,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The cause.
    pub kind: EndKind,
    /// Start of the process to its end. Zero if it never started.
    pub duration: Duration,
    /// Processes other than the main one that were still there at its end and were killed.
    pub survivors_killed: u32,
    /// The memory counter of the runner rose while the command ran, though it ended otherwise.
    pub memory_events: bool,
}

/// The cause of an end. Exit 0 is what the kernel reported, never a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// The main process exited with this code.
    Exited(u8),
    /// A signal ended the main process, and no limit of ours sent it.
    Signalled(u8),
    /// The time limit passed; everything was ended.
    TimedOut {
        /// The limit that passed.
        timeout: Duration,
    },
    /// [`super::Control::cancel`] ended everything.
    Cancelled,
    /// The kernel's memory killer took the main process.
    OutOfMemory,
    /// The runner went away; whether the command did its work is not known.
    RunnerLost,
    /// More processes than allowed; everything was killed.
    ProcessLimit {
        /// The limit.
        limit: u32,
    },
    /// The program never ran.
    NotStarted(NotStarted),
}

/// Why a program never ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// No such file, neither by its path nor on `PATH`, as the command's confinement sees it.
    NotFound,
    /// The file is there and cannot be executed.
    NotExecutable,
    /// Arguments and environment exceed the system's limit.
    TooLarge,
    /// The runner could not prepare the command: its folder is another by now, or confinement, fork or a descriptor failed.
    Internal,
}

/// What the runner's kernel can do, told once when the link comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Landlock ABI of the kernel, 0 without Landlock.
    pub landlock_abi: u32,
    /// Signals and abstract sockets are confined (ABI 6). Without it the runner refuses every start.
    pub scoped: bool,
    /// There is a counter that tells a kill by the memory killer from any other.
    pub memory_counter: bool,
    /// System calls that reach other processes are filtered.
    pub seccomp: bool,
}

/// Version of the link's messages. Both halves come from one binary; a difference means a mixed installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkVersion(pub u32);

impl LinkVersion {
    /// What this binary speaks.
    pub const CURRENT: Self = Self(2);
}
