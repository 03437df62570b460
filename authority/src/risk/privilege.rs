//! More power than the chat has.
//!
//! | | |
//! |---|---|
//! | another user, set-user-id, users and groups, system files, privileged containers, role bindings, `pr merge --admin` | severe, lasting |
//! | who may log in, what an agent may do | severe, lasting, unaskable |

use super::scene::{Scene, written};
use super::table::{Line, find};
use super::{Kind, Risk, Weight};
use crate::reading::{Part, base_name};

const ANOTHER: &str = "it runs as another user";
const USERS: &str = "it changes users or their rights";
const ROLES: &str = "it gives rights to somebody";
const KERNEL: &str = "it changes the running system";

#[rustfmt::skip]
const GRANTS: &[Line] = &[
    ("kubectl", &["create", "rolebinding"], Weight::SevereLasting, ROLES),
    ("kubectl", &["create", "clusterrolebinding"], Weight::SevereLasting, ROLES),
    ("kubectl", &["create", "role"], Weight::SevereLasting, ROLES),
    ("kubectl", &["create", "clusterrole"], Weight::SevereLasting, ROLES),
    ("kubectl", &["certificate", "approve"], Weight::SevereLasting, ROLES),
    ("oc", &["adm", "policy"], Weight::SevereLasting, ROLES),
    ("gcloud", &["projects", "add-iam-policy-binding"], Weight::SevereLasting, ROLES),
    ("gcloud", &["iam", "service-accounts", "keys", "create"], Weight::SevereLasting, ROLES),
    ("gcloud", &["iam", "service-accounts", "add-iam-policy-binding"], Weight::SevereLasting, ROLES),
    ("az", &["role", "assignment", "create"], Weight::SevereLasting, ROLES),
    ("az", &["ad", "sp", "create-for-rbac"], Weight::SevereLasting, ROLES),
];

pub(super) fn of(part: &Part, _scene: &Scene) -> Option<Risk> {
    let severe = |reason| Some(Risk::new(Kind::Privilege, Weight::SevereLasting, reason, part));
    let written = written(part);
    if written.iter().any(|path| decides_on_rights(path)) || (part.name() == "ssh-copy-id") {
        return severe("it changes who may log in or what an agent may do").map(Risk::unaskable);
    }
    if written.iter().any(|path| is_system_file(path)) {
        return severe("it changes a file of the system");
    }
    match part.name() {
        "sudo" | "doas" | "pkexec" | "runuser" | "su" | "sudoedit" | "gosu" | "run0" => severe(ANOTHER),
        "useradd" | "usermod" | "userdel" | "groupadd" | "groupmod" | "groupdel" | "adduser" | "addgroup"
        | "deluser" | "passwd" | "chpasswd" | "visudo" | "gpasswd" | "chage" | "vipw" | "newusers"
        | "dscl" => severe(USERS),
        "setcap" => severe("it gives a program rights of the system"),
        "chmod" if sets_user_id(part) => severe("it lets a program run as its owner"),
        "install" if part.value_of(&["-m", "--mode"]).is_some_and(is_set_user_id) => {
            severe("it lets a program run as its owner")
        }
        "insmod" | "modprobe" | "rmmod" | "kexec" | "pivot_root" | "nsenter" | "mount" | "umount"
            if !part.args().is_empty() =>
        {
            severe(KERNEL)
        }
        "sysctl"
            if part.has('w', "--write")
                || part.has('p', "--load")
                || part.texts().any(|text| text.contains('=')) =>
        {
            severe(KERNEL)
        }
        "docker" | "podman" | "nerdctl" if escapes(part) => {
            severe("it starts a container with power over the host")
        }
        "aws" if grants_in_aws(part) => severe(ROLES),
        "gh" if part.has_long("--admin") && part.texts().any(|text| text == "merge") => {
            severe("it merges past the rules of the repository")
        }
        "gh" if part.texts().any(|text| {
            text.contains("/collaborators/") || text.contains("/branches/") && text.contains("/protection")
        }) && writes_by_api(part) =>
        {
            severe(ROLES)
        }
        _ => find(Kind::Privilege, GRANTS, part),
    }
}

