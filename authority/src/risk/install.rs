//! A package of doubtful origin is installed.
//!
//! | | |
//! |---|---|
//! | one slip from a famous name | severe, lasting, unaskable |
//! | another index than the usual one | severe, undoable |

use super::scene::{Scene, host, is_loopback};
use super::{Kind, Risk, Weight};
use crate::reading::Part;

/// Names that others like to be mistaken for: the most downloaded of PyPI, npm and crates.io, seven letters and longer or
/// otherwise unlike any other word.
const FAMOUS: &[&str] = &[
    "requests",
    "urllib3",
    "setuptools",
    "cryptography",
    "python-dateutil",
    "beautifulsoup4",
    "matplotlib",
    "tensorflow",
    "scikit-learn",
    "django",
    "colorama",
    "sqlalchemy",
    "fastapi",
    "pydantic",
    "selenium",
    "express",
    "lodash",
    "typescript",
    "webpack",
    "cross-env",
    "commander",
    "electron",
    "mongoose",
    "eslint",
    "prettier",
    "jsonwebtoken",
    "nodemailer",
    "react-dom",
    "dotenv",
    "rustdecimal",
    "rust_decimal",
    "serde_json",
    "reqwest",
    "thiserror",
];

/// Well-known packages whose names are that close to a famous one.
const THEMSELVES: &[&str] = &["request", "esprint", "rust-decimal", "serde-json"];

/// Where packages usually come from.
const USUAL: [&str; 7] = [
    "pypi.org",
    "test.pypi.org",
    "files.pythonhosted.org",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "index.crates.io",
    "rubygems.org",
];

pub(super) fn of(part: &Part, _scene: &Scene) -> Option<Risk> {
    let (verbs, indexes): (&[&str], &[&str]) = match part.name() {
        "pip" | "pip3" | "pipx" | "uv" => {
            (&["install", "add"], &["-i", "--index-url", "--extra-index-url", "--index", "--default-index"])
        }
        "npm" | "pnpm" | "yarn" | "bun" => (&["install", "i", "add"], &["--registry"]),
        "cargo" => (&["add", "install"], &["--registry", "--index"]),
        "gem" => (&["install"], &["-s", "--source"]),
        _ => return None,
    };
    let words: Vec<&str> = part.operands(indexes).into_iter().map(|word| word.text.as_str()).collect();
    let at = words.iter().take(3).position(|word| verbs.contains(word))?;
    if words[at + 1..].iter().any(|package| is_one_slip_away(package)) {
        return Some(
            Risk::new(
                Kind::Install,
                Weight::SevereLasting,
                "the package's name is one slip from a famous one",
                part,
            )
            .unaskable(),
        );
    }
    let index = part.value_of(indexes)?;
    let named = host(index);
    let usual = USUAL.contains(&named)
        || is_loopback(named)
        || index == "crates-io"
        || named == "download.pytorch.org";
    (!usual).then(|| {
        Risk::new(
            Kind::Install,
            Weight::SevereUndoable,
            "it installs from another index than the usual one",
            part,
        )
    })
}

/// Whether a package is named almost like a famous one: one letter more, less, other, or two neighbours swapped.
fn is_one_slip_away(package: &str) -> bool {
    let name = package.split(['=', '<', '>', '~', '[', '!']).next().unwrap_or("").to_ascii_lowercase();
    let name = name.rsplit_once('@').map_or(name.as_str(), |(name, _)| name);
    name.len() > 4
        && !FAMOUS.contains(&name)
        && !THEMSELVES.contains(&name)
        && FAMOUS.iter().any(|famous| differs_by_one_slip(famous.as_bytes(), name.as_bytes()))
}

fn differs_by_one_slip(famous: &[u8], name: &[u8]) -> bool {
    let same = famous.iter().zip(name).take_while(|(a, b)| a == b).count();
    let (rest, other) = (&famous[same..], &name[same..]);
    match (rest, other) {
        ([_, left @ ..], [_, right @ ..]) if left == right => true,
        ([first, second, left @ ..], [third, fourth, right @ ..])
            if [first, second] == [fourth, third] && left == right =>
        {
            true
        }
        ([_, left @ ..], right) if left == right => true,
        (left, [_, right @ ..]) if left == right => true,
        _ => false,
    }
}
