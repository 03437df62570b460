//! Keys and tokens are read.
//!
//! | | |
//! |---|---|
//! | key files, token printing commands, keychains, metadata addresses, archives of key folders | severe, lasting, unaskable |
//! | the environment as a whole, a project's `.env` | moderate, lasting |

use super::scene::Scene;
use super::table::{Line, find};
use super::{Kind, Risk, Weight};
use crate::protected::matches_glob;
use crate::reading::{Part, base_name};

/// Pieces of paths that hold keys, as they stand in the documentation of the programs that keep them.
const KEY_PATHS: &[&str] = &[
    "/.ssh/id_",
    ".aws/credentials",
    ".aws/sso/",
    ".config/gcloud",
    ".azure/accessTokens",
    ".azure/msal_token",
    ".kube/config",
    ".docker/config.json",
    "/.netrc",
    "/.git-credentials",
    "/.npmrc",
    "/.pypirc",
    ".cargo/credentials",
    "/.gnupg",
    ".config/gh/hosts",
    ".password-store",
    "/.vault-token",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/ssh/ssh_host_",
    "Library/Keychains",
    ".mozilla/firefox",
    "google-chrome/Default",
    ".terraform.d/credentials",
    "/.pgpass",
    "/.my.cnf",
    "/var/run/secrets/",
    "/run/secrets/",
    ".claude/.credentials",
    ".codex/auth.json",
    "/.config/op/",
    ".local/share/keyrings",
];

/// Folders that hold nothing but keys, when taken as a whole.
const KEY_FOLDERS: &[&str] =
    &["/.ssh", "/.aws", "/.gnupg", "/.kube", "/.azure", "/.docker", "/.password-store"];

/// Addresses where clouds hand out credentials to whoever asks from inside.
const METADATA: &[&str] = &[
    "169.254.169.254",
    "metadata.google.internal",
    "fd00:ec2::254",
    "100.100.100.200",
    "169.254.170.2",
    "metadata.azure.internal",
    "//metadata/",
    "//2852039166",
    "//0xa9fea9fe",
    "//0251.0376.",
];

#[rustfmt::skip]
const PRINTS: &[Line] = &[
    ("gh", &["auth", "token"], Weight::SevereLasting, TOKEN),
    ("gcloud", &["auth", "print-access-token"], Weight::SevereLasting, TOKEN),
    ("gcloud", &["auth", "print-identity-token"], Weight::SevereLasting, TOKEN),
    ("gcloud", &["auth", "application-default", "print-access-token"], Weight::SevereLasting, TOKEN),
    ("gcloud", &["secrets", "versions", "access"], Weight::SevereLasting, TOKEN),
    ("aws", &["configure", "get"], Weight::SevereLasting, TOKEN),
    ("aws", &["configure", "export-credentials"], Weight::SevereLasting, TOKEN),
    ("aws", &["sts", "get-session-token"], Weight::SevereLasting, TOKEN),
    ("aws", &["sts", "assume-role"], Weight::SevereLasting, TOKEN),
    ("aws", &["ecr", "get-login-password"], Weight::SevereLasting, TOKEN),
    ("aws", &["secretsmanager", "get-secret-value"], Weight::SevereLasting, TOKEN),
    ("aws", &["ssm", "get-parameter"], Weight::SevereLasting, TOKEN),
    ("az", &["account", "get-access-token"], Weight::SevereLasting, TOKEN),
    ("az", &["keyvault", "secret", "show"], Weight::SevereLasting, TOKEN),
    ("git", &["credential", "fill"], Weight::SevereLasting, TOKEN),
    ("npm", &["token"], Weight::SevereLasting, TOKEN),
    ("fly", &["auth", "token"], Weight::SevereLasting, TOKEN),
    ("keyring", &["get"], Weight::SevereLasting, KEYCHAIN),
    ("heroku", &["config"], Weight::SevereLasting, TOKEN),
    ("heroku", &["auth:token"], Weight::SevereLasting, TOKEN),
    ("kubectl", &["create", "token"], Weight::SevereLasting, TOKEN),
    ("vault", &["read"], Weight::SevereLasting, TOKEN),
    ("vault", &["kv", "get"], Weight::SevereLasting, TOKEN),
    ("vault", &["print", "token"], Weight::SevereLasting, TOKEN),
    ("op", &["read"], Weight::SevereLasting, KEYCHAIN),
    ("op", &["item", "get"], Weight::SevereLasting, KEYCHAIN),
    ("pass", &["show"], Weight::SevereLasting, KEYCHAIN),
    ("bw", &["get"], Weight::SevereLasting, KEYCHAIN),
    ("security", &["find-generic-password"], Weight::SevereLasting, KEYCHAIN),
    ("security", &["find-internet-password"], Weight::SevereLasting, KEYCHAIN),
    ("security", &["dump-keychain"], Weight::SevereLasting, KEYCHAIN),
    ("secret-tool", &["lookup"], Weight::SevereLasting, KEYCHAIN),
    ("secret-tool", &["search"], Weight::SevereLasting, KEYCHAIN),
];

