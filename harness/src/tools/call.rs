//! Tool calls with their arguments, parsed so that nothing is left to guess.

use serde::Deserialize;
use serde_json::Value;

use super::catalogue::has;
use crate::json::parse_strict;
use crate::session::Profile;

/// The longest name that is shown back.
const MAX_SHOWN: usize = 80;

/// One call of a tool of the catalogue. Fields are what the schema of the tool says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// Reads a file by lines.
    Read(Read),
    /// Lists one folder.
    ListDir(ListDir),
    /// Creates a file or replaces one that was read.
    Write(Write),
    /// Replaces text in a file that was read.
    Edit(Edit),
    /// Copies a file to an absent path.
    Copy(Transfer),
    /// Renames a file or folder to an absent path.
    Move(Transfer),
    /// Removes a file, a link or an empty folder.
    Remove(Remove),
    /// Searches contents.
    Grep(Grep),
    /// Finds names.
    Glob(Glob),
    /// Runs a command.
    Shell(Shell),
    /// Looks at a background command.
    ShellStatus(ShellStatus),
}

/// Arguments of `Read`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// File, relative to the workspace root.
    pub path: String,
    /// First line, 1-based.
    #[serde(default, deserialize_with = "positive")]
    pub offset: Option<u64>,
    /// Lines, 1..=2000.
    #[serde(default, deserialize_with = "positive")]
    pub limit: Option<u64>,
}

/// Arguments of `ListDir`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListDir {
    /// Folder; absent: the root.
    #[serde(default)]
    pub path: Option<String>,
}

/// Arguments of `Write`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// File.
    pub path: String,
    /// The whole new content.
    pub content: String,
}

/// Arguments of `Edit`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Edit {
    /// File.
    pub path: String,
    /// Text to be replaced, exactly.
    pub old: String,
    /// Text to stand there instead.
    pub new: String,
    /// Replace each match.
    #[serde(default)]
    pub replace_all: bool,
}

/// Arguments of `Copy` and `Move`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// What there is.
    pub source: String,
    /// Where it goes; absent so far.
    pub destination: String,
}

/// Arguments of `Remove`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// File, link or empty folder.
    pub path: String,
}

/// Arguments of `Grep`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Grep {
    /// Regular expression in Rust syntax.
    pub pattern: String,
    /// File or folder; absent: the root.
    #[serde(default)]
    pub path: Option<String>,
    /// Only files whose path below `path` matches.
    #[serde(default)]
    pub glob: Option<String>,
    /// Match without regard to case.
    #[serde(default)]
    pub case_insensitive: bool,
    /// Search ignored and hidden files too.
    #[serde(default)]
    pub include_ignored: bool,
    /// Lines of context, 0..=20.
    #[serde(default)]
    pub context_lines: Option<u32>,
}

/// Arguments of `Glob`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Glob {
    /// `* ? [] {} **`.
    pub pattern: String,
    /// Folder; absent: the root.
    #[serde(default)]
    pub path: Option<String>,
    /// Find ignored and hidden files too.
    #[serde(default)]
    pub include_ignored: bool,
}

/// Arguments of `Shell`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Shell {
    /// Text for the shell.
    pub command: String,
    /// Wall-clock limit, 1..=3,600,000 milliseconds.
    #[serde(default, deserialize_with = "positive")]
    pub timeout_millis: Option<u64>,
    /// Return at once with a job id.
    #[serde(default)]
    pub background: bool,
}

/// Arguments of `ShellStatus`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ShellStatus {
    /// Job id as `Shell` gave it.
    pub job: String,
    /// Wait at most so long for its end, 0..=600,000 milliseconds.
    #[serde(default)]
    pub wait_millis: Option<u64>,
    /// End it.
    #[serde(default)]
    pub cancel: bool,
}

/// Why a call is not executed. The text is for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The catalogue of this session has no tool of that name.
    #[error("there is no tool named \"{0}\"; nothing was executed")]
    UnknownTool(String),
    /// The arguments are not one whole JSON object without duplicate keys.
    #[error(
        "the arguments of {tool} are not a valid JSON object ({reason}); nothing was executed, send the whole call again"
    )]
    NotAnObject {
        /// The tool.
        tool: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A field is missing, unknown, of another type or out of bounds.
    #[error("the arguments of {tool} are not accepted: {reason}; nothing was executed")]
    NotAccepted {
        /// The tool.
        tool: &'static str,
        /// What is wrong.
        reason: String,
    },
}

/// Parses one call. Nothing is completed, converted or ignored: `"5"` is not 5 and an unknown field is an error.
///
/// # Errors
/// [`CallError`].
pub fn parse(profile: Profile, name: &str, arguments: &str) -> Result<Call, CallError> {
    let Some(tool) = super::catalogue::TOOLS.iter().copied().find(|tool| *tool == name) else {
        return Err(CallError::UnknownTool(shown(name)));
    };
    if !has(profile, tool) {
        return Err(CallError::UnknownTool(shown(name)));
    }
    let value = parse_strict(arguments)
        .map_err(|error| CallError::NotAnObject { tool, reason: error.to_string() })?;
    if !value.is_object() {
        return Err(CallError::NotAnObject { tool, reason: format!("it is {}", kind_of(&value)) });
    }
    let call = match tool {
        "Read" => Call::Read(typed(tool, value)?),
        "ListDir" => Call::ListDir(typed(tool, value)?),
        "Write" => Call::Write(typed(tool, value)?),
        "Edit" => Call::Edit(typed(tool, value)?),
        "Copy" => Call::Copy(typed(tool, value)?),
        "Move" => Call::Move(typed(tool, value)?),
        "Remove" => Call::Remove(typed(tool, value)?),
        "Grep" => Call::Grep(typed(tool, value)?),
        "Glob" => Call::Glob(typed(tool, value)?),
        "Shell" => Call::Shell(typed(tool, value)?),
        "ShellStatus" => Call::ShellStatus(typed(tool, value)?),
        _ => return Err(CallError::UnknownTool(shown(name))),
    };
    call.check().map_err(|reason| CallError::NotAccepted { tool, reason })?;
    Ok(call)
}

