//! Files are lost.
//!
//! | | |
//! |---|---|
//! | the system, a home, the whole workspace, an unknown folder's whole content | severe, lasting, critical |
//! | a disk or file system made anew | severe, lasting, critical |
//! | a folder outside the workspace, or one that cannot be told | severe, lasting |
//! | a file outside the workspace, volumes and images of containers | moderate, lasting |
//! | anything within the workspace or a folder for temporary files | none |

use super::scene::Scene;
use super::table::{Line, find as find_line};
use super::{Kind, Risk, Weight};
use crate::place::Place;
use crate::reading::{Part, UNKNOWN, Word, base_name};

const EVERYTHING: &str = "it deletes everything in a place that must stay";
const DISK: &str = "it overwrites a disk or a file system";
const OUTSIDE: &str = "it deletes a folder outside the workspace";
const UNTOLD: &str = "it deletes a folder that is only known when it runs";
const FILE: &str = "it deletes a file outside the workspace";
const RIGHTS: &str = "it changes the rights of everything in a place that must stay";

/// Folders that builds make anew.
const MADE_ANEW: [&str; 22] = [
    "node_modules",
    "target",
    "dist",
    "build",
    "out",
    "coverage",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".cache",
    ".next",
    ".nuxt",
    ".turbo",
    ".parcel-cache",
    ".gradle",
    ".tox",
    ".venv",
    "venv",
    "bin",
    "obj",
    "vendor",
];

#[rustfmt::skip]
const CONTAINERS: &[Line] = &[
    ("docker", &["volume", "rm"], Weight::ModerateLasting, "it deletes container volumes"),
    ("docker", &["volume", "prune"], Weight::ModerateLasting, "it deletes container volumes"),
    ("podman", &["volume", "rm"], Weight::ModerateLasting, "it deletes container volumes"),
    ("podman", &["volume", "prune"], Weight::ModerateLasting, "it deletes container volumes"),
];

pub(super) fn of(part: &Part, scene: &Scene) -> Option<Risk> {
    let name = part.name();
    let made = match name {
        "rm" | "rmdir" | "unlink" | "shred" | "srm" | "trash" => remove(part, scene),
        "truncate" => {
            worst(part.operands(&["-s", "-r"]).into_iter().filter_map(|word| one(word, false, part, scene)))
        }
        "find" => find(part, scene),
        "dd" => part.value_of(&["of="]).filter(|target| is_device(target)).map(|_| disk(part)),
        "wipefs" | "blkdiscard" | "mkswap" | "sgdisk" | "sfdisk" | "fdisk" | "parted" | "cryptsetup"
            if !part.args().is_empty() =>
        {
            Some(disk(part))
        }
        _ if name == "mkfs" || name.starts_with("mkfs.") => Some(disk(part)),
        "chmod" | "chown" | "chgrp" if part.has('R', "--recursive") => rights(part, scene),
        "mv" => moved(part, scene),
        "rsync" if part.texts().any(|text| text.starts_with("--del")) => mirrored(part, scene),
        "docker" | "podman" | "docker-compose" => containers(part),
        _ => part.code.as_ref().and_then(|code| in_code(&code.text, part, scene)),
    };
    let overwritten =
        part.redirects.iter().any(|redirect| redirect.writes && is_device(&redirect.target.text));
    made.or_else(|| overwritten.then(|| disk(part)))
}

fn disk(part: &Part) -> Risk {
    Risk::new(Kind::Wipe, Weight::SevereLasting, DISK, part).critical()
}

fn is_device(path: &str) -> bool {
    [
        "/dev/sd",
        "/dev/nvme",
        "/dev/vd",
        "/dev/hd",
        "/dev/xvd",
        "/dev/mmcblk",
        "/dev/disk",
        "/dev/mapper",
        "/dev/loop",
        "/dev/rdisk",
        "/dev/mem",
        "/dev/md",
        "/dev/dm-",
    ]
    .iter()
    .any(|device| path.starts_with(device))
}

fn remove(part: &Part, scene: &Scene) -> Option<Risk> {
    let recursive = part.has('r', "--recursive") || part.has('R', "") || part.has_long("--recurs");
    let targets = part.operands(&[]);
    worst(targets.into_iter().filter_map(|word| one(word, recursive, part, scene)))
}

fn worst(risks: impl Iterator<Item = Risk>) -> Option<Risk> {
    risks.max_by_key(|risk| (risk.critical, risk.base()))
}

/// One target of a deletion.
fn one(word: &Word, recursive: bool, part: &Part, scene: &Scene) -> Option<Risk> {
    let path = part.path(word);
    let last = base_name(path.trim_end_matches('/'));
    let takes_all =
        word.glob && !last.is_empty() && last.chars().all(|c| matches!(c, '*' | '.' | '?' | '[' | ']' | '!'));
    let folder = if takes_all {
        path.strip_suffix(last).map_or("/", |rest| rest.trim_end_matches('/'))
    } else {
        path.as_str()
    };
    let folder = if folder.is_empty() { "/" } else { folder };
    let place = if part.folder.is_none() && takes_all && !word.text.starts_with('/') {
        Place::Unknown
    } else {
        scene.place(folder)
    };
    let risk = |weight, reason| Some(Risk::new(Kind::Wipe, weight, reason, part));
    let everything = || Some(Risk::new(Kind::Wipe, Weight::SevereLasting, EVERYTHING, part).critical());
    match place {
        Place::Foundation | Place::Root if recursive => everything(),
        Place::Foundation | Place::Root if takes_all => risk(Weight::ModerateLasting, FILE),
        Place::Foundation | Place::Root => risk(Weight::SevereLasting, OUTSIDE),
        Place::Unknown if recursive && (takes_all || ends_open(&word.text)) => everything(),
        Place::Unknown if recursive && !MADE_ANEW.contains(&last) => risk(Weight::SevereLasting, UNTOLD),
        Place::Outside if recursive => risk(Weight::SevereLasting, OUTSIDE),
        Place::Outside => risk(Weight::ModerateLasting, FILE),
        Place::Unknown | Place::Inside | Place::Temporary => None,
    }
}

