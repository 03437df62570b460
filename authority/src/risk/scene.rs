//! What the kinds ask of a part and its surroundings.

use super::table::subcommands;
use crate::context::Workspace;
use crate::place::{self, Place};
use crate::reading::{Part, Reading, Word};

/// A command and where it runs.
pub(super) struct Scene<'a> {
    pub(super) reading: &'a Reading,
    pub(super) workspace: &'a Workspace,
}

impl Scene<'_> {
    /// Where a path lies.
    pub(super) fn place(&self, path: &str) -> Place {
        place::of(path, self.workspace)
    }

    /// The parts whose output a part reads.
    pub(super) fn sources<'s>(&'s self, part: &'s Part) -> impl Iterator<Item = &'s Part> {
        part.fed_by.iter().filter_map(|index| self.reading.parts.get(*index))
    }
}

/// Paths that the part writes, changes or replaces, absolute.
pub(super) fn written(part: &Part) -> Vec<String> {
    let targets =
        part.redirects.iter().filter(|redirect| redirect.writes).map(|redirect| part.path(&redirect.target));
    let mut written: Vec<String> = targets.filter(|path| !is_sink(path)).collect();
    let operands = part.operands(&["-m", "-o", "-g", "--mode", "--owner", "--group", "-e", "-f", "-s", "-n"]);
    let words: Vec<&Word> = match part.name() {
        "tee" | "touch" | "truncate" | "unlink" | "shred" => operands,
        "chmod" | "chown" | "chgrp" => operands.into_iter().skip(1).collect(),
        "cp" | "mv" | "install" | "ln" | "rsync" => match part.value_of(&["-t", "--target-directory="]) {
            Some(target) => {
                written.push(place::resolve(part.folder.as_deref(), target));
                Vec::new()
            }
            None => operands.into_iter().last().into_iter().collect(),
        },
        "sed" | "perl"
            if part
                .texts()
                .any(|text| text.starts_with("-i") || text.starts_with("--in-place") || text == "-pi") =>
        {
            operands
        }
        _ => Vec::new(),
    };
    written.extend(words.into_iter().map(|word| part.path(word)));
    let named: &[&str] = match part.name() {
        "dd" => &["of="],
        "curl" | "sort" => &["-o", "--output"],
        "wget" => &["-O", "--output-document"],
        "tar" | "bsdtar" => &["-C", "--directory"],
        "unzip" => &["-d"],
        "git" if subcommands(part).first() == Some(&"diff") => &["--output"],
        _ => &[],
    };
    written.extend(part.value_of(named).map(|path| place::resolve(part.folder.as_deref(), path)));
    written
}

fn is_sink(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty" | "/dev/zero")
        || path.starts_with("/dev/fd/")
}

/// The host of a URL, without user and port; empty if the text is not one.
pub(super) fn host(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else { return "" };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let address = authority.rsplit('@').next().unwrap_or("");
    match address.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => address.split(':').next().unwrap_or(""),
    }
}

/// Whether a host is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host == "::1"
        || host == "0.0.0.0"
        || host.starts_with("127.")
}