impl Call {
    /// The catalogue name.
    pub fn tool(&self) -> &'static str {
        match self {
            Self::Read(_) => "Read",
            Self::ListDir(_) => "ListDir",
            Self::Write(_) => "Write",
            Self::Edit(_) => "Edit",
            Self::Copy(_) => "Copy",
            Self::Move(_) => "Move",
            Self::Remove(_) => "Remove",
            Self::Grep(_) => "Grep",
            Self::Glob(_) => "Glob",
            Self::Shell(_) => "Shell",
            Self::ShellStatus(_) => "ShellStatus",
        }
    }

    /// Whether it may run beside other calls of its turn: it changes nothing.
    pub fn is_read(&self) -> bool {
        match self {
            Self::Read(_) | Self::ListDir(_) | Self::Grep(_) | Self::Glob(_) => true,
            Self::ShellStatus(status) => !status.cancel,
            Self::Write(_)
            | Self::Edit(_)
            | Self::Copy(_)
            | Self::Move(_)
            | Self::Remove(_)
            | Self::Shell(_) => false,
        }
    }

    /// What authority judges.
    pub fn for_authority(&self) -> mooring_authority::Call {
        use mooring_authority::Call as Judged;
        let root_or = |path: &Option<String>| path.clone().unwrap_or_else(|| ".".to_owned());
        match self {
            Self::Read(read) => Judged::Read { path: read.path.clone() },
            Self::ListDir(list) => Judged::ListDir { path: root_or(&list.path) },
            Self::Write(write) => Judged::Write { path: write.path.clone() },
            Self::Edit(edit) => Judged::Edit { path: edit.path.clone() },
            Self::Copy(copy) => Judged::Copy { from: copy.source.clone(), to: copy.destination.clone() },
            Self::Move(moved) => Judged::Move { from: moved.source.clone(), to: moved.destination.clone() },
            Self::Remove(remove) => Judged::Remove { path: remove.path.clone() },
            Self::Grep(grep) => Judged::Grep { path: root_or(&grep.path) },
            Self::Glob(glob) => {
                Judged::Glob { path: glob.path.clone().unwrap_or_else(|| glob.pattern.clone()) }
            }
            Self::Shell(shell) => {
                Judged::Shell { command: shell.command.clone().into_bytes(), background: shell.background }
            }
            Self::ShellStatus(status) => Judged::ShellStatus { cancel: status.cancel },
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Read(read) => at_most("limit", read.limit, 2_000),
            Self::Edit(edit) if edit.old.is_empty() => Err("\"old\" is empty".to_owned()),
            Self::Edit(edit) if edit.old == edit.new => Err("\"old\" and \"new\" are equal".to_owned()),
            Self::Grep(grep) if grep.pattern.is_empty() => Err("\"pattern\" is empty".to_owned()),
            Self::Grep(grep) => at_most("contextLines", grep.context_lines.map(u64::from), 20),
            Self::Glob(glob) if glob.pattern.is_empty() => Err("\"pattern\" is empty".to_owned()),
            Self::Shell(shell) if shell.command.trim().is_empty() => Err("\"command\" is empty".to_owned()),
            Self::Shell(shell) if shell.command.contains('\0') => {
                Err("\"command\" holds a NUL character".to_owned())
            }
            Self::Shell(shell) if shell.command.len() > 1024 * 1024 => {
                Err("\"command\" is longer than 1 MiB".to_owned())
            }
            Self::Shell(shell) => at_most("timeoutMillis", shell.timeout_millis, 3_600_000),
            Self::ShellStatus(status) if !is_job(&status.job) => {
                Err("\"job\" is not a job id as Shell gives it".to_owned())
            }
            Self::ShellStatus(status) => at_most("waitMillis", status.wait_millis, 600_000),
            Self::ListDir(_)
            | Self::Write(_)
            | Self::Edit(_)
            | Self::Copy(_)
            | Self::Move(_)
            | Self::Remove(_)
            | Self::Glob(_) => Ok(()),
        }
    }
}

/// A text of the model as it may be shown: at most 80 characters, everything but printable ASCII escaped, so that a
/// look-alike letter is seen for what it is.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).flat_map(char::escape_default).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

fn is_job(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn at_most(field: &str, value: Option<u64>, bound: u64) -> Result<(), String> {
    match value {
        Some(value) if value > bound => Err(format!("\"{field}\" is above {bound}")),
        Some(_) | None => Ok(()),
    }
}

fn typed<T: for<'de> Deserialize<'de>>(tool: &'static str, value: Value) -> Result<T, CallError> {
    T::deserialize(value).map_err(|error| CallError::NotAccepted { tool, reason: error.to_string() })
}

fn positive<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match Option::<u64>::deserialize(deserializer)? {
        Some(0) => Err(serde::de::Error::custom("0 is below 1")),
        value => Ok(value),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
