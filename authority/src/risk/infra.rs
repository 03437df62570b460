//! Running systems are changed: severe and lasting, all of it.

use super::scene::Scene;
use super::table::{Line, find, subcommands};
use super::{Kind, Risk, Weight};
use crate::reading::Part;

const CLUSTER: &str = "it changes a cluster";
const PLAN: &str = "it changes infrastructure";
const RELEASE: &str = "it changes what a cluster runs";
const DEPLOY: &str = "it deploys";
const SECRET: &str = "it sets a secret at the code forge";
const DATABASE: &str = "it throws away data of a database";

#[rustfmt::skip]
const LINES: &[Line] = &[
    ("terraform", &["apply"], Weight::SevereLasting, PLAN),
    ("terraform", &["destroy"], Weight::SevereLasting, PLAN),
    ("terraform", &["import"], Weight::SevereLasting, PLAN),
    ("terraform", &["state", "rm"], Weight::SevereLasting, PLAN),
    ("terraform", &["state", "push"], Weight::SevereLasting, PLAN),
    ("terraform", &["taint"], Weight::SevereLasting, PLAN),
    ("tofu", &["apply"], Weight::SevereLasting, PLAN),
    ("tofu", &["destroy"], Weight::SevereLasting, PLAN),
    ("terragrunt", &["apply"], Weight::SevereLasting, PLAN),
    ("terragrunt", &["destroy"], Weight::SevereLasting, PLAN),
    ("pulumi", &["up"], Weight::SevereLasting, PLAN),
    ("pulumi", &["destroy"], Weight::SevereLasting, PLAN),
    ("cdk", &["deploy"], Weight::SevereLasting, PLAN),
    ("cdk", &["destroy"], Weight::SevereLasting, PLAN),
    ("ansible-playbook", &[], Weight::SevereLasting, PLAN),
    ("helm", &["install"], Weight::SevereLasting, RELEASE),
    ("helm", &["upgrade"], Weight::SevereLasting, RELEASE),
    ("helm", &["uninstall"], Weight::SevereLasting, RELEASE),
    ("helm", &["delete"], Weight::SevereLasting, RELEASE),
    ("helm", &["rollback"], Weight::SevereLasting, RELEASE),
    ("argocd", &["app", "sync"], Weight::SevereLasting, RELEASE),
    ("argocd", &["app", "delete"], Weight::SevereLasting, RELEASE),
    ("flux", &["reconcile"], Weight::SevereLasting, RELEASE),
    ("docker", &["stack", "deploy"], Weight::SevereLasting, DEPLOY),
    ("gh", &["secret", "set"], Weight::SevereLasting, SECRET),
    ("gh", &["secret", "delete"], Weight::SevereLasting, SECRET),
    ("gh", &["repo", "delete"], Weight::SevereLasting, "it deletes a repository at the code forge"),
    ("gh", &["repo", "archive"], Weight::SevereLasting, "it archives a repository at the code forge"),
    ("vercel", &["deploy"], Weight::SevereLasting, DEPLOY),
    ("netlify", &["deploy"], Weight::SevereLasting, DEPLOY),
    ("fly", &["deploy"], Weight::SevereLasting, DEPLOY),
    ("flyctl", &["deploy"], Weight::SevereLasting, DEPLOY),
    ("firebase", &["deploy"], Weight::SevereLasting, DEPLOY),
    ("wrangler", &["deploy"], Weight::SevereLasting, DEPLOY),
    ("wrangler", &["publish"], Weight::SevereLasting, DEPLOY),
    ("serverless", &["deploy"], Weight::SevereLasting, DEPLOY),
    ("sls", &["deploy"], Weight::SevereLasting, DEPLOY),
    ("gcloud", &["app", "deploy"], Weight::SevereLasting, DEPLOY),
    ("gcloud", &["run", "deploy"], Weight::SevereLasting, DEPLOY),
    ("cap", &["production", "deploy"], Weight::SevereLasting, DEPLOY),
    ("prisma", &["migrate", "reset"], Weight::SevereLasting, DATABASE),
    ("rails", &["db:drop"], Weight::SevereLasting, DATABASE),
    ("rails", &["db:reset"], Weight::SevereLasting, DATABASE),
    ("rake", &["db:drop"], Weight::SevereLasting, DATABASE),
    ("rake", &["db:reset"], Weight::SevereLasting, DATABASE),
    ("dropdb", &[], Weight::SevereLasting, DATABASE),
    ("redis-cli", &["FLUSHALL"], Weight::SevereLasting, DATABASE),
    ("redis-cli", &["FLUSHDB"], Weight::SevereLasting, DATABASE),
    ("redis-cli", &["flushall"], Weight::SevereLasting, DATABASE),
    ("redis-cli", &["flushdb"], Weight::SevereLasting, DATABASE),
];

