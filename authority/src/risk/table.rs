//! Subcommands, and tables of them.

use super::{Kind, Risk, Weight};
use crate::reading::Part;

/// One line of a table: a program, the subcommands it must begin with, how bad, and the words for it.
pub(super) type Line = (&'static str, &'static [&'static str], Weight, &'static str);

/// Options that take a value and may stand before a subcommand.
fn valued(program: &str) -> &'static [&'static str] {
    match program {
        "git" => &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path"],
        "kubectl" | "oc" => &[
            "-n",
            "--namespace",
            "--context",
            "--cluster",
            "--kubeconfig",
            "-s",
            "--server",
            "--user",
            "--token",
            "--as",
        ],
        "helm" => &["-n", "--namespace", "--kube-context", "--kubeconfig"],
        "docker" | "podman" | "nerdctl" => &[
            "-H",
            "--host",
            "-c",
            "--context",
            "--config",
            "-l",
            "--log-level",
            "-f",
            "--file",
            "-p",
            "--project-name",
        ],
        "docker-compose" => &["-f", "--file", "-p", "--project-name", "--env-file", "--profile"],
        "gh" => &["-R", "--repo", "--hostname"],
        "aws" => &["--profile", "--region", "--endpoint-url", "--output", "--query"],
        "gcloud" => &["--project", "--account", "--configuration", "--format", "--region", "--zone"],
        "cargo" => &["--config", "-Z", "-C", "--color", "--manifest-path"],
        "npm" | "pnpm" | "yarn" => &["--prefix", "-C", "--dir", "--cwd", "-w", "--workspace", "--filter"],
        "systemctl" => &["-H", "-M", "-t", "-p", "-n", "-o", "--root"],
        "terraform" | "tofu" => &["-chdir"],
        _ => &[],
    }
}

/// The words that are not options, skipping the values of options that may stand before a subcommand.
pub(super) fn subcommands(part: &Part) -> Vec<&str> {
    part.operands(valued(part.name())).into_iter().map(|word| word.text.as_str()).collect()
}

/// The first line that fits.
pub(super) fn find(kind: Kind, table: &[Line], part: &Part) -> Option<Risk> {
    let name = part.name();
    let mut words = None;
    table
        .iter()
        .find(|(program, start, _, _)| {
            *program == name && {
                let words: &Vec<&str> = words.get_or_insert_with(|| subcommands(part));
                words.len() >= start.len() && words.iter().zip(*start).all(|(word, wanted)| word == wanted)
            }
        })
        .map(|(_, _, weight, reason)| Risk::new(kind, *weight, reason, part))
}
