//! Data leaves.
//!
//! | | |
//! |---|---|
//! | `git push` to the usual remote, a merge at the forge, an upload, another machine | moderate, lasting |
//! | a push to another remote or address, with another program or configuration; data in an address; inline code that sends | moderate, lasting, unaskable |
//! | where pushes go is changed | severe, lasting |

use super::scene::{Scene, host, is_loopback};
use super::table::{Line, find, subcommands};
use super::{Kind, Risk, Weight};
use crate::context::Workspace;
use crate::reading::{Part, UNKNOWN, Word};

const UPLOAD: &str = "it sends data out";
const FORGE: &str = "it writes to the code forge under the owner's name";
const ELSEWHERE: &str = "it pushes to a place other than the usual remote";
const WHERE: &str = "it changes where pushes go or how git reaches a remote";
const IN_ADDRESS: &str = "it puts data into an address";
const SENDS: &str = "its inline code sends data out";
const MACHINE: &str = "it reaches another machine";

#[rustfmt::skip]
const LINES: &[Line] = &[
    ("gh", &["pr", "create"], Weight::ModerateLasting, FORGE),
    ("gh", &["pr", "merge"], Weight::ModerateLasting, FORGE),
    ("gh", &["pr", "comment"], Weight::ModerateLasting, FORGE),
    ("gh", &["pr", "review"], Weight::ModerateLasting, FORGE),
    ("gh", &["pr", "close"], Weight::ModerateLasting, FORGE),
    ("gh", &["pr", "edit"], Weight::ModerateLasting, FORGE),
    ("gh", &["issue", "create"], Weight::ModerateLasting, FORGE),
    ("gh", &["issue", "comment"], Weight::ModerateLasting, FORGE),
    ("gh", &["issue", "close"], Weight::ModerateLasting, FORGE),
    ("gh", &["issue", "edit"], Weight::ModerateLasting, FORGE),
    ("gh", &["workflow", "run"], Weight::ModerateLasting, FORGE),
    ("glab", &["mr", "create"], Weight::ModerateLasting, FORGE),
    ("glab", &["mr", "merge"], Weight::ModerateLasting, FORGE),
    ("hg", &["push"], Weight::ModerateLasting, UPLOAD),
    ("svn", &["commit"], Weight::ModerateLasting, UPLOAD),
    ("jj", &["git", "push"], Weight::ModerateLasting, UPLOAD),
    ("rclone", &["copy"], Weight::ModerateLasting, UPLOAD),
    ("rclone", &["sync"], Weight::ModerateLasting, UPLOAD),
    ("rclone", &["move"], Weight::ModerateLasting, UPLOAD),
    ("az", &["storage", "blob", "upload"], Weight::ModerateLasting, UPLOAD),
    ("az", &["storage", "blob", "upload-batch"], Weight::ModerateLasting, UPLOAD),
    ("aws", &["s3api", "put-object"], Weight::ModerateLasting, UPLOAD),
    ("kubectl", &["cp"], Weight::ModerateLasting, MACHINE),
];

pub(super) fn of(part: &Part, scene: &Scene) -> Option<Risk> {
    let moderate = |reason| Some(Risk::new(Kind::Egress, Weight::ModerateLasting, reason, part));
    let found = match part.name() {
        "git" => git(part, scene.workspace),
        "curl" | "wget" | "http" | "https" | "xh" | "curlie" => web(part),
        "scp" | "sftp" | "rsync" if names_a_host(part) => moderate(MACHINE),
        "ssh" | "mosh" | "telnet" | "ftp" | "lftp" | "rsh" | "rexec" if !part.operands(&[]).is_empty() => {
            moderate(MACHINE)
        }
        "mail" | "mailx" | "mutt" | "sendmail" | "msmtp" | "swaks" => moderate(UPLOAD),
        "aws" | "gsutil" | "gcloud" | "s3cmd" | "mc" if uploads(part) => moderate(UPLOAD),
        "nslookup" | "dig" | "host" | "ping" | "drill" | "getent" | "tftp"
            if part.args().iter().any(Word::is_unknown) =>
        {
            moderate(IN_ADDRESS).map(Risk::unaskable)
        }
        "gh" if subcommands(part).first() == Some(&"api") && api_writes(part) => moderate(FORGE),
        _ => None,
    };
    found.or_else(|| find(Kind::Egress, LINES, part)).or_else(|| in_code(part))
}

