//! Descriptors that the parent process handed down by number.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};

use rustix::net::SocketType;

/// The lowest number a taken descriptor gets: above the standard streams.
const FIRST_FREE: RawFd = 3;

/// Why a descriptor was not taken.
#[derive(Debug, thiserror::Error)]
pub enum InheritedError {
    /// Nothing is open under this number, or it is standard error, which the log needs.
    #[error("descriptor {number} is not open")]
    NotOpen {
        /// As given on the command line.
        number: RawFd,
    },
    /// It is no socket of the wanted type.
    #[error("descriptor {number} is no {wanted:?} socket")]
    WrongType {
        /// As given on the command line.
        number: RawFd,
        /// The type it must have.
        wanted: SocketType,
    },
    /// The system refused to duplicate or close it.
    #[error("cannot take descriptor {number}")]
    Take {
        /// As given on the command line.
        number: RawFd,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Takes the socket under `number`: the result is close-on-exec and above the standard streams, and the number itself
/// leads nowhere afterwards (a standard stream becomes `/dev/null`).
///
/// Meant for the start of the process, before anything else opens or closes descriptors; each number is taken once.
///
/// # Errors
/// [`InheritedError`]; the descriptor is left as it was then.
pub fn take_socket(number: RawFd, wanted: SocketType) -> Result<OwnedFd, InheritedError> {
    if number < 0 || number == 2 {
        return Err(InheritedError::NotOpen { number });
    }
    #[expect(
        unsafe_code,
        reason = "a number from the command line is the only form an inherited descriptor has"
    )]
    // SAFETY: the number is not negative. Whether it is open is checked by the next call, which only reads its flags. The
    // borrow ends with this function, and at the start of the process nobody else closes descriptors.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    if rustix::io::fcntl_getfd(borrowed).is_err() {
        return Err(InheritedError::NotOpen { number });
    }
    if rustix::net::sockopt::socket_type(borrowed) != Ok(wanted) {
        return Err(InheritedError::WrongType { number, wanted });
    }
    let failed = |source: io::Error| InheritedError::Take { number, source };
    let taken =
        rustix::io::fcntl_dupfd_cloexec(borrowed, FIRST_FREE).map_err(|error| failed(error.into()))?;
    release(number).map_err(failed)?;
    Ok(taken)
}

/// Makes `number`, which is open and which no value owns, lead nowhere.
fn release(number: RawFd) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    #[expect(unsafe_code, reason = "closing a number that came from the command line")]
    // SAFETY: the number is open, and no value of this process owns it: it was handed down, and is taken once.
    let mut owned = unsafe { OwnedFd::from_raw_fd(number) };
    if number <= 1 {
        rustix::io::dup2(&null, &mut owned)?;
        // The standard streams of a process are never closed.
        let _ = owned.into_raw_fd();
    }
    Ok(())
}
