//! What a folder is, beyond its name.

use std::io;
use std::path::{Path, PathBuf};

/// A folder as it is found now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    /// Canonical: absolute, no link, no `.` or `..`.
    pub(crate) path: PathBuf,
    /// `f_fsid` of statfs(2).
    pub(crate) filesystem: u64,
    /// `st_ino`.
    pub(crate) inode: u64,
}

impl Folder {
    /// Looks at the folder at `path`, links followed.
    ///
    /// # Errors
    /// The system's error; `ENOTDIR` when it is something else than a folder.
    pub(crate) fn look(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags, fstat, fstatvfs, open};
        let path = std::fs::canonicalize(path)?;
        // One descriptor, so that both numbers are about the same folder.
        let folder = open(
            &path,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let inode = fstat(&folder)?.st_ino;
        let filesystem = fstatvfs(&folder)?.f_fsid;
        Ok(Self { path, filesystem, inode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_moved_away_and_another_put_in_its_place_differ() {
        let base = tempfile::tempdir().expect("folder");
        let path = base.path().join("tree");
        std::fs::create_dir(&path).expect("folder");
        let first = Folder::look(&path).expect("look");
        std::fs::rename(&path, base.path().join("old")).expect("rename");
        std::fs::create_dir(&path).expect("folder");
        let second = Folder::look(&path).expect("look");
        assert_eq!(first.path, second.path);
        assert_ne!(first, second);
        assert_eq!(Folder::look(&base.path().join("old")).expect("look").inode, first.inode);
    }

    #[test]
    fn a_file_is_not_a_folder() {
        let file = tempfile::NamedTempFile::new().expect("file");
        assert!(Folder::look(file.path()).is_err());
    }
}