/// What kubectl(1) changes with; `get`, `logs`, `describe`, `explain`, `diff` and the like are not here.
const KUBECTL: [&str; 20] = [
    "apply",
    "create",
    "patch",
    "delete",
    "scale",
    "drain",
    "replace",
    "edit",
    "set",
    "label",
    "annotate",
    "taint",
    "cordon",
    "uncordon",
    "autoscale",
    "expose",
    "run",
    "exec",
    "debug",
    "attach",
];

pub(super) fn of(part: &Part, scene: &Scene) -> Option<Risk> {
    let severe = |reason| Some(Risk::new(Kind::Infra, Weight::SevereLasting, reason, part));
    if helps(part) {
        return None;
    }
    match part.name() {
        "kubectl" | "oc" => {
            let words = subcommands(part);
            let changes = words.first().is_some_and(|verb| {
                KUBECTL.contains(verb)
                    || *verb == "rollout" && !matches!(words.get(1), Some(&("status" | "history")))
            });
            let dry = part
                .texts()
                .any(|text| matches!(text, "--dry-run=client" | "--dry-run=server" | "--dry-run"));
            if changes && !dry { severe(CLUSTER) } else { None }
        }
        "aws" | "gcloud" | "az" | "doctl" | "linode-cli" | "hcloud" | "eksctl"
            if deletes_in_a_cloud(part) =>
        {
            severe("it deletes or stops something in a cloud")
        }
        "psql" | "mysql" | "sqlite3" | "mariadb" | "sqlcmd" | "clickhouse-client" | "mongosh" | "cqlsh"
            if drops(part, scene) =>
        {
            severe(DATABASE)
        }
        "npx" | "pnpx" | "bunx" => {
            let inner = Part {
                words: part
                    .words
                    .iter()
                    .skip(1)
                    .skip_while(|word| word.text.starts_with('-'))
                    .cloned()
                    .collect(),
                ..Part::default()
            };
            find(Kind::Infra, LINES, &inner)
        }
        "python" | "python3" | "php" => {
            let words: Vec<&str> = part.texts().collect();
            let resets = matches!(
                words.as_slice(),
                ["manage.py" | "./manage.py", "flush" | "reset_db", ..]
                    | ["artisan", "migrate:fresh" | "migrate:reset" | "db:wipe", ..]
            );
            if resets { severe(DATABASE) } else { None }
        }
        "helm" | "terraform" if part.has_long("--dry-run") => None,
        "vercel" if part.has_long("--prod") => severe(DEPLOY),
        _ => find(Kind::Infra, LINES, part),
    }
}

fn helps(part: &Part) -> bool {
    part.texts().any(|text| matches!(text, "--help" | "-help"))
        || matches!(part.texts().next(), Some("help" | "--version" | "version"))
}

fn deletes_in_a_cloud(part: &Part) -> bool {
    const VERBS: [&str; 13] = [
        "delete",
        "terminate",
        "destroy",
        "remove",
        "deregister",
        "stop",
        "reboot",
        "purge",
        "rb",
        "rm",
        "empty",
        "update-service",
        "invoke",
    ];
    let words = subcommands(part);
    words.iter().skip(1).take(4).any(|word| {
        VERBS.contains(word)
            || ["delete-", "terminate-", "remove-", "stop-", "deregister-", "reboot-"]
                .iter()
                .any(|start| word.starts_with(start))
    })
}

fn drops(part: &Part, scene: &Scene) -> bool {
    const SIGNS: [&str; 6] =
        ["DROP TABLE", "DROP DATABASE", "DROP SCHEMA", "TRUNCATE", "DROPDATABASE", "DROP KEYSPACE"];
    let is_in = |text: &str| {
        let upper = text.to_ascii_uppercase();
        let flat = upper.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        SIGNS.iter().any(|sign| flat.contains(sign))
            || (flat.contains("DELETE FROM") && !flat.contains("WHERE"))
    };
    part.texts().any(is_in)
        || scene.sources(part).any(|source| source.texts().any(is_in))
        || part.code.iter().any(|code| is_in(&code.text))
}
