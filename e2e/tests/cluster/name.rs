//! Names of any length that the API server takes.

use anyhow::ensure;
use futures::future::try_join_all;
use mooring_e2e::platform::{Namespace, Session};
use serde_json::json;

use super::stage::on_stage;

/// A name of exactly `length` characters, with dots where they may be.
fn name(length: usize) -> String {
    "long-name.".chars().cycle().take(length - 1).chain(['x']).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_63_64_and_253_characters_are_served_and_longer_ones_refused_in_words() {
    on_stage("names", async |stage| {
        let class = json!({"image": stage.ground.image("environment")?, "storage": {"size": "1Gi"}});
        // As long as a namespace's name may be.
        let longest = format!("e2e-{}-{}", std::process::id(), "n".repeat(63));
        let namespace = Namespace::named(&stage.ground, &longest[..63]).await?;
        let ready = try_join_all([63, 64, 253].map(async |length| {
            let name = name(length);
            namespace.apply("ExecutorClass", &name, &class).await?;
            let mut session = Session::apply(&namespace, &name, &json!({"executorClass": name})).await?;
            let bound = session.ready().await?;
            let uid = session.uid().await?;
            assert_eq!(bound.environment.id, format!("{}/{name}/{uid}", namespace.name));
            let executor = session.connect(&bound, &stage.product).await?;
            let entries = executor.list("").await?;
            ensure!(entries.is_empty(), "{entries:?}");
            Ok(())
        }))
        .await;
        namespace.remove().await?;
        ready?;
        let refused = Session::apply(&stage.namespace, &name(254), &json!({})).await;
        let words = refused.err().map(|cause| format!("{cause:#}")).unwrap_or_default();
        ensure!(words.contains("must be no more than 253"), "{words}");
        Ok(())
    })
    .await;
}