/// Who may log in, and the permission files of coding agents, by their documented names.
fn decides_on_rights(path: &str) -> bool {
    const FILES: [&str; 12] = [
        "/.ssh/authorized_keys",
        "/.ssh/authorized_keys2",
        "/.claude/settings.json",
        "/.claude/settings.local.json",
        "/.claude.json",
        "/.codex/config.toml",
        "/.cursor/mcp.json",
        "/.cursor/permissions.json",
        "/.gemini/settings.json",
        "/.mcp.json",
        "/.config/opencode/opencode.json",
        "/.aider.conf.yml",
    ];
    FILES.iter().any(|file| path.ends_with(file)) || path.contains("/.mooring/")
}

fn is_system_file(path: &str) -> bool {
    const FOLDERS: [&str; 11] = [
        "/etc/",
        "/usr/",
        "/bin/",
        "/sbin/",
        "/lib/",
        "/lib64/",
        "/boot/",
        "/sys/",
        "/proc/",
        "/opt/",
        "/var/spool/cron",
    ];
    path == "/"
        || FOLDERS.iter().any(|folder| path.starts_with(folder) || path == folder.trim_end_matches('/'))
}

fn sets_user_id(part: &Part) -> bool {
    part.texts().any(is_set_user_id)
}

/// `u+s`, `+s`, `4755`: the modes of chmod(1) that set the user or group.
fn is_set_user_id(mode: &str) -> bool {
    let numeric = mode.len() >= 4 && mode.chars().all(|c| c.is_digit(8));
    if numeric {
        let special = mode.trim_start_matches('0');
        return special.len() == 4 && special.starts_with(['2', '3', '4', '5', '6', '7']);
    }
    mode.split(',').any(|clause| {
        clause.split_once(['+', '=']).is_some_and(|(who, rights)| {
            who.chars().all(|c| "ugoa".contains(c))
                && rights.contains('s')
                && rights.chars().all(|c| "rwxXst".contains(c))
        })
    })
}

fn escapes(part: &Part) -> bool {
    let texts: Vec<&str> = part.texts().collect();
    let mounts = texts.iter().enumerate().filter_map(|(at, text)| match *text {
        "-v" | "--volume" | "--mount" => texts.get(at + 1).copied(),
        other => other
            .strip_prefix("--volume=")
            .or_else(|| other.strip_prefix("--mount="))
            .or_else(|| other.strip_prefix("-v")),
    });
    let of_host = |mount: &str| {
        let source = mount
            .split(',')
            .find_map(|piece| piece.strip_prefix("source=").or_else(|| piece.strip_prefix("src=")))
            .unwrap_or(mount);
        let source = source.split(':').next().unwrap_or("");
        source == "/"
            || [
                "/etc",
                "/root",
                "/proc",
                "/sys",
                "/dev",
                "/var/run/docker.sock",
                "/run/docker.sock",
                "/var/lib",
            ]
            .iter()
            .any(|folder| source.starts_with(folder))
    };
    texts.iter().any(|text| {
        matches!(
            *text,
            "--privileged"
                | "--privileged=true"
                | "--pid=host"
                | "--userns=host"
                | "--cap-add=ALL"
                | "--cap-add=SYS_ADMIN"
                | "--security-opt=apparmor=unconfined"
        )
    }) || mounts.into_iter().any(of_host)
}

fn grants_in_aws(part: &Part) -> bool {
    let words = super::table::subcommands(part);
    words.first() == Some(&"iam")
        && words.get(1).is_some_and(|verb| {
            ["put-", "attach-", "create-", "add-", "update-"].iter().any(|start| verb.starts_with(start))
        })
}

fn writes_by_api(part: &Part) -> bool {
    part.value_of(&["-X", "--method"]).is_some_and(|method| !matches!(base_name(method), "GET" | "HEAD"))
}
