//! What a local environment's commands are given of this machine: variables to start from, and folders to read.
//!
//! Commands have a HOME of their own. So tools that keep programs or downloads under the person's home are pointed to the
//! real places, read-only, and everything that names a place to write to is left out, which sends it to the new HOME:
//!
//! - Rust: `RUSTUP_HOME` whole; of `CARGO_HOME` the folders `bin`, `registry` and `git` alone, since its files may be
//!   credentials. Where it has a configuration file, which cargo insists on reading, cargo starts with an empty home.
//! - Go: the toolchain's own root and the module cache. The module cache is read-only, so what is missing there is a
//!   clear error of `go` rather than a download; `GOTOOLCHAIN=local` for the same reason. `GOCACHE` and `GOPATH` fall to
//!   the new HOME, which is all that `go test` of a module with its dependencies at hand writes to.
//!
//! The executor scrubs the variables again; what is taken out here is what it cannot know: this product's settings, the
//! names under which a provider's key was given, and the person's own folders.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A variable's name and value.
pub type Variable = (OsString, OsString);

/// Places that a tool writes to. Left out, each has its default below the new HOME or TMPDIR.
const WRITABLE_PLACES: [&str; 27] = [
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "GOBIN",
    "GOCACHE",
    "GOENV",
    "GOPATH",
    "GOTMPDIR",
    "GRADLE_USER_HOME",
    "HISTFILE",
    "HOME",
    "MAVEN_USER_HOME",
    "MYPY_CACHE_DIR",
    "NPM_CONFIG_CACHE",
    "OLDPWD",
    "PIP_CACHE_DIR",
    "PWD",
    "PYTHONPYCACHEPREFIX",
    "RUFF_CACHE_DIR",
    "TEMP",
    "TMP",
    "TMPDIR",
    "UV_CACHE_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// The most folders that a Bind may name.
const MAX_READ_ONLY: usize = 256;

/// What commands start from and may read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// In the order inherited, each name once.
    pub variables: Vec<Variable>,
    /// Existing folders, canonical, sorted.
    pub read_only: Vec<PathBuf>,
}

/// Works out what is given.
///
/// `inherited` is this process's environment; `withheld` are further names to leave out; `read_only` are folders that the
/// person named. A folder that is, holds or lies in one of `hidden` (the state folder, the tree) is never granted, neither
/// is one that does not exist.
pub fn given(
    inherited: impl IntoIterator<Item = Variable>,
    withheld: &[String],
    read_only: &[PathBuf],
    hidden: &[PathBuf],
) -> Given {
    let inherited: Vec<Variable> = inherited.into_iter().collect();
    let mut variables: Vec<Variable> = Vec::new();
    for (name, value) in &inherited {
        if is_passed(name, withheld) && !variables.iter().any(|(earlier, _)| earlier == name) {
            variables.push((name.clone(), value.clone()));
        }
    }
    let mut work = Work { inherited, variables, granted: read_only.to_vec() };
    work.path();
    work.rust();
    work.go();
    let mut granted: Vec<PathBuf> =
        work.granted.iter().filter_map(|folder| grantable(folder, hidden)).collect();
    granted.sort();
    granted.dedup();
    granted.truncate(MAX_READ_ONLY);
    Given { variables: work.variables, read_only: granted }
}

struct Work {
    inherited: Vec<Variable>,
    variables: Vec<Variable>,
    granted: Vec<PathBuf>,
}

impl Work {
    fn inherited(&self, name: &str) -> Option<PathBuf> {
        let value = self.inherited.iter().find(|(have, _)| have == name).map(|(_, value)| value)?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    }

    fn below_home(&self, name: &str) -> Option<PathBuf> {
        self.inherited("HOME").map(|home| home.join(name))
    }

    fn set(&mut self, name: &str, value: &Path) {
        self.variables.retain(|(have, _)| have != name);
        self.variables.push((name.into(), value.into()));
    }

    fn unset(&mut self, name: &str) {
        self.variables.retain(|(have, _)| have != name);
    }

    /// Absolute folders of PATH.
    fn path(&mut self) {
        let Some(path) = self.inherited("PATH") else { return };
        let folders: Vec<PathBuf> =
            std::env::split_paths(path.as_os_str()).filter(|folder| folder.is_absolute()).collect();
        self.granted.extend(folders);
    }

    fn rust(&mut self) {
        let rustup = self.inherited("RUSTUP_HOME").or_else(|| self.below_home(".rustup"));
        if let Some(rustup) = rustup.filter(|folder| folder.is_dir()) {
            self.set("RUSTUP_HOME", &rustup);
            self.granted.push(rustup);
        }
        let cargo = self.inherited("CARGO_HOME").or_else(|| self.below_home(".cargo"));
        self.unset("CARGO_HOME");
        let Some(cargo) = cargo.filter(|folder| folder.is_dir()) else { return };
        self.granted.extend(["bin", "registry", "git"].map(|name| cargo.join(name)));
        let has_configuration = ["config.toml", "config"].iter().any(|name| cargo.join(name).exists());
        if !has_configuration {
            self.set("CARGO_HOME", &cargo);
        }
    }

    fn go(&mut self) {
        let root = self.inherited("GOROOT").or_else(|| self.go_root_by_path());
        let Some(root) = root.filter(|root| root.join("src").is_dir()) else {
            self.unset("GOROOT");
            return;
        };
        self.granted.push(root);
        let cache = self
            .inherited("GOMODCACHE")
            .or_else(|| self.go_path().map(|path| path.join("pkg/mod")))
            .filter(|folder| folder.is_dir());
        match cache {
            Some(cache) => {
                self.set("GOMODCACHE", &cache);
                self.granted.push(cache);
            }
            None => self.unset("GOMODCACHE"),
        }
        self.set("GOTOOLCHAIN", Path::new("local"));
    }