/// `$DIR/`: the root, should the variable be empty.
fn ends_open(text: &str) -> bool {
    text.strip_prefix(UNKNOWN)
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| matches!(c, '/' | '.')))
}

fn find(part: &Part, scene: &Scene) -> Option<Risk> {
    if !part.texts().any(|text| text == "-delete") {
        return None;
    }
    let narrowed = crate::reading::is_narrowed(part);
    let starts: Vec<&Word> =
        part.args().iter().take_while(|word| !word.text.starts_with(['-', '(', '!'])).collect();
    let here = Word::of(".");
    let starts = if starts.is_empty() { vec![&here] } else { starts };
    worst(starts.into_iter().filter_map(|start| match scene.place(&part.path(start)) {
        Place::Root if narrowed => None,
        Place::Foundation | Place::Root if !narrowed => {
            Some(Risk::new(Kind::Wipe, Weight::SevereLasting, EVERYTHING, part).critical())
        }
        Place::Foundation | Place::Root | Place::Outside => {
            Some(Risk::new(Kind::Wipe, Weight::SevereLasting, OUTSIDE, part))
        }
        Place::Unknown => Some(Risk::new(Kind::Wipe, Weight::SevereLasting, UNTOLD, part)),
        Place::Inside | Place::Temporary => None,
    }))
}

fn rights(part: &Part, scene: &Scene) -> Option<Risk> {
    let targets = part.operands(&[]).into_iter().skip(1);
    worst(targets.filter_map(|word| match scene.place(&part.path(word)) {
        Place::Foundation => Some(Risk::new(Kind::Wipe, Weight::SevereLasting, RIGHTS, part).critical()),
        Place::Outside | Place::Unknown => Some(Risk::new(Kind::Wipe, Weight::SevereUndoable, RIGHTS, part)),
        Place::Root | Place::Inside | Place::Temporary => None,
    }))
}

fn moved(part: &Part, scene: &Scene) -> Option<Risk> {
    let operands = part.operands(&["-t", "-S"]);
    let (target, sources) = operands.split_last()?;
    let is_lost = target.text == "/dev/null";
    worst(sources.iter().filter_map(|word| match scene.place(&part.path(word)) {
        Place::Foundation | Place::Root => {
            Some(Risk::new(Kind::Wipe, Weight::SevereLasting, EVERYTHING, part).critical())
        }
        Place::Outside if is_lost => Some(Risk::new(Kind::Wipe, Weight::SevereLasting, OUTSIDE, part)),
        Place::Outside | Place::Unknown | Place::Inside | Place::Temporary => None,
    }))
}

fn mirrored(part: &Part, scene: &Scene) -> Option<Risk> {
    let target = part.operands(&["-e", "--rsh", "--exclude", "--include"]).into_iter().last()?;
    match scene.place(&part.path(target)) {
        Place::Foundation | Place::Root => {
            Some(Risk::new(Kind::Wipe, Weight::SevereLasting, EVERYTHING, part).critical())
        }
        Place::Outside | Place::Unknown => Some(Risk::new(Kind::Wipe, Weight::SevereLasting, OUTSIDE, part)),
        Place::Inside | Place::Temporary => None,
    }
}

fn containers(part: &Part) -> Option<Risk> {
    let words = super::table::subcommands(part);
    let down = words.contains(&"down") && part.has('v', "--volumes");
    let prune =
        words.starts_with(&["system", "prune"]) && (part.has('a', "--all") || part.has_long("--volumes"));
    if down && (part.name() == "docker-compose" || words.first() == Some(&"compose")) || prune {
        return Some(Risk::new(
            Kind::Wipe,
            Weight::ModerateLasting,
            "it deletes container volumes or every unused image",
            part,
        ));
    }
    find_line(Kind::Wipe, CONTAINERS, part)
}

/// Deletions in program text, by their literal paths.
fn in_code(code: &str, part: &Part, scene: &Scene) -> Option<Risk> {
    let calls = [
        "rmtree(",
        "rmSync(",
        "fs.rm(",
        "rimraf(",
        "rm_rf(",
        "remove_entry_secure(",
        "rmdirSync(",
        "removeSync(",
    ];
    worst(calls.iter().flat_map(|call| code.match_indices(call)).filter_map(|(at, call)| {
        let rest = code[at + call.len()..].trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let literal = quote.and_then(|quote| rest[1..].split(quote).next());
        let word = Word::of(literal.map_or_else(|| UNKNOWN.to_string(), str::to_owned));
        one(&word, true, part, scene)
    }))
}
