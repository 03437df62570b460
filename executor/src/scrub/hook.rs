//! Variables that make a loader, a shell, an interpreter or a tool run or load something else.
//!
//! None is a secret. They go because a command should run what its text says: a hook set by the person's own shell, or
//! by a class for another program, would run inside every command.

/// Beginnings of whole families, as they are written.
const BEGINNINGS: &[&str] = &[
    "BASH_FUNC_",   // exported functions, bash(1)
    "COR_PROFILER", // .NET profilers
    "CORECLR_PROFILER",
    "DYLD_",    // dyld(1)
    "GIT_",     // git(1): helpers, hooks, configuration, other repositories
    "LD_",      // ld.so(8)
    "LUA_INIT", // lua(1)
    "PERL5",    // perlrun(1)
];

/// What stays of `GIT_`: who wrote and who committed (git(1), "Git Commits").
const GIT_AUTHORSHIP: &[&str] = &[
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
];

/// Whole names, as they are written.
const NAMES: &[&str] = &[
    // Shells: bash(1), zshall(1), sh(1p). They run text, find functions, write what was typed, or read it otherwise.
    "BASHOPTS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "ENV",
    "FPATH",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "ZDOTDIR",
    "CDPATH",
    "GLOBIGNORE",
    "HISTFILE",
    "IFS",
    // C library, the list of names it drops itself in a privileged program: ld.so(8), glibc sysdeps/generic/unsecvars.h.
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "HOSTALIASES",
    "MALLOC_TRACE",
    "NIS_PATH",
    "RESOLV_HOST_CONF",
    // Interpreters and virtual machines.
    "DOTNET_STARTUP_HOOKS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "LUA_CPATH",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "R_PROFILE",
    "R_PROFILE_USER",
    // Build tools.
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "GCC_EXEC_PREFIX",
    "MAKEFILES",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    // OpenSSL loads engines and providers by these: openssl-env(7). The other writes session keys to a file.
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "SSLKEYLOGFILE",
    // Programs that other programs start, or that run text at start.
    "BROWSER",
    "EDITOR",
    "EXINIT",
    "FCEDIT",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "VIMINIT",
    "VISUAL",
];

/// Names that npm reads in any case (npm-config(7), "Environment Variables").
const NPM_NAMES: &[&str] = &["NPM_CONFIG_NODE_OPTIONS", "NPM_CONFIG_SCRIPT_SHELL"];

/// Endings of names: `AWS_PAGER`, `KUBE_EDITOR`.
const ENDINGS: &[&str] = &["_BROWSER", "_EDITOR", "_PAGER"];

/// What of `PYTHON…` changes output, speed or checks alone (python(1), "ENVIRONMENT VARIABLES"); all else may load code.
const PYTHON_SETTINGS: &[&str] = &[
    "PYTHONASYNCIODEBUG",
    "PYTHONCOERCECLOCALE",
    "PYTHONDEBUG",
    "PYTHONDEVMODE",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
    "PYTHONHASHSEED",
    "PYTHONINTMAXSTRDIGITS",
    "PYTHONIOENCODING",
    "PYTHONMALLOC",
    "PYTHONNODEBUGRANGES",
    "PYTHONNOUSERSITE",
    "PYTHONOPTIMIZE",
    "PYTHONPROFILEIMPORTTIME",
    "PYTHONSAFEPATH",
    "PYTHONTRACEMALLOC",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "PYTHONVERBOSE",
];

/// Whether a variable of this name is a hook. `upper` is the same name in upper case.
pub(super) fn is_hook(name: &str, upper: &str) -> bool {
    if GIT_AUTHORSHIP.contains(&name) {
        return false;
    }
    NAMES.contains(&name)
        || NPM_NAMES.contains(&upper)
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || is_interpreter_setting(name, "PYTHON") && !PYTHON_SETTINGS.contains(&name)
        || is_interpreter_setting(name, "RUBY")
}

/// `PYTHONPATH`, but not `PYTHON` or `PYTHON_VERSION`, which the interpreter does not read.
fn is_interpreter_setting(name: &str, interpreter: &str) -> bool {
    name.strip_prefix(interpreter)
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_alphabetic()))
}
