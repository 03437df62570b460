//! Paths that want out, links, special files and strange names.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, RenameFlags};

use super::*;

/// The code of every call on one path, in the order of the proto.
async fn codes(ws: &Fixture, path: &str) -> Vec<Option<ErrorCode>> {
    ws.put("source", "s");
    let at = match ws.files.root().parse(path) {
        Ok(at) => at,
        Err(error) => return vec![Some(error.code())],
    };
    let glob = GlobQuery::new("**/*", at, true, 10, Duration::from_secs(9)).expect("a glob");
    let codes = vec![
        ws.read(path).await.err(),
        ws.list(path).await.err(),
        ws.write(path, "OWNED").await.err(),
        ws.edit(path, "loot", "OWNED").await.err(),
        ws.copy(path, "copied").await.err(),
        ws.copy("source", path).await.err(),
        ws.relocate(path, "moved").await.err(),
        ws.relocate("source", path).await.err(),
        ws.remove(path).await.err(),
        ws.files.glob(glob).await.err(),
    ];
    codes.into_iter().map(|error| error.map(|error| error.code())).collect()
}

#[tokio::test]
async fn no_call_leaves_the_workspace_by_its_path() {
    let ws = Fixture::new();
    ws.put("a/b/f", "x");
    let sibling = format!("{}-secret/loot", ws.tree.display());
    let around = format!("{}/../ws-secret/loot", ws.tree.display());
    for path in [
        "../ws-secret/loot",
        "a/../../ws-secret/loot",
        "/etc/passwd",
        "//etc/passwd",
        "a/b/../../../ws-secret/loot",
        "./././../ws-secret/loot",
        "..",
        "/",
        &sibling,
        &around,
    ] {
        for code in codes(&ws, path).await {
            // A path that ends in `..` names no entry at all, which is said before anything is resolved.
            let expected = [
                Some(ErrorCode::PathEscapes),
                if path == ".." { Some(ErrorCode::InvalidArgument) } else { None },
            ];
            assert!(code.is_some() && expected.contains(&code), "{path}: {code:?}");
        }
    }
    ws.check_clean();
    for literal in [
        "%2e%2e/ws-secret/loot",
        r"..\x",
        "~/x",
        "$HOME/x",
        "-rf",
        "--help",
        " a ",
        "...",
        "CON",
        "a:b",
        "new\nline\t\x1b",
    ] {
        ws.write(literal, literal).await.unwrap_or_else(|error| panic!("{literal}: {error}"));
        assert_eq!(ws.on_disk(literal), literal.as_bytes());
    }
    assert_eq!(code(ws.write("dir/", "x").await), ErrorCode::IsDirectory);
    assert_eq!(code(ws.write("", "x").await), ErrorCode::InvalidArgument);
    assert_eq!(code(ws.read("a").await), ErrorCode::IsDirectory);
}

#[tokio::test]
async fn a_link_as_last_name_is_never_written_through() {
    let ws = Fixture::new();
    ws.put("inner", "inner");
    ws.link("in", "inner");
    ws.link("out", "../ws-secret/loot");
    ws.link("new", "../ws-secret/new");
    assert_eq!(ws.read("in").await.expect("a link inside"), b"inner");
    for link in ["in", "out", "new"] {
        assert_eq!(code(ws.write(link, "OWNED").await), ErrorCode::NotRegularFile, "{link}");
        assert_eq!(code(ws.edit(link, "inner", "OWNED").await), ErrorCode::NotRegularFile, "{link}");
        assert_eq!(code(ws.copy("inner", link).await), ErrorCode::AlreadyExists, "{link}");
        assert_eq!(code(ws.relocate("inner", link).await), ErrorCode::AlreadyExists, "{link}");
    }
    assert_eq!(code(ws.read("out").await), ErrorCode::PathEscapes);
    assert_eq!(code(ws.copy("out", "stolen").await), ErrorCode::PathEscapes);
    assert_eq!(ws.copy("in", "copied").await.expect("a link inside"), 5);
    ws.relocate("out", "moved").await.expect("the link itself moves");
    assert_eq!(ws.remove("moved").await.expect("the link itself goes"), Kind::Link);
    assert_eq!(ws.on_disk("inner"), b"inner");
    ws.check_clean();
}

