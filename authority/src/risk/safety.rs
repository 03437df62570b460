//! A protection is taken away.
//!
//! | | |
//! |---|---|
//! | a firewall or mandatory access control off | severe, lasting |
//! | another agent without its checks | severe, undoable |
//! | TLS checks off for later commands | moderate, lasting |
//! | hooks bypassed for good | moderate, undoable |

use super::scene::Scene;
use super::table::subcommands;
use super::{Kind, Risk, Weight};
use crate::reading::Part;

pub(super) fn of(part: &Part, _scene: &Scene) -> Option<Risk> {
    let risk = |weight, reason| Some(Risk::new(Kind::SafetyOff, weight, reason, part));
    let words = subcommands(part);
    let first = words.first().copied().unwrap_or("");
    let off = match part.name() {
        "setenforce" => first == "0" || first.eq_ignore_ascii_case("permissive"),
        "ufw" => matches!(first, "disable" | "reset"),
        "iptables" | "ip6tables" => {
            part.has('F', "--flush")
                || part
                    .texts()
                    .collect::<Vec<_>>()
                    .windows(3)
                    .any(|texts| texts[0] == "-P" && texts[2] == "ACCEPT")
        }
        "nft" => first == "flush",
        "csrutil" => first == "disable",
        "spctl" => part.has_long("--master-disable"),
        "systemctl" | "service" => {
            words.iter().any(|word| matches!(*word, "stop" | "disable" | "mask"))
                && words.iter().any(|word| {
                    ["firewalld", "ufw", "apparmor", "auditd", "fail2ban", "falcon-sensor"]
                        .iter()
                        .any(|unit| word.starts_with(unit))
                })
        }
        "aa-teardown" | "aa-disable" => true,
        _ => false,
    };
    if off {
        return risk(Weight::SevereLasting, "it switches a protection of the system off");
    }
    let unchecked = part.texts().any(|text| {
        matches!(
            text,
            "--dangerously-skip-permissions"
                | "--dangerously-bypass-approvals-and-sandbox"
                | "--yolo"
                | "--full-auto"
                | "--allow-dangerously-skip-permissions"
                | "--trust-all-tools"
                | "--yes-always"
                | "danger-full-access"
                | "bypassPermissions"
        )
    });
    let is_agent = matches!(
        part.name(),
        "claude"
            | "codex"
            | "gemini"
            | "opencode"
            | "aider"
            | "cursor-agent"
            | "q"
            | "goose"
            | "amp"
            | "qwen"
            | "crush"
            | "copilot"
            | "npx"
    );
    if unchecked && is_agent {
        return risk(Weight::SevereUndoable, "it starts another agent with its checks off");
    }
    if part.name() == "git" && first == "config" && words.len() > 2 {
        let key = words[1].to_ascii_lowercase();
        if key == "http.sslverify" && words[2] == "false" {
            return risk(Weight::ModerateLasting, "it switches TLS checks off");
        }
        if key == "core.hookspath" {
            return risk(Weight::ModerateUndoable, "it changes which hooks git runs");
        }
    }
    let tls = (part.name() == "npm"
        && words.starts_with(&["config", "set"])
        && words.iter().any(|word| word.starts_with("strict-ssl")))
        || part.assignments.iter().any(|(name, value)| {
            matches!(
                (name.as_str(), value.text.as_str()),
                ("NODE_TLS_REJECT_UNAUTHORIZED" | "PYTHONHTTPSVERIFY", "0")
                    | ("GIT_SSL_NO_VERIFY", "1" | "true")
            )
        });
    if tls { risk(Weight::ModerateLasting, "it switches TLS checks off") } else { None }
}
