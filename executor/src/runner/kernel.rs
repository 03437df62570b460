//! The system calls that rustix does not offer, each behind a safe function.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Exited(u8),
    Signalled(u8),
}

/// What [`reap`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaped {
    Child(i32, Status),
    /// Children live and none has ended.
    None,
    /// There is no child at all: nothing that was started below this process lives.
    Empty,
}

/// Which side of a fork this is.
pub(super) enum Fork {
    Child,
    Parent(i32),
}

pub(super) fn fork() -> io::Result<Fork> {
    // SAFETY: every process of the run half has one thread, so the child's memory is whole and no lock is held by another.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Reaps one child that has ended, of whatever clone kind (`__WALL`, waitpid(2)), without waiting.
pub(super) fn reap() -> Reaped {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a valid place for one int.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
        match pid {
            0 => return Reaped::None,
            -1 if Errno::from_io_error(&io::Error::last_os_error()) == Some(Errno::INTR) => {}
            -1 => return Reaped::Empty,
            pid => {
                return Reaped::Child(pid, status_of(status));
            }
        }
    }
}

fn status_of(status: i32) -> Status {
    if libc::WIFSIGNALED(status) {
        Status::Signalled(u8::try_from(libc::WTERMSIG(status)).expect("seven bits of the status word"))
    } else {
        Status::Exited(u8::try_from(libc::WEXITSTATUS(status)).expect("eight bits of the status word"))
    }
}

/// Blocks every signal and gives a descriptor that tells of these.
pub(super) fn receive_signals(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: a zeroed set is a valid object for sigfillset and sigemptyset; both sets outlive the calls.
    let fd = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut()))?;
        let mut told: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut told);
        for signal in signals {
            libc::sigaddset(&raw mut told, *signal);
        }
        check(libc::signalfd(-1, &raw const told, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?
    };
    // SAFETY: the call above made this descriptor and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Empties the descriptor of [`receive_signals`]; the signals seen, standard ones at most once each.
pub(super) fn drain_signals(descriptor: &OwnedFd) -> Vec<i32> {
    let mut seen = Vec::new();
    let mut one = [0_u8; size_of::<libc::signalfd_siginfo>()];
    while rustix::io::read(descriptor, &mut one) == Ok(one.len()) {
        let number = u32::from_ne_bytes([one[0], one[1], one[2], one[3]]);
        seen.push(i32::try_from(number).unwrap_or(0));
    }
    seen
}

/// Waits until a descriptor is ready, a signal is told or `limit` passes.
pub(super) fn await_any(descriptors: &mut [PollFd<'_>], limit: Option<Duration>) -> Result<(), Errno> {
    let limit = limit.map(|limit| Timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    match poll(descriptors, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Closes every descriptor above 2 except `kept`.
pub(super) fn close_all_except(kept: &[RawFd]) -> io::Result<()> {
    let mut kept: Vec<u32> =
        kept.iter().filter_map(|fd| u32::try_from(*fd).ok()).filter(|fd| *fd > 2).collect();
    kept.sort_unstable();
    let mut first = 3;
    for fd in kept {
        if fd > first {
            close_range(first, fd - 1, 0)?;
        }
        first = fd + 1;
    }
    close_range(first, u32::MAX, 0)
}

/// close_range(2); also the raw call between fork and exec.
pub(super) fn close_range(first: u32, last: u32, flags: u32) -> io::Result<()> {
    // SAFETY: the callers own the whole range: either nothing of it is an owned Rust object they go on to use, or the flag
    // only marks it.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) }).map(drop)
}

/// Sends `signal` to every process that this one may signal, except itself.
///
/// Private to the proof of [`super::scope::Scope`]: anywhere else this reaches the whole machine.
pub(super) fn signal_everything(_proof: &super::scope::Scope, signal: i32) {
    // SAFETY: no memory is involved. That there may be no such process is no error here.
    unsafe { libc::kill(-1, signal) };
}

/// Sends `signal` to one child that was not reaped yet, so that its number is still its own.
pub(super) fn signal_child(pid: i32, signal: i32) {
    // SAFETY: no memory is involved.
    unsafe { libc::kill(pid, signal) };
}

/// Whether this process may signal that one.
pub(super) fn may_signal(pid: i32) -> Result<(), Errno> {
    // SAFETY: no memory is involved, and signal 0 is only a check.
    check(unsafe { libc::kill(pid, 0) })
        .map(drop)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

pub(super) fn parent() -> Option<i32> {
    rustix::process::getppid().map(Pid::as_raw_pid)
}

pub(super) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

/// Makes orphans below this process its children (PR_SET_CHILD_SUBREAPER).
pub(super) fn adopt_orphans() -> io::Result<()> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
}

/// No trace, no core, and /proc entries that belong to root (PR_SET_DUMPABLE).
pub(super) fn forbid_inspection() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0)
}

pub(super) fn forbid_new_privileges() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
}

fn prctl(option: i32, value: libc::c_ulong) -> io::Result<()> {
    let zero: libc::c_ulong = 0;
    // SAFETY: these options take integers only.
    check(unsafe { libc::prctl(option, value, zero, zero, zero) }).map(drop)
}

/// A duplicate of the descriptor at 10 or above, close-on-exec, out of the way of the numbers a command gets.
pub(super) fn raised(descriptor: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(descriptor, 10)
}

/// Fills descriptors 0 to 2 with `/dev/null` where they are closed, so that no other descriptor takes such a number.
pub(super) fn occupy_standard_streams() -> io::Result<()> {
    loop {
        let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        if null.as_raw_fd() > 2 {
            return Ok(());
        }
        std::mem::forget(null);
    }
}

/// Ends this process at once: nothing is dropped, flushed or run.
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` is allowed anywhere.
    unsafe { libc::_exit(code) }
}

fn check<T: Copy + PartialOrd + From<i8>>(result: T) -> io::Result<T> {
    if result < T::from(0) { Err(io::Error::last_os_error()) } else { Ok(result) }
}