const TOKEN: &str = "it prints a token or a secret";
const KEYCHAIN: &str = "it reads a keychain or a password store";
const KEYS: &str = "it reads a file that holds keys";
const CLOUD: &str = "it asks the cloud's metadata address, which gives out credentials";

pub(super) fn of(part: &Part, _scene: &Scene) -> Option<Risk> {
    let severe = |reason| Risk::new(Kind::Credentials, Weight::SevereLasting, reason, part).unaskable();
    if names_keys(part) {
        return Some(severe(KEYS));
    }
    if part
        .texts()
        .chain(part.code.iter().map(|code| code.text.as_str()))
        .any(|text| METADATA.iter().any(|address| text.contains(address)))
        && !only_names(part.name())
    {
        return Some(severe(CLOUD));
    }
    if let Some(risk) = find(Kind::Credentials, PRINTS, part) {
        return Some(risk.unaskable());
    }
    if is_secret_of_a_cluster(part) || shows_its_secret(part) {
        return Some(severe(TOKEN));
    }
    environment(part).map(|reason| Risk::new(Kind::Credentials, Weight::ModerateLasting, reason, part))
}

/// Programs whose arguments are text, or that use a key without showing it.
fn only_names(program: &str) -> bool {
    matches!(
        program,
        "ls" | "stat"
            | "test"
            | "["
            | "echo"
            | "printf"
            | "mkdir"
            | "chmod"
            | "chown"
            | "file"
            | "ssh-add"
            | "ssh-keygen"
            | "touch"
            | "readlink"
            | "realpath"
            | "basename"
            | "dirname"
            | "which"
            | "du"
            | "rm"
            | "find"
            | "export"
            | "cd"
            | "true"
            | "alias"
    )
}

fn names_keys(part: &Part) -> bool {
    if part.wraps || only_names(part.name()) || is_commit_message(part) {
        return part
            .redirects
            .iter()
            .any(|redirect| !redirect.writes && is_key_path(&part.path(&redirect.target)));
    }
    // The pattern of a search is not a path, and the key of an `ssh -i` is used, not shown.
    let skips = usize::from(matches!(part.name(), "grep" | "rg" | "egrep" | "fgrep" | "ag" | "sed" | "awk"));
    let uses_key = matches!(part.name(), "ssh" | "scp" | "sftp" | "rsync" | "git");
    let identity = if uses_key { part.value_of(&["-i"]) } else { None };
    let mut skipped = 0;
    let named = part.args().iter().any(|word| {
        if skipped < skips && !word.text.starts_with('-') {
            skipped += 1;
            return false;
        }
        identity != Some(word.text.as_str()) && (is_key_path(&word.text) || is_key_path(&part.path(word)))
    });
    let read =
        part.redirects.iter().any(|redirect| !redirect.writes && is_key_path(&part.path(&redirect.target)));
    let coded = part.code.as_ref().is_some_and(|code| KEY_PATHS.iter().any(|key| code.text.contains(key)));
    named || read || coded || takes_a_key_folder(part)
}

fn is_commit_message(part: &Part) -> bool {
    part.name() == "git" && part.texts().any(|text| matches!(text, "commit" | "log" | "grep" | "tag"))
}

fn is_key_path(path: &str) -> bool {
    let slashed = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let public = slashed.strip_suffix(".pub").is_some();
    if public || slashed.starts_with("/etc/sudoers.d/") && slashed.ends_with('/') {
        return false;
    }
    let name = base_name(&slashed);
    let glob_in_ssh = slashed.contains("/.ssh/") && name.contains(['*', '?', '[']);
    let private = [".pem", ".p12", ".pfx", ".key", ".keystore", ".jks"].iter().any(|end| name.ends_with(end))
        && !slashed.contains("/test")
        && !slashed.contains("fixture")
        && !slashed.contains("example")
        && !name.contains("cert")
        && !name.contains("pub");
    KEY_PATHS.iter().any(|key| slashed.contains(key))
        || glob_in_ssh
        || (private && slashed.len() > name.len() + 1)
        || (name.starts_with("id_")
            && ["id_rsa", "id_ed25519", "id_ecdsa", "id_dsa"].iter().any(|key| matches_glob(name, key)))
}

