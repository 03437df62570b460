//! The counter of kills by the kernel's memory killer in the runner's cgroup, of either cgroup version.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// An open counter. Shared by forked processes: every read is by position.
pub(super) struct Counter(File);

impl Counter {
    /// The counter of this process's memory cgroup, if there is one.
    pub(super) fn open() -> Option<Self> {
        let cgroup = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let counter = Self(File::open(locate(&cgroup, &mounts)?).ok()?);
        counter.read().map(|_| counter)
    }

    /// Kills so far.
    pub(super) fn read(&self) -> Option<u64> {
        let mut text = [0; 1024];
        let read = self.0.read_at(&mut text, 0).ok()?;
        kills(std::str::from_utf8(&text[..read]).ok()?)
    }

    pub(super) fn file(&self) -> &File {
        &self.0
    }
}

/// The line `oom_kill N`, the same in v1 `memory.oom_control` (since Linux 4.13) and v2 `memory.events`.
fn kills(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// Where the counter of a process is: `cgroup` is its /proc/PID/cgroup (cgroups(7)), `mounts` its mountinfo
/// (proc_pid_mountinfo(5)). A v1 memory hierarchy wins, since a controller is in one hierarchy only.
fn locate(cgroup: &str, mounts: &str) -> Option<PathBuf> {
    let v1 = cgroup.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|controller| controller == "memory").then_some(path)
    });
    let (path, version, file) = match v1 {
        Some(path) => (path, Version::One, "memory.oom_control"),
        None => (cgroup.lines().find_map(|line| line.strip_prefix("0::"))?, Version::Two, "memory.events"),
    };
    let (root, point) = mounts.lines().find_map(|line| mount(line, version))?;
    let below = Path::new(path).strip_prefix(root).or_else(|_| Path::new(path).strip_prefix("/")).ok()?;
    Some(Path::new(point).join(below).join(file))
}

#[derive(Clone, Copy)]
enum Version {
    One,
    Two,
}

/// Root and mount point of a cgroup mount of that version with the memory controller.
fn mount(line: &str, version: Version) -> Option<(&str, &str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    let fits = match version {
        Version::One => kind.next()? == "cgroup" && kind.nth(1)?.split(',').any(|option| option == "memory"),
        Version::Two => kind.next()? == "cgroup2",
    };
    fits.then_some((root, point))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cgroup: &str, mounts: &str, expected: Option<&str>) {
        assert_eq!(locate(cgroup, mounts), expected.map(PathBuf::from));
    }

    #[test]
    fn both_versions_name_the_kills_alike() {
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), Some(7));
        assert_eq!(kills("low 0\nhigh 0\nmax 3\noom 3\noom_kill 2\noom_group_kill 1\n"), Some(2));
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\n"), None);
        assert_eq!(kills("oom_kill many\n"), None);
    }

    #[test]
    fn a_v2_pod_sees_its_cgroup_as_the_root() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n";
        check("0::/\n", mounts, Some("/sys/fs/cgroup/memory.events"));
    }

    #[test]
    fn a_v2_session_is_below_the_mount() {
        let mounts =
            "24 23 0:21 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let expected = "/sys/fs/cgroup/user.slice/session-2.scope/memory.events";
        check("0::/user.slice/session-2.scope\n", mounts, Some(expected));
    }

    #[test]
    fn a_v1_memory_hierarchy_wins_over_an_empty_v2() {
        let cgroup = "9:name=systemd:/\n4:cpu,memory:/kubepods/a\n0::/\n";
        let mounts = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        check(cgroup, mounts, Some("/sys/fs/cgroup/memory/kubepods/a/memory.oom_control"));
    }

    #[test]
    fn a_v1_container_that_sees_the_hosts_path_finds_its_own_mount() {
        let mounts = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        check("4:memory:/docker/abc\n", mounts, Some("/sys/fs/cgroup/memory/memory.oom_control"));
    }

    /// Recorded in a container of runc 1.1.5 with containerd's mounts: each controller's mount shows the container's own
    /// group, and the process sees the host's path unless it has a cgroup namespace.
    #[test]
    fn a_v1_pod_finds_its_own_group_with_and_without_a_namespace() {
        let own = "/kubepods/burstable/pod0a3f6f2e-2f6b-4a53-9b9a-9a2f6c1d5b11/4f1c0d";
        let mounts = |root: &str| {
            format!(
                "75 69 0:22 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs rw\n\
                 76 75 0:44 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,mode=755\n\
                 77 76 0:29 {root} /sys/fs/cgroup/cpu ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,cpu\n\
                 80 76 0:32 {root} /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,memory\n\
                 85 76 0:37 {root} /sys/fs/cgroup/systemd ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,name=systemd\n"
            )
        };
        let cgroup =
            |path: &str| format!("9:name=systemd:{path}\n4:memory:{path}\n1:cpu:{path}\n0::{path}\n");
        let expected = Some("/sys/fs/cgroup/memory/memory.oom_control");
        check(&cgroup(own), &mounts(own), expected);
        check(&cgroup("/"), &mounts("/"), expected);
    }

    #[test]
    fn without_a_memory_cgroup_there_is_no_counter() {
        check("1:cpu:/\n", "35 31 0:32 / /c rw - cgroup cgroup rw,cpu\n", None);
        check("", "", None);
        check("0::/\n", "broken line\n", None);
    }
}
