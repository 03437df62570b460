use super::*;
use crate::store::wall_clock;

struct Fixture {
    base: tempfile::TempDir,
    store: Store,
    session: SessionId,
}

impl Fixture {
    async fn new() -> Self {
        let base = tempfile::tempdir().expect("folder");
        for folder in ["state", "dir/inner", "other"] {
            std::fs::create_dir_all(base.path().join(folder)).expect("folder");
        }
        let store = Store::open(&base.path().join("state/store.db"), wall_clock()).await.expect("store");
        Self { base, store, session: SessionId::new() }
    }

    fn settings(&self, root: &str) -> LocalSettings {
        LocalSettings {
            program: "/nonexistent/mooring-executor".into(),
            root: self.base.path().join(root),
            state: self.base.path().join("state"),
            read_only: Vec::new(),
            variables: Vec::new(),
            withheld: Vec::new(),
        }
    }

    fn resolver(&self, root: &str) -> EnvironmentResolver {
        EnvironmentResolver::new(self.store.clone(), Some(self.settings(root))).expect("resolver")
    }

    /// The outcome as one word.
    async fn resolve(
        &self,
        resolver: &EnvironmentResolver,
        reference: Option<&EnvironmentRef>,
    ) -> &'static str {
        match resolver.resolve(self.session, reference).await {
            Ok(Environment::None) => "none",
            Ok(Environment::Local(_)) => "local",
            Err(error) => error.code(),
        }
    }
}

#[tokio::test]
async fn all_three_parts_are_compared_always() {
    let fixture = Fixture::new().await;
    let resolver = fixture.resolver("dir");
    let bound = resolver.bind_local(None).await.expect("bound");
    let with = |change: fn(&mut EnvironmentRef)| {
        let mut reference = bound.clone();
        change(&mut reference);
        reference
    };
    let none = EnvironmentRef::none(fixture.session);
    let cases = [
        (Some(bound.clone()), "local"),
        (Some(with(|it| it.revision = "0".repeat(32))), "environment_mismatch"),
        (Some(with(|it| it.revision.clear())), "environment_mismatch"),
        (Some(with(|it| it.id.push_str("/inner"))), "environment_unknown"),
        (Some(with(|it| it.id.push_str("/../other"))), "environment_unknown"),
        (Some(with(|it| it.id = "/".to_owned())), "environment_mismatch"),
        (Some(with(|it| it.id.clear())), "environment_mismatch"),
        (Some(with(|it| it.kind = EnvironmentKind::Kubernetes)), "no_resolver"),
        (Some(with(|it| it.kind = EnvironmentKind::None)), "environment_unknown"),
        (Some(none.clone()), "none"),
        (Some(EnvironmentRef::none(SessionId::new())), "environment_unknown"),
        (Some(EnvironmentRef { revision: "1".to_owned(), ..none.clone() }), "environment_mismatch"),
        (None, "environment_unknown"),
    ];
    for (reference, expected) in &cases {
        assert_eq!(fixture.resolve(&resolver, reference.as_ref()).await, *expected, "{reference:?}");
    }
    let without = EnvironmentResolver::new(fixture.store.clone(), None).expect("resolver");
    assert_eq!(fixture.resolve(&without, Some(&bound)).await, "no_resolver");
    assert_eq!(fixture.resolve(&without, Some(&none)).await, "none");
}

#[tokio::test]
async fn another_folder_served_over_old_state_is_a_mismatch_and_never_the_wrong_tree() {
    let fixture = Fixture::new().await;
    let bound = fixture.resolver("dir").bind_local(None).await.expect("bound");
    assert_eq!(fixture.resolve(&fixture.resolver("other"), Some(&bound)).await, "environment_mismatch");
    // An inner folder does not hold what lies around it.
    assert_eq!(fixture.resolve(&fixture.resolver("dir/inner"), Some(&bound)).await, "environment_mismatch");
    assert_eq!(fixture.resolve(&fixture.resolver("dir"), Some(&bound)).await, "local");
}

