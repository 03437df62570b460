//! What a Start asks for, checked.

use std::path::PathBuf;
use std::time::Duration;

use mooring_proto::v1::{self, StartRequest, start_request};
use prost::bytes::Bytes;

use super::CommandError;
use super::environment::Environment;
use crate::environment::{Call, Variable, check_variables};
use crate::runner::{Confinement, Folder, Program, Shell, StartSpec, Stdin};

const MAX_ARGUMENTS: usize = 1024;
const MAX_ARGUMENT_BYTES: usize = 128 * 1024;
const MAX_TEXT_BYTES: usize = 1024 * 1024;
const MAX_VARIABLES: usize = 256;
const MAX_VARIABLE_BYTES: usize = 2 * 1024 * 1024;
/// Limit of a foreground command that names none.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);

/// A Start whose fields are within their bounds.
pub struct Request {
    program: RequestedProgram,
    cwd: String,
    variables: Vec<Variable>,
    timeout: Option<Duration>,
    stdin: Stdin,
    /// Whether survivors of the main process live on.
    pub background: bool,
}

enum RequestedProgram {
    Argv(Vec<Vec<u8>>),
    ShellText(Bytes),
}

impl Request {
    /// Checks everything that can be checked without the workspace.
    ///
    /// # Errors
    /// [`CommandError::Malformed`], [`CommandError::TooLarge`], [`CommandError::Timeout`], [`CommandError::Unsupported`].
    pub fn parse(request: StartRequest, max_timeout: Duration) -> Result<Self, CommandError> {
        if request.pty.is_some() {
            return Err(CommandError::Unsupported("a terminal is not built"));
        }
        if request.use_seed_credential {
            return Err(CommandError::Unsupported("this environment has no seed credential"));
        }
        let program = match request.program {
            Some(start_request::Program::Argv(argv)) => parse_argv(argv)?,
            Some(start_request::Program::ShellText(text)) => parse_text(text)?,
            None => return Err(CommandError::Malformed("argv or shell_text is needed")),
        };
        Ok(Self {
            program,
            cwd: request.cwd,
            variables: check_variables(request.env, MAX_VARIABLES, MAX_VARIABLE_BYTES)
                .map_err(CommandError::Malformed)?,
            timeout: parse_timeout(request.timeout_millis, request.background, max_timeout)?,
            stdin: if request.stdin { Stdin::Pipe } else { Stdin::Null },
            background: request.background,
        })
    }

    /// The command as the runner takes it, and the sorted names of the variables that were taken out.
    ///
    /// # Errors
    /// [`CommandError::CwdPath`], [`CommandError::Cwd`].
    pub(super) fn into_spec(self, call: &Call) -> Result<(StartSpec, Vec<String>), CommandError> {
        let workspace = &call.workspace;
        let cwd = workspace.root.open_directory(&workspace.root.parse(&self.cwd)?)?;
        let cwd = Folder::of(&cwd)?;
        let Environment { variables, removed } =
            Environment::of_command(&call.bound, workspace, cwd.path(), self.variables);
        let program = match self.program {
            RequestedProgram::Argv(arguments) => Program::Argv(arguments),
            RequestedProgram::ShellText(text) => {
                let shell = match call.bound.shell {
                    v1::Shell::Bash => Shell::Bash,
                    v1::Shell::Sh | v1::Shell::Unspecified => Shell::Sh,
                };
                Program::ShellText { shell, text: text.into() }
            }
        };
        let tree = workspace.root.visible().to_path_buf();
        let mut confinement = Confinement::of_workspace(tree, workspace.home.clone(), workspace.tmp.clone());
        confinement.read_only.extend(call.bound.read_only.iter().map(PathBuf::from));
        let spec = StartSpec {
            program,
            cwd,
            env: variables,
            stdin: self.stdin,
            timeout: self.timeout,
            process_limit: Some(call.bound.limits.processes),
            background: self.background,
            confinement,
        };
        Ok((spec, removed))
    }
}

fn parse_argv(argv: v1::ArgumentVector) -> Result<RequestedProgram, CommandError> {
    let arguments = argv.arguments;
    if !(1..=MAX_ARGUMENTS).contains(&arguments.len()) {
        return Err(CommandError::Malformed("argv has 1..=1024 entries"));
    }
    if arguments.iter().map(Bytes::len).sum::<usize>() > MAX_ARGUMENT_BYTES {
        return Err(CommandError::TooLarge { what: "argv", limit_bytes: MAX_ARGUMENT_BYTES });
    }
    if arguments.iter().any(|argument| argument.contains(&0)) {
        return Err(CommandError::Malformed("an argument has no NUL"));
    }
    if arguments.first().is_none_or(Bytes::is_empty) {
        return Err(CommandError::Malformed("entry 0 of argv is not empty"));
    }
    Ok(RequestedProgram::Argv(arguments.into_iter().map(Vec::from).collect()))
}

fn parse_text(text: Bytes) -> Result<RequestedProgram, CommandError> {
    if text.is_empty() {
        return Err(CommandError::Malformed("shell_text has at least 1 byte"));
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(CommandError::TooLarge { what: "shell_text", limit_bytes: MAX_TEXT_BYTES });
    }
    if text.contains(&0) {
        return Err(CommandError::Malformed("shell_text has no NUL"));
    }
    Ok(RequestedProgram::ShellText(text))
}

/// 0 is the default; every other number counts as it is or is refused.
fn parse_timeout(
    millis: i64,
    background: bool,
    max_timeout: Duration,
) -> Result<Option<Duration>, CommandError> {
    if millis == 0 {
        return Ok((!background).then(|| DEFAULT_TIMEOUT.min(max_timeout)));
    }
    let asked = u64::try_from(millis).ok().map(Duration::from_millis);
    if let Some(asked) = asked.filter(|asked| *asked <= max_timeout) {
        return Ok(Some(asked));
    }
    let max_millis = u64::try_from(max_timeout.as_millis()).unwrap_or(u64::MAX);
    Err(CommandError::Timeout { max_millis })
}
