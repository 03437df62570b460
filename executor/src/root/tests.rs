use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use expect_test::expect;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// A workspace `ws` beside `ws-secret`, as the catalogue of attacks wants it.
fn fixture() -> (TempDir, Root) {
    let outside = tempfile::tempdir().expect("a folder");
    let tree = outside.path().join("ws");
    fs::create_dir_all(tree.join("a/b")).expect("a folder");
    fs::create_dir(outside.path().join("ws-secret")).expect("a folder");
    fs::write(outside.path().join("ws-secret/loot"), "loot").expect("a file");
    fs::write(tree.join("a/f"), "inside").expect("a file");
    let root = Root::open(&tree).expect("the root");
    (outside, root)
}

fn code(root: &Root, text: &str) -> Result<(), ErrorCode> {
    let path = root.parse(text).map_err(|error| error.code())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    root.open_beneath(&path, flags, Mode::empty()).map(drop).map_err(|error| error.code())
}

#[test]
fn every_way_out_is_refused_and_every_way_round_inside_is_followed() {
    let (outside, root) = fixture();
    let tree = outside.path().join("ws");
    for (link, target) in [
        ("out", "../ws-secret"),
        ("absolute", "/etc/passwd"),
        ("magic", "/proc/self/root"),
        ("in", "a/f"),
        ("self", "self"),
        ("x", "y"),
        ("y", "x"),
        ("dangling", "nowhere"),
    ] {
        symlink(target, tree.join(link)).expect("a link");
    }
    let absolute = format!("{}/a/f", tree.display());
    let sibling = format!("{}-secret/loot", tree.display());
    let mut seen = String::new();
    for text in [
        "a/f",
        "in",
        "a/../a/f",
        "./a//b/",
        ".",
        "",
        "/",
        "..",
        "../ws-secret/loot",
        "a/../../ws-secret/loot",
        "a/b/../../../ws-secret/loot",
        "./././../etc",
        "/etc/passwd",
        "out/loot",
        "out/../ws/a/f",
        "absolute",
        "magic/etc/passwd",
        "self",
        "x",
        "dangling",
        "a/f/x",
        "a/f/",
        "%2e%2e/ws-secret/loot",
        r"..\x",
        "~/x",
    ] {
        writeln!(seen, "{text:?} {:?}", code(&root, text)).expect("memory");
    }
    expect![[r#"
        "a/f" Ok(())
        "in" Ok(())
        "a/../a/f" Ok(())
        "./a//b/" Ok(())
        "." Ok(())
        "" Ok(())
        "/" Err(PathEscapes)
        ".." Err(PathEscapes)
        "../ws-secret/loot" Err(PathEscapes)
        "a/../../ws-secret/loot" Err(PathEscapes)
        "a/b/../../../ws-secret/loot" Err(PathEscapes)
        "./././../etc" Err(PathEscapes)
        "/etc/passwd" Err(PathEscapes)
        "out/loot" Err(PathEscapes)
        "out/../ws/a/f" Err(PathEscapes)
        "absolute" Err(PathEscapes)
        "magic/etc/passwd" Err(PathEscapes)
        "self" Err(PathEscapes)
        "x" Err(PathEscapes)
        "dangling" Err(NotFound)
        "a/f/x" Err(NotFound)
        "a/f/" Err(NotFound)
        "%2e%2e/ws-secret/loot" Err(NotFound)
        "..\\x" Err(NotFound)
        "~/x" Err(NotFound)
    "#]]
    .assert_eq(&seen);
    assert_eq!(code(&root, &absolute), Ok(()));
    assert_eq!(code(&root, &sibling), Err(ErrorCode::PathEscapes));
}

#[test]
fn forty_one_links_in_a_row_are_too_many() {
    let (outside, root) = fixture();
    let tree = outside.path().join("ws");
    symlink("a/f", tree.join("l0")).expect("a link");
    for n in 1..=41 {
        symlink(format!("l{}", n - 1), tree.join(format!("l{n}"))).expect("a link");
    }
    assert_eq!(code(&root, "l30"), Ok(()));
    assert_eq!(code(&root, "l41"), Err(ErrorCode::PathEscapes));
}

#[test]
fn a_walked_path_follows_no_link_at_all() {
    let (outside, root) = fixture();
    symlink("a", outside.path().join("ws/d")).expect("a link");
    let path = root.parse("d/f").expect("a path");
    let refused = root.open_without_links(&path, OFlags::RDONLY).expect_err("a link");
    assert_eq!(refused.fault, Fault::Links);
}

#[test]
fn a_directory_swapped_for_a_link_never_leads_out() {
    let (outside, root) = fixture();
    let tree = outside.path().join("ws");
    fs::write(outside.path().join("ws-secret/f"), "loot").expect("a file");
    symlink("../ws-secret", tree.join("swap")).expect("a link");
    let inside = fs::metadata(tree.join("a/f")).expect("a file").ino();
    let stop = AtomicBool::new(false);
    let path = root.parse("a/f").expect("a path");
    let opened = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let (from, to) = (tree.join("a"), tree.join("swap"));
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, flags)
                    .expect("exchange");
            }
        });
        let mut opened = 0;
        for _ in 0..20_000 {
            if let Ok(file) = root.open_beneath(&path, OFlags::RDONLY, Mode::empty()) {
                assert_eq!(rustix::fs::fstat(&file).expect("fstat").st_ino, inside);
                opened += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        opened
    });
    assert!(opened > 0, "the directory was never met");
}

proptest! {
    #[test]
    fn no_path_leads_out_of_the_root(text in r"(/|\.\./|\./|a/|b/|up/|out/|f|loot|ws/|ws-secret/){0,10}") {
        let (outside, root) = fixture();
        let tree = outside.path().join("ws");
        symlink("..", tree.join("a/up")).expect("a link");
        symlink("../ws-secret", tree.join("out")).expect("a link");
        let Ok(path) = root.parse(&text) else { return Ok(()) };
        if let Ok(file) = root.open_beneath(&path, OFlags::RDONLY, Mode::empty()) {
            let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
            let real = fs::read_link(link).expect("a descriptor");
            prop_assert!(real.starts_with(tree.canonicalize().expect("the root")), "{text} led to {real:?}");
        }
    }
}
