//! Landlock domains: scopes for a supervisor, file rules and scopes for a command. Nothing here is best effort.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};
use rustix::io::Errno;

/// Since this ABI signals and abstract sockets can be scoped (Linux 6.12).
pub(super) const SCOPED_ABI: u32 = 6;

/// Read and execute, links resolved: these belong to the system. Missing ones are skipped.
const SYSTEM_FOLDERS: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store"];

/// Read only. `/proc` shows arguments of all processes, see the promise's limit; of `/sys` what run-times size themselves by
/// (processors, huge pages, cgroup limits); of `/run` where `/etc/resolv.conf` leads.
const READABLE_FOLDERS: &[&str] = &[
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/run/systemd/resolve",
    "/run/resolvconf",
];

/// Read and write, device requests included. Neither `/dev/ptmx` nor `/dev/shm`.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Why a domain could not be made. The command is not started.
#[derive(Debug, thiserror::Error)]
pub(super) enum DomainError {
    #[error("the kernel refuses the rules")]
    Rules(#[from] landlock::RulesetError),
    #[error("a granted folder cannot be opened")]
    Open(#[source] io::Error),
    #[error("the kernel gave no ruleset")]
    Missing,
}

/// Landlock ABI of the running kernel, 0 without Landlock (landlock_create_ruleset(2), LANDLOCK_CREATE_RULESET_VERSION).
pub(super) fn kernel_abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call takes no attribute and only returns a number.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, VERSION)
    };
    u32::try_from(abi).unwrap_or(0)
}

/// Confines the calling thread. `no_new_privs` must be set.
pub(super) fn enter(ruleset: &OwnedFd) -> io::Result<()> {
    enter_raw(ruleset.as_raw_fd())
}

/// [`enter`] for the time between fork and exec: one system call.
pub(super) fn enter_raw(ruleset: i32) -> io::Result<()> {
    // SAFETY: the call takes integers only.
    match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0_u32) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Domain A, a supervisor's: signals and abstract sockets stay inside, files are free.
pub(super) fn scopes() -> Result<OwnedFd, DomainError> {
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    finish(created)
}

/// Domain B, a command's, with all that every command gets. Made before a command is there, so that it costs no time.
pub(super) struct Draft {
    rules: Rules,
    ruleset: RulesetCreated,
}

impl Draft {
    /// The system folders and devices, and scopes of its own.
    pub(super) fn new(abi: u32) -> Result<Self, DomainError> {
        let rules = Rules::of(abi);
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(rules.handled)?
            .scope(Scope::from_all(ABI::V6))?
            .create()?;
        let system =
            [(SYSTEM_FOLDERS, rules.execute), (READABLE_FOLDERS, rules.read), (DEVICES, rules.device)];
        for (paths, access) in system {
            for path in paths {
                ruleset = grant(ruleset, open_system(path)?, access)?;
            }
        }
        Ok(Self { rules, ruleset })
    }

    /// The finished ruleset of one command.
    pub(super) fn finish(
        self,
        read_write: &[Vec<u8>],
        read_only: &[Vec<u8>],
    ) -> Result<OwnedFd, DomainError> {
        let Self { rules, mut ruleset } = self;
        for path in read_only {
            ruleset = grant(ruleset, open_granted(path)?, rules.execute)?;
        }
        for path in read_write {
            let folder = open_granted(path)?.ok_or_else(|| DomainError::Open(Errno::NOENT.into()))?;
            ruleset = grant(ruleset, Some(folder), rules.write)?;
        }
        finish(ruleset)
    }
}

/// What is handled and granted under one ABI.
struct Rules {
    handled: BitFlags<AccessFs>,
    read: BitFlags<AccessFs>,
    execute: BitFlags<AccessFs>,
    write: BitFlags<AccessFs>,
    device: BitFlags<AccessFs>,
}

impl Rules {
    /// Later ABIs than were tried add nothing but path-named sockets (9), which then stay inside the read-write folders.
    fn of(abi: u32) -> Self {
        let handled = AccessFs::from_all(if abi >= 9 { ABI::V9 } else { ABI::V5 });
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        Self {
            handled,
            read,
            execute: read | AccessFs::Execute,
            write: handled & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev),
            device: AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev,
        }
    }
}

fn grant(
    ruleset: RulesetCreated,
    target: Option<OwnedFd>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, DomainError> {
    let Some(target) = target else { return Ok(ruleset) };
    let stat = fstat(&target).map_err(|errno| DomainError::Open(errno.into()))?;
    let access = if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        access
    } else {
        access & AccessFs::from_file(ABI::V5)
    };
    Ok(ruleset.add_rule(PathBeneath::new(target.as_fd(), access))?)
}

fn open_system(path: &str) -> Result<Option<OwnedFd>, DomainError> {
    present(open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()))
}

/// No link on the way: else whoever may write a folder on it could turn this grant into another.
fn open_granted(path: &[u8]) -> Result<Option<OwnedFd>, DomainError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    present(openat2(CWD, OsStr::from_bytes(path), flags, Mode::empty(), ResolveFlags::NO_SYMLINKS))
}

fn present(opened: Result<OwnedFd, Errno>) -> Result<Option<OwnedFd>, DomainError> {
    match opened {
        Ok(target) => Ok(Some(target)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(None),
        Err(errno) => Err(DomainError::Open(errno.into())),
    }
}

fn finish(ruleset: RulesetCreated) -> Result<OwnedFd, DomainError> {
    Option::<OwnedFd>::from(ruleset).ok_or(DomainError::Missing)
}