    /// Where the `go` of PATH lives: `go` finds its root by its own place, links followed.
    fn go_root_by_path(&self) -> Option<PathBuf> {
        let path = self.inherited("PATH")?;
        std::env::split_paths(path.as_os_str())
            .filter(|folder| folder.is_absolute())
            .find_map(|folder| std::fs::canonicalize(folder.join("go")).ok())
            .and_then(|program| program.parent()?.parent().map(Path::to_owned))
    }

    /// The first entry of GOPATH, where `go` keeps its module cache.
    fn go_path(&self) -> Option<PathBuf> {
        match self.inherited("GOPATH") {
            Some(path) => std::env::split_paths(path.as_os_str()).next(),
            None => self.below_home("go"),
        }
    }
}

fn is_passed(name: &OsStr, withheld: &[String]) -> bool {
    let bytes = name.as_bytes();
    !bytes.is_empty()
        && !bytes.starts_with(b"MOORING_")
        && !withheld.iter().any(|other| name == other.as_str())
        && !WRITABLE_PLACES.iter().any(|other| name == *other)
}

/// The canonical form of a folder that may be shown.
fn grantable(folder: &Path, hidden: &[PathBuf]) -> Option<PathBuf> {
    let folder = std::fs::canonicalize(folder).ok().filter(|folder| folder.is_dir())?;
    let shows = hidden.iter().any(|place| place.starts_with(&folder) || folder.starts_with(place));
    (!shows).then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(folders: &[&str], files: &[&str]) -> tempfile::TempDir {
        let base = tempfile::tempdir().expect("folder");
        for folder in folders {
            std::fs::create_dir_all(base.path().join(folder)).expect("folder");
        }
        for file in files {
            std::fs::write(base.path().join(file), "").expect("file");
        }
        base
    }

    /// What is given, with `$B` for the base folder, from variables written the same way.
    fn shown(base: &Path, inherited: &[(&str, &str)], hidden: &[&str]) -> (Vec<String>, Vec<String>) {
        let base_text = base.to_str().expect("text");
        let inherited =
            inherited.iter().map(|(name, value)| ((*name).into(), value.replace("$B", base_text).into()));
        let hidden: Vec<PathBuf> = hidden.iter().map(|place| base.join(place)).collect();
        let given = given(inherited, &["MY_PROVIDER_KEY".to_owned()], &[], &hidden);
        let show = |text: &OsStr| text.to_str().expect("text").replace(base_text, "$B");
        let variables = given.variables.iter().map(|(name, value)| format!("{}={}", show(name), show(value)));
        (variables.collect(), given.read_only.iter().map(|folder| show(folder.as_os_str())).collect())
    }

    #[test]
    fn toolchains_are_readable_and_caches_go_to_the_new_home() {
        let base = tree(
            &[
                "home/.rustup",
                "home/.cargo/bin",
                "home/.cargo/registry",
                "home/go/pkg/mod",
                "go/src",
                "go/bin",
            ],
            &["go/bin/go", "home/.cargo/credentials.toml"],
        );
        let (variables, read_only) = shown(
            base.path(),
            &[
                ("HOME", "$B/home"),
                ("PATH", "$B/go/bin:$B/home/.cargo/bin:relative::/nonexistent"),
                ("GOCACHE", "$B/home/.cache/go-build"),
                ("XDG_CACHE_HOME", "$B/home/.cache"),
                ("TZ", "UTC"),
            ],
            &[],
        );
        assert_eq!(
            variables,
            [
                "PATH=$B/go/bin:$B/home/.cargo/bin:relative::/nonexistent",
                "TZ=UTC",
                "RUSTUP_HOME=$B/home/.rustup",
                "CARGO_HOME=$B/home/.cargo",
                "GOMODCACHE=$B/home/go/pkg/mod",
                "GOTOOLCHAIN=local"
            ]
        );
        assert_eq!(
            read_only,
            [
                "$B/go",
                "$B/go/bin",
                "$B/home/.cargo/bin",
                "$B/home/.cargo/registry",
                "$B/home/.rustup",
                "$B/home/go/pkg/mod"
            ]
        );
    }

    #[test]
    fn our_own_settings_and_the_providers_key_are_never_given() {
        let base = tree(&[], &[]);
        let (variables, _) = shown(
            base.path(),
            &[
                ("MOORING_MODEL_KEY", "k"),
                ("MY_PROVIDER_KEY", "k"),
                ("LANG", "C"),
                ("LANG", "twice"),
                ("", "x"),
            ],
            &[],
        );
        assert_eq!(variables, ["LANG=C"]);
    }

    #[test]
    fn a_folder_that_shows_the_state_or_the_tree_is_not_granted() {
        let base = tree(&["home/state/bin", "home/tools", "home/tree/bin"], &[]);
        let path = "$B/home:$B/home/state/bin:$B/home/tools:/:$B/home/tree/bin:$B/home/state";
        let (_, read_only) = shown(base.path(), &[("PATH", path)], &["home/state", "home/tree"]);
        assert_eq!(read_only, ["$B/home/tools"]);
    }

    #[test]
    fn a_cargo_home_with_a_configuration_file_is_not_made_the_home_of_commands() {
        let base = tree(&["cargo/bin"], &["cargo/config.toml"]);
        let (variables, read_only) = shown(base.path(), &[("CARGO_HOME", "$B/cargo")], &[]);
        assert_eq!((variables, read_only), (vec![], vec!["$B/cargo/bin".to_owned()]));
    }
}
