//! Something stays and runs later.
//!
//! | | |
//! |---|---|
//! | a shell's start file, a service, a timer | severe, undoable |
//! | a hook or configuration of git, a workflow of the forge | moderate, lasting |

use super::scene::{Scene, written};
use super::table::subcommands;
use super::{Kind, Risk, Weight};
use crate::reading::{Part, base_name};

pub(super) fn of(part: &Part, _scene: &Scene) -> Option<Risk> {
    let written = written(part);
    let starts_later = "it changes what runs when somebody logs in or when time comes";
    if written.iter().any(|path| is_start_file(path)) {
        return Some(Risk::new(Kind::Persistence, Weight::SevereUndoable, starts_later, part));
    }
    let schedules = match part.name() {
        "crontab" | "at" | "batch" => !part.has('l', ""),
        "systemctl" => matches!(subcommands(part).first(), Some(&("enable" | "link" | "edit" | "reenable"))),
        "launchctl" => {
            matches!(subcommands(part).first(), Some(&("load" | "bootstrap" | "submit" | "enable")))
        }
        "update-rc.d" | "chkconfig" | "schtasks" => true,
        "systemd-run" => part.texts().any(|text| text.starts_with("--on-")),
        _ => false,
    };
    if schedules {
        return Some(Risk::new(Kind::Persistence, Weight::SevereUndoable, starts_later, part));
    }
    (written.iter().any(|path| is_hook(path)) || sets_a_program_of_git(part)).then(|| {
        Risk::new(
            Kind::Persistence,
            Weight::ModerateLasting,
            "it changes what git or the code forge runs by itself",
            part,
        )
    })
}

/// `git config` that gives a key a program to run (git-config(1)).
fn sets_a_program_of_git(part: &Part) -> bool {
    const KEYS: [&str; 8] = [
        "core.pager",
        "core.editor",
        "core.fsmonitor",
        "core.askpass",
        "sequence.editor",
        "diff.external",
        "gpg.program",
        "uploadpack.packobjectshook",
    ];
    const ENDS: [&str; 7] = [".cmd", ".textconv", ".command", ".driver", ".clean", ".smudge", ".process"];
    const FAMILIES: [&str; 5] = ["difftool.", "mergetool.", "diff.", "merge.", "filter."];
    if part.name() != "git" {
        return false;
    }
    let words = subcommands(part);
    let (["config", "set", rest @ ..] | ["config", rest @ ..]) = words.as_slice() else { return false };
    let [key, value, ..] = rest else { return false };
    let key = key.to_ascii_lowercase();
    let is_own_builtin = key == "core.fsmonitor" && matches!(*value, "true" | "false");
    let family =
        FAMILIES.iter().any(|start| key.starts_with(start)) && ENDS.iter().any(|end| key.ends_with(end));
    let alias = key.starts_with("alias.") && value.starts_with('!');
    !is_own_builtin && (KEYS.contains(&key.as_str()) || family || alias)
}

fn is_start_file(path: &str) -> bool {
    const NAMES: [&str; 13] = [
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".kshrc",
        ".cshrc",
        ".inputrc",
        ".xinitrc",
    ];
    const FOLDERS: [&str; 8] = [
        "/.config/systemd/",
        "/etc/systemd/",
        "/etc/cron",
        "/var/spool/cron",
        "/Library/LaunchAgents/",
        "/Library/LaunchDaemons/",
        "/.config/autostart/",
        "/.config/fish/",
    ];
    NAMES.contains(&base_name(path))
        || FOLDERS.iter().any(|folder| path.contains(folder))
        || path.ends_with("/.ssh/rc")
}

fn is_hook(path: &str) -> bool {
    path.contains("/.git/hooks/")
        || path.ends_with("/.git/config")
        || path.contains("/.github/workflows/")
        || path.ends_with("/.gitlab-ci.yml")
        || path.contains("/.circleci/")
        || path.ends_with("/Jenkinsfile")
        || path.contains("/.husky/")
        || path.ends_with("/.gitconfig")
        || path.ends_with("/.git/info/attributes")
}
