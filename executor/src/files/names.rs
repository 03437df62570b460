//! The names in a directory.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Dir, FileType};

/// Reads the names of a directory's entries, `.` and `..` apart, with what the directory says they are.
pub(super) fn read_names(directory: impl AsFd) -> rustix::io::Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((name.to_vec(), entry.file_type()));
        }
    }
    Ok(names)
}

/// As [`read_names`], with `lstat` for the types on file systems whose directories do not know them.
pub(super) fn read_entries(directory: impl AsFd) -> rustix::io::Result<Vec<(Vec<u8>, FileType)>> {
    let mut entries = read_names(&directory)?;
    for (name, file_type) in &mut entries {
        if *file_type == FileType::Unknown {
            let stat = rustix::fs::statat(&directory, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)?;
            *file_type = FileType::from_raw_mode(stat.st_mode);
        }
    }
    Ok(entries)
}
