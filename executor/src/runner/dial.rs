//! The running half's side of the socket: waits for it, connects once.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::kernel;
use super::socket::{Place, PlaceError};

/// How long the serving half may take to come. Its image is there already: it is this one's.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often it is looked for.
const INTERVAL: Duration = Duration::from_millis(5);

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    /// The path cannot be the socket's.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// SIGTERM came first.
    #[error("told to end before the serving half was there")]
    Terminated,
    /// The serving half did not come.
    #[error("nobody made the socket within {} s", PATIENCE.as_secs())]
    Nobody,
    /// The system refused.
    #[error("cannot connect to the serving half")]
    Connect(#[source] io::Error),
}

/// Connects to the serving half at `path`, waiting up to a minute for it. Leaves every signal blocked, for the runner.
pub(super) fn dial(path: &Path) -> Result<OwnedFd, DialError> {
    let place = Place::new(path)?;
    // A process 1 that did nothing would not even hear SIGTERM (pid_namespaces(7)). What comes after this stays pending
    // until the runner asks.
    let signals = kernel::receive_signals(&[libc::SIGTERM]).map_err(DialError::Connect)?;
    wait_for(&place, &signals, PATIENCE)
}

fn wait_for(place: &Place, signals: &OwnedFd, patience: Duration) -> Result<OwnedFd, DialError> {
    let until = Instant::now() + patience;
    loop {
        if let Some(link) = place.connect().map_err(DialError::Connect)? {
            return Ok(link);
        }
        if Instant::now() >= until {
            return Err(DialError::Nobody);
        }
        let mut descriptors = [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
        kernel::await_any(&mut descriptors, Some(INTERVAL))
            .map_err(|errno| DialError::Connect(errno.into()))?;
        if kernel::drain_signals(signals).contains(&libc::SIGTERM) {
            return Err(DialError::Terminated);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_comes_late_is_found_and_one_that_never_comes_is_not_awaited_for_ever() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::new(&folder.path().join("link.sock")).expect("a short path");
        let signals = kernel::receive_signals(&[libc::SIGTERM]).expect("a descriptor");
        let patience = Duration::from_millis(50);
        assert!(matches!(wait_for(&place, &signals, patience), Err(DialError::Nobody)));
        std::thread::scope(|scope| {
            let dialled = scope.spawn(|| wait_for(&place, &signals, PATIENCE));
            let socket = place.open().expect("a socket");
            dialled.join().expect("no panic").expect("connected");
            assert!(place.accept(&socket).expect("one was waiting").is_some());
        });
    }

    #[test]
    fn what_cannot_be_waited_for_is_told_at_once() {
        assert!(matches!(dial(Path::new("relative")), Err(DialError::Place(_))));
        // A folder on the way that is none.
        assert!(matches!(dial(Path::new("/dev/null/runner.sock")), Err(DialError::Connect(_))));
    }
}
