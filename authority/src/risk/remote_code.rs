//! Code from elsewhere, or hidden code, is run.
//!
//! | | |
//! |---|---|
//! | a download given to a shell or an interpreter, an installation from an address | severe, lasting |
//! | decoded text given to one | severe, lasting, unaskable |
//! | text that cannot be seen given to one | severe, lasting, unaskable |

use super::scene::Scene;
use super::{Kind, Risk, Weight};
use crate::reading::{Part, UNKNOWN};

pub(super) fn of(part: &Part, scene: &Scene) -> Option<Risk> {
    let unseen_code = part.code.as_ref().is_some_and(|code| code.text.starts_with(UNKNOWN));
    if part.runs_unseen || unseen_code {
        return unseen(part, scene);
    }
    let from_address = installs_from_an_address(part);
    from_address
        .then(|| Risk::new(Kind::RemoteCode, Weight::SevereLasting, "it installs from an address", part))
}

fn unseen(part: &Part, scene: &Scene) -> Option<Risk> {
    let severe = |reason| Risk::new(Kind::RemoteCode, Weight::SevereLasting, reason, part);
    let sources: Vec<&Part> = scene.sources(part).collect();
    if sources.iter().any(|source| decodes(source)) {
        return Some(severe("it runs text that was decoded first").unaskable());
    }
    if sources.iter().any(|source| downloads(source)) {
        return Some(severe("it runs what it downloads"));
    }
    let local = !sources.is_empty()
        && sources.iter().all(|source| {
            matches!(
                source.name(),
                "cat"
                    | "sed"
                    | "grep"
                    | "head"
                    | "tail"
                    | "tee"
                    | "sort"
                    | "echo"
                    | "printf"
                    | "yes"
                    | "true"
                    | "tr"
                    | "awk"
                    | "jq"
                    | "ls"
                    | "find"
                    | "git"
                    | "cut"
                    | "uniq"
            )
        });
    if local && part.code.is_some() {
        return None;
    }
    let is_file = local && sources.iter().all(|source| source.name() == "cat" && !source.args().is_empty());
    (!is_file).then(|| severe("it runs text that cannot be seen").unaskable())
}

fn downloads(part: &Part) -> bool {
    matches!(
        part.name(),
        "curl" | "wget" | "http" | "https" | "xh" | "aria2c" | "fetch" | "nc" | "ncat" | "ssh" | "scp"
    )
}

fn decodes(part: &Part) -> bool {
    match part.name() {
        "base64" | "base32" | "basenc" => part.has('d', "--decode") || part.has('D', ""),
        "xxd" => part.has('r', "-revert"),
        "openssl" => part.texts().any(|text| matches!(text, "-d" | "-decode" | "base64")),
        "gunzip" | "zcat" | "gzip" | "xzcat" | "bzcat" | "rev" | "uudecode" | "gpg" => true,
        _ => false,
    }
}

fn installs_from_an_address(part: &Part) -> bool {
    let verbs: &[&str] = match part.name() {
        "pip" | "pip3" | "npm" | "pnpm" | "yarn" | "uv" | "gem" | "brew" | "cargo" | "go" | "pipx"
        | "bun" | "apt" | "apt-get" | "dnf" | "yum" | "rpm" | "dpkg" => {
            &["install", "i", "add", "get", "localinstall", "-i", "-U"]
        }
        _ => return false,
    };
    let installs = part.texts().take(3).any(|text| verbs.contains(&text));
    // A registry module of Go, and an index or a requirements file of pip, are not code given by its address.
    let mut is_value = false;
    installs
        && part.texts().any(|text| {
            let skipped = std::mem::replace(
                &mut is_value,
                matches!(
                    text,
                    "-i" | "--index-url"
                        | "--extra-index-url"
                        | "--registry"
                        | "--index"
                        | "--proxy"
                        | "--branch"
                        | "--tag"
                ),
            );
            !skipped
                && !text.starts_with("--index")
                && !text.starts_with("--registry")
                && !text.starts_with("--extra")
                && ["http://", "https://", "git+", "git://", "ssh://"]
                    .iter()
                    .any(|scheme| text.contains(scheme))
        })
}
