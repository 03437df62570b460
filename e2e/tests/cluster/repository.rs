//! The main job: this repository, with its history, in a Session.

use anyhow::ensure;
use mooring_proto::v1::FileKind;

use super::turn::{said, take_in_peace};

#[tokio::test(flavor = "multi_thread")]
async fn this_repository_arrives_whole_with_its_history() {
    take_in_peace(async |turn| {
        let begun = turn.begun.clone();
        assert_eq!(begun.imported.response.files_written, begun.files);
        let (_, executor) = turn.executor().await?;
        assert_eq!(said(&executor, "git rev-parse HEAD").await?.trim(), begun.head);
        // With no lock taken, git writes nothing.
        let changes = said(&executor, "git --no-optional-locks status --porcelain").await?;
        assert_eq!(changes, begun.changes);
        let count = said(&executor, "git rev-list --count HEAD").await?;
        ensure!(count.trim().parse::<u32>()? > 10, "{count} commits");
        let log = said(&executor, "git log -1 --format=%H").await?;
        assert_eq!(log.trim(), begun.head);
        said(&executor, "git fsck --connectivity-only --no-dangling").await?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_ten_calls_on_files_work_on_it() {
    take_in_peace(async |turn| {
        let (_, executor) = turn.executor().await?;
        let read = executor.read("README.md").await?;
        assert_eq!(read, said(&executor, "cat README.md").await?.as_bytes());
        let root = executor.list("").await?;
        ensure!(root.iter().any(|entry| entry.name == ".git" && entry.kind() == FileKind::Directory));
        let found = executor.grep("^name = \"mooring-", "").await?;
        ensure!(found.iter().any(|found| found.path == "e2e/Cargo.toml"), "{found:?}");
        let found = executor.glob("**/go.mod").await?;
        ensure!(found.contains(&"e2e/reach/go.mod".to_owned()), "{found:?}");

        let written = executor.write("scratch/new.txt", b"one\ntwo\n").await?;
        ensure!(written.created && written.size_bytes == 8, "{written:?}");
        let edited = executor.edit("scratch/new.txt", "two", "three").await?;
        assert_eq!(edited.replacements, 1);
        assert_eq!(executor.copy("scratch/new.txt", "scratch/copy.txt").await?, 10);
        executor.rename("scratch/copy.txt", "scratch/moved.txt").await?;
        let stat = executor.stat("scratch/moved.txt").await?;
        assert_eq!((stat.kind(), stat.size_bytes, stat.mode), (FileKind::Regular, 10, 0o644));
        assert_eq!(executor.read("scratch/moved.txt").await?, b"one\nthree\n");
        for path in ["scratch/moved.txt", "scratch/new.txt", "scratch"] {
            executor.remove(path).await?;
        }
        let gone = executor.stat("scratch").await.expect_err("it is removed");
        assert_eq!(mooring_e2e::execution::code(&gone), Some(mooring_proto::v1::ErrorCode::NotFound));
        Ok(())
    })
    .await;
}
