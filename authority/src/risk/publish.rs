//! Something becomes public: severe and lasting, all of it. A dry run publishes nothing.

use super::scene::Scene;
use super::table::{Line, find};
use super::{Kind, Risk, Weight};
use crate::reading::Part;

const PACKAGE: &str = "it publishes a package";
const IMAGE: &str = "it pushes an image";
const RELEASE: &str = "it publishes a release";

#[rustfmt::skip]
const LINES: &[Line] = &[
    ("npm", &["publish"], Weight::SevereLasting, PACKAGE),
    ("npm", &["unpublish"], Weight::SevereLasting, PACKAGE),
    ("npm", &["deprecate"], Weight::SevereLasting, PACKAGE),
    ("npm", &["dist-tag"], Weight::SevereLasting, PACKAGE),
    ("pnpm", &["publish"], Weight::SevereLasting, PACKAGE),
    ("yarn", &["publish"], Weight::SevereLasting, PACKAGE),
    ("yarn", &["npm", "publish"], Weight::SevereLasting, PACKAGE),
    ("bun", &["publish"], Weight::SevereLasting, PACKAGE),
    ("lerna", &["publish"], Weight::SevereLasting, PACKAGE),
    ("cargo", &["publish"], Weight::SevereLasting, PACKAGE),
    ("cargo", &["yank"], Weight::SevereLasting, PACKAGE),
    ("cargo", &["release"], Weight::SevereLasting, PACKAGE),
    ("twine", &["upload"], Weight::SevereLasting, PACKAGE),
    ("uv", &["publish"], Weight::SevereLasting, PACKAGE),
    ("poetry", &["publish"], Weight::SevereLasting, PACKAGE),
    ("flit", &["publish"], Weight::SevereLasting, PACKAGE),
    ("hatch", &["publish"], Weight::SevereLasting, PACKAGE),
    ("gem", &["push"], Weight::SevereLasting, PACKAGE),
    ("mvn", &["deploy"], Weight::SevereLasting, PACKAGE),
    ("gradle", &["publish"], Weight::SevereLasting, PACKAGE),
    ("dotnet", &["nuget", "push"], Weight::SevereLasting, PACKAGE),
    ("nuget", &["push"], Weight::SevereLasting, PACKAGE),
    ("vsce", &["publish"], Weight::SevereLasting, PACKAGE),
    ("gh", &["release", "create"], Weight::SevereLasting, RELEASE),
    ("gh", &["release", "upload"], Weight::SevereLasting, RELEASE),
    ("gh", &["release", "delete"], Weight::SevereLasting, RELEASE),
    ("gh", &["release", "edit"], Weight::SevereLasting, RELEASE),
    ("gh", &["repo", "create"], Weight::SevereLasting, "it creates a repository at the code forge"),
    ("goreleaser", &["release"], Weight::SevereLasting, RELEASE),
    ("docker", &["push"], Weight::SevereLasting, IMAGE),
    ("docker", &["image", "push"], Weight::SevereLasting, IMAGE),
    ("docker", &["compose", "push"], Weight::SevereLasting, IMAGE),
    ("docker", &["manifest", "push"], Weight::SevereLasting, IMAGE),
    ("podman", &["push"], Weight::SevereLasting, IMAGE),
    ("skopeo", &["copy"], Weight::SevereLasting, IMAGE),
    ("crane", &["push"], Weight::SevereLasting, IMAGE),
    ("helm", &["push"], Weight::SevereLasting, "it publishes a chart"),
];

pub(super) fn of(part: &Part, _scene: &Scene) -> Option<Risk> {
    if part.texts().any(|text| matches!(text, "--dry-run" | "--help" | "--snapshot" | "-h")) {
        return None;
    }
    let texts: Vec<&str> = part.texts().collect();
    let builds_and_pushes =
        matches!(part.name(), "docker" | "podman") && texts.contains(&"build") && part.has_long("--push");
    let made_public = part.name() == "gh"
        && texts.starts_with(&["repo", "edit"])
        && texts.windows(2).any(|pair| pair == ["--visibility", "public"])
        || part.name() == "aws" && texts.contains(&"public-read");
    if builds_and_pushes {
        return Some(Risk::new(Kind::Publish, Weight::SevereLasting, IMAGE, part));
    }
    if made_public {
        return Some(Risk::new(Kind::Publish, Weight::SevereLasting, "it makes something public", part));
    }
    find(Kind::Publish, LINES, part)
}
