//! Work kept by git is lost.
//!
//! | | |
//! |---|---|
//! | `.git` deleted; a shared branch rewritten or deleted at the remote; `push --mirror` | severe, lasting |
//! | a feature branch rewritten or deleted; a stash dropped; unreachable work pruned | moderate, lasting |
//! | a dirty tree thrown away; the history rewritten here | severe, undoable |
//! | one file put back | moderate, undoable |

use super::scene::Scene;
use super::table::subcommands;
use super::{Kind, Risk, Weight};
use crate::context::Workspace;
use crate::place;
use crate::protected::matches_glob;
use crate::reading::{Part, UNKNOWN, base_name};

const LOST: &str = "it deletes the repository with its whole history";

pub(super) fn of(part: &Part, scene: &Scene) -> Option<Risk> {
    match part.name() {
        "rm" | "mv" | "shred" | "unlink" => repository_lost(part),
        "find" => found_and_lost(part),
        "git" => git(part, scene.workspace),
        "git-filter-repo" | "bfg" => {
            Some(risk(part, Weight::SevereUndoable, "it rewrites the history of the repository"))
        }
        _ => None,
    }
}

fn risk(part: &Part, weight: Weight, reason: &'static str) -> Risk {
    Risk::new(Kind::History, weight, reason, part)
}

fn repository_lost(part: &Part) -> Option<Risk> {
    let mut operands = part.operands(&["-t"]);
    if part.name() == "mv" {
        operands.pop();
    }
    let lost = operands.into_iter().any(|word| {
        let path = part.path(word);
        let last = base_name(path.trim_end_matches('/')).trim_end_matches(['*', '?']);
        let parent = path.rsplit('/').nth(1).unwrap_or("");
        last == ".git"
            || (parent == ".git" && matches!(last, "" | "objects" | "refs"))
            || (word.glob && is_pattern_of_git(&path))
    });
    lost.then(|| risk(part, Weight::SevereLasting, LOST))
}

/// Whether the last piece of a path is a pattern that means `.git`. A pattern means a leading dot only where it has one.
fn is_pattern_of_git(path: &str) -> bool {
    let last = base_name(path.trim_end_matches('/'));
    last.starts_with('.') && matches_glob(last, ".git")
}

/// `find .git -delete`, `find . -name .git -delete`; with `-exec` the command that is run is read.
fn found_and_lost(part: &Part) -> Option<Risk> {
    if !part.texts().any(|text| text == "-delete") {
        return None;
    }
    let starts = part.args().iter().take_while(|word| !word.text.starts_with(['-', '(', '!']));
    let within = |path: &str| path.split('/').any(|piece| piece == ".git");
    let lost = starts.into_iter().any(|word| within(&part.path(word)))
        || part.value_of(&["-name", "-path", "-wholename"]).is_some_and(within);
    lost.then(|| risk(part, Weight::SevereLasting, LOST))
}

