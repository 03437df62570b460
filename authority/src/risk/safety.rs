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

/// Options of coding agents that skip their questions or their sandbox.
const UNCHECKED: &[&str] = &[
    "--dangerously-skip-permissions",
    "--allow-dangerously-skip-permissions",
    "--dangerously-bypass-approvals-and-sandbox",
    "--yolo",
    "--full-auto",
    "--trust-all-tools",
    "--yes-always",
    "danger-full-access",
    "bypassPermissions",
];

const AGENTS: &[&str] = &[
    "claude",
    "codex",
    "gemini",
    "opencode",
    "aider",
    "cursor-agent",
    "q",
    "goose",
    "amp",
    "qwen",
    "crush",
    "copilot",
    "npx",
];

pub(super) fn of(part: &Part, _scene: &Scene) -> Option<Risk> {
    let risk = |weight, reason| Some(Risk::new(Kind::SafetyOff, weight, reason, part));
    let words = subcommands(part);
    if protection_off(part, &words) {
        return risk(Weight::SevereLasting, "it switches a protection of the system off");
    }
    if AGENTS.contains(&part.name()) && part.texts().any(|text| UNCHECKED.contains(&text)) {
        return risk(Weight::SevereUndoable, "it starts another agent with its checks off");
    }
    if tls_off(part, &words) {
        return risk(Weight::ModerateLasting, "it switches TLS checks off");
    }
    match (part.name(), words.as_slice()) {
        ("git", ["config", key, _, ..]) if key.eq_ignore_ascii_case("core.hookspath") => {
            risk(Weight::ModerateUndoable, "it changes which hooks git runs")
        }
        _ => None,
    }
}

fn protection_off(part: &Part, words: &[&str]) -> bool {
    const UNITS: [&str; 6] = ["firewalld", "ufw", "apparmor", "auditd", "fail2ban", "falcon-sensor"];
    let first = words.first().copied().unwrap_or("");
    match part.name() {
        "setenforce" => first == "0" || first.eq_ignore_ascii_case("permissive"),
        "ufw" => matches!(first, "disable" | "reset"),
        "iptables" | "ip6tables" => {
            let texts: Vec<&str> = part.texts().collect();
            part.has('F', "--flush") || texts.windows(3).any(|texts| texts[0] == "-P" && texts[2] == "ACCEPT")
        }
        "nft" => first == "flush",
        "csrutil" => first == "disable",
        "spctl" => part.has_long("--master-disable"),
        "systemctl" | "service" => {
            words.iter().any(|word| matches!(*word, "stop" | "disable" | "mask"))
                && words.iter().any(|word| UNITS.iter().any(|unit| word.starts_with(unit)))
        }
        "aa-teardown" | "aa-disable" => true,
        _ => false,
    }
}

fn tls_off(part: &Part, words: &[&str]) -> bool {
    let configured = match (part.name(), words) {
        ("git", ["config", key, "false", ..]) => key.eq_ignore_ascii_case("http.sslverify"),
        ("npm", ["config", "set", rest @ ..]) => rest.iter().any(|word| word.starts_with("strict-ssl")),
        _ => false,
    };
    configured
        || part.assignments.iter().any(|(name, value)| {
            matches!(
                (name.as_str(), value.text.as_str()),
                ("NODE_TLS_REJECT_UNAUTHORIZED" | "PYTHONHTTPSVERIFY", "0")
                    | ("GIT_SSL_NO_VERIFY", "1" | "true")
            )
        })
}
