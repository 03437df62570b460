//! How a shell gets its text: by a memory file that it closes before the text's first command.
//!
//! The memory file is descriptor 3 of the shell. `-c '. /proc/self/fd/3'` makes the shell open it anew, at a number of its
//! own that it keeps close-on-exec (dash) or reads to the end at once (bash). The text begins with [`OPENING`], which closes
//! descriptor 3 itself; it stands on the text's first line, so that line numbers are right. A redirection on `.` would not
//! do: dash and bash undo it after the command, and both would have closed the file before opening it.

use std::ffi::CStr;

/// The shell's descriptor of the memory file. dash knows one-digit redirections only.
pub(super) const TEXT_DESCRIPTOR: i32 = 3;

/// Put before every text.
pub(super) const OPENING: &[u8] = b"exec 3<&-;";

/// Variables that name a file which a shell would read first: `ENV` (POSIX sh), `BASH_ENV` (bash, Bash Startup Files).
pub(super) const RC_VARIABLES: [&[u8]; 2] = [b"ENV", b"BASH_ENV"];

/// Path and arguments of the POSIX shell. The last one is `$0`.
pub(super) const SH: (&CStr, &[&CStr]) = (c"/bin/sh", &[c"sh", c"-c", c". /proc/self/fd/3", c"sh"]);

/// Path and arguments of bash, without profile and rc file.
pub(super) const BASH: (&CStr, &[&CStr]) =
    (c"/bin/bash", &[c"bash", c"--noprofile", c"--norc", c"-c", c". /proc/self/fd/3", c"bash"]);
