//! The command line of the calls on files.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;

use super::session_name;
use crate::output::Format;

/// About files.
#[derive(Debug, Subcommand)]
pub(crate) enum FilesCommand {
    /// Writes a file to standard output, byte for byte.
    Read {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
        /// The file.
        path: OsString,
        /// Byte to begin at.
        #[arg(long, default_value_t = 0)]
        offset: u64,
        /// How many bytes; 0 means to the end.
        #[arg(long, default_value_t = 0)]
        limit: u64,
    },
    /// Writes standard input, or a local file, to a file. One that is there must have been read before and be unchanged.
    Write {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
        /// The file.
        path: OsString,
        /// The local file.
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Lists a folder.
    #[command(visible_alias = "ls")]
    List {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
        /// The folder; left out, the workspace's root.
        #[arg(default_value = "")]
        path: OsString,
        /// How it is written.
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Describes a path.
    Stat {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
        /// The path.
        path: OsString,
        /// How it is written.
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Replaces text in a file that was read before and is unchanged.
    Edit {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
        /// The file.
        path: OsString,
        /// What is replaced, exactly.
        #[arg(long, allow_hyphen_values = true)]
        old: OsString,
        /// What stands there instead.
        #[arg(long, allow_hyphen_values = true)]
        new: OsString,
        /// Each match; otherwise there must be exactly one.
        #[arg(long)]
        all: bool,
    },
    /// Copies a file to where nothing is.
    #[command(visible_alias = "cp")]
    Copy {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
        /// The file.
        source: OsString,
        /// Where to.
        destination: OsString,
    },
    /// Moves a file or a folder to where nothing is.
    #[command(visible_alias = "mv")]
    Move {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
        /// The file or folder.
        source: OsString,
        /// Where to.
        destination: OsString,
    },
    /// Removes a file, a link, or an empty folder.
    #[command(visible_alias = "rm")]
    Remove {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
        /// The path.
        path: OsString,
    },
    /// Finds lines by a regular expression.
    Grep {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
        /// The expression, in Rust's syntax.
        pattern: String,
        /// The file or folder; left out, the workspace's root.
        #[arg(default_value = "")]
        path: OsString,
        /// Only files whose path matches this.
        #[arg(long, default_value = "")]
        glob: String,
        /// Upper and lower case are the same.
        #[arg(short, long)]
        ignore_case: bool,
        /// Ignored and hidden files too.
        #[arg(long)]
        all: bool,
        /// How it is written.
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Finds files by a pattern such as `**/*.go`.
    Glob {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
        /// The pattern.
        pattern: String,
        /// The folder; left out, the workspace's root.
        #[arg(default_value = "")]
        path: OsString,
        /// Ignored and hidden files too.
        #[arg(long)]
        all: bool,
        /// How it is written.
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
}

impl FilesCommand {
    /// The session it is about.
    pub(crate) fn session(&self) -> &str {
        match self {
            Self::Read { name, .. }
            | Self::Write { name, .. }
            | Self::List { name, .. }
            | Self::Stat { name, .. }
            | Self::Edit { name, .. }
            | Self::Copy { name, .. }
            | Self::Move { name, .. }
            | Self::Remove { name, .. }
            | Self::Grep { name, .. }
            | Self::Glob { name, .. } => name,
        }
    }
}
