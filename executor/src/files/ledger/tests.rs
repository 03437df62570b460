use super::*;

fn key(actor: &str, path: &str) -> LedgerKey {
    LedgerKey::new("w", actor, &WorkspacePath::from_bytes(path.as_bytes()).expect("a path"))
}

#[test]
fn the_least_recently_used_entry_goes_first() {
    let ledger = Ledger::with_capacity(2);
    let version = Version::Content([1; 32]);
    ledger.record(key("a", "one"), version);
    ledger.record(key("a", "two"), version);
    assert_eq!(ledger.known(key("a", "one")), Some(version));
    ledger.record(key("a", "three"), version);
    assert_eq!(ledger.known(key("a", "two")), None);
    assert_eq!(ledger.known(key("a", "one")), Some(version));
    assert_eq!(ledger.known(key("a", "three")), Some(version));
}

#[test]
fn recording_again_replaces_and_keeps_one_entry() {
    let ledger = Ledger::with_capacity(2);
    ledger.record(key("a", "one"), Version::Content([1; 32]));
    ledger.record(key("a", "two"), Version::Content([1; 32]));
    ledger.record(key("a", "one"), Version::Content([2; 32]));
    assert_eq!(ledger.known(key("a", "one")), Some(Version::Content([2; 32])));
    assert_eq!(ledger.known(key("a", "two")), Some(Version::Content([1; 32])));
}

#[test]
fn knowledge_is_each_actors_own_and_one_for_all_spellings() {
    let ledger = Ledger::default();
    ledger.record(key("person:ann", "./a//b"), Version::Content([1; 32]));
    assert_eq!(ledger.known(key("lease:s", "a/b")), None);
    assert!(ledger.known(key("person:ann", "a/b")).is_some());
    assert_eq!(ledger.known(key("person:an", "na/b")), None);
}
