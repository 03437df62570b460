//! SHA-256 in hexadecimal digits: names for content.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};

/// All 64 digits.
pub fn whole(bytes: &[u8]) -> String {
    digits(&Sha256::digest(bytes))
}

/// The first sixteen digits: enough for a name.
pub fn short(bytes: &[u8]) -> String {
    digits(&Sha256::digest(bytes)[..8])
}

/// [`short`] of a file, which may be large.
///
/// # Errors
/// When it cannot be read.
pub fn short_of_file(path: &Path) -> anyhow::Result<String> {
    let mut digest = Sha256::new();
    let mut file = std::fs::File::open(path).with_context(|| format!("open {}", path.display()))?;
    std::io::copy(&mut file, &mut digest).with_context(|| format!("read {}", path.display()))?;
    Ok(digits(&digest.finalize()[..8]))
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("a string takes everything");
        digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_its_bytes_have_one_digest() {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), "abc").expect("write");
        // FIPS 180-2, appendix B.1.
        assert_eq!(short(b"abc"), "ba7816bf8f01cfea");
        assert_eq!(short_of_file(file.path()).expect("digest"), short(b"abc"));
        assert!(whole(b"abc").starts_with(&short(b"abc")));
    }
}
