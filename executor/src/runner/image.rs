//! What is executed, prepared before the fork: the candidates of the path search, arguments and environment as exec wants them.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use super::shell;
use super::wire::StartBody;

/// Searched when the command's environment names no `PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// Everything execve(2) takes. The pointers are into the strings beside them, whose buffers never move.
pub(super) struct Image {
    candidates: Vec<CString>,
    argument_list: Vec<*const c_char>,
    environment_list: Vec<*const c_char>,
    _strings: Vec<CString>,
}

impl Image {
    /// `None` if a string holds a NUL or there is no entry 0: no serve side sends such.
    pub(super) fn new(body: &StartBody, shell_text: bool) -> Option<Self> {
        let environment = strings(&body.environment)?;
        let (candidates, arguments) = if shell_text {
            let (path, arguments) = if body.bash { shell::BASH } else { shell::SH };
            (vec![path.to_owned()], arguments.iter().map(|argument| CStr::to_owned(argument)).collect())
        } else {
            let program = body.arguments.first()?;
            (strings(&candidates(program, search_path(&body.environment)))?, strings(&body.arguments)?)
        };
        let argument_list = pointers(&arguments);
        let environment_list = pointers(&environment);
        let strings = arguments.into_iter().chain(environment).collect();
        Some(Self { candidates, argument_list, environment_list, _strings: strings })
    }

    /// Executes the first candidate that can be. Returns the errno that says most about why none could: an entry that is
    /// there but forbidden beats one that is missing, as with execvp(3). Only system calls.
    pub(super) fn execute(&self) -> i32 {
        let mut worst = libc::ENOENT;
        for candidate in &self.candidates {
            // SAFETY: path and both lists are NUL-terminated strings and a null-terminated list that live in `self`.
            unsafe {
                libc::execve(candidate.as_ptr(), self.argument_list.as_ptr(), self.environment_list.as_ptr());
            }
            match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => {}
                Some(libc::EACCES) => worst = libc::EACCES,
                other => return other.unwrap_or(libc::EIO),
            }
        }
        worst
    }
}

fn strings(bytes: &[Vec<u8>]) -> Option<Vec<CString>> {
    bytes.iter().map(|bytes| CString::new(bytes.as_slice()).ok()).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

fn search_path(environment: &[Vec<u8>]) -> &[u8] {
    environment.iter().find_map(|entry| entry.strip_prefix(b"PATH=")).unwrap_or(DEFAULT_PATH)
}

/// An empty entry of the path is the current folder (POSIX.1-2024, 8.3).
fn candidates(program: &[u8], path: &[u8]) -> Vec<Vec<u8>> {
    if program.is_empty() || program.contains(&b'/') {
        return vec![program.to_vec()];
    }
    path.split(|byte| *byte == b':')
        .map(|folder| {
            let folder = if folder.is_empty() { b"." } else { folder };
            [folder, b"/", program].concat()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(program: &str, path: &str, expected: &[&str]) {
        let expected: Vec<Vec<u8>> = expected.iter().map(|path| path.as_bytes().to_vec()).collect();
        assert_eq!(candidates(program.as_bytes(), path.as_bytes()), expected);
    }

    #[test]
    fn a_plain_name_is_searched_and_a_path_is_not() {
        check("ls", "/usr/bin:/bin", &["/usr/bin/ls", "/bin/ls"]);
        check("./ls", "/usr/bin:/bin", &["./ls"]);
        check("ls", ":/bin:", &["./ls", "/bin/ls", "./ls"]);
        check("", "/bin", &[""]);
    }

    #[test]
    fn the_first_path_of_the_environment_counts() {
        let environment = [b"HOME=/h".to_vec(), b"PATH=/one".to_vec(), b"PATH=/two".to_vec()];
        assert_eq!(search_path(&environment), b"/one");
        assert_eq!(search_path(&[]), DEFAULT_PATH);
    }
}
