use proptest::prelude::*;

use super::*;

fn apply(content: &[u8], old: &[u8], new: &[u8], replace_all: bool) -> Result<(Vec<u8>, u32), FileError> {
    Edit::new(old.to_vec(), new.to_vec(), replace_all)?.apply(&WorkspacePath::root(), content)
}

#[test]
fn one_match_is_replaced_and_every_other_byte_stays() {
    let content = b"\xef\xbb\xbfa\r\nb\xff\r\nc";
    assert_eq!(apply(content, b"b\xff", b"B", false), Ok((b"\xef\xbb\xbfa\r\nB\r\nc".to_vec(), 1)));
    assert_eq!(apply(b"x", b"x", b"", false), Ok((Vec::new(), 1)));
}

#[test]
fn no_match_and_two_matches_are_refused_with_their_count() {
    let path = WorkspacePath::root();
    assert_eq!(apply(b"abc", b"d", b"e", true), Err(FileError::NoMatch { path: path.clone() }));
    assert_eq!(
        apply(b"a a a", b"a", b"b", false),
        Err(FileError::Ambiguous { path: path.clone(), matches: 3 })
    );
    assert_eq!(apply(b"aaa", b"aa", b"b", false), Err(FileError::Ambiguous { path, matches: 2 }));
    assert_eq!(apply(b"aaa", b"aa", b"b", true), Ok((b"ba".to_vec(), 1)));
}

#[test]
fn empty_and_unchanging_edits_are_refused() {
    assert!(matches!(Edit::new(Vec::new(), b"x".to_vec(), true), Err(FileError::Invalid { .. })));
    assert!(matches!(Edit::new(b"x".to_vec(), b"x".to_vec(), true), Err(FileError::Invalid { .. })));
    let long = vec![b'x'; EDIT_TEXT_BYTES + 1];
    assert!(matches!(Edit::new(long, Vec::new(), true), Err(FileError::TooLarge { .. })));
}

#[test]
fn an_edit_that_would_grow_a_file_past_the_bound_is_refused_before_it_takes_the_memory() {
    let content = vec![b'x'; 1024];
    let refused = apply(&content, b"x", &vec![b'y'; EDIT_TEXT_BYTES], true);
    assert!(matches!(refused, Err(FileError::TooLarge { .. })));
}

proptest! {
    #[test]
    fn replacing_all_is_what_the_standard_library_does(
        content in "[ab]{0,30}", old in "[ab]{1,3}", new in "[bc]{0,3}",
    ) {
        prop_assume!(old != new && content.contains(&old));
        let (edited, count) = apply(content.as_bytes(), old.as_bytes(), new.as_bytes(), true).expect("edited");
        prop_assert_eq!(edited, content.replace(&old, &new).into_bytes());
        prop_assert_eq!(count as usize, content.matches(&old).count());
    }
}
