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
    written.iter().any(|path| is_hook(path)).then(|| {
        Risk::new(
            Kind::Persistence,
            Weight::ModerateLasting,
            "it changes what git or the code forge runs by itself",
            part,
        )
    })
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
