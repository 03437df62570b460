use proptest::prelude::*;

use super::*;

const ROOT: &[u8] = b"/ws";

fn parse(text: &str) -> Result<WorkspacePath, PathError> {
    WorkspacePath::parse(text, ROOT)
}

fn bytes_of(text: &str) -> Vec<u8> {
    parse(text).expect("a path").as_bytes().to_vec()
}

#[test]
fn only_the_exact_root_turns_an_absolute_path_into_a_relative_one() {
    assert_eq!(bytes_of("/ws"), b"");
    assert_eq!(bytes_of("/ws/"), b"");
    assert_eq!(bytes_of("/ws/a/b"), b"a/b");
    assert_eq!(bytes_of("/ws//a"), b"a");
    assert_eq!(bytes_of("/ws/../etc/passwd"), b"../etc/passwd");
    for outside in ["/", "/etc/passwd", "//etc/passwd", "//ws/a", "/ws-secret/loot", "/wsx", "/w", "/./ws/a"]
    {
        assert_eq!(parse(outside), Err(PathError::Absolute { path: outside.to_owned() }), "{outside}");
    }
}

#[test]
fn a_root_of_the_whole_file_system_takes_every_absolute_path() {
    let path = WorkspacePath::parse("/etc/hosts", b"/").expect("a path");
    assert_eq!(path.as_bytes(), b"etc/hosts");
}

#[test]
fn nothing_but_the_escape_is_decoded() {
    for literal in [
        "%2e%2e/x", "~/x", "$HOME/x", r"..\x", r"a\xff", r"a\x41", r"\n", "-rf", "--help", " a ", "...",
        "a:b",
    ] {
        assert_eq!(bytes_of(literal), literal.as_bytes(), "{literal}");
    }
    assert_eq!(bytes_of(r"f\x80o"), b"f\x80o");
    assert_eq!(bytes_of(r"a\x5Cx80"), br"a\x80");
}

#[test]
fn a_nul_and_an_overlong_name_are_refused() {
    assert_eq!(parse("a\0b"), Err(PathError::Nul));
    assert!(parse(&"n".repeat(255)).is_ok());
    assert_eq!(parse(&"n".repeat(256)), Err(PathError::TooLong));
    assert!(parse(&"d/".repeat(2048)).is_ok());
    assert_eq!(parse(&format!("{}x", "d/".repeat(2048))), Err(PathError::TooLong));
    assert_eq!(parse(&r"\x80".repeat(4097)), Err(PathError::TooLong));
}

#[test]
fn the_leaf_is_a_plain_name_or_none() {
    let leaf = |text: &str| parse(text).expect("a path").leaf();
    for none in ["", ".", "..", "a/..", "a/.", "./", "a/../"] {
        assert_eq!(leaf(none), None, "{none}");
    }
    let found = leaf("d/../x//").expect("a leaf");
    assert_eq!(
        (found.parent.as_bytes(), found.name.as_slice(), found.is_directory),
        (&b"d/../"[..], &b"x"[..], true)
    );
    let found = leaf("x").expect("a leaf");
    assert_eq!(
        (found.parent, found.name.as_slice(), found.is_directory),
        (WorkspacePath::root(), &b"x"[..], false)
    );
}

#[test]
fn dots_that_name_nothing_go_and_the_others_stay() {
    assert_eq!(parse("./a//b/./c/").expect("a path").without_dots().as_bytes(), b"a/b/c");
    assert_eq!(parse("d/../x").expect("a path").without_dots().as_bytes(), b"d/../x");
}

proptest! {
    #[test]
    fn parsing_what_is_displayed_gives_the_same_bytes(bytes in proptest::collection::vec(1_u8.., 1..60)) {
        prop_assume!(bytes[0] != b'/');
        let path = WorkspacePath::from_bytes(&bytes).expect("a path");
        prop_assert_eq!(WorkspacePath::parse(&path.to_string(), ROOT), Ok(path));
    }

    #[test]
    fn backslashes_and_hexadecimal_digits_survive_the_round_trip(text in r"[\\x58CFf0\x{e9}]{1,40}") {
        let path = WorkspacePath::from_bytes(text.as_bytes()).expect("a path");
        prop_assert_eq!(WorkspacePath::parse(&path.to_string(), ROOT), Ok(path));
    }

    #[test]
    fn no_text_parses_to_an_absolute_path_or_one_out_of_bounds(text in r"(/ws|/|\.\.|\.|a|\\x5C|\\xFF|-|/ws-secret){0,12}") {
        if let Ok(path) = parse(&text) {
            prop_assert!(path.as_bytes().first() != Some(&b'/'));
            prop_assert!(path.as_bytes().len() <= MAX_PATH_BYTES);
            prop_assert!(!path.as_bytes().contains(&0));
        }
    }
}
