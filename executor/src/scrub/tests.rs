use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const NAMES: &str = include_str!("tests/names.txt");
const VALUES: &str = include_str!("tests/values.txt");

/// The lines under every title `[title]`, without remarks.
fn lines(text: &'static str, title: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            Some((here, rest)) if rest.is_empty() || rest.starts_with(" #") => is_inside = here == title,
            _ if is_inside => found.push(line),
            _ => {}
        }
    }
    assert!(!found.is_empty(), "nothing under [{title}]");
    found
}

fn names(title: &str) -> Vec<&'static str> {
    lines(NAMES, title).into_iter().flat_map(str::split_whitespace).collect()
}

fn pair(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> (Vec<u8>, Vec<u8>) {
    (name.as_ref().to_vec(), value.as_ref().to_vec())
}

fn canaries(title: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    names(title).into_iter().map(|name| pair(name, format!("canary-{name}"))).collect()
}

fn scrubbed(variables: &[(Vec<u8>, Vec<u8>)]) -> Scrubbed {
    scrub(variables.iter().cloned(), &Readmitted::none())
}

fn of(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Scrubbed {
    scrubbed(&[pair(name, value)])
}

fn sorted<T: Ord>(of: impl IntoIterator<Item = T>) -> Vec<T> {
    of.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

#[track_caller]
fn check_all_removed(title: &str) {
    let Scrubbed { kept, removed } = scrubbed(&canaries(title));
    let kept: Vec<_> = kept.iter().map(|(name, _)| String::from_utf8_lossy(name)).collect();
    assert!(kept.is_empty(), "kept of [{title}]: {kept:?}");
    assert_eq!(removed, sorted(names(title).into_iter().map(String::from)), "[{title}]");
}

#[test]
fn every_credential_goes_and_is_named() {
    check_all_removed("credential");
}

#[test]
fn every_key_of_a_model_provider_goes_and_is_named() {
    check_all_removed("provider");
}

#[test]
fn every_variable_of_the_product_goes_and_is_named() {
    check_all_removed("product");
}

#[test]
fn every_hook_goes_and_is_named() {
    check_all_removed("hook");
}

#[test]
fn every_look_alike_stays_with_its_value() {
    let variables = canaries("benign");
    assert_eq!(scrubbed(&variables), Scrubbed { kept: sorted(variables), removed: vec![] });
}

#[test]
fn a_secret_goes_under_any_name() {
    for value in lines(VALUES, "secret") {
        let expected = Scrubbed { kept: vec![], removed: vec!["FOO".to_owned()] };
        assert_eq!(of("FOO", value), expected, "{value}");
    }
}

#[test]
fn a_value_that_only_looks_like_a_secret_stays() {
    for value in lines(VALUES, "benign") {
        let expected = Scrubbed { kept: vec![pair("FOO", value)], removed: vec![] };
        assert_eq!(of("FOO", value), expected, "{value}");
    }
}

#[test]
fn a_url_keeps_everything_but_its_userinfo() {
    for line in lines(VALUES, "userinfo") {
        let [name, given, kept] = line.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
        let expected = Scrubbed { kept: vec![pair(name, kept)], removed: vec![format!("{name} (userinfo)")] };
        assert_eq!(of(name, given), expected, "{line}");
    }
}

#[test]
fn a_secret_inside_bytes_that_are_no_text_is_found() {
    let secret = b"\xFF\xFE ghp_canarycanary \xFF";
    assert_eq!(of("FOO", secret).removed, ["FOO"]);
    assert_eq!(of("FOO", b"\xFF\xFE").kept, [pair("FOO", b"\xFF\xFE")]);
}

#[test]
fn a_name_that_cannot_be_one_goes_and_is_told_escaped() {
    let cases: &[(&[u8], &str)] = &[
        (b"", ""),
        (b"A=B", "A=B"),
        (b"A B", r"A\x20B"),
        (b"A\n", r"A\x0A"),
        (b"A\0B", r"A\x00B"),
        (b"caf\xE9", r"caf\xE9"),
        ("naïve\u{202E}".as_bytes(), r"na\xC3\xAFve\xE2\x80\xAE"),
    ];
    for (name, told) in cases {
        let expected = Scrubbed { kept: vec![], removed: vec![(*told).to_owned()] };
        assert_eq!(of(name, "value"), expected, "{told}");
    }
}

#[test]
fn a_very_long_name_is_told_in_part() {
    let told = of(vec![b'\n'; 10_000], "value").removed.concat();
    assert_eq!(told, format!("{}…", r"\x0A".repeat(64)));
}

#[test]
fn a_value_with_a_nul_goes() {
    assert_eq!(of("FOO", b"a\0b"), Scrubbed { kept: vec![], removed: vec!["FOO".to_owned()] });
}

#[test]
fn the_longest_variable_a_process_can_have_stays_and_a_longer_one_goes() {
    let longest = vec![b'x'; MAX_VARIABLE_BYTES - "FOO=".len() - 1];
    assert_eq!(of("FOO", &longest).kept, [pair("FOO", &longest)]);
    assert_eq!(of("FOO", [&longest[..], b"x"].concat()).removed, ["FOO"]);
    assert_eq!(of("FOO", vec![b'x'; 1 << 20]).removed, ["FOO"]);
}

#[test]
fn of_one_name_the_last_value_counts() {
    let clean_last = scrubbed(&[pair("FOO", "ghp_canarycanary"), pair("FOO", "clean")]);
    assert_eq!(clean_last, Scrubbed { kept: vec![pair("FOO", "clean")], removed: vec![] });
    let secret_last = scrubbed(&[pair("FOO", "clean"), pair("FOO", "ghp_canarycanary")]);
    assert_eq!(secret_last, Scrubbed { kept: vec![], removed: vec!["FOO".to_owned()] });
}

#[test]
fn a_readmitted_name_keeps_its_value_whole() {
    let variables = [
        pair("DATABASE_URL", "postgres://me:pw@db.example/app"),
        pair("GITHUB_TOKEN", "ghp_canarycanary"),
        pair("LD_LIBRARY_PATH", "/usr/local/cuda/lib64"),
        pair("HTTPS_PROXY", "http://me:pw@proxy.example"),
    ];
    let readmitted = Readmitted::parse(variables.iter().map(|(name, _)| String::from_utf8_lossy(name)));
    let readmitted = readmitted.expect("none is a provider's");
    let expected = Scrubbed { kept: sorted(variables.clone()), removed: vec![] };
    assert_eq!(scrub(variables, &readmitted), expected);
}

#[test]
fn a_readmitted_name_is_that_name_alone() {
    let readmitted = Readmitted::parse(["GITHUB_TOKEN"]).expect("not a provider's");
    let scrubbed = scrub([pair("github_token", "x"), pair("GITHUB_TOKEN_2", "x")], &readmitted);
    assert_eq!(scrubbed.removed, ["GITHUB_TOKEN_2", "github_token"]);
}

#[test]
fn a_providers_key_does_not_come_back_under_a_readmitted_name() {
    let readmitted = Readmitted::parse(["MY_TOKEN"]).expect("not a provider's");
    assert_eq!(scrub([pair("MY_TOKEN", "sk-ant-canarycanary")], &readmitted).removed, ["MY_TOKEN"]);
}

#[test]
fn no_name_of_the_product_or_of_a_provider_can_be_readmitted() {
    for name in names("product") {
        let expected = Err(ReadmittedError::Product { name: name.to_owned() });
        assert_eq!(Readmitted::parse([name]), expected, "{name}");
    }
    for name in names("provider") {
        let expected = Err(ReadmittedError::Provider { name: name.to_owned() });
        assert_eq!(Readmitted::parse([name]), expected, "{name}");
    }
    for name in names("credential").into_iter().chain(names("hook")).chain(names("benign")) {
        assert!(Readmitted::parse([name]).is_ok(), "{name}");
    }
    for name in ["", "A=B", "A B", "é"] {
        let expected = Err(ReadmittedError::Malformed { name: name.to_owned() });
        assert_eq!(Readmitted::parse([name]), expected, "{name:?}");
    }
}

/// Pieces that secrets, URLs and names are made of, so that random values come near the rules.
fn pieces(pieces: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(pieces).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    pieces(&[
        "TOKEN", "KEY", "_", "PROXY", "HTTPS", "LD_", "FOO", "a", "2", "-", "URL", "=", "MOORING_", "PASS",
        "LIMIT",
    ])
}

fn any_value() -> impl Strategy<Value = Vec<u8>> {
    pieces(&[
        "http",
        "://",
        "//",
        "@",
        "user",
        ":",
        "pw",
        "/",
        "?",
        "#",
        "host",
        ",",
        " ",
        "ssh",
        "jdbc:",
        "postgres",
        "ghp_",
        "canarycanary",
        "eyJ",
        ".",
        "password=",
        "\"",
        "-----BEGIN",
        "AKIA",
    ])
}

fn any_variables() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    prop::collection::vec((any_name(), any_value()), 0..12)
}

proptest! {
    #[test]
    fn scrubbing_twice_is_scrubbing_once(variables in any_variables()) {
        let once = scrubbed(&variables);
        let expected = Scrubbed { kept: once.kept.clone(), removed: vec![] };
        prop_assert_eq!(scrubbed(&once.kept), expected);
    }

    #[test]
    fn scrubbing_never_adds(variables in any_variables()) {
        let given: BTreeMap<_, _> = variables.iter().cloned().collect();
        for (name, value) in scrubbed(&variables).kept {
            let before = given.get(&name).expect("a name that was given");
            let mut rest = before.iter();
            prop_assert!(value.iter().all(|byte| rest.any(|other| other == byte)), "a subsequence of what was given");
        }
    }

    #[test]
    fn every_name_is_either_kept_or_told(variables in any_variables()) {
        let Scrubbed { kept, removed } = scrubbed(&variables);
        let kept: BTreeSet<_> = kept.into_iter().map(|(name, _)| name).collect();
        let removed: BTreeSet<_> = removed.into_iter().collect();
        for (name, _) in variables {
            prop_assert!(kept.contains(&name) != removed.contains(&reported(&name)));
        }
    }

    #[test]
    fn the_order_of_different_names_does_not_matter(
        (variables, shuffled) in any_variables().prop_map(|variables| {
            variables.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect::<Vec<_>>()
        }).prop_flat_map(|variables| (Just(variables.clone()), Just(variables).prop_shuffle()))
    ) {
        prop_assert_eq!(scrubbed(&variables), scrubbed(&shuffled));
    }

    #[test]
    fn no_user_of_a_web_address_is_ever_kept(name in any_name(), value in any_value()) {
        for (_, value) in of(name, value).kept {
            let text = String::from_utf8_lossy(&value).into_owned();
            for address in text.split("http://").skip(1) {
                let authority = address.split(|c: char| "/?#\"'<>`".contains(c) || c.is_ascii_whitespace()).next();
                prop_assert!(authority.is_none_or(|authority| !authority.trim_start_matches('@').contains('@')), "{}", text);
            }
        }
    }
}
