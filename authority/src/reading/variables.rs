//! What is known of the shell's variables while a script is read.

use std::collections::HashMap;

use super::word::UNKNOWN;
use crate::context::Workspace;

/// Stands for a home folder that nobody named.
const SOME_HOME: &str = "/~";

/// Values of variables, the current folder, and the few outputs that can be told without running anything.
#[derive(Clone, Debug)]
pub(super) struct Variables {
    values: HashMap<String, Option<String>>,
    root: String,
    home: String,
    tmp: String,
    /// The current folder; unknown after a `cd` that cannot be followed.
    pub(super) folder: Option<String>,
}

impl Variables {
    pub(super) fn new(workspace: &Workspace) -> Self {
        Self {
            values: HashMap::new(),
            root: workspace.root.clone(),
            home: workspace.home.clone().unwrap_or_else(|| SOME_HOME.to_owned()),
            tmp: workspace.tmp.clone().unwrap_or_else(|| "/tmp".to_owned()),
            folder: Some(workspace.root.clone()),
        }
    }

    pub(super) fn home(&self) -> &str {
        &self.home
    }

    /// Sets a variable; in a branch or loop a second value makes it unknown.
    pub(super) fn set(&mut self, name: &str, value: &str, conditional: bool) {
        let value = (!value.contains(UNKNOWN) || value.contains('/')).then(|| value.to_owned());
        let clash = conditional && self.values.get(name).is_some_and(|old| *old != value);
        self.values.insert(name.to_owned(), if clash { None } else { value });
    }

    /// Gives `$0`, `$1`, … and `$@` new values; returns what was known before.
    pub(super) fn set_positional(&mut self, values: &[String]) -> Self {
        let outer = self.clone();
        for number in 0..10 {
            self.values.insert(number.to_string(), values.get(number).cloned());
        }
        let all = values.get(1..).unwrap_or_default().join(" ");
        for name in ["@", "*"] {
            self.values.insert(name.to_owned(), (!all.is_empty()).then(|| all.clone()));
        }
        outer
    }

    pub(super) fn value(&self, name: &str) -> Option<String> {
        if let Some(value) = self.values.get(name) {
            // With other separators nobody here can say into which words a value falls.
            return value.clone().filter(|_| name == "IFS" || !self.has_separators());
        }
        match name {
            "HOME" => Some(self.home.clone()),
            "PWD" => self.folder.clone(),
            "TMPDIR" => Some(self.tmp.clone()),
            "IFS" => Some(" ".to_owned()),
            _ => None,
        }
    }

    /// Whether values fall into words at other characters than blanks.
    fn has_separators(&self) -> bool {
        self.values.get("IFS").is_some_and(|value| {
            value.as_deref().is_none_or(|ifs| ifs.contains(|c: char| !c.is_whitespace()))
        })
    }

    /// What a substitution prints, where that is plain.
    pub(super) fn output_of(&self, script: &str) -> Option<String> {
        let script = script.trim();
        let mut words = script.split_ascii_whitespace();
        let first = words.next()?;
        match first {
            "pwd" if script == "pwd" => self.folder.clone(),
            "git" if script == "git rev-parse --show-toplevel" => Some(self.root.clone()),
            "mktemp" => Some(format!("{}/{UNKNOWN}", self.tmp)),
            "which" => words.next().filter(|word| bare(word)).map(str::to_owned),
            "command" if words.next() == Some("-v") => {
                words.next().filter(|word| bare(word)).map(str::to_owned)
            }
            "echo" | "printf" => literal_output(first, &script[first.len()..]),
            _ => None,
        }
    }
}

fn literal_output(program: &str, rest: &str) -> Option<String> {
    let rest = rest.trim();
    let unquoted = ['\'', '"'].iter().find_map(|quote| {
        let inner = rest.strip_prefix(*quote)?.strip_suffix(*quote)?;
        (!inner.contains([*quote, '$', '`', '\\', '%'])).then(|| inner.to_owned())
    });
    let plain = || rest.split_ascii_whitespace().all(bare).then(|| rest.to_owned());
    unquoted.or_else(plain).filter(|text| program == "printf" || !text.starts_with('-'))
}

fn bare(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:@+=,".contains(c))
}
