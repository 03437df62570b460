//! The command line. A flag wins over its variable.

mod duration;
mod files;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand};
use clap_complete::Shell;
use mooring_operator_api::{Mode, session::Profile};
use serde::de::DeserializeOwned;

use crate::output::Format;

pub(crate) use files::FilesCommand;

/// Sessions, their files and their commands.
///
/// Every verb about one session names it first. Exit codes: 0, or the command's own code, 128 + n for its signal n, 126 and 127 for
/// a program that cannot be executed or is not there; 125 for every failure of another kind.
#[derive(Debug, Parser)]
#[command(name = "kubectl-mooring", bin_name = "kubectl mooring", version, arg_required_else_help = true)]
pub(crate) struct Args {
    /// How the cluster is reached.
    #[command(flatten)]
    pub(crate) access: Access,
    /// What is asked for.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How the cluster and the gateway are reached.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Access {
    /// The namespace; left out, the context's own.
    #[arg(short, long, global = true, value_name = "NAME", value_parser = namespace_name)]
    pub(crate) namespace: Option<String>,
    /// The context of the kubeconfig; left out, its current one.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The kubeconfig; left out, as kubectl finds it.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Where the gateway is reached, `https://HOST:PORT`, when that is not where the cluster says. Its certificate is checked
    /// against what the cluster says all the same.
    #[arg(long, global = true, env = "MOORING_GATEWAY", value_name = "URL")]
    pub(crate) gateway: Option<String>,
}

/// What is asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Makes, lists and uses sessions.
    #[command(subcommand, visible_alias = "ses")]
    Session(SessionCommand),
    /// Prints a script that completes `kubectl-mooring` in a shell.
    Completion {
        /// The shell.
        shell: Shell,
    },
}

/// About sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Makes a session; its owner is whoever the API server says you are.
    Create(Create),
    /// Lists the sessions of the namespace.
    #[command(visible_alias = "ls")]
    List {
        /// Of all namespaces.
        #[arg(short = 'A', long)]
        all_namespaces: bool,
        /// How they are written.
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Ends a session for good, its volume with it unless its storage says otherwise.
    Delete {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
    },
    /// Puts a session to sleep: its commands end, its volume stays.
    Suspend {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
    },
    /// Wakes a session.
    Resume {
        /// The session.
        #[arg(value_parser = session_name)]
        name: String,
        /// Wait until it is ready.
        #[arg(long)]
        wait: bool,
        /// How long to wait.
        #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse)]
        wait_timeout: Duration,
    },
    /// Brings a folder into the workspace.
    ///
    /// Files that a `.gitignore` in the folder names are left out; `.git` is not. Links that lead out of the folder, and sockets,
    /// pipes and devices, are left out and told. Files that are there already are replaced, others stay. All or nothing.
    Push(Push),
    /// Brings the workspace, or a folder of it, here.
    ///
    /// Everything arrives in a hidden folder first; only when all of it is found right does it take its place.
    Pull(Pull),
    /// Runs one command in the workspace and ends as it ends.
    ///
    /// Ctrl-C cancels the command and waits for its end; a second one leaves. A broken connection is taken up again where it
    /// broke; the command is never started twice.
    Exec(Exec),
    /// Reads, writes and finds files of the workspace.
    ///
    /// A path is relative to the workspace. `\xHH` in it stands for one byte, as in what is listed.
    #[command(subcommand)]
    Files(FilesCommand),
}

/// What a new session is.
#[derive(Debug, ClapArgs)]
pub(crate) struct Create {
    /// Its name.
    #[arg(value_parser = session_name)]
    pub(crate) name: String,
    /// The ExecutorClass; left out, the one named `default`.
    #[arg(long, value_name = "NAME")]
    pub(crate) class: Option<String>,
    /// `default`, or `no-fs` without files and commands.
    #[arg(long, value_parser = parse::<Profile>)]
    pub(crate) profile: Option<Profile>,
    /// `readOnly`, `askFirst`, `auto` or `fullTrust`; left out, as the API has it.
    #[arg(long, value_parser = parse::<Mode>)]
    pub(crate) mode: Option<Mode>,
    /// How large its volume is, such as `10Gi`; left out, as the class says.
    #[arg(long, value_name = "QUANTITY")]
    pub(crate) storage_size: Option<String>,
    /// Wait until it is ready.
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse)]
    pub(crate) wait_timeout: Duration,
    /// How it is written.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Format,
}

