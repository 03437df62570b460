//! From YAML text to a script whose every step can be served.

use std::path::{Path, PathBuf};

use super::{Script, Step};

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// Not YAML, an unknown field, a wrong type: the text names line and column.
    #[error("{0}")]
    Yaml(#[from] serde_yaml::Error),
    /// A step that means nothing.
    #[error("line {line}, step {number}: {what}")]
    Step {
        /// Line of the step's first word, from 1.
        line: usize,
        /// Position of the step, from 1.
        number: usize,
        /// What is wrong with it.
        what: String,
    },
}

impl Script {
    /// Parses and checks the text of a script.
    ///
    /// # Errors
    /// [`ScriptError::Yaml`] and [`ScriptError::Step`], each with the line.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script: Self = serde_yaml::from_str(text)?;
        for (position, step) in script.steps.iter().enumerate() {
            if let Err(what) = check_step(step) {
                return Err(ScriptError::Step {
                    line: line_of_step(text, position),
                    number: position + 1,
                    what,
                });
            }
        }
        Ok(script)
    }

    /// Reads and parses the script at `path`.
    ///
    /// # Errors
    /// [`ScriptError::Read`], and those of [`Script::parse`].
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ScriptError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Sets a variable, replacing the script's own value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.set.insert(name.to_owned(), value.into());
        self
    }
}

fn check_step(step: &Step) -> Result<(), String> {
    let misbehave = &step.misbehave;
    let says_nothing = step.say.is_none() && step.call.is_empty();
    if says_nothing && !misbehave.html && !misbehave.empty_stream && !misbehave.endless {
        return Err("neither `say` nor `call`".to_owned());
    }
    for capture in &step.capture {
        if capture.after.is_empty() || capture.until.is_empty() {
            return Err(format!("capture `{}` needs texts around the value", capture.name));
        }
    }
    for call in &step.call {
        if call.arguments.is_some() == call.raw.is_some() {
            return Err(format!("call of `{}` needs either `arguments` or `raw`", call.tool));
        }
        if call.omit_id && call.id.is_some() {
            return Err(format!("call of `{}` has an `id` and `omit_id`", call.tool));
        }
        if call.piece_bytes == Some(0) || call.repeat.is_some_and(|count| !(1..=10_000).contains(&count)) {
            return Err(format!("call of `{}`: `piece_bytes` from 1, `repeat` 1..=10000", call.tool));
        }
    }
    if misbehave.write_bytes == Some(0) {
        return Err("`write_bytes` from 1".to_owned());
    }
    if misbehave.status.as_ref().is_some_and(|status| !(400..600).contains(&status.code)) {
        return Err("`status.code` 400..=599".to_owned());
    }
    Ok(())
}

/// Line of the entry `position` of `steps`. A script in flow style gives line 1.
fn line_of_step(text: &str, position: usize) -> usize {
    let lines = || text.lines().enumerate().skip_while(|(_, line)| !line.starts_with("steps:")).skip(1);
    let Some(indent) =
        lines().find(|(_, line)| line.trim_start().starts_with('-')).map(|(_, line)| indent_of(line))
    else {
        return 1;
    };
    lines()
        .filter(|(_, line)| indent_of(line) == indent && line.trim_start().starts_with('-'))
        .nth(position)
        .map_or(1, |(line, _)| line + 1)
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}
