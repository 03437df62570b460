//! The processes below one: counted, and ended by hand when no supervisor can do it any more.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::kernel;

/// Threads that a command may have for each process it may have.
const THREADS_PER_PROCESS: usize = 8;

/// One line of /proc/PID/stat, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    ended: bool,
    /// Clock ticks after boot; with the number it names one process for good.
    started: u64,
}

/// Processes below the caller, and whether they keep a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Census {
    pub(super) processes: u32,
    pub(super) over: bool,
}

/// Counts the processes below this one, ended ones that nobody reaped included. Stops early above `limit` processes, or
/// above [`THREADS_PER_PROCESS`] threads for each of them.
///
/// Reads the lists of children that the kernel keeps per thread, so that other processes of the machine cost nothing; they
/// may miss a process that is forked meanwhile (proc_pid_task(5)), which the next count sees.
pub(super) fn census(limit: Option<u32>) -> Census {
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut seen = HashSet::new();
    let mut threads = 0_usize;
    let mut waiting = children_of("/proc/thread-self/children");
    let mut over = false;
    while let Some(pid) = waiting.pop() {
        if !seen.insert(pid) {
            continue;
        }
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.flatten() {
            threads += 1;
            waiting.extend(children_of(task.path().join("children")));
        }
        over = seen.len() > limit || threads > limit.saturating_mul(THREADS_PER_PROCESS);
        if over {
            break;
        }
    }
    Census { processes: u32::try_from(seen.len()).unwrap_or(u32::MAX), over }
}

fn children_of(list: impl AsRef<std::path::Path>) -> Vec<i32> {
    let list = fs::read_to_string(list).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Stops, then kills, every process below this one except `spared` children and what is below them. Gives how many were
/// found alive: ended for good only when a later call finds none.
///
/// Stopping first keeps a fork bomb from outrunning the walk: a round that finds nobody new means that all stand still.
pub(super) fn end_all_below(spared: &[i32]) -> io::Result<usize> {
    const ROUNDS: usize = 64;
    let mut stopped = HashMap::new();
    for _ in 0..ROUNDS {
        let mut fresh = below(&everything()?, kernel::own_pid(), spared);
        fresh.retain(|process| !process.ended && !stopped.contains_key(&(process.pid, process.started)));
        if fresh.is_empty() {
            break;
        }
        for process in fresh {
            signal(process, Signal::STOP);
            stopped.insert((process.pid, process.started), process);
        }
    }
    for process in stopped.values() {
        signal(*process, Signal::KILL);
    }
    Ok(stopped.len())
}

/// Signals by descriptor, after making sure that the descriptor is of the process that was seen.
fn signal(process: Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if one(process.pid).is_some_and(|now| now.started == process.started) {
        // It may have ended in between.
        let _ = pidfd_send_signal(&descriptor, signal);
    }
}

fn everything() -> io::Result<Vec<Process>> {
    let entries = fs::read_dir("/proc")?;
    Ok(entries.flatten().filter_map(|entry| one(entry.file_name().to_str()?.parse().ok()?)).collect())
}

fn one(pid: i32) -> Option<Process> {
    parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn below(processes: &[Process], root: i32, spared: &[i32]) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut waiting = vec![root];
    while let Some(parent) = waiting.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            if parent == root && spared.contains(&child.pid) {
                continue;
            }
            waiting.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// proc_pid_stat(5): the name in parentheses may itself hold parentheses, spaces and line ends.
fn parse(stat: &[u8]) -> Option<Process> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(&stat[..open]).ok()?.trim().parse().ok()?;
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(Process { pid, parent, ended: matches!(state, "Z" | "X"), started })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid, parent, ended: false, started: 1 }
    }

    #[test]
    fn a_name_cannot_pretend_to_be_a_parent() {
        let line = b"42 (a) S 1 (b\n) Z 7 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 991 0 0\n";
        assert_eq!(parse(line), Some(Process { pid: 42, parent: 7, ended: true, started: 991 }));
        assert_eq!(parse(b"42 (a"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn only_what_is_below_and_not_spared_is_found() {
        let all = [
            process(10, 1),
            process(11, 10),
            process(12, 10),
            process(13, 12),
            process(14, 11),
            process(2, 1),
        ];
        let mut found: Vec<i32> = below(&all, 10, &[11]).iter().map(|process| process.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [12, 13]);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let all = [process(10, 12), process(11, 10), process(12, 11)];
        assert_eq!(below(&all, 10, &[]).len(), 3);
    }
}
