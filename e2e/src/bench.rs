//! What the product costs, beside what the same thing costs without it, measured in one run: `./taskw bench`.
//!
//! ```text
//!  rows ──┬▶ measure   ours and the reference sample by sample in turn, so that both meet the same machine
//!    │    │
//!    └──▶ pair         the two halves over socket pairs, spoken to with the clients of mooring-proto
//!  session ┘           Sessions and commands on a real cluster
//!  table             the rows for people, losing ones included, and as JSON for programs
//! ```

mod corpus;
mod measure;
mod pair;
mod rows;
mod session;
mod table;

use std::path::Path;

use anyhow::Context as _;

use crate::platform::{Ground, Namespace, Product};

pub use table::{Row, print, write_json};

/// Measures the executor's rows. Folders are made below `folder`, on the file system that is to be measured, and removed.
///
/// # Errors
/// When a binary is missing or a call fails: a number from a failed call is no number.
pub async fn executor(folder: &Path) -> anyhow::Result<Vec<Row>> {
    std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let scratch = tempfile::Builder::new().prefix("bench-").tempdir_in(folder).context("scratch folder")?;
    let mut rows = vec![];
    rows.extend(rows::start_and_memory(scratch.path()).await?);
    let pair = pair::Pair::start(scratch.path()).await?;
    rows.push(rows::start_true(&pair).await?);
    rows.push(rows::read_4k(&pair).await?);
    rows.push(rows::write_4k(&pair, scratch.path()).await?);
    rows.extend(rows::search(&pair).await?);
    pair.stop().await?;
    Ok(rows)
}

/// Measures the rows of a cluster, which holds the product or gets it, in a namespace that is made and removed. Says which build
/// was measured.
///
/// # Errors
/// When there is no cluster, or something does not come about: a number from a failure is no number.
pub async fn cluster() -> anyhow::Result<(Vec<Row>, String)> {
    let ground = Ground::open().await?;
    let product = Product::installed(&ground).await?;
    let namespace = Namespace::make(&ground, "bench").await?;
    let measured = async {
        let (commands, build) = session::start_true(&namespace, &product).await?;
        Ok((vec![session::cold_start(&namespace).await?, commands], build))
    };
    let measured = measured.await;
    namespace.clone().remove_whole().await?;
    measured
}
