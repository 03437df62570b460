//! A tree of 20,000 files to search in, the same on every machine.

use std::path::Path;

use anyhow::bail;

/// A word that a known number of lines have.
pub(super) const NEEDLE: &str = "needle_in_the_hay";
const FOLDERS: usize = 200;
const FILES_PER_FOLDER: usize = 100;
/// One file in so many has the word, once.
const NEEDLE_EVERY: usize = 40;

/// Makes the tree and gives its number of files: half of them `.rs`, each of about 1.4 KiB.
pub(super) fn make(root: &Path) -> anyhow::Result<usize> {
    let filler = "let hay = straw(); // nothing to see in this line\n".repeat(28);
    for folder in 0..FOLDERS {
        let path = root.join(format!("part{}/folder{folder}", folder % 10));
        std::fs::create_dir_all(&path)?;
        for file in 0..FILES_PER_FOLDER {
            let extension = if file % 2 == 0 { "rs" } else { "txt" };
            let has = (folder * FILES_PER_FOLDER + file).is_multiple_of(NEEDLE_EVERY);
            let text = if has { format!("{filler}{NEEDLE}\n") } else { filler.clone() };
            std::fs::write(path.join(format!("file{file}.{extension}")), text)?;
        }
    }
    Ok(FOLDERS * FILES_PER_FOLDER)
}

/// A search that misses some is not faster.
pub(super) fn expect_needles(found: usize) -> anyhow::Result<()> {
    expect(found, FOLDERS * FILES_PER_FOLDER / NEEDLE_EVERY)
}

pub(super) fn expect_rust_files(found: usize) -> anyhow::Result<()> {
    expect(found, FOLDERS * FILES_PER_FOLDER / 2)
}

fn expect(found: usize, expected: usize) -> anyhow::Result<()> {
    if found != expected {
        bail!("found {found} instead of {expected}");
    }
    Ok(())
}
