//! Archives that must be refused, with the code. Each brings a sound file `good` first where it can.

use mooring_proto::v1::ErrorCode::{
    self, AlreadyExists, InvalidArgument, NameTooLong, NotRegularFile, PathEscapes, Unsupported,
};

use super::Sample;

/// What is wrong with it, the archive, and the code.
type Case = (&'static str, Vec<u8>, ErrorCode);

/// All of them.
pub(crate) fn hostile() -> Vec<Case> {
    [names(), links(), meetings(), kinds(), blocks(), extensions()].concat()
}

fn good() -> Sample {
    Sample::new().file("good", "good")
}

/// Names that no entry may have.
fn names() -> Vec<Case> {
    let long = "n".repeat(256);
    let deep = "d/".repeat(2100);
    let named = |name: &[u8]| good().records(&[("path", name)]).file("x", "x").end();
    vec![
        ("an absolute name", good().file("/etc/x", "x").end(), PathEscapes),
        ("an absolute name in records", named(b"/etc/x"), PathEscapes),
        ("..", good().file("../ws-secret/loot", "x").end(), PathEscapes),
        (".. inside", good().file("a/../../ws-secret/loot", "x").end(), PathEscapes),
        (".. that stays inside", good().file("a/../b", "x").end(), PathEscapes),
        (".. as a directory", good().directory("..").end(), PathEscapes),
        (".. in a long name", good().long(b'L', "../loot").file("x", "x").end(), PathEscapes),
        ("no name", good().file("", "x").end(), InvalidArgument),
        ("a file that is the folder", good().file(".", "x").end(), InvalidArgument),
        ("a NUL in a name", named(b"a\0b"), InvalidArgument),
        ("a NUL in a long name", good().long(b'L', "a\0b").file("x", "x").end(), InvalidArgument),
        ("a long name", named(long.as_bytes()), NameTooLong),
        ("a long path", named(deep.as_bytes()), NameTooLong),
    ]
}

/// Links that may lead out.
fn links() -> Vec<Case> {
    let linked = |name: &str, target: &str| good().directory("d").link(name, target).file("d/f", "x").end();
    vec![
        ("a link to an absolute path", linked("l", "/etc/passwd"), PathEscapes),
        ("a link above the root", linked("l", "../ws-secret/loot"), PathEscapes),
        ("a deeper link above the root", linked("d/l", "../../ws-secret"), PathEscapes),
        ("a link that climbs after a name", linked("l", "d/../../ws-secret"), PathEscapes),
        ("a link that climbs after a name and stays", linked("l", "d/../good"), PathEscapes),
        ("a link to nothing at all", linked("l", ""), PathEscapes),
        ("a long link target", good().long(b'K', "t".repeat(5000)).link("l", "x").end(), NameTooLong),
    ]
}

/// Entries that meet one another, and hard links.
fn meetings() -> Vec<Case> {
    vec![
        ("an entry below a link", good().link("l", ".").file("l/x", "x").end(), PathEscapes),
        ("a directory below a link", good().link("l", ".").directory("l/x").end(), PathEscapes),
        ("a directory over a link", good().link("l", ".").directory("l").end(), PathEscapes),
        ("a file over a link", good().link("l", "good").file("l", "x").end(), AlreadyExists),
        ("a link over a file", good().link("good", "x").end(), AlreadyExists),
        ("a link over a directory", good().directory("d").link("d", "x").end(), AlreadyExists),
        ("an entry below a file", good().file("good/x", "x").end(), PathEscapes),
        ("a file over a directory", good().directory("d").file("d", "x").end(), AlreadyExists),
        ("a directory over a file", good().directory("good").end(), PathEscapes),
        ("a file twice", good().file("./good", "x").end(), AlreadyExists),
        ("a hard link outside", good().hard_link("h", "../ws-secret/loot").end(), PathEscapes),
        ("a hard link to an absolute path", good().hard_link("h", "/etc/passwd").end(), PathEscapes),
        ("a hard link to what is not brought", good().hard_link("h", "present").end(), PathEscapes),
        ("a hard link to a directory", good().directory("d").hard_link("h", "d").end(), PathEscapes),
        ("a hard link to a link", good().link("l", "good").hard_link("h", "l").end(), PathEscapes),
        ("a hard link to the folder", good().hard_link("h", ".").end(), PathEscapes),
        ("a hard link to itself", good().hard_link("good", "good").end(), AlreadyExists),
        ("a hard link with content", good().entry(b'1', "h", "good", "x").end(), InvalidArgument),
    ]
}

/// Kinds that are not taken.
fn kinds() -> Vec<Case> {
    vec![
        ("a character device", good().entry(b'3', "dev", "", "").end(), NotRegularFile),
        ("a block device", good().entry(b'4', "dev", "", "").end(), NotRegularFile),
        ("a FIFO", good().entry(b'6', "pipe", "", "").end(), NotRegularFile),
        ("a sparse file", good().entry(b'S', "s", "", "x").end(), Unsupported),
        (
            "a sparse file in records",
            good().records(&[("GNU.sparse.major", b"1")]).file("s", "x").end(),
            Unsupported,
        ),
        ("an unknown type", good().entry(b'V', "v", "", "").end(), Unsupported),
        ("a directory with content", good().entry(b'5', "d", "", "x").end(), InvalidArgument),
        ("a link with content", good().entry(b'2', "l", "good", "x").end(), InvalidArgument),
        ("a file with a directory's name", good().file("x/", "x").end(), InvalidArgument),
    ]
}

/// Blocks that are not sound.
fn blocks() -> Vec<Case> {
    let sized = |size: &[u8]| good().raw(b'0', "x", "", size, "x").end();
    vec![
        ("a size that is no number", sized(b"0000000000x\0"), InvalidArgument),
        ("a negative size", sized(&[0xff; 12]), InvalidArgument),
        ("a size of 2^64 and 1", sized(b"\x80\0\0\x01\0\0\0\0\0\0\0\x01"), InvalidArgument),
        ("a wrong checksum", good().bytes(&[1; 512]).end(), InvalidArgument),
        ("no archive", b"\x1f\x8b\x08\0 compressed, or a page of text".repeat(40), InvalidArgument),
        ("nothing", Vec::new(), InvalidArgument),
        ("no end", good().open_end(), InvalidArgument),
        ("half a header", good().bytes(b"half").open_end(), InvalidArgument),
        ("half a content", good().raw(b'0', "x", "", "00000002000\0", "x").open_end(), InvalidArgument),
        ("something after the end", Sample(good().end()).file("x", "x").end(), InvalidArgument),
    ]
}

/// Extensions that are not sound.
fn extensions() -> Vec<Case> {
    vec![
        ("records of nothing", good().records(&[("path", b"x")]).end(), InvalidArgument),
        (
            "two sets of records",
            good().records(&[("path", b"x")]).records(&[("path", b"y")]).file("z", "").end(),
            InvalidArgument,
        ),
        ("two long names", good().long(b'L', "x").long(b'L', "y").file("z", "").end(), InvalidArgument),
        (
            "a name in two ways",
            good().long(b'L', "x").records(&[("path", b"y")]).file("z", "").end(),
            InvalidArgument,
        ),
        (
            "a record without a key",
            good().entry(b'x', "r", "", "7 =abc\n").file("z", "").end(),
            InvalidArgument,
        ),
        (
            "a record that says too little",
            good().entry(b'x', "r", "", "5 a=b\n").file("z", "").end(),
            InvalidArgument,
        ),
        (
            "a record that runs over",
            good().entry(b'x', "r", "", "99 path=b\n").file("z", "").end(),
            InvalidArgument,
        ),
        (
            "a record that ends early",
            good().entry(b'x', "r", "", "9 path=bc\n").file("z", "").end(),
            InvalidArgument,
        ),
        ("a global name", good().entry(b'g', "g", "", "10 path=b\n").file("z", "").end(), InvalidArgument),
        (
            "records of a gigabyte",
            good().raw(b'x', "r", "", "07777777777\0", "x").open_end(),
            InvalidArgument,
        ),
        (
            "a long name of a gigabyte",
            good().raw(b'L', "r", "", "07777777777\0", "x").open_end(),
            InvalidArgument,
        ),
        ("a size in records", good().records(&[("size", b"-1")]).file("x", "x").end(), InvalidArgument),
        ("a time in records", good().records(&[("mtime", b"soon")]).file("x", "x").end(), InvalidArgument),
    ]
}
