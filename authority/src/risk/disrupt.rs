//! The machine or its processes stop: severe and lasting, all of it.

use super::scene::Scene;
use super::table::subcommands;
use super::{Kind, Risk, Weight};
use crate::reading::Part;

pub(super) fn of(part: &Part, _scene: &Scene) -> Option<Risk> {
    let found = match part.name() {
        "reboot" | "shutdown" | "halt" | "poweroff" => !part.has_long("--help"),
        "init" | "telinit" => matches!(part.texts().next(), Some("0" | "6")),
        "systemctl" => matches!(
            subcommands(part).first(),
            Some(&("reboot" | "poweroff" | "halt" | "kexec" | "suspend" | "isolate"))
        ),
        "kill" => everything(part),
        "killall5" => true,
        "pkill" | "killall" => {
            part.has('u', "--user") && !part.texts().any(|text| text.starts_with("-f"))
                || part.texts().any(|text| matches!(text, "." | ".*" | "init" | "systemd"))
        }
        _ => part.multiplies,
    };
    found.then(|| {
        Risk::new(Kind::Disrupt, Weight::SevereLasting, "it stops the machine or every process on it", part)
    })
}

/// `kill -9 -1`, `kill 1`: the first negative number is a signal unless one was named before.
fn everything(part: &Part) -> bool {
    let mut texts = part.texts().peekable();
    let mut named = false;
    while let Some(text) = texts.next() {
        match text {
            "-s" | "-n" => {
                texts.next();
                named = true;
            }
            "--" => named = true,
            "-l" | "-L" => return false,
            "1" | "0" => return true,
            "-1" if named || texts.peek().is_none() => return true,
            option if option.starts_with('-') => named = true,
            _ => {}
        }
    }
    false
}