#[tokio::test]
async fn a_replaced_folder_is_a_mismatch_and_a_missing_one_an_empty_workspace() {
    let fixture = Fixture::new().await;
    let resolver = fixture.resolver("dir");
    let bound = resolver.bind_local(None).await.expect("bound");
    let (dir, aside) = (fixture.base.path().join("dir"), fixture.base.path().join("aside"));
    std::fs::rename(&dir, &aside).expect("rename");
    assert_eq!(fixture.resolve(&resolver, Some(&bound)).await, "empty_workspace");
    std::fs::create_dir(&dir).expect("folder");
    assert_eq!(fixture.resolve(&resolver, Some(&bound)).await, "environment_mismatch");
    std::fs::remove_dir(&dir).expect("remove");
    std::os::unix::fs::symlink(&aside, &dir).expect("link");
    assert_eq!(fixture.resolve(&resolver, Some(&bound)).await, "environment_mismatch");
    std::fs::remove_file(&dir).expect("remove");
    std::fs::write(&dir, "").expect("file");
    assert_eq!(fixture.resolve(&resolver, Some(&bound)).await, "environment_mismatch");
    std::fs::remove_file(&dir).expect("remove");
    std::fs::rename(&aside, &dir).expect("rename");
    assert_eq!(fixture.resolve(&resolver, Some(&bound)).await, "local");
}

#[tokio::test]
async fn a_workspace_is_a_folder_inside_the_served_one() {
    let fixture = Fixture::new().await;
    let resolver = fixture.resolver("dir");
    let base = fixture.base.path().canonicalize().expect("path");
    std::os::unix::fs::symlink(base.join("other"), base.join("dir/out")).expect("link");
    std::fs::write(base.join("dir/file"), "").expect("file");
    let inner = resolver.bind_local(Some("inner")).await.expect("bound");
    assert_eq!(inner.id, base.join("dir/inner").to_str().expect("text"));
    assert_eq!(resolver.bind_local(Some(&inner.id)).await.expect("bound"), inner);
    assert_eq!(fixture.resolve(&resolver, Some(&inner)).await, "local");
    for workspace in ["..", "../other", "/", "out", "file", "absent", "\0"] {
        let error = resolver.bind_local(Some(workspace)).await.expect_err("refused");
        assert!(matches!(error, ResolveError::NotInside), "{workspace}");
    }
}

#[tokio::test]
async fn an_environment_without_an_executor_is_not_ready_and_nothing_acts_in_its_place() {
    let fixture = Fixture::new().await;
    let resolver = fixture.resolver("dir");
    let bound = resolver.bind_local(None).await.expect("bound");
    let Ok(Environment::Local(environment)) = resolver.resolve(fixture.session, Some(&bound)).await else {
        panic!("not local");
    };
    let error = environment.executor().await.expect_err("no executor");
    let ResolveError::NotReady { source: Some(NotReady::Start(cause)) } = &error else { panic!("{error:?}") };
    assert!(matches!(**cause, StartError::Spawn(_)), "{error:?}");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn the_state_folder_and_the_workspace_never_hold_one_another() {
    let fixture = Fixture::new().await;
    for (root, state) in [("dir", "dir"), ("dir", "dir/inner"), ("dir/inner", "dir")] {
        let settings = LocalSettings { state: fixture.base.path().join(state), ..fixture.settings(root) };
        let error = EnvironmentResolver::new(fixture.store.clone(), Some(settings)).err();
        assert!(matches!(error, Some(SettingsError::Overlap { .. })), "{root} {state}");
    }
    let settings = fixture.settings("absent");
    assert!(matches!(
        EnvironmentResolver::new(fixture.store.clone(), Some(settings)).err(),
        Some(SettingsError::Folder { .. })
    ));
}

#[tokio::test]
async fn epochs_of_one_environment_rise_and_are_never_given_twice() {
    let fixture = Fixture::new().await;
    let bound = fixture.resolver("dir").bind_local(None).await.expect("bound");
    let mut epochs = Vec::new();
    for _ in 0..3 {
        epochs.push(fixture.store.next_environment_epoch(&bound).await.expect("epoch"));
    }
    assert_eq!(epochs, [1, 2, 3]);
    let other = EnvironmentRef { revision: "1".repeat(32), ..bound };
    assert_eq!(fixture.store.next_environment_epoch(&other).await.expect("epoch"), 1);
}
