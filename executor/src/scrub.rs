//! Takes secrets and hooks out of the environment of a command.
//!
//! ```text
//!   variables ─▶ name::Verdict::of ─▶ product's, provider's, credential, hook, malformed ─▶ removed
//!                      │ plain
//!                      ▼
//!              url::strip (userinfo) ─▶ shape::find (tokens, keys, connection texts) ─▶ removed or kept
//! ```
//!
//! The rules are word-shaped, so that a credential nobody has named yet is caught by what its name says, and
//! `TOKENIZERS_PARALLELISM` stays. The short lists in `vendor.rs` hold what no rule can see from the name.

mod hook;
mod name;
mod readmitted;
mod shape;
mod url;
mod vendor;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub use readmitted::{Readmitted, ReadmittedError};

use name::Verdict;
use url::Stripped;

/// The longest `NAME=value` with its final NUL that a process can be started with, in bytes: `MAX_ARG_STRLEN`,
/// 32 pages of 4 KiB (execve(2), "Limits on size of arguments and environment").
pub const MAX_VARIABLE_BYTES: usize = 128 * 1024;

/// The most bytes of one name that are reported; longer ones are cut and end in `…`.
const MAX_REPORTED_BYTES: usize = 256;

/// What scrubbing made of an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Names and values a command may have, sorted by name, each name once.
    pub kept: Vec<(Vec<u8>, Vec<u8>)>,
    /// Names taken out, sorted, each once; `NAME (userinfo)` where the variable stayed and only the user and password
    /// of a URL in it went. Bytes that are not printable ASCII, and the backslash, are told as `\xHH`. Never a value.
    pub removed: Vec<String>,
}

/// Removes secrets, hooks into loaders and interpreters, and what cannot be a variable, from `variables`.
///
/// Pure: the same input gives the same output, and output given as input again stays as it is. Nothing is added. Where a
/// name comes more than once the last one counts, so layers may simply be chained, the innermost last; otherwise the order
/// does not matter. A name in `readmitted` keeps its value whole, unless that value is itself a model provider's key.
///
/// Removed are: names of Mooring itself (`MOORING_…`); credentials by name; values that are secrets under any name; hooks
/// such as `LD_…` and `BASH_ENV`; names that are empty, not printable ASCII or hold `=`; values with a NUL; and
/// variables over [`MAX_VARIABLE_BYTES`], with which no process could be started at all.
pub fn scrub(variables: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>, readmitted: &Readmitted) -> Scrubbed {
    let last_of_each: BTreeMap<Vec<u8>, Vec<u8>> = variables.into_iter().collect();
    let mut kept = Vec::with_capacity(last_of_each.len());
    let mut removed = BTreeSet::new();
    for (name, value) in last_of_each {
        match fate(&name, &value, readmitted) {
            Fate::Kept => kept.push((name, value)),
            Fate::Rewritten(rest) => {
                removed.insert(format!("{} (userinfo)", reported(&name)));
                kept.push((name, rest));
            }
            Fate::Removed => {
                removed.insert(reported(&name));
            }
        }
    }
    Scrubbed { kept, removed: removed.into_iter().collect() }
}

/// What becomes of one variable.
enum Fate {
    Kept,
    /// Kept with this value instead.
    Rewritten(Vec<u8>),
    Removed,
}

fn fate(name: &[u8], value: &[u8], readmitted: &Readmitted) -> Fate {
    if value.contains(&0) || name.len() + value.len() + 2 > MAX_VARIABLE_BYTES {
        return Fate::Removed;
    }
    let Some(text) = name::parse(name) else {
        return Fate::Removed;
    };
    match Verdict::of(text) {
        Verdict::Product | Verdict::Provider => Fate::Removed,
        _ if readmitted.holds(text) => {
            if shape::holds_provider_key(value) {
                Fate::Removed
            } else {
                Fate::Kept
            }
        }
        Verdict::Credential | Verdict::Hook => Fate::Removed,
        Verdict::Plain => fate_of_value(value, name::is_proxy(text)),
    }
}

fn fate_of_value(value: &[u8], is_proxy: bool) -> Fate {
    match url::strip(value, is_proxy) {
        Stripped::Clean if shape::holds_secret(value) => Fate::Removed,
        Stripped::Clean => Fate::Kept,
        Stripped::Rewritten(rest) if shape::holds_secret(&rest) => Fate::Removed,
        Stripped::Rewritten(rest) => Fate::Rewritten(rest),
        Stripped::Unusable => Fate::Removed,
    }
}

/// A name as it is told: printable ASCII as it is, any other byte and the backslash as `\xHH`.
fn reported(name: &[u8]) -> String {
    let mut told = String::new();
    for &byte in name {
        if told.len() >= MAX_REPORTED_BYTES {
            told.push('…');
            break;
        }
        if byte.is_ascii_graphic() && byte != b'\\' {
            told.push(char::from(byte));
        } else {
            write!(told, "\\x{byte:02X}").expect("a String takes any text");
        }
    }
    told
}
