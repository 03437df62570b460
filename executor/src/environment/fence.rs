//! The highest epoch that a volume was bound under, and by which process: what keeps a predecessor out for good.

use super::binding::BindError;
use super::identity::{BootId, Epoch};
use super::state::Records;

/// The record's name.
const FILE: &str = "epoch";
const HEADER: &str = "mooring epoch 1";
const MAX_BYTES: usize = 256;

/// One bind of the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    epoch: Epoch,
    boot_id: String,
}

impl Fence {
    /// Puts `epoch` on disk as this process's, unless a higher one was there, or the same one of another process.
    ///
    /// # Errors
    /// [`BindError::StaleEpoch`], [`BindError::Damaged`] for a record that is not one of ours, any error of writing it.
    pub(super) fn raise(records: &Records, epoch: Epoch, boot_id: &BootId) -> Result<(), BindError> {
        let ours = Self { epoch, boot_id: boot_id.as_str().to_owned() };
        if let Some(text) = records.read(FILE, MAX_BYTES)? {
            let kept = Self::parse(&text).ok_or(BindError::Damaged)?;
            if kept == ours {
                return Ok(());
            }
            if epoch.get() <= kept.epoch.get() {
                return Err(BindError::StaleEpoch { have: epoch.get(), current: kept.epoch.get() });
            }
        }
        Ok(records.write(FILE, &ours.print())?)
    }

    fn print(&self) -> String {
        format!("{HEADER}\nepoch {}\nboot {}\n", self.epoch.get(), self.boot_id)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next()? != HEADER {
            return None;
        }
        let epoch = Epoch::new(lines.next()?.strip_prefix("epoch ")?.parse().ok()?)?;
        let boot_id = lines.next()?.strip_prefix("boot ")?.to_owned();
        lines.next().is_none().then_some(Self { epoch, boot_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::state::open_directory;

    fn epoch(number: u64) -> Epoch {
        Epoch::new(number).expect("in bounds")
    }

    #[test]
    fn an_epoch_belongs_to_one_process_and_never_sinks() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::of(open_directory(folder.path()).expect("a folder"));
        let [first, second] = [BootId::new([1; 16]), BootId::new([2; 16])];
        Fence::raise(&records, epoch(3), &first).expect("new");
        Fence::raise(&records, epoch(3), &first).expect("its own");
        for (number, boot) in [(3, &second), (2, &second), (2, &first), (1, &second)] {
            let raised = Fence::raise(&records, epoch(number), boot);
            let Err(BindError::StaleEpoch { have, current: 3 }) = raised else { panic!("{raised:?}") };
            assert_eq!(have, number);
        }
        Fence::raise(&records, epoch(9), &second).expect("higher");
        assert!(matches!(
            Fence::raise(&records, epoch(3), &first),
            Err(BindError::StaleEpoch { current: 9, .. })
        ));
    }

    #[test]
    fn a_damaged_record_lets_nobody_in() {
        for text in [
            "",
            "mooring epoch 1\n",
            "mooring epoch 1\nepoch 0\nboot x\n",
            "mooring epoch 1\nepoch 1\nboot x\ny\n",
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join(FILE), text).expect("a file");
            let records = Records::of(open_directory(folder.path()).expect("a folder"));
            let raised = Fence::raise(&records, epoch(5), &BootId::new([1; 16]));
            assert!(matches!(raised, Err(BindError::Damaged)), "{text:?}");
        }
    }
}
