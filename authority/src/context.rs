//! The facts around a call. The harness gathers them; nothing here is looked up.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::count::Counts;
use crate::message::Message;
use crate::mode::Mode;

/// Our own programs: a command that runs one of them is refused in every mode.
pub const OWN_PROGRAMS: [&str; 4] = ["mooring", "mooring-executor", "mooring-operator", "kubectl-mooring"];

/// Everything a decision depends on besides the call itself.
#[derive(Clone, Debug)]
pub struct Context {
    /// Whether the call comes from a run of the session's owner. Anything else is refused.
    pub caller_is_owner_run: bool,
    /// The mode in force at this step.
    pub mode: Mode,
    /// The session's profile, fixed for its life.
    pub profile: Profile,
    /// What the catalogue holds and how the person set single tools.
    pub tools: Tools,
    /// The chat's messages, oldest first, each with its recorded origin.
    pub messages: Vec<Message>,
    /// What the chat has read that is not the owner's word. Never shrinks within a chat.
    pub taints: BTreeSet<Taint>,
    /// Where commands run; `None` in a profile without files.
    pub workspace: Option<Workspace>,
    /// The product's own state, interface and programs.
    pub protected: Protected,
    /// What the run has done so far, this call included.
    pub counts: Counts,
}

/// Which tools a session has at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Profile {
    /// Every tool.
    #[serde(rename = "default")]
    Default,
    /// No file tools, no shell, no fork.
    #[serde(rename = "no-fs")]
    NoFs,
}

impl Profile {
    /// What `no-fs` takes away from the default catalogue.
    pub const FILE_TOOLS: [&str; 13] = [
        "Read",
        "ListDir",
        "Write",
        "Edit",
        "Copy",
        "Move",
        "Remove",
        "Grep",
        "Glob",
        "Shell",
        "ShellStatus",
        "Parallel",
        "SkillDraft",
    ];

    /// Whether a session of this profile may have the tool.
    pub fn has(self, tool: &str) -> bool {
        match self {
            Self::Default => true,
            Self::NoFs => !Self::FILE_TOOLS.contains(&tool),
        }
    }
}

/// The tools of a session, by catalogue name.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// Every tool the session was given; a call to another is refused.
    pub catalogue: BTreeSet<String>,
    /// Tools the person wants to be asked about each time.
    pub ask: BTreeSet<String>,
    /// Tools the person switched off.
    pub off: BTreeSet<String>,
}

/// Something the chat has read that is not the owner's word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Taint {
    /// A fetched page.
    WebFetch,
    /// Search results.
    WebSearch,
    /// The result of a tool of an MCP server.
    Mcp {
        /// The server's configured name.
        server: String,
    },
    /// Something read from, or printed by a command in, a workspace the owner does not vouch for.
    UntrustedWorkspace,
    /// The result of a child that was itself tainted.
    Child,
}

/// Where commands run.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// The root as a command sees it: absolute, no trailing slash.
    pub root: String,
    /// `$HOME` as a command sees it, absolute.
    pub home: Option<String>,
    /// `$TMPDIR` as a command sees it, absolute.
    pub tmp: Option<String>,
    /// Whether the owner vouches for what is in it.
    pub trusted: bool,
    /// What is known of its git repository; `None` means there is none or nobody looked.
    pub git: Option<Git>,
}

/// What is known of the workspace's repository. What is `None` is judged at its worst.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Git {
    /// Whether tracked or untracked work would be lost by a reset.
    pub dirty: Option<bool>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// The default branch of the remote.
    pub default_branch: Option<String>,
    /// Further branches others build on. `main`, `master`, `develop`, `release/…` and the like count without being named.
    pub shared_branches: Vec<String>,
    /// The configured remotes.
    pub remotes: Vec<Remote>,
}

/// A configured remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Its name, `origin`.
    pub name: String,
    /// Where it pushes to.
    pub url: String,
}

/// The product's own ground: no tool and no command may name it, in any mode.
#[derive(Clone, Debug, Default)]
pub struct Protected {
    /// Absolute paths: the state folder, token files, the store. Everything below counts.
    pub paths: Vec<String>,
    /// Folders inside `paths` that belong to commands all the same: their `$HOME`, their `$TMPDIR`.
    pub open: Vec<String>,
    /// Where the product's own HTTP and gRPC interfaces listen.
    pub api: Vec<ApiAddress>,
    /// Programs besides [`OWN_PROGRAMS`] that no command may run, by base name.
    pub programs: Vec<String>,
}

/// One listening address of the product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAddress {
    /// `127.0.0.1`, `::1` or a name. A loopback address stands for all spellings of loopback.
    pub host: String,
    /// The port.
    pub port: u16,
}