fn git(part: &Part, workspace: &Workspace) -> Option<Risk> {
    let words = subcommands(part);
    let (command, rest) = words.split_first()?;
    let change = || Some(Risk::new(Kind::Egress, Weight::SevereLasting, WHERE, part));
    match *command {
        "remote" if matches!(rest.first(), Some(&("add" | "set-url" | "rename" | "set-head"))) => change(),
        "config" if !reads_config(part, rest) && rest.iter().any(|key| moves_pushes(key)) => change(),
        "push" if part.has_long("--dry-run") && !reconfigured(part) && goes_to_the_usual(rest, workspace) => {
            None
        }
        "push" | "send-pack" => {
            let risk = Risk::new(Kind::Egress, Weight::ModerateLasting, "it pushes to a remote", part);
            let is_plain =
                part.assignments.is_empty() && !reconfigured(part) && goes_to_the_usual(rest, workspace);
            Some(if is_plain { risk } else { Risk { reason: ELSEWHERE, ..risk }.unaskable() })
        }
        "send-email" | "svn" | "request-pull" => {
            Some(Risk::new(Kind::Egress, Weight::ModerateLasting, UPLOAD, part))
        }
        "lfs" | "subtree" | "annex" if rest.first() == Some(&"push") => {
            Some(Risk::new(Kind::Egress, Weight::ModerateLasting, UPLOAD, part))
        }
        _ => None,
    }
}

fn reads_config(part: &Part, rest: &[&str]) -> bool {
    matches!(rest.first(), Some(&("get" | "list")))
        || part.texts().any(|text| {
            matches!(text, "--get" | "--get-all" | "--get-regexp" | "--list" | "-l" | "--get-urlmatch")
        })
        || (rest.len() == 1 && !part.texts().any(|text| text.starts_with("--")))
}

/// Keys of git-config(1) that decide where a push goes or by which program.
fn moves_pushes(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let of_remote = key.starts_with("remote.")
        && [".url", ".pushurl", ".receivepack", ".uploadpack", ".proxy", ".vcs"]
            .iter()
            .any(|end| key.ends_with(end));
    let rewritten =
        key.starts_with("url.") && (key.ends_with(".insteadof") || key.ends_with(".pushinsteadof"));
    of_remote
        || rewritten
        || matches!(
            key.as_str(),
            "core.sshcommand" | "core.gitproxy" | "http.proxy" | "remote.pushdefault" | "credential.helper"
        )
        || (key.starts_with("branch.") && (key.ends_with(".remote") || key.ends_with(".pushremote")))
}

fn reconfigured(part: &Part) -> bool {
    let before: Vec<&str> = part.texts().take_while(|text| *text != "push").collect();
    before.iter().any(|text| {
        matches!(*text, "-c" | "--config-env" | "-C" | "--git-dir")
            || text.starts_with("--exec-path")
            || text.starts_with("--git-dir=")
    }) || part.texts().any(|text| {
        text.starts_with("--receive-pack")
            || text.starts_with("--exec=")
            || text == "--exec"
            || text.starts_with("--repo")
    })
}

fn goes_to_the_usual(rest: &[&str], workspace: &Workspace) -> bool {
    let Some(remote) = rest.first() else { return true };
    let is_name = remote.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let only = workspace.git.as_ref().and_then(|git| match git.remotes.as_slice() {
        [only] => Some(only.name.as_str()),
        _ => None,
    });
    is_name && (*remote == "origin" || only == Some(*remote))
}

/// curl(1), wget(1), HTTPie: options that carry a body, and addresses that carry data.
fn web(part: &Part) -> Option<Risk> {
    let texts: Vec<&str> = part.texts().collect();
    let addresses: Vec<&str> = texts.iter().copied().filter(|text| is_address(text)).collect();
    if !addresses.is_empty() && addresses.iter().all(|address| is_loopback(host_of(address))) {
        return None;
    }
    if addresses.iter().any(|address| carries_data(address)) {
        return Some(Risk::new(Kind::Egress, Weight::ModerateLasting, IN_ADDRESS, part).unaskable());
    }
    let from_a_file =
        part.name() == "curl" && part.value_of(&["-K", "--config"]).is_some_and(|file| !file.is_empty());
    (from_a_file || sends_a_body(part, &texts))
        .then(|| Risk::new(Kind::Egress, Weight::ModerateLasting, UPLOAD, part))
}

fn is_address(text: &str) -> bool {
    !text.starts_with('-')
        && (text.contains("://")
            || text.starts_with("localhost")
            || text.starts_with("127.")
            || text.starts_with(UNKNOWN)
            || text.contains('.') && text.contains('/'))
}

