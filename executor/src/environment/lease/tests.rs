use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::environment::state::open_directory;

fn open(path: &Path) -> Result<Leases, LeaseError> {
    Leases::open(Records::of(open_directory(path).expect("a folder")))
}

async fn admit(leases: &Leases, session: &str, epoch: u64) -> Result<(), LeaseError> {
    leases.admit(&Arc::from(session), epoch).await
}

#[tokio::test]
async fn the_highest_epoch_is_on_disk_before_it_admits() {
    let folder = tempfile::tempdir().expect("a folder");
    let leases = open(folder.path()).expect("empty");
    admit(&leases, "a", 3).await.expect("first");
    admit(&leases, "b\n 9", 1).await.expect("any name");
    let reopened = open(folder.path()).expect("kept");
    for leases in [&leases, &reopened] {
        assert!(matches!(admit(leases, "a", 2).await, Err(LeaseError::Stale { have: 2 })));
        admit(leases, "a", 3).await.expect("the same");
        admit(leases, "b\n 9", 1).await.expect("the same");
    }
    admit(&reopened, "a", 4).await.expect("higher");
}

#[tokio::test]
async fn an_epoch_that_cannot_be_kept_does_not_admit() {
    let folder = tempfile::tempdir().expect("a folder");
    let leases = open(folder.path()).expect("empty");
    // A folder where the next table would be written.
    std::fs::create_dir(folder.path().join("leases.next")).expect("a folder");
    assert!(matches!(admit(&leases, "a", 1).await, Err(LeaseError::Keep(_))));
    std::fs::remove_dir(folder.path().join("leases.next")).expect("removed");
    admit(&leases, "a", 1).await.expect("nothing of it was remembered");
}

#[test]
fn a_damaged_table_is_refused() {
    for text in [
        "",
        "x",
        "mooring leases 1",
        "mooring leases 2\n",
        "mooring leases 1\n1 zz\n",
        "mooring leases 1\n\n",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(FILE), text).expect("a file");
        assert!(matches!(open(folder.path()), Err(LeaseError::Damaged)), "{text:?}");
    }
}

proptest! {
    #[test]
    fn a_printed_table_reads_back(
        epochs in proptest::collection::btree_map("\\PC{1,20}", 1..=u64::MAX >> 1, 0..20),
    ) {
        let epochs = epochs.into_iter().map(|(session, epoch)| (Arc::from(session), epoch)).collect();
        prop_assert_eq!(parse(&print(&epochs)), Some(epochs));
    }
}
