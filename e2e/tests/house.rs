//! The rules of the repository, as tests over its files and its dependency graph.

use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "house/files.rs"]
mod files;
#[path = "house/protocol.rs"]
mod protocol;
#[path = "house/rooms.rs"]
mod rooms;

/// The repository's root.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this room stands in the repository")
}

/// Every file that is or may be committed, relative to the root.
fn files() -> Vec<PathBuf> {
    let listed = output(
        Command::new("git")
            // The checkout may belong to another user than the tests run as.
            .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root()),
    );
    let mut files: Vec<PathBuf> =
        listed.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
    files.retain(|file| root().join(file).is_file());
    files.sort();
    files.dedup();
    assert!(files.contains(&PathBuf::from("Cargo.toml")), "git lists the files of {}", root().display());
    files
}

/// The files of which `is_wanted` holds, with their text.
fn texts(is_wanted: impl Fn(&Path) -> bool) -> Vec<(PathBuf, String)> {
    files().into_iter().filter(|file| is_wanted(file)).map(|file| (file.clone(), text(&file))).collect()
}

/// The text of one file, given from the root.
fn text(file: impl AsRef<Path>) -> String {
    let path = root().join(file);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn has_extension(file: &Path, extensions: &[&str]) -> bool {
    file.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
}

/// What a program prints, when it succeeds.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Fails with every offence, not with the first alone.
#[track_caller]
fn check_none(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}
