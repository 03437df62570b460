//! The proof that a signal to everything reaches this process's own domain and nothing else.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::domain;
use super::kernel;

/// Held only by a process that is in a signal-scoped Landlock domain and has seen it hold.
pub(super) struct Scope(());

impl Scope {
    /// Enters the domain of `scopes` and proves it: the parent, which runs as the same user, can no longer be signalled.
    ///
    /// # Errors
    /// `EPROTO` if the kernel let the check signal pass or the parent is not `runner` any more: then nothing is proved.
    pub(super) fn enter(scopes: &OwnedFd, runner: i32) -> io::Result<Self> {
        kernel::forbid_new_privileges()?;
        domain::enter(scopes)?;
        let refused = kernel::may_signal(runner) == Err(Errno::PERM);
        // Checked afterwards, so that the number was the runner's all along: it is our parent until it dies.
        if refused && kernel::parent() == Some(runner) { Ok(Self(())) } else { Err(Errno::PROTO.into()) }
    }

    /// Sends `signal` to every process of the domain and of those nested in it, never to this one.
    ///
    /// What is forked meanwhile is reached too: a fork fails while its caller has a fatal signal pending (fork.c,
    /// copy_process). Only [`kernel::Reaped::Empty`] proves that nothing is left.
    pub(super) fn signal_all(&self, signal: i32) {
        kernel::signal_everything(self, signal);
    }
}
