use k8s_openapi::api::core::v1::Pod;
use kube::api::ObjectMeta;

use super::*;

/// What the names of one Session's pods begin with: their key.
const CLAIM: &str = "ses-00000000000000000000";

/// The name of the pod that a test calls by one letter.
fn full(letter: &str) -> String {
    format!("{CLAIM}-{}", letter.as_bytes()[0])
}

fn pod(name: &str, version: u64) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(full(name)),
            namespace: Some("team-a".to_owned()),
            uid: Some(format!("uid of {name}")),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    }
}

fn name(name: &str) -> ObjectRef<Pod> {
    ObjectRef::new(&full(name)).within("team-a")
}

/// A cache that has listed these.
fn listed(pods: &[Pod]) -> (Cache<Pod>, Feed<Pod>) {
    let (cache, mut feed) = cache();
    list(&mut feed, pods);
    (cache, feed)
}

fn list(feed: &mut Feed<Pod>, pods: &[Pod]) {
    feed.take(&Event::Init);
    for pod in pods {
        feed.take(&Event::InitApply(pod.clone()));
    }
    feed.take(&Event::InitDone);
}

fn seen(cache: &Cache<Pod>, of: &str) -> Option<u64> {
    cache.get(&name(of)).map(|pod| version(&*pod))
}

fn with_key(cache: &Cache<Pod>) -> Vec<String> {
    let number = |pod: &Pod| pod.name_any().rsplit('-').next().and_then(|digits| digits.parse().ok());
    let letters = cache
        .with_key(CLAIM)
        .iter()
        .filter_map(|pod| number(pod))
        .map(|it: u8| char::from(it))
        .collect::<String>();
    let mut letters: Vec<String> = letters.chars().map(String::from).collect();
    letters.sort();
    letters
}

#[test]
fn absence_is_believed_only_from_a_complete_list() {
    let (cache, mut feed) = cache();
    assert!(!cache.is_complete());
    list(&mut feed, &[]);
    assert!(cache.is_complete());
    feed.take(&Event::Init);
    assert!(!cache.is_complete(), "the watch began anew");
    feed.take(&Event::InitDone);
    assert!(cache.is_complete());
}

#[test]
fn our_own_write_is_seen_before_the_watch_shows_it() {
    let (cache, mut feed) = listed(&[pod("a", 10)]);
    cache.wrote(pod("a", 12));
    cache.wrote(pod("b", 13));
    assert_eq!((seen(&cache, "a"), seen(&cache, "b")), (Some(12), Some(13)));
    assert_eq!(with_key(&cache), ["a", "b"]);
    feed.take(&Event::Apply(pod("a", 14)));
    assert_eq!(seen(&cache, "a"), Some(14));
}

#[test]
fn an_answer_that_comes_after_the_watch_brings_nothing_back() {
    let (cache, mut feed) = listed(&[pod("a", 10)]);
    feed.take(&Event::Apply(pod("b", 11)));
    feed.take(&Event::Delete(pod("b", 12)));
    cache.wrote(pod("b", 11));
    assert_eq!(seen(&cache, "b"), None);
    assert_eq!(with_key(&cache), ["a"]);
}

#[test]
fn what_we_wrote_and_somebody_deleted_is_gone_once_the_watch_is_past_it() {
    let (cache, mut feed) = listed(&[pod("a", 10)]);
    cache.wrote(pod("b", 11));
    feed.take(&Event::Apply(pod("b", 11)));
    feed.take(&Event::Delete(pod("b", 12)));
    assert_eq!(seen(&cache, "b"), None);
}

#[test]
fn what_we_wrote_before_a_list_is_in_it_or_gone() {
    let (cache, mut feed) = listed(&[pod("a", 10)]);
    cache.wrote(pod("b", 11));
    feed.take(&Event::Init);
    cache.wrote(pod("c", 12));
    feed.take(&Event::InitApply(pod("a", 10)));
    feed.take(&Event::InitDone);
    assert_eq!((seen(&cache, "b"), seen(&cache, "c")), (None, Some(12)));
    assert_eq!(with_key(&cache), ["a", "c"]);
}

#[test]
fn what_we_deleted_is_gone_before_the_watch_shows_it_and_its_namesake_is_not() {
    let (cache, mut feed) = listed(&[pod("a", 10)]);
    cache.deleted(name("a"), "uid of a");
    assert_eq!(seen(&cache, "a"), None);
    let mut namesake = pod("a", 13);
    namesake.metadata.uid = Some("another".to_owned());
    feed.take(&Event::Delete(pod("a", 12)));
    feed.take(&Event::Apply(namesake));
    assert_eq!(seen(&cache, "a"), Some(13));
}

#[tokio::test]
async fn a_broken_watch_goes_on_and_tells_what_changed() {
    let (cache, feed) = cache();
    cache.wrote(pod("a", 3));
    let events = futures::stream::iter(vec![
        Ok(Event::Init),
        Ok(Event::InitApply(pod("a", 2))),
        Ok(Event::InitDone),
        Err(watcher::Error::NoResourceVersion),
        Ok(Event::Apply(pod("a", 3))),
        Ok(Event::Apply(pod("a", 4))),
        Ok(Event::Delete(pod("a", 5))),
    ]);
    let told = Mutex::new(Vec::new());
    let follow = feed.follow(events, |change| {
        let text = match change {
            Change::Applied { before, now, is_own } => {
                format!("{:?} {} {is_own}", before.map(|pod| version(&*pod)), version(now))
            }
            Change::Deleted(pod) => format!("deleted {}", version(pod)),
            Change::Listed => "listed".to_owned(),
        };
        told.lock().expect("no panic").push(text);
        std::future::ready(())
    });
    Box::pin(follow).await;
    let told = told.into_inner().expect("no panic");
    assert_eq!(told, ["listed", "Some(2) 3 false", "Some(3) 4 false", "deleted 5"]);
}
