//! Data leaves by a way made for hiding it.
//!
//! | | |
//! |---|---|
//! | drop boxes, `/dev/tcp`, a shell over the network, secrets piped out | severe, lasting, unaskable |
//! | tunnels that let the outside in | severe, undoable |

use super::scene::Scene;
use super::{Kind, Risk, Weight};
use crate::reading::{Part, base_name};

/// Public services that take anything from anyone.
const DROP_BOXES: &[&str] = &[
    "transfer.sh",
    "file.io",
    "0x0.st",
    "ix.io",
    "termbin.com",
    "paste.rs",
    "pastebin.com",
    "webhook.site",
    "requestbin",
    "requestcatcher.com",
    "ngrok.io",
    "ngrok-free.app",
    "burpcollaborator.net",
    "oastify.com",
    "interact.sh",
    "oast.",
    "pipedream.net",
    "bashupload.com",
    "temp.sh",
    "catbox.moe",
    "gofile.io",
    "discord.com/api/webhooks",
    "api.telegram.org/bot",
    "hooks.slack.com",
    "dpaste.",
    "hastebin.com",
    "sprunge.us",
];

pub(super) fn of(part: &Part, scene: &Scene) -> Option<Risk> {
    let severe =
        |reason| Some(Risk::new(Kind::Exfiltration, Weight::SevereLasting, reason, part).unaskable());
    let speaks = |text: &str| text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/");
    if part.redirects.iter().any(|redirect| speaks(&redirect.target.text)) || part.texts().any(speaks) {
        return severe("it opens a network connection in the shell itself");
    }
    let name = part.name();
    if matches!(name, "nc" | "ncat" | "netcat" | "socat" | "nc.openbsd" | "nc.traditional") {
        return netcat(part);
    }
    if sends(name) || part.code.is_some() {
        let texts = part.texts().chain(part.code.iter().map(|code| code.text.as_str()));
        if texts.into_iter().any(|text| DROP_BOXES.iter().any(|place| text.contains(place))) {
            return severe("it sends to a public drop box");
        }
    }
    if sends(name) && scene.sources(part).any(is_secret) {
        return severe("it sends the environment or keys out");
    }
    let tunnels = match name {
        "ngrok" | "cloudflared" | "localtunnel" | "lt" | "bore" | "frpc" | "chisel" => {
            !part.args().is_empty()
        }
        "ssh" => part
            .texts()
            .any(|text| text.starts_with("-R") || text.starts_with("-D") || text.starts_with("-w")),
        "tailscale" => part.texts().any(|text| matches!(text, "funnel" | "serve" | "up")),
        "gh" => part.texts().take(2).eq(["codespace", "ports"]),
        _ => false,
    };
    if tunnels {
        return Some(Risk::new(
            Kind::Exfiltration,
            Weight::SevereUndoable,
            "it opens a tunnel to the outside",
            part,
        ));
    }
    (name == "gh" && part.texts().take(2).eq(["gist", "create"]))
        .then(|| Risk::new(Kind::Exfiltration, Weight::SevereLasting, "it publishes a gist", part))
}

fn sends(program: &str) -> bool {
    matches!(
        program,
        "curl"
            | "wget"
            | "http"
            | "https"
            | "xh"
            | "nc"
            | "ncat"
            | "ssh"
            | "scp"
            | "rsync"
            | "mail"
            | "sendmail"
            | "openssl"
            | "telnet"
            | "xargs"
            | "dig"
            | "nslookup"
    )
}

fn netcat(part: &Part) -> Option<Risk> {
    let runs = part.texts().any(|text| {
        let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        cluster.is_some_and(|rest| rest.contains(['e', 'c']))
            || text.starts_with("--exec")
            || text.starts_with("--sh-exec")
            || text.to_ascii_uppercase().starts_with("EXEC:")
            || text.to_ascii_uppercase().starts_with("SYSTEM:")
    });
    if runs {
        return Some(
            Risk::new(Kind::Exfiltration, Weight::SevereLasting, "it gives a shell to the network", part)
                .unaskable(),
        );
    }
    let local = part.texts().any(|text| matches!(text, "localhost" | "127.0.0.1" | "::1"))
        || part.has('z', "") && !part.has('l', "");
    (!local && !part.args().is_empty()).then(|| {
        Risk::new(Kind::Exfiltration, Weight::SevereLasting, "it opens a raw network connection", part)
            .unaskable()
    })
}

fn is_secret(part: &Part) -> bool {
    let names = part.texts().any(|text| {
        text.contains("/.ssh")
            || text.contains(".aws/")
            || text.contains(".kube/config")
            || text.contains("/.gnupg")
            || base_name(text) == ".env"
            || text == "/etc/passwd"
            || text.ends_with("/environ")
    });
    names
        || (matches!(part.name(), "env" | "printenv") && !part.wraps && part.args().is_empty())
        || (part.name() == "set" && part.args().is_empty())
        || part.name() == "history"
        || part.texts().any(|text| text.ends_with("_history"))
}
