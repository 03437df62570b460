//! The system calls that reach other processes, the kernel's odd corners or new namespaces, refused to every command.
//!
//! Installed once in the runner and inherited: neither it nor a supervisor needs any of them. A classic BPF program
//! (seccomp(2)); calls that no branch looks at are allowed from the kernel's cache without running it.

use std::io;

use libc::{c_long, sock_filter, sock_fprog};

const DATA_NUMBER: u32 = 0;
const DATA_ARCHITECTURE: u32 = 4;
const DATA_ARGUMENTS: u32 = 16;

/// Numbers from here on are the x32 calls of an x86-64 kernel; no other architecture has so many.
const X32: u32 = 0x4000_0000;

/// linux/audit.h.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// All CLONE_NEW* flags that clone(2) takes.
const NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;
/// linux/sched.h; in clone(2) this bit belongs to the exit signal.
const CLONE_NEWTIME: i32 = 0x80;
/// linux/resource.h.
const PRIO_PROCESS: u32 = 0;
/// linux/ioprio.h.
const IOPRIO_WHO_PROCESS: u32 = 1;

/// Refused whatever the arguments. Named by who would miss them: debuggers (ptrace and the three beside it), key rings,
/// io_uring (it can do what no filter sees), userfaultfd, and SysV IPC, which no workspace bounds.
const REFUSED: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
];

/// Refused unless the first argument, a process number, is 0. `sched_setaffinity` is not among them: thread libraries name
/// their threads in it.
const OWN_ONLY: &[c_long] =
    &[libc::SYS_prlimit64, libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr];

/// Puts the filter on this process and all it will start. `no_new_privs` must be set.
///
/// # Errors
/// `EINVAL` or `ENOSYS` from a kernel without seccomp filters.
pub(super) fn install() -> io::Result<()> {
    let mut program = program();
    let length = u16::try_from(program.len()).expect("well under the kernel's 4096 instructions");
    let program = sock_fprog { len: length, filter: program.as_mut_ptr() };
    let mode: libc::c_ulong = libc::SECCOMP_MODE_FILTER.into();
    // SAFETY: the program outlives the call, which copies it, and its length is that of the buffer.
    match unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn program() -> Vec<sock_filter> {
    let mut program =
        vec![load(DATA_ARCHITECTURE), equal(ARCHITECTURE, 1, 0), refuse(libc::ENOSYS), load(DATA_NUMBER)];
    program.extend([at_least(X32, 0, 1), refuse(libc::ENOSYS)]);
    // glibc and others fall back to clone(2), whose flags can be looked at; those of clone3 lie in memory.
    program.extend([equal(number(libc::SYS_clone3), 0, 1), refuse(libc::ENOSYS)]);
    for call in REFUSED {
        program.extend([equal(number(*call), 0, 1), refuse(libc::EPERM)]);
    }
    for (call, flags) in [(libc::SYS_clone, NAMESPACES), (libc::SYS_unshare, NAMESPACES | CLONE_NEWTIME)] {
        program.extend([equal(number(call), 0, 4), load_argument(0), any_of(flags.cast_unsigned(), 0, 1)]);
        program.extend([refuse(libc::EPERM), allow()]);
    }
    // Own limits, scheduling and priorities only: 0 is the caller. A supervisor made idle by its command would keep no time.
    for call in OWN_ONLY {
        program.extend([equal(number(*call), 0, 4), load_argument(0), equal(0, 1, 0)]);
        program.extend([refuse(libc::EPERM), allow()]);
    }
    for (call, process) in [(libc::SYS_setpriority, PRIO_PROCESS), (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS)]
    {
        program.extend([equal(number(call), 0, 6), load_argument(0)]);
        program.extend([equal(process, 0, 2), load_argument(1), equal(0, 1, 0)]);
        program.extend([refuse(libc::EPERM), allow()]);
    }
    program.push(allow());
    program
}

fn number(call: c_long) -> u32 {
    u32::try_from(call).expect("a system call number")
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

/// The low half, which is all of a flag word, a process number or a `which`.
fn load_argument(index: u32) -> sock_filter {
    let low_half = if cfg!(target_endian = "little") { 0 } else { 4 };
    load(DATA_ARGUMENTS + 8 * index + low_half)
}

fn equal(value: u32, yes: u8, no: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, yes, no)
}

fn at_least(value: u32, yes: u8, no: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, value, yes, no)
}

fn any_of(bits: u32, yes: u8, no: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, bits, yes, no)
}

fn refuse(errno: i32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno.cast_unsigned(), 0, 0)
}

fn allow() -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0)
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: u16::try_from(code).expect("a BPF code"), jt, jf, k }
}
