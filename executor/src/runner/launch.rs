//! The time between fork and exec: a supervisor's copy turns into the command. Only system calls, in one fixed order.

use std::io;
use std::os::fd::RawFd;

use super::domain;
use super::image::Image;
use super::kernel;
use super::privilege;
use super::shell::TEXT_DESCRIPTOR;

/// Bytes of a [`Failure`] on its pipe.
pub(super) const REPORT_BYTES: usize = 5;

/// What the new process needs. All descriptors are above [`TEXT_DESCRIPTOR`] and close-on-exec.
pub(super) struct Launch<'a> {
    pub(super) stdin: RawFd,
    pub(super) stdout: RawFd,
    pub(super) stderr: RawFd,
    pub(super) text: Option<RawFd>,
    pub(super) cwd: RawFd,
    pub(super) domain: RawFd,
    /// Where a failure is told; its end of file is success.
    pub(super) report: RawFd,
    /// Decimal value for /proc/self/oom_score_adj.
    pub(super) oom_score: &'a [u8],
    pub(super) image: &'a Image,
}

/// What a new process tells when it cannot become the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) step: Step,
    pub(super) errno: i32,
}

/// Where it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Session,
    Folder,
    Streams,
    Limits,
    Privileges,
    Domain,
    Descriptors,
    Exec,
}

const STEPS: [Step; 8] = [
    Step::Session,
    Step::Folder,
    Step::Streams,
    Step::Limits,
    Step::Privileges,
    Step::Domain,
    Step::Descriptors,
    Step::Exec,
];

impl Failure {
    fn to_bytes(self) -> [u8; REPORT_BYTES] {
        let step = STEPS.iter().position(|step| *step == self.step).unwrap_or(0);
        let errno = self.errno.to_ne_bytes();
        [u8::try_from(step).unwrap_or(0), errno[0], errno[1], errno[2], errno[3]]
    }

    pub(super) fn from_bytes(bytes: [u8; REPORT_BYTES]) -> Self {
        let [step, errno @ ..] = bytes;
        let step = STEPS.get(usize::from(step)).copied().unwrap_or(Step::Session);
        Self { step, errno: i32::from_ne_bytes(errno) }
    }
}

impl Launch<'_> {
    /// Turns this process into the command, or tells why not and ends.
    pub(super) fn run(&self) -> ! {
        let failure = match self.prepare() {
            Ok(()) => Failure { step: Step::Exec, errno: self.image.execute() },
            Err(failure) => failure,
        };
        let bytes = failure.to_bytes();
        // SAFETY: the buffer is alive and of that length. Five bytes go into an empty pipe at once.
        unsafe { libc::write(self.report, bytes.as_ptr().cast(), bytes.len()) };
        kernel::exit_now(127)
    }

    /// The domain comes after everything that needs a file. Capabilities and filter are the runner's own since its start.
    fn prepare(&self) -> Result<(), Failure> {
        at(Step::Session, own_session())?;
        at(
            Step::Folder,
            check(
                // SAFETY: no memory is involved.
                unsafe { libc::fchdir(self.cwd) },
            ),
        )?;
        at(Step::Streams, self.place_streams())?;
        at(Step::Limits, self.limit())?;
        at(Step::Privileges, privilege::require_none())?;
        at(Step::Domain, domain::enter_raw(self.domain))?;
        let first = if self.text.is_some() { TEXT_DESCRIPTOR + 1 } else { TEXT_DESCRIPTOR };
        at(
            Step::Descriptors,
            kernel::close_range(first.cast_unsigned(), u32::MAX, libc::CLOSE_RANGE_CLOEXEC),
        )?;
        forget_signals();
        Ok(())
    }

    fn place_streams(&self) -> io::Result<()> {
        let text = self.text.map(|text| (text, TEXT_DESCRIPTOR));
        for (from, to) in [(self.stdin, 0), (self.stdout, 1), (self.stderr, 2)].into_iter().chain(text) {
            // SAFETY: no memory is involved; the numbers 0 to 3 hold nothing that is still needed.
            check(unsafe { libc::dup2(from, to) })?;
        }
        Ok(())
    }

    fn limit(&self) -> io::Result<()> {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `none` outlives the call; umask takes no memory.
        unsafe {
            check(libc::setrlimit(libc::RLIMIT_CORE, &raw const none))?;
            libc::umask(0o022);
        }
        self.raise_oom_score()
    }

    /// The entry of a process that cannot be inspected belongs to root (proc_pid(5)): inspection is allowed for these calls.
    fn raise_oom_score(&self) -> io::Result<()> {
        // SAFETY: path and buffer are alive for the calls; the descriptor is closed by the number just opened.
        unsafe {
            check(libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0))?;
            let entry =
                check(libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
            let written = libc::write(entry, self.oom_score.as_ptr().cast(), self.oom_score.len());
            let outcome = if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
            libc::close(entry);
            check(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))?;
            outcome
        }
    }
}

fn own_session() -> io::Result<()> {
    // SAFETY: no memory is involved. A fresh child leads no group, so this cannot fail.
    check(unsafe { libc::setsid() }).map(drop)
}

/// Every signal back to its default and unblocked: ignored ones and the mask survive exec (signal(7)), and this program
/// ignores SIGPIPE. The raw call, since the C library refuses the two numbers that it keeps for itself, which a parent may
/// have ignored all the same. For KILL and STOP it fails, rightly.
fn forget_signals() {
    // The kernel's struct sigaction on 64-bit systems: handler, flags, restorer and a mask of 64 bits. Zero is SIG_DFL.
    let default = [0_u64; 4];
    // SAFETY: the buffer is as long as what the call reads, and a zeroed set is a valid object that outlives the calls.
    unsafe {
        for number in 1..=64 {
            libc::syscall(
                libc::SYS_rt_sigaction,
                number,
                default.as_ptr(),
                std::ptr::null_mut::<u64>(),
                8_usize,
            );
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

fn at<T>(step: Step, result: io::Result<T>) -> Result<(), Failure> {
    match result {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure { step, errno: error.raw_os_error().unwrap_or(libc::EIO) }),
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_survives_its_pipe() {
        for step in STEPS {
            let failure = Failure { step, errno: libc::EACCES };
            assert_eq!(Failure::from_bytes(failure.to_bytes()), failure);
        }
    }
}
