//! Where the content of a volume lies: a folder of the run, or a file system of its own with a size.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use crate::cluster::command::finish;

/// Making and mounting a file system of some gigabytes, most of it never written.
const MOUNT_DEADLINE: Duration = Duration::from_secs(30);

/// Why a volume's place could not be made or removed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError {
    #[error("cannot make or remove {path}")]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("no file system: {0}")]
    System(String),
    #[error("no size: {0}")]
    Size(String),
}

/// One volume's place below the run's `volumes`.
pub(super) struct Place {
    folder: PathBuf,
    /// Holds the file system of a volume with a size; there is none otherwise.
    image: PathBuf,
}

impl Place {
    pub(super) fn new(volumes: &Path, name: &str) -> Self {
        Self { folder: volumes.join(name), image: volumes.join(format!("{name}.ext4")) }
    }

    /// What the pod will see.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A folder on the run's disk, as large as that is.
    pub(super) fn make_folder(&self) -> Result<(), PlaceError> {
        std::fs::create_dir_all(&self.folder).map_err(|source| file(&self.folder, source))
    }

    /// An ext4 of `bytes`, mounted; made once.
    pub(super) async fn make_disk(&self, bytes: u64) -> Result<(), PlaceError> {
        self.make_folder()?;
        if self.image.exists() {
            return Ok(());
        }
        let unfinished = self.image.with_extension("unfinished");
        let made = std::fs::File::create(&unfinished).and_then(|file| file.set_len(bytes));
        made.map_err(|source| file(&unfinished, source))?;
        // Nothing kept back for root, who has nothing to save here.
        system(Command::new("mkfs.ext4").args(["-q", "-m", "0"]).arg(&unfinished)).await?;
        system(Command::new("mount").args(["-o", "loop"]).arg(&unfinished).arg(&self.folder)).await?;
        std::fs::rename(&unfinished, &self.image).map_err(|source| file(&self.image, source))
    }

    /// Removes the content and what held it; nothing there is no error.
    pub(super) async fn remove(&self) -> Result<(), PlaceError> {
        if self.image.exists() {
            system(Command::new("umount").arg(&self.folder)).await?;
            std::fs::remove_file(&self.image).map_err(|source| file(&self.image, source))?;
        }
        match std::fs::remove_dir_all(&self.folder) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(file(&self.folder, source)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Bytes of a quantity as claims have them: a whole number with a binary or decimal suffix
/// (k8s.io/apimachinery, `resource.Quantity`).
pub(super) fn bytes_of(quantity: &str) -> Result<u64, PlaceError> {
    let digits = quantity.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(quantity.len());
    let (number, suffix) = quantity.split_at(digits);
    let factor: u64 = match suffix {
        "" => 1,
        "k" => 1000,
        "M" => 1000_u64.pow(2),
        "G" => 1000_u64.pow(3),
        "T" => 1000_u64.pow(4),
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return Err(PlaceError::Size(quantity.to_owned())),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes.ok_or_else(|| PlaceError::Size(quantity.to_owned()))
}

fn file(path: &Path, source: std::io::Error) -> PlaceError {
    PlaceError::File { path: path.to_owned(), source }
}

async fn system(command: &mut Command) -> Result<(), PlaceError> {
    let done = finish(command, MOUNT_DEADLINE).await;
    done.map(drop).map_err(|cause| PlaceError::System(format!("{cause:#}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_a_number_of_bytes() {
        for (quantity, bytes) in
            [("1Gi", 1_073_741_824), ("500M", 500_000_000), ("64Mi", 67_108_864), ("7", 7)]
        {
            assert_eq!(bytes_of(quantity).expect(quantity), bytes, "{quantity}");
        }
        for odd in ["", "Gi", "1.5Gi", "-1", "1e3", "99999999999Ti"] {
            assert!(bytes_of(odd).is_err(), "{odd}");
        }
    }
}