#[tokio::test]
async fn a_linked_parent_leads_nowhere_outside() {
    let ws = Fixture::new();
    ws.put("real/f", "x");
    ws.link("d", "../ws-secret");
    ws.link("inside", "real");
    ws.link("gone", "nowhere");
    for path in ["d/x", "d/../x", "d/loot", "d/sub/deeper/x"] {
        assert_eq!(code(ws.write(path, "OWNED").await), ErrorCode::PathEscapes, "{path}");
    }
    assert_eq!(code(ws.write("gone/x", "OWNED").await), ErrorCode::NotFound);
    ws.write("inside/g", "g").await.expect("a link inside");
    assert_eq!(ws.on_disk("real/g"), b"g");
    assert!(!ws.tree.join("x").exists() && !ws.tree.join("nowhere").exists());
    ws.check_clean();
}

#[tokio::test]
async fn magic_links_and_procfs_are_out_of_reach() {
    let ws = Fixture::new();
    for (n, target) in
        ["/proc/self/root", "/proc/self/cwd", "/proc/self/fd/0", "/proc/self/environ", "/dev/fd/3"]
            .into_iter()
            .enumerate()
    {
        ws.link(&format!("l{n}"), target);
        for path in [target.to_owned(), format!("l{n}"), format!("l{n}/etc/passwd")] {
            assert_eq!(code(ws.read(&path).await), ErrorCode::PathEscapes, "{path}");
        }
    }
}

#[tokio::test]
async fn special_files_are_refused_at_once_and_nobody_waits() {
    let ws = Fixture::new();
    ws.put("plain", "x");
    for (name, kind, device) in [
        ("fifo", FileType::Fifo, 0),
        ("socket", FileType::Socket, 0),
        ("zero", FileType::CharacterDevice, rustix::fs::makedev(1, 5)),
        ("full", FileType::CharacterDevice, rustix::fs::makedev(1, 7)),
    ] {
        if let Err(error) =
            rustix::fs::mknodat(CWD, ws.tree.join(name), kind, Mode::RUSR | Mode::WUSR, device)
        {
            assert_eq!(error, rustix::io::Errno::PERM, "{name}");
            eprintln!("left out: {name} needs privilege");
            continue;
        }
        let begun = Instant::now();
        assert_eq!(code(ws.read(name).await), ErrorCode::NotRegularFile, "{name}");
        assert_eq!(code(ws.write(name, "x").await), ErrorCode::NotRegularFile, "{name}");
        assert_eq!(code(ws.edit(name, "x", "y").await), ErrorCode::NotRegularFile, "{name}");
        assert_eq!(code(ws.copy(name, "copied").await), ErrorCode::NotRegularFile, "{name}");
        assert!(begun.elapsed() < Duration::from_secs(1), "{name}");
        assert_eq!(ws.read("plain").await.expect("others go on"), b"x");
        assert_eq!(ws.remove(name).await.expect("it can be removed"), Kind::Special);
    }
    ws.check_clean();
}

