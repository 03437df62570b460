//! What system errors mean to a caller.

use mooring_proto::v1::ErrorCode;
use rustix::io::Errno;

/// A system error, sorted by what a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `EXDEV` of a resolution: the path leaves the root.
    Escapes,
    /// `ELOOP`: a loop, a link where none is followed, or a link of `/proc` that jumps.
    Links,
    /// `ENOENT`.
    NotFound,
    /// `ENOTDIR`: a part of the path, or all of it, is something else than a directory.
    NotDirectory,
    /// `EISDIR`.
    IsDirectory,
    /// `EEXIST`.
    AlreadyExists,
    /// `ENOTEMPTY`.
    NotEmpty,
    /// `ENAMETOOLONG`.
    NameTooLong,
    /// `EACCES`, `EPERM`.
    Denied,
    /// `ENXIO`, `ENODEV`: a socket, or a FIFO or device with nothing behind it.
    Special,
    /// `EROFS`.
    ReadOnly,
    /// `ENOSPC`, `EDQUOT`.
    NoSpace,
    /// `EFBIG`, `EOVERFLOW`.
    TooLarge,
    /// `EBUSY`: a mount point.
    MountPoint,
    /// `EAGAIN`, `EINTR`: the tree was being changed, time and again.
    Contended,
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    Exhausted,
    /// `EINVAL`, `EOPNOTSUPP`: the file system does not offer it.
    Unsupported,
    /// Any other number, such as `EIO` or `ESTALE`.
    System(Errno),
}

impl Fault {
    /// Sorts an error number.
    pub fn of(errno: Errno) -> Self {
        match errno {
            Errno::XDEV => Self::Escapes,
            Errno::LOOP => Self::Links,
            Errno::NOENT => Self::NotFound,
            Errno::NOTDIR => Self::NotDirectory,
            Errno::ISDIR => Self::IsDirectory,
            Errno::EXIST => Self::AlreadyExists,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::NAMETOOLONG => Self::NameTooLong,
            Errno::ACCESS | Errno::PERM => Self::Denied,
            Errno::NXIO | Errno::NODEV => Self::Special,
            Errno::ROFS => Self::ReadOnly,
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
            Errno::FBIG | Errno::OVERFLOW => Self::TooLarge,
            Errno::BUSY => Self::MountPoint,
            Errno::AGAIN | Errno::INTR => Self::Contended,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM => Self::Exhausted,
            Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS => Self::Unsupported,
            other => Self::System(other),
        }
    }

    /// The stable code.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Escapes | Self::Links => ErrorCode::PathEscapes,
            Self::NotFound | Self::NotDirectory => ErrorCode::NotFound,
            Self::IsDirectory => ErrorCode::IsDirectory,
            Self::AlreadyExists => ErrorCode::AlreadyExists,
            Self::NotEmpty => ErrorCode::NotEmpty,
            Self::NameTooLong => ErrorCode::NameTooLong,
            Self::Denied => ErrorCode::PermissionDenied,
            Self::Special => ErrorCode::NotRegularFile,
            Self::ReadOnly => ErrorCode::ReadOnly,
            Self::NoSpace => ErrorCode::NoSpace,
            Self::TooLarge => ErrorCode::TooLarge,
            Self::MountPoint | Self::Unsupported => ErrorCode::Unsupported,
            Self::Contended | Self::Exhausted => ErrorCode::Busy,
            Self::System(_) => ErrorCode::Internal,
        }
    }

    /// A sentence about the path, without the path.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Escapes => "the path leaves the workspace",
            Self::Links => "the path runs through a loop of links or through a link that may not be followed",
            Self::NotFound => "no such file or directory",
            Self::NotDirectory => "no such path: a part of it is not a directory",
            Self::IsDirectory => "it is a directory",
            Self::AlreadyExists => "it exists already",
            Self::NotEmpty => "the directory is not empty",
            Self::NameTooLong => "the path or a name in it is too long",
            Self::Denied => "permission denied",
            Self::Special => "it is not a regular file",
            Self::ReadOnly => "the file system is read-only",
            Self::NoSpace => "no space is left on the device",
            Self::TooLarge => "it is too large",
            Self::MountPoint => "it is a mount point or in use by the system",
            Self::Contended => "it was being changed all the time; try again",
            Self::Exhausted => "the executor is out of descriptors or memory; try again",
            Self::Unsupported => "the file system does not support this",
            Self::System(_) => "the system failed to do this",
        }
    }
}