fn host_of(address: &str) -> &str {
    if address.contains("://") { host(address) } else { address.split(['/', ':', '?']).next().unwrap_or("") }
}

fn carries_data(address: &str) -> bool {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    let named = host_of(address);
    query.contains(UNKNOWN) || (named.contains(UNKNOWN) && named.chars().any(|c| c == '.'))
}

fn sends_a_body(part: &Part, texts: &[&str]) -> bool {
    let long = [
        "--data",
        "--form",
        "--upload-file",
        "--json",
        "--post-data",
        "--post-file",
        "--body-data",
        "--body-file",
        "--url-query",
        "--mail-from",
    ];
    let long = texts.iter().any(|text| long.iter().any(|option| text.starts_with(option)));
    let method = part
        .value_of(&["-X", "--request", "--method"])
        .is_some_and(|method| !matches!(method.to_ascii_uppercase().as_str(), "GET" | "HEAD" | "OPTIONS"));
    match part.name() {
        "curl" => long || method || texts.iter().any(|text| short_sends(text)),
        "wget" => long || method,
        _ => {
            texts.iter().any(|text| matches!(*text, "POST" | "PUT" | "PATCH" | "DELETE"))
                || texts.iter().any(|text| {
                    !text.starts_with('-')
                        && !text.contains("://")
                        && (text.contains(":=")
                            || text.contains("=@")
                            || text.split_once('=').is_some_and(|(name, _)| !name.contains(['/', '?'])))
                })
        }
    }
}

/// A cluster of curl's short options that reaches `-d`, `-F` or `-T`; options with a value end it.
fn short_sends(text: &str) -> bool {
    let Some(cluster) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else { return false };
    for option in cluster.chars() {
        if matches!(option, 'd' | 'F' | 'T') {
            return true;
        }
        if "AbcCDeEHhKmoPQrtuUwxXyYz".contains(option) {
            return false;
        }
    }
    false
}

/// `host:path` or `rsync://`, but not a drive or a URL of this machine.
fn names_a_host(part: &Part) -> bool {
    part.name() == "sftp"
        || part.args().iter().any(|word| {
            let text = word.text.as_str();
            let before = text.split(':').next().unwrap_or("");
            text.contains("://")
                || (text.contains(':')
                    && !before.is_empty()
                    && !before.contains('/')
                    && !text.starts_with('-'))
        })
}

fn uploads(part: &Part) -> bool {
    let words = subcommands(part);
    let verb =
        words.iter().position(|word| matches!(*word, "cp" | "sync" | "mv" | "put" | "rsync" | "mirror"));
    let targets = verb.map(|at| words.iter().skip(at + 2)).into_iter().flatten();
    targets.into_iter().any(|target| {
        target.starts_with("s3://")
            || target.starts_with("gs://")
            || (part.name() == "mc" && target.contains('/'))
    })
}

fn api_writes(part: &Part) -> bool {
    let method = part.value_of(&["-X", "--method"]);
    let fields = part.texts().any(|text| {
        ["-f", "-F", "--field", "--raw-field", "--input"].iter().any(|option| text.starts_with(option))
    });
    method.map_or(fields, |method| !matches!(method.to_ascii_uppercase().as_str(), "GET" | "HEAD"))
}

/// Calls that send, in program text.
fn in_code(part: &Part) -> Option<Risk> {
    const CALLS: [&str; 24] = [
        "requests.post",
        "requests.put",
        "requests.patch",
        "requests.request",
        "httpx.post",
        "httpx.put",
        "urlopen(",
        "http.client",
        "HTTPSConnection",
        "smtplib",
        "socket.socket",
        "socket.create_connection",
        "ftplib",
        "paramiko",
        "axios.post",
        "axios.put",
        "net.connect",
        "net.createConnection",
        "Net::HTTP",
        "IO::Socket",
        "TCPSocket",
        "fsockopen",
        "curl_exec",
        "dns.lookup",
    ];
    let code = &part.code.as_ref()?.text;
    let fetches =
        code.contains("fetch(") && ["POST", "PUT", "PATCH", "body:"].iter().any(|sign| code.contains(sign));
    let found = fetches || CALLS.iter().any(|call| code.contains(call));
    let local = ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| code.contains(host))
        && !code.replace("localhost", "").contains("https://");
    (found && !local).then(|| Risk::new(Kind::Egress, Weight::ModerateLasting, SENDS, part).unaskable())
}
