//! Where a path lies, by its text alone. Links are the executor's to follow.

use crate::context::Workspace;
use crate::reading::UNKNOWN;

/// Where a path lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// `/`, a folder of the system, a home as a whole, or a folder that holds the workspace.
    Foundation,
    /// The workspace itself.
    Root,
    /// Within the workspace.
    Inside,
    /// Within a folder for temporary files.
    Temporary,
    /// Anywhere else.
    Outside,
    /// Not to be told.
    Unknown,
}

/// Folders whose loss takes the system or a person's files along.
const FOUNDATIONS: [&str; 27] = [
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
    "/var",
    "/var/lib",
    "/Users",
];

/// The path as an absolute one, `.` and `..` taken out by text. What begins unknown, or in an unknown folder, stays so.
pub(crate) fn resolve(folder: Option<&str>, path: &str) -> String {
    if path.starts_with(UNKNOWN) {
        return path.to_owned();
    }
    if path.starts_with('/') {
        return normal(path);
    }
    match folder {
        Some(folder) => normal(&format!("{folder}/{path}")),
        None => format!("{UNKNOWN}/{path}"),
    }
}

fn normal(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for piece in path.split('/') {
        match piece {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            piece => kept.push(piece),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Whether `path` is `folder` or lies in it; both absolute and normal.
pub(crate) fn is_within(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Where a normal absolute path lies.
pub(crate) fn of(path: &str, workspace: &Workspace) -> Place {
    let home = workspace.home.as_deref().unwrap_or("/~");
    let root = normal(&workspace.root);
    let tmp = workspace.tmp.as_deref().unwrap_or("/tmp");
    let is_a_home = ["/home/", "/Users/"]
        .iter()
        .any(|homes| path.strip_prefix(homes).is_some_and(|user| !user.is_empty() && !user.contains('/')));
    if path.starts_with(UNKNOWN) || path == format!("/{UNKNOWN}") {
        Place::Unknown
    } else if path == root {
        Place::Root
    } else if is_within(path, &root) {
        Place::Inside
    } else if path == home
        || FOUNDATIONS.contains(&path)
        || is_a_home
        || is_within(&root, path)
        || is_within(home, path)
    {
        Place::Foundation
    } else if ["/tmp", "/var/tmp", "/dev/shm", tmp].iter().any(|folder| is_within(path, folder)) {
        Place::Temporary
    } else {
        Place::Outside
    }
}
