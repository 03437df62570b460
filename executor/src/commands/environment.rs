//! The whole environment of one command.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use mooring_proto::v1::Shell;

use crate::environment::{Bound, Variable, Workspace};
use crate::scrub::scrub;

/// Where programs are when nothing says otherwise: the default of Debian's login(1) for root.
const DEFAULT_PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables that tell of the process the environment came from, or of folders a command cannot reach. Its own shell and
/// its own HOME give each anew.
const LEFT_BEHIND: [&[u8]; 10] = [
    b"OLDPWD",
    b"SHLVL",
    b"_",
    b"XDG_CACHE_HOME",
    b"XDG_CONFIG_HOME",
    b"XDG_DATA_HOME",
    b"XDG_RUNTIME_DIR",
    b"XDG_STATE_HOME",
    b"TMP",
    b"TEMP",
];

/// What a command gets, and what was kept from it.
pub(super) struct Environment {
    /// Each name once.
    pub(super) variables: Vec<Variable>,
    /// Names taken out, of the environment's own and of the call's, sorted.
    pub(super) removed: Vec<String>,
}

impl Environment {
    /// The environment's own variables and over them those of the call, scrubbed together; over them what the workspace
    /// gives every command.
    pub(super) fn of_command(
        bound: &Bound,
        workspace: &Workspace,
        cwd: &Path,
        of_call: Vec<Variable>,
    ) -> Self {
        let own = bound.variables.kept().iter();
        let own = own.filter(|(name, _)| !LEFT_BEHIND.contains(&name.as_slice())).cloned();
        let scrubbed = scrub(own.chain(of_call), bound.variables.readmitted());
        let mut removed = [bound.variables.removed(), &scrubbed.removed].concat();
        removed.sort_unstable();
        removed.dedup();

        let mut variables = scrubbed.kept;
        let shell: &[u8] = match bound.shell {
            Shell::Bash => b"/bin/bash",
            Shell::Sh | Shell::Unspecified => b"/bin/sh",
        };
        set(&mut variables, b"HOME", workspace.home.as_os_str().as_bytes());
        set(&mut variables, b"TMPDIR", workspace.tmp.as_os_str().as_bytes());
        set(&mut variables, b"PWD", cwd.as_os_str().as_bytes());
        set(&mut variables, b"SHELL", shell);
        set_default(&mut variables, b"PATH", DEFAULT_PATH);
        set_default(&mut variables, b"TERM", b"dumb");
        if !has(&variables, b"LC_ALL") {
            set_default(&mut variables, b"LANG", b"C.UTF-8");
        }
        Self { variables, removed }
    }
}

fn has(variables: &[Variable], name: &[u8]) -> bool {
    variables.iter().any(|(known, _)| known == name)
}

fn set(variables: &mut Vec<Variable>, name: &[u8], value: &[u8]) {
    variables.retain(|(known, _)| known != name);
    variables.push((name.to_vec(), value.to_vec()));
}

fn set_default(variables: &mut Vec<Variable>, name: &[u8], value: &[u8]) {
    if !has(variables, name) {
        set(variables, name, value);
    }
}
