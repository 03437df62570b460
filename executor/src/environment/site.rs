//! Where this executor keeps its environment, which decides the kind it serves.

use std::io;
use std::path::{Path, PathBuf};

use mooring_proto::v1::EnvironmentKind;

use super::variables::Variable;

/// Names that the commands of a pod take from the image, besides what Bind brings. HOME, SHELL and TMPDIR are set anew for
/// each command.
const OF_IMAGE: [&[u8]; 9] =
    [b"HOME", b"LANG", b"LOGNAME", b"PATH", b"SHELL", b"TERM", b"TMPDIR", b"TZ", b"USER"];
const OF_IMAGE_PREFIX: &[u8] = b"LC_";

/// What an executor process was started for. It serves one kind of environment and no other.
#[derive(Debug)]
pub enum Site {
    /// Kind `local`: Bind names the folders.
    Folders,
    /// Kind `kubernetes`: everything is on one volume.
    Volume(Volume),
}

/// The volume of a pod.
#[derive(Debug)]
pub struct Volume {
    /// Canonical.
    pub(super) root: PathBuf,
    /// What commands start from before anything that Bind brings.
    pub(super) of_image: Vec<Variable>,
}

impl Volume {
    /// The volume mounted at `root`. Of `environment`, this process's own, only what describes the image is kept.
    ///
    /// # Errors
    /// When `root` is not there or no folder.
    pub fn new(root: &Path, environment: impl IntoIterator<Item = Variable>) -> io::Result<Self> {
        let root = std::fs::canonicalize(root)?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let is_of_image = |name: &[u8]| OF_IMAGE.contains(&name) || name.starts_with(OF_IMAGE_PREFIX);
        let of_image = environment.into_iter().filter(|(name, _)| is_of_image(name)).collect();
        Ok(Self { root, of_image })
    }
}

impl Site {
    /// The kind it serves.
    pub fn kind(&self) -> EnvironmentKind {
        match self {
            Self::Folders => EnvironmentKind::Local,
            Self::Volume(_) => EnvironmentKind::Kubernetes,
        }
    }

    /// What commands start from before anything that Bind brings.
    pub(super) fn of_image(&self) -> &[Variable] {
        match self {
            Self::Folders => &[],
            Self::Volume(volume) => &volume.of_image,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_describes_the_image_is_kept_of_a_pods_environment() {
        let environment = [
            ("PATH", "/go/bin:/bin"),
            ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
            ("HOSTNAME", "ses-1"),
            ("LC_ALL", "C"),
            ("TZ", "UTC"),
            ("PATHS", "x"),
            ("GITHUB_TOKEN", "x"),
        ];
        let environment =
            environment.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        let volume = Volume::new(Path::new("/"), environment).expect("a folder");
        let kept: Vec<&[u8]> = volume.of_image.iter().map(|(name, _)| name.as_slice()).collect();
        assert_eq!(kept, [b"PATH".as_slice(), b"LC_ALL", b"TZ"]);
    }

    #[test]
    fn a_volume_is_a_folder() {
        assert!(Volume::new(Path::new("/no/such/folder"), []).is_err());
        assert!(Volume::new(Path::new("/proc/self/stat"), []).is_err());
    }
}