#[tokio::test]
async fn names_of_any_bytes_round_trip_from_the_listing() {
    let ws = Fixture::new();
    let odd = std::ffi::OsStr::from_bytes(b"f\x80o");
    fs::write(ws.tree.join(odd), "odd").expect("a file");
    for name in ["caf\u{e9}", "cafe\u{301}", "README", "readme", r"a\x5Cx80", &"n".repeat(255)] {
        ws.write(name, name).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_eq!(code(ws.write(&"n".repeat(256), "x").await), ErrorCode::NameTooLong);
    let listed = ws.list("").await.expect("a listing");
    assert_eq!(listed.len(), 7);
    assert!(listed.contains(&r"f\x80o".to_owned()) && listed.contains(&r"a\x5Cx80".to_owned()));
    assert_eq!(ws.read(r"f\x80o").await.expect("as listed"), b"odd");
    for name in listed {
        ws.read(&name).await.expect("as listed");
        ws.remove(&name).await.expect("as listed");
    }
    assert_eq!(ws.list("").await.expect("a listing"), Vec::<String>::new());
}

#[tokio::test]
async fn two_thousand_nested_folders_can_be_made_and_searched() {
    let ws = Fixture::new();
    let deep = format!("{}f", "d/".repeat(2000));
    fs::create_dir_all(ws.tree.join("d/".repeat(1990))).expect("folders");
    ws.write(&deep, "needle").await.expect("within 4096 bytes");
    assert_eq!(ws.read(&deep).await.expect("there"), b"needle");
    let query =
        GlobQuery::new("**/f", WorkspacePath::root(), false, 10, Duration::from_secs(30)).expect("a glob");
    assert_eq!(ws.files.glob(query).await.expect("found").paths, vec![deep.into_bytes()]);
    let longer = format!("{}xyz", "d/".repeat(2047));
    assert_eq!(code(ws.write(&longer, "x").await), ErrorCode::NameTooLong);
}

#[tokio::test]
async fn moving_and_removing_keep_to_their_rules() {
    let ws = Fixture::new();
    ws.put("dir/sub/f", "f");
    ws.put("other/g", "g");
    ws.link("loop", "dir");
    assert_eq!(code(ws.relocate("dir", "dir/sub/dir").await), ErrorCode::InvalidArgument);
    assert_eq!(code(ws.relocate("dir", "other").await), ErrorCode::AlreadyExists);
    assert_eq!(code(ws.relocate("dir", "dir").await), ErrorCode::AlreadyExists);
    assert_eq!(code(ws.copy("other/g", "other/g").await), ErrorCode::AlreadyExists);
    assert_eq!(code(ws.copy("loop/sub/f", "dir/sub/f").await), ErrorCode::AlreadyExists);
    assert_eq!(code(ws.copy("dir", "copied").await), ErrorCode::IsDirectory);
    assert_eq!(code(ws.remove("dir").await), ErrorCode::NotEmpty);
    assert_eq!(code(ws.remove("absent").await), ErrorCode::NotFound);
    for root in ["", ".", "dir/..", "/"] {
        assert!(matches!(code(ws.remove(root).await), ErrorCode::InvalidArgument | ErrorCode::PathEscapes));
    }
    assert_eq!(ws.remove("loop").await.expect("a link"), Kind::Link);
    assert!(ws.remove("dir/sub/f/").await.is_err());
    ws.relocate("dir/sub", "moved").await.expect("a directory moves");
    assert_eq!(ws.on_disk("moved/f"), b"f");
    assert_eq!(ws.remove("dir").await.expect("empty now"), Kind::Directory);
    ws.check_clean();
}

#[tokio::test]
async fn a_copy_is_a_new_inode_without_set_id_bits_and_attributes() {
    let ws = Fixture::new();
    ws.put("tool", "#!");
    let tool = ws.tree.join("tool");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o6755)).expect("mode");
    let handle = fs::File::open(&tool).expect("a file");
    let flags = rustix::fs::XattrFlags::empty();
    // VFS_CAP_REVISION_2 with cap_net_raw, as capabilities(7) lays it out.
    let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let has_capability = rustix::fs::fsetxattr(&handle, "security.capability", &capability, flags).is_ok();
    ws.copy("tool", "copied").await.expect("copied");
    let (old, new) = (fs::metadata(&tool).expect("old"), fs::metadata(ws.tree.join("copied")).expect("new"));
    assert_ne!(old.ino(), new.ino());
    assert_eq!(new.mode() & 0o7777, 0o755);
    let copied = fs::File::open(ws.tree.join("copied")).expect("a file");
    let mut names = [0_u8; 256];
    let n_names = rustix::fs::flistxattr(&copied, &mut names).unwrap_or(0);
    assert!(!String::from_utf8_lossy(&names[..n_names]).contains("security.capability"));
    eprintln!("with a file capability: {has_capability}");
}

#[tokio::test]
async fn a_directory_swapped_for_a_link_leaks_nothing_and_changes_nothing_outside() {
    let ws = Fixture::new();
    fs::write(ws.outside.path().join("ws-secret/loot"), "loot").expect("a file");
    ws.put("dir/loot", "inside");
    ws.put("dir/sub/name", "inside");
    ws.link("swap", "../ws-secret");
    let stop = Arc::new(AtomicBool::new(false));
    let flipping = {
        let (stop, a, b) = (Arc::clone(&stop), ws.tree.join("dir"), ws.tree.join("swap"));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).expect("exchange");
            }
        })
    };
    let mut read = 0;
    for n in 0..600 {
        if let Ok(content) = ws.read("dir/loot").await {
            assert!(content.starts_with(b"inside"), "escaped: {content:?}");
            read += 1;
        }
        let _ = ws.edit("dir/loot", "inside", "inside").await;
        let _ = ws.copy("dir/loot", &format!("copies-{n}")).await;
        let _ = ws.remove(&format!("copies-{n}")).await;
        let _ = ws.remove("dir/absent").await;
        if n % 50 == 0 {
            let _ = ws.write("dir/loot", format!("inside {n}")).await;
            let _ = ws.write(&format!("dir/new/{n}"), "inside").await;
            let query = GlobQuery::new("**/loot", WorkspacePath::root(), true, 99, Duration::from_secs(9));
            let found = ws.files.glob(query.expect("a glob")).await.expect("found");
            assert!(found.paths.len() <= 2);
        }
    }
    stop.store(true, Ordering::Relaxed);
    flipping.join().expect("the flipping thread");
    assert!(read > 0, "the directory was never met");
    ws.check_clean();
}