fn git(part: &Part, workspace: &Workspace) -> Option<Risk> {
    let words = subcommands(part);
    let (command, rest) = words.split_first()?;
    let is_elsewhere = part.assignments.iter().any(|(name, _)| name.starts_with("GIT_"))
        || part
            .texts()
            .any(|text| text == "-C" || text.starts_with("--git-dir") || text.starts_with("--work-tree"))
        || part.folder.as_deref().is_none_or(|folder| !place::is_within(folder, &workspace.root));
    let dirty = is_elsewhere || workspace.git.as_ref().and_then(|git| git.dirty).unwrap_or(true);
    let thrown =
        || dirty.then(|| risk(part, Weight::SevereUndoable, "it throws away work that is not committed"));
    let put_back =
        || dirty.then(|| risk(part, Weight::ModerateUndoable, "it puts files back as they were committed"));
    let everything = |paths: &[&str]| paths.iter().any(|path| matches!(*path, "." | "./" | ":/" | "*" | "/"));
    match *command {
        "push" => push(part, rest, workspace),
        "reset" if part.has_long("--hard") || part.has_long("--merge") => thrown(),
        "clean" if part.has('f', "--force") && !part.has('n', "--dry-run") => thrown(),
        "checkout" | "switch" if part.has('f', "--force") || part.has_long("--discard-changes") => thrown(),
        "checkout" if everything(rest) => thrown(),
        "checkout" if part.texts().any(|text| text == "--") => put_back(),
        "rm" if part.has('f', "--force") && !part.has_long("--cached") && everything(rest) => thrown(),
        "restore" if part.has('S', "--staged") && !part.has('W', "--worktree") => None,
        "restore" if everything(rest) => thrown(),
        "restore" => put_back(),
        "stash" if matches!(rest.first(), Some(&("drop" | "clear"))) => {
            Some(risk(part, Weight::ModerateLasting, "it drops stashed work"))
        }
        "filter-branch" | "filter-repo" | "replace" => {
            Some(risk(part, Weight::SevereUndoable, "it rewrites the history of the repository"))
        }
        "reflog" if matches!(rest.first(), Some(&("expire" | "delete"))) => {
            Some(risk(part, Weight::ModerateLasting, "it makes lost commits unreachable"))
        }
        "gc" if part.texts().any(|text| text.starts_with("--prune") && text != "--prune=2.weeks.ago") => {
            Some(risk(part, Weight::ModerateLasting, "it prunes unreachable commits"))
        }
        "prune" => Some(risk(part, Weight::ModerateLasting, "it prunes unreachable commits")),
        "update-ref" if part.has('d', "") => {
            Some(risk(part, Weight::ModerateLasting, "it deletes a reference"))
        }
        "branch" if part.has('D', "") || (part.has('d', "--delete") && part.has('f', "--force")) => {
            Some(risk(part, Weight::ModerateUndoable, "it deletes a branch that may not be merged"))
        }
        _ => None,
    }
}

fn push(part: &Part, rest: &[&str], workspace: &Workspace) -> Option<Risk> {
    if part.has_long("--mirror") || part.has_long("--prune") {
        return Some(risk(
            part,
            Weight::SevereLasting,
            "it makes the remote lose every branch that is not here",
        ));
    }
    let refspecs: Vec<&str> = rest.iter().skip(1).copied().collect();
    let forced = part.has('f', "--force") || part.texts().any(|text| text.starts_with("--force"));
    let deletes = part.has('d', "--delete");
    let touched: Vec<&str> = refspecs
        .iter()
        .filter(|refspec| forced || deletes || refspec.starts_with(['+', ':']))
        .map(|refspec| {
            let plain = refspec.trim_start_matches('+');
            let target = plain.split_once(':').map_or(plain, |(_, target)| target);
            target.trim_start_matches("refs/heads/")
        })
        .collect();
    let names_none = forced && refspecs.is_empty();
    if touched.is_empty() && !names_none {
        return None;
    }
    let current = workspace.git.as_ref().and_then(|git| git.branch.as_deref());
    let shared = (names_none && current.is_none_or(|branch| is_shared(branch, workspace)))
        || part.has_long("--all")
        || part.has_long("--branches")
        || touched.iter().any(|branch| {
            if *branch == "HEAD" {
                current.is_none_or(|branch| is_shared(branch, workspace))
            } else {
                is_shared(branch, workspace)
            }
        });
    Some(if shared {
        risk(part, Weight::SevereLasting, "it rewrites or deletes a branch that others build on")
    } else {
        risk(part, Weight::ModerateLasting, "it rewrites or deletes a branch at the remote")
    })
}

/// Whether others build on a branch. A name that cannot be told is taken to be one of those.
fn is_shared(branch: &str, workspace: &Workspace) -> bool {
    const NAMES: [&str; 9] =
        ["main", "master", "develop", "dev", "trunk", "production", "prod", "staging", "release"];
    const STARTS: [&str; 3] = ["release/", "release-", "hotfix/"];
    let named = workspace.git.as_ref().is_some_and(|git| {
        git.default_branch.as_deref() == Some(branch)
            || git.shared_branches.iter().any(|shared| shared == branch)
    });
    named
        || NAMES.contains(&branch)
        || STARTS.iter().any(|start| branch.starts_with(start))
        || branch.contains([UNKNOWN, '*'])
}