fn takes_a_key_folder(part: &Part) -> bool {
    let takes = matches!(
        part.name(),
        "tar" | "zip" | "7z" | "cp" | "rsync" | "scp" | "grep" | "rg" | "mv" | "cpio" | "base64" | "ln"
    );
    takes
        && part.args().iter().any(|word| {
            let path = part.path(word);
            KEY_FOLDERS.iter().any(|folder| path.trim_end_matches(['/', '*']).ends_with(folder))
        })
}

fn is_secret_of_a_cluster(part: &Part) -> bool {
    if !matches!(part.name(), "kubectl" | "oc") {
        return false;
    }
    let words = super::table::subcommands(part);
    let shows = part
        .texts()
        .any(|text| text.starts_with("-o") || text.starts_with("--output") || text.starts_with("--template"));
    match words.as_slice() {
        ["get", kind, ..] => {
            shows
                && kind.split(',').any(|kind| {
                    kind.split('/').next().is_some_and(|kind| matches!(kind, "secret" | "secrets"))
                })
        }
        ["config", "view", ..] => part.has_long("--raw"),
        _ => false,
    }
}

/// Options that make a program print what it otherwise keeps to itself: gpg(1), ssh-keygen(1), gh, npm.
fn shows_its_secret(part: &Part) -> bool {
    match part.name() {
        "gpg" | "gpg2" => part.texts().any(|text| text.starts_with("--export-secret")),
        "gh" => {
            super::table::subcommands(part).starts_with(&["auth", "status"]) && part.has('t', "--show-token")
        }
        "npm" | "pnpm" | "yarn" => part.texts().any(|text| text.contains("_authToken")),
        _ => false,
    }
}

/// Names of variables that hold a secret by their look.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL"]
        .iter()
        .any(|sign| name.contains(sign))
}

fn environment(part: &Part) -> Option<&'static str> {
    const WHOLE: &str = "it prints the whole environment, where tokens are kept";
    let bare = part.operands(&["-u", "-C"]).is_empty();
    let whole = match part.name() {
        "env" | "printenv" => !part.wraps && bare && !part.has_long("--version") && !part.has_long("--help"),
        "set" => part.args().is_empty(),
        "jq" => part.texts().any(|text| matches!(text, "env" | "$ENV")),
        // The options without a dash: `ps eww`, `ps auxe` (ps(1)).
        "ps" => part.texts().next().is_some_and(|first| {
            first.contains('e') && first.chars().all(|c| "aAceEfglmnrSTuvwxX".contains(c))
        }),
        "export" | "declare" | "typeset" => {
            part.texts().all(|text| matches!(text, "-p" | "-x" | "-px" | "-xp"))
                && part.assignments.is_empty()
        }
        _ => false,
    };
    let reads = |text: &str| text.starts_with("/proc/") && text.ends_with("/environ");
    let reads_environ =
        part.texts().any(reads) || part.redirects.iter().any(|redirect| reads(&redirect.target.text));
    let coded =
        ["os.environ)", "process.env)", "dict(os.environ", "ENV.to_h", "%ENV", "getenv()", "ENVIRON)"];
    let in_code = part.code.as_ref().is_some_and(|code| coded.iter().any(|sign| code.text.contains(sign)));
    let is_all = part.code.as_ref().is_some_and(|code| {
        matches!(code.text.trim(), "process.env" | "p ENV" | "puts ENV" | "pp ENV" | "print ENV")
    });
    if whole || reads_environ || in_code || is_all {
        return Some(WHOLE);
    }
    if part.name() == "printenv" && part.texts().any(is_secret_name) {
        return Some("it prints a variable that holds a secret");
    }
    let shows = matches!(
        part.name(),
        "cat"
            | "less"
            | "more"
            | "head"
            | "tail"
            | "bat"
            | "grep"
            | "rg"
            | "cp"
            | "base64"
            | "xxd"
            | "strings"
            | "nl"
            | "tac"
    );
    let is_env = |text: &str| {
        let name = base_name(text);
        name == ".env"
            || (name.starts_with(".env.")
                && !["example", "sample", "template", "dist", "test"].iter().any(|end| name.ends_with(end)))
    };
    let read = part.operands(&[]).len().saturating_sub(usize::from(part.name() == "cp"));
    (shows && part.operands(&[]).iter().take(read).any(|word| is_env(&word.text)))
        .then_some("it shows a project's file of secrets")
}
