//! Writing an archive: ustar blocks, with extended records before an entry that they cannot describe.

use tar::{EntryType, Header};

use super::entry::{Entry, EntryKind};
use super::{BLOCK_BYTES, pax};

/// What ends an archive.
pub const END: [u8; 2 * BLOCK_BYTES] = [0; 2 * BLOCK_BYTES];

/// The largest number in eleven octal digits.
const MAX_OCTAL: u64 = (1 << 33) - 1;
/// Bytes of a name, or of a link's target, that a header holds.
const NAME_FIELD_BYTES: usize = 100;

/// Appends the blocks before the content of `entry`, and says where in `out` the last of them begins. Nobody is named as the
/// owner, so that equal trees give equal archives.
pub fn header(out: &mut Vec<u8>, entry: &Entry) -> usize {
    let mut path = entry.path.clone();
    if entry.kind == EntryKind::Directory {
        path.push(b'/');
    }
    let records = records(entry, &path);
    if !records.is_empty() {
        let mut extension = blank(EntryType::XHeader, 0o644);
        extension.set_size(records.len() as u64);
        put(&mut extension.as_old_mut().name, b"PaxHeaders/entry");
        extension.set_cksum();
        out.extend_from_slice(extension.as_bytes());
        out.extend_from_slice(&records);
        padding(out, records.len() as u64);
    }
    let (entry_type, size, target) = match &entry.kind {
        EntryKind::Directory => (EntryType::Directory, 0, None),
        EntryKind::File { size } => (EntryType::Regular, *size, None),
        EntryKind::Link { target } => (EntryType::Symlink, 0, Some(target)),
        EntryKind::HardLink { target } => (EntryType::Link, 0, Some(target)),
    };
    let mut block = blank(entry_type, entry.mode & 0o777);
    put(&mut block.as_old_mut().name, &path);
    if let Some(target) = target {
        put(&mut block.as_old_mut().linkname, target);
    }
    block.set_size(size.min(MAX_OCTAL));
    block.set_mtime(u64::try_from(entry.mtime.seconds).unwrap_or(0).min(MAX_OCTAL));
    block.set_cksum();
    let at = out.len();
    out.extend_from_slice(block.as_bytes());
    at
}

/// Appends what fills the last block of content of `size` bytes.
pub fn padding(out: &mut Vec<u8>, size: u64) {
    let n_bytes = size.wrapping_neg() % BLOCK_BYTES as u64;
    out.resize(out.len() + usize::try_from(n_bytes).unwrap_or(0), 0);
}

/// Corrects the size in a header that [`header`] wrote, `block` being its last block: to fewer bytes than it said.
/// `false` when the size is not in that block.
pub fn resize(block: &mut [u8], said: u64, size: u64) -> bool {
    let Ok(bytes) = <&mut [u8; BLOCK_BYTES]>::try_from(block) else { return false };
    if said > MAX_OCTAL {
        return false;
    }
    let mut header = Header::new_ustar();
    header.as_mut_bytes().copy_from_slice(bytes);
    header.set_size(size);
    header.set_cksum();
    bytes.copy_from_slice(header.as_bytes());
    true
}

fn records(entry: &Entry, path: &[u8]) -> Vec<u8> {
    let mut texts: Vec<(&str, &[u8])> = vec![("path", path)];
    if let EntryKind::Link { target } | EntryKind::HardLink { target } = &entry.kind {
        texts.push(("linkpath", target));
    }
    texts.retain(|(_, text)| text.len() > NAME_FIELD_BYTES);
    let mut records = Vec::new();
    // Records are UTF-8 unless they say otherwise.
    if texts.iter().any(|(_, text)| str::from_utf8(text).is_err()) {
        pax::push(&mut records, "hdrcharset", b"BINARY");
    }
    for (key, text) in texts {
        pax::push(&mut records, key, text);
    }
    if let EntryKind::File { size } = &entry.kind
        && *size > MAX_OCTAL
    {
        pax::push(&mut records, "size", size.to_string().as_bytes());
    }
    let mtime = entry.mtime;
    if mtime.nanos != 0 || !(0..=MAX_OCTAL.cast_signed()).contains(&mtime.seconds) {
        let text = match (mtime.seconds, mtime.nanos) {
            (seconds, 0) => seconds.to_string(),
            (seconds @ 0.., nanos) => format!("{seconds}.{nanos:09}"),
            (seconds, nanos) => format!("-{}.{:09}", -(seconds + 1), 1_000_000_000 - nanos),
        };
        pax::push(&mut records, "mtime", text.as_bytes());
    }
    records
}

fn blank(entry_type: EntryType, mode: u32) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(entry_type);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

/// As much of `text` as the field holds; what does not fit is in the records.
fn put(field: &mut [u8; NAME_FIELD_BYTES], text: &[u8]) {
    let n_bytes = text.len().min(NAME_FIELD_BYTES);
    field[..n_bytes].copy_from_slice(&text[..n_bytes]);
}
