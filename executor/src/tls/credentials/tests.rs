use super::super::fixture::Authority;
use super::*;

/// What `files` (certificate, key, authority) are refused for.
fn refused(files: [&str; 3]) -> CredentialsError {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [CERTIFICATE, KEY, AUTHORITY].iter().zip(files) {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    Credentials::open(folder.path()).expect_err("refused")
}

#[test]
fn each_fault_says_which_file_has_it() {
    let authority = Authority::new();
    let ([certificate, key], [_, other_key]) = (authority.server(), authority.server());
    let roots = authority.pem();
    let half = &certificate[..certificate.len() / 2];
    assert!(matches!(refused(["", &key, &roots]), CredentialsError::Pem { file: CERTIFICATE, .. }));
    assert!(matches!(refused([half, &key, &roots]), CredentialsError::Pem { file: CERTIFICATE, .. }));
    assert!(matches!(refused([&certificate, "", &roots]), CredentialsError::Pem { file: KEY, .. }));
    assert!(matches!(refused([&certificate, &key, "x"]), CredentialsError::Pem { file: AUTHORITY, .. }));
    assert!(matches!(refused([&certificate, &other_key, &roots]), CredentialsError::Pair(_)));
    let long = " ".repeat(256 * 1024 + 1);
    assert!(matches!(refused([&certificate, &long, &roots]), CredentialsError::TooLong { file: KEY }));
    let nothing = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(refused([&certificate, &key, nothing]), CredentialsError::Authority(_)));
    let missing = Credentials::open(Path::new("/no/such/folder")).expect_err("no folder");
    assert!(matches!(missing, CredentialsError::Read { file: "the folder", .. }));
}

#[test]
fn the_moment_of_a_projected_folder_is_read_as_one() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    let moment = authority.folder();
    std::os::unix::fs::symlink(moment.path(), folder.path().join(MOMENT)).expect("a link");
    let credentials = Credentials::open(folder.path()).expect("usable files");
    let before = credentials.current();
    assert!(Arc::ptr_eq(&before, &credentials.current()), "unchanged files are not read into a new one");
    let next = authority.folder();
    std::fs::remove_file(folder.path().join(MOMENT)).expect("was there");
    assert!(Arc::ptr_eq(&before, &credentials.current()), "nothing there: the last usable ones stay");
    std::os::unix::fs::symlink(next.path(), folder.path().join(MOMENT)).expect("a link");
    assert!(!Arc::ptr_eq(&before, &credentials.current()), "the next ones");
}