/// A folder and where it goes.
#[derive(Debug, ClapArgs)]
pub(crate) struct Push {
    /// The session.
    #[arg(value_parser = session_name)]
    pub(crate) name: String,
    /// The folder.
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Where in the workspace, made when it is not there; left out, its root.
    #[arg(long, value_name = "PATH", default_value = "")]
    pub(crate) to: OsString,
    /// Ignored files too.
    #[arg(long)]
    pub(crate) all: bool,
    /// Only list what would be brought over; the cluster is not asked.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What is brought here, and where to.
#[derive(Debug, ClapArgs)]
pub(crate) struct Pull {
    /// The session.
    #[arg(value_parser = session_name)]
    pub(crate) name: String,
    /// The folder to fill, made when it is not there.
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Which folder of the workspace; left out, all of it.
    #[arg(long, value_name = "PATH", default_value = "")]
    pub(crate) from: OsString,
    /// Replace files that are there already. Others stay.
    #[arg(long)]
    pub(crate) force: bool,
    /// `.git` too. Its hooks and its configuration name programs that git starts: only when you trust what ran there.
    #[arg(long)]
    pub(crate) with_git: bool,
}

/// A command.
#[derive(Debug, ClapArgs)]
pub(crate) struct Exec {
    /// The session.
    #[arg(value_parser = session_name)]
    pub(crate) name: String,
    /// The program and its arguments.
    #[arg(last = true, value_name = "PROGRAM", required_unless_present = "shell", conflicts_with = "shell")]
    pub(crate) argv: Vec<OsString>,
    /// A text for the class's shell instead.
    #[arg(long, value_name = "TEXT")]
    pub(crate) shell: Option<OsString>,
    /// Pass standard input on.
    #[arg(short = 'i', long = "stdin")]
    pub(crate) stdin: bool,
    /// The folder to start in; left out, the workspace's root.
    #[arg(long, value_name = "PATH", default_value = "")]
    pub(crate) cwd: OsString,
    /// A variable, besides those of the session.
    #[arg(short, long = "env", value_name = "NAME=VALUE")]
    pub(crate) env: Vec<OsString>,
    /// How long it may run; left out, two minutes.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) timeout: Option<Duration>,
}

/// Reads a word as the API spells it.
fn parse<T: DeserializeOwned>(word: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::from(word)).map_err(|error| error.to_string())
}

/// One part of the name of an object (RFC 1123).
fn is_label(text: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_end)
        && bytes.last().is_some_and(is_end)
        && bytes.iter().all(|byte| is_end(byte) || *byte == b'-')
}

/// The name of a session: as Kubernetes objects have them, 253 characters at most.
pub(crate) fn session_name(text: &str) -> Result<String, String> {
    if text.len() <= 253 && text.split('.').all(is_label) {
        return Ok(text.to_owned());
    }
    let is_path = text.contains('/') || text.bytes().all(|byte| byte == b'.');
    let why =
        if is_path { "the name of a session comes first" } else { "lower-case letters, digits, '-' and '.'" };
    Err(why.to_owned())
}

/// The name of a namespace, 63 characters at most.
pub(crate) fn namespace_name(text: &str) -> Result<String, String> {
    let is_name = text.len() <= 63 && is_label(text);
    if is_name { Ok(text.to_owned()) } else { Err("lower-case letters, digits and '-'".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn words_after_the_dashes_are_the_command_s() {
        let args = Args::try_parse_from(["k", "session", "exec", "-n", "a", "s", "--", "go", "-n", "--help"]);
        let args = args.expect("a command line");
        assert_eq!(args.access.namespace.as_deref(), Some("a"));
        let Command::Session(SessionCommand::Exec(exec)) = args.command else { panic!("exec") };
        assert_eq!((exec.name.as_str(), exec.argv), ("s", vec!["go".into(), "-n".into(), "--help".into()]));
    }

    #[test]
    fn a_command_is_words_or_a_text_for_the_shell() {
        assert!(Args::try_parse_from(["k", "session", "exec", "s"]).is_err());
        assert!(Args::try_parse_from(["k", "session", "exec", "s", "--shell", "a", "--", "b"]).is_err());
        assert!(Args::try_parse_from(["k", "session", "exec", "s", "--shell", "a"]).is_ok());
    }

    #[test]
    fn modes_and_profiles_are_spelt_as_in_the_api() {
        assert_eq!(parse::<Mode>("askFirst"), Ok(Mode::AskFirst));
        assert_eq!(parse::<Profile>("no-fs"), Ok(Profile::NoFs));
        assert!(parse::<Profile>("Default").is_err() && parse::<Mode>("").is_err());
    }

    #[test]
    fn a_session_has_a_name_as_objects_of_a_cluster_have() {
        for good in ["a", "first", "a-1.b", &"a".repeat(253)] {
            assert!(session_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "./a", "a/b", "A", "-a", "a-", "a..b", "a b", &"a".repeat(254)] {
            assert!(session_name(bad).is_err(), "{bad}");
        }
    }
}
