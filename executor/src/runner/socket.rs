//! The socket by which a runner in a container of its own finds the serving half, in a folder that both mount.
//!
//! Commands run in the runner's container under the same user, and Landlock does not keep them from connecting to a socket
//! whose path they know. It does keep them from making one outside their grants. So the runner binds its own end to a name
//! beside the socket before it connects, and the serving half takes nobody else: the kernel tells it the name. Besides, the
//! socket is there only while no runner is connected.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, chmodat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, acceptfrom_with, bind, connect,
    listen, socket_with,
};

/// What is put behind the socket's path to name the runner's end.
const RUNNER_SUFFIX: &str = ".runner";
/// Connections that may wait to be taken: of two, one is taken and the other refused.
const BACKLOG: i32 = 2;
/// Bytes of the socket's path, so that the runner's fits in an address (unix(7): 108 with the final NUL).
const MAX_PATH_BYTES: usize = 100;

/// The two names, checked once.
#[derive(Clone, Debug)]
pub(super) struct Place {
    socket: PathBuf,
    runner: PathBuf,
}

/// Why a path cannot be the socket's.
#[derive(Debug, thiserror::Error)]
#[error("the runner's socket needs an absolute path of at most {MAX_PATH_BYTES} bytes")]
pub struct PlaceError;

impl Place {
    pub(super) fn new(path: &Path) -> Result<Self, PlaceError> {
        if !path.is_absolute() || path.as_os_str().len() > MAX_PATH_BYTES {
            return Err(PlaceError);
        }
        let mut runner = OsString::from(path);
        runner.push(RUNNER_SUFFIX);
        Ok(Self { socket: path.to_owned(), runner: runner.into() })
    }

    /// Makes the socket, in place of what an earlier process left. Only this user may connect.
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        self.clear()?;
        let socket = seqpacket()?;
        bind(&socket, &SocketAddrUnix::new(&self.socket)?)?;
        // Nobody can connect before listen(2).
        chmodat(CWD, &self.socket, Mode::RUSR | Mode::WUSR, rustix::fs::AtFlags::empty())?;
        listen(&socket, BACKLOG)?;
        Ok(socket)
    }

    /// Takes one connection that is waiting. `Ok(None)`: it was not the runner's, and is closed.
    pub(super) fn accept(&self, socket: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (connection, peer) = acceptfrom_with(socket, flags)?;
        Ok(peer.is_some_and(|peer| self.is_runner(&peer)).then_some(connection))
    }

    /// Whether the peer's end bears the runner's name: absolute, so that no other folder can be meant by it.
    fn is_runner(&self, peer: &SocketAddrAny) -> bool {
        let Ok(peer) = SocketAddrUnix::try_from(peer.clone()) else { return false };
        SocketAddrUnix::new(&self.runner).is_ok_and(|runner| runner == peer)
    }

    /// Removes both names, whatever is left of them.
    pub(super) fn clear(&self) -> io::Result<()> {
        for path in [&self.socket, &self.runner] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// The runner's side: connects under its own name. `Ok(None)`: the serving half is not there yet.
    pub(super) fn connect(&self) -> io::Result<Option<OwnedFd>> {
        // Looked at first, so that waiting makes nothing on disk.
        if !self.socket.try_exists()? {
            return Ok(None);
        }
        let socket = seqpacket()?;
        match std::fs::remove_file(&self.runner) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        bind(&socket, &SocketAddrUnix::new(&self.runner)?)?;
        match connect(&socket, &SocketAddrUnix::new(&self.socket)?) {
            Ok(()) => Ok(Some(socket)),
            Err(Errno::NOENT | Errno::CONNREFUSED | Errno::AGAIN) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn seqpacket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Place) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::new(&folder.path().join("link.sock")).expect("a short path");
        (folder, place)
    }

    #[test]
    fn a_runner_is_taken_and_a_stranger_is_not() {
        let (folder, place) = place();
        assert!(place.connect().expect("nobody is there").is_none());
        let socket = place.open().expect("a socket");
        assert_eq!(place.accept(&socket).err(), Some(Errno::AGAIN));

        let stranger = seqpacket().expect("a socket");
        let address = SocketAddrUnix::new(&place.socket).expect("an address");
        connect(&stranger, &address).expect("the path is open to this user");
        assert!(place.accept(&socket).expect("one was waiting").is_none());

        let elsewhere = seqpacket().expect("a socket");
        bind(&elsewhere, &SocketAddrUnix::new(folder.path().join("x.runner")).expect("an address"))
            .expect("a free name");
        connect(&elsewhere, &address).expect("the path is open to this user");
        assert!(place.accept(&socket).expect("one was waiting").is_none());

        let runner = place.connect().expect("connected").expect("the socket is there");
        assert!(place.accept(&socket).expect("one was waiting").is_some());
        drop(runner);
        place.clear().expect("removed");
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("a folder").count(),
            1,
            "the stranger's name alone"
        );
    }

    #[test]
    fn what_an_earlier_process_left_is_replaced() {
        let (_folder, place) = place();
        drop(place.open().expect("a socket"));
        assert!(place.connect().expect("nobody listens").is_none());
        let socket = place.open().expect("in its place");
        assert!(place.connect().expect("connected").is_some());
        assert!(place.accept(&socket).expect("one was waiting").is_some());
    }

    #[test]
    fn only_its_user_may_connect() {
        use std::os::unix::fs::MetadataExt as _;

        let (_folder, place) = place();
        let _socket = place.open().expect("a socket");
        assert_eq!(place.socket.metadata().expect("made").mode() & 0o777, 0o600);
    }

    #[test]
    fn a_path_that_fits_no_address_is_refused() {
        assert!(Place::new(Path::new("relative")).is_err());
        assert!(Place::new(Path::new(&format!("/{}", "x".repeat(MAX_PATH_BYTES)))).is_err());
        assert!(Place::new(Path::new(&format!("/{}", "x".repeat(MAX_PATH_BYTES - 1)))).is_ok());
    }
}
