//! The runner gives up every capability when it starts, so that no command holds one or can gain one.

use std::io;

/// Capability numbers the kernel may know: its sets have 64 bits (linux/capability.h).
const CAPABILITIES: libc::c_ulong = 64;
/// linux/capability.h.
const CAP_SETPCAP: u32 = 8;
const VERSION_3: u32 = 0x2008_0522;
/// linux/securebits.h: user id 0 gives no capability at exec, keeps none over setuid, raises no ambient one; all locked.
const NO_ROOT_LOCKED: libc::c_ulong = 0b1110_1111;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Empties the ambient, bounding, inheritable, permitted and effective sets and locks the rule that makes root an ordinary
/// user. Without CAP_SETPCAP the bounding set and that rule cannot be changed; `no_new_privs`, set before, already keeps
/// exec from giving anything that is not permitted (capabilities(7)).
///
/// # Errors
/// Any refusal of the kernel that leaves a capability within reach.
pub(super) fn renounce() -> io::Result<()> {
    let may_change = read()?[0].effective & (1 << CAP_SETPCAP) != 0;
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL.cast_unsigned().into())?;
    if may_change {
        for capability in 0..CAPABILITIES {
            match prctl(libc::PR_CAPBSET_DROP, capability) {
                Ok(()) => {}
                // Beyond the last one that this kernel knows.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) && capability > 0 => break,
                Err(error) => return Err(error),
            }
        }
        prctl(libc::PR_SET_SECUREBITS, NO_ROOT_LOCKED)?;
    }
    write([Sets::default(); 2])?;
    require_none()
}

/// Fails with `EPERM` if this process holds a capability. Only one system call: fit for the time between fork and exec.
pub(super) fn require_none() -> io::Result<()> {
    if read()? == [Sets::default(); 2] { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
}

fn read() -> io::Result<[Sets; 2]> {
    let header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: version 3 of the call reads one header and writes two sets, which is what these are.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) })?;
    Ok(sets)
}

fn write(sets: [Sets; 2]) -> io::Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: version 3 of the call reads one header and two sets, which is what these are.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) })
}

fn prctl(option: i32, value: libc::c_ulong) -> io::Result<()> {
    let zero: libc::c_ulong = 0;
    // SAFETY: these options take integers only.
    check(unsafe { libc::prctl(option, value, zero, zero, zero) }.into())
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
