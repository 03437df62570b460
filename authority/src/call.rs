//! What the agent wants to do.

/// One tool call, as the harness understood it after its schema check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Reads a file.
    Read {
        /// As the agent gave it; relative paths start at the workspace root.
        path: String,
    },
    /// Lists a folder.
    ListDir {
        /// As in [`Call::Read`].
        path: String,
    },
    /// Searches text below a path.
    Grep {
        /// As in [`Call::Read`].
        path: String,
    },
    /// Finds names below a path.
    Glob {
        /// As in [`Call::Read`]: the folder, or the pattern where there is no folder.
        path: String,
    },
    /// Creates or replaces a file.
    Write {
        /// As in [`Call::Read`].
        path: String,
    },
    /// Replaces text in a file.
    Edit {
        /// As in [`Call::Read`].
        path: String,
    },
    /// Copies a file or folder.
    Copy {
        /// As in [`Call::Read`].
        from: String,
        /// As in [`Call::Read`].
        to: String,
    },
    /// Renames a file or folder.
    Move {
        /// As in [`Call::Read`].
        from: String,
        /// As in [`Call::Read`].
        to: String,
    },
    /// Deletes a file or folder.
    Remove {
        /// As in [`Call::Read`].
        path: String,
    },
    /// Runs a command in the workspace root.
    Shell {
        /// The text for the shell, byte for byte; not necessarily valid UTF-8.
        command: Vec<u8>,
        /// Whether the call returns before the command ends.
        background: bool,
    },
    /// Looks at a command that runs in the background.
    ShellStatus {
        /// Whether the command is ended as well.
        cancel: bool,
    },
    /// Any other tool, by its catalogue name (`WebFetch`, `mcp__server__tool`).
    Other {
        /// The tool's name.
        tool: String,
        /// What is known of its effect.
        annotations: Annotations,
    },
}

/// What a tool that is not ours to model says about itself. Absent knowledge is the worst: a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Annotations {
    /// The tool changes nothing outside itself.
    pub read_only: bool,
    /// The tool may destroy what is there.
    pub destructive: bool,
}

impl Call {
    /// The catalogue name of the tool.
    pub fn tool(&self) -> &str {
        match self {
            Self::Read { .. } => "Read",
            Self::ListDir { .. } => "ListDir",
            Self::Grep { .. } => "Grep",
            Self::Glob { .. } => "Glob",
            Self::Write { .. } => "Write",
            Self::Edit { .. } => "Edit",
            Self::Copy { .. } => "Copy",
            Self::Move { .. } => "Move",
            Self::Remove { .. } => "Remove",
            Self::Shell { .. } => "Shell",
            Self::ShellStatus { .. } => "ShellStatus",
            Self::Other { tool, .. } => tool,
        }
    }

    /// Whether the call may change something. A command counts as a change here; `decide` reads it and knows better.
    pub fn is_change(&self) -> bool {
        match self {
            Self::Read { .. } | Self::ListDir { .. } | Self::Grep { .. } | Self::Glob { .. } => false,
            Self::Write { .. }
            | Self::Edit { .. }
            | Self::Copy { .. }
            | Self::Move { .. }
            | Self::Remove { .. }
            | Self::Shell { .. } => true,
            Self::ShellStatus { cancel } => *cancel,
            Self::Other { annotations, .. } => !annotations.read_only,
        }
    }

    /// The paths a file tool names, none for other tools.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Self::Read { path }
            | Self::ListDir { path }
            | Self::Grep { path }
            | Self::Glob { path }
            | Self::Write { path }
            | Self::Edit { path }
            | Self::Remove { path } => vec![path],
            Self::Copy { from, to } | Self::Move { from, to } => vec![from, to],
            Self::Shell { .. } | Self::ShellStatus { .. } | Self::Other { .. } => Vec::new(),
        }
    }
}
