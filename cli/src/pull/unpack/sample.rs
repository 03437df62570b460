//! Archives for tests, hostile ones among them.

use tar::{EntryType, Header};

pub(crate) const END: [u8; 1024] = [0; 1024];

/// A header.
pub(crate) fn plain(kind: u8, name: &[u8], size: u64, mode: u32) -> [u8; 512] {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::new(kind));
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_cksum();
    *header.as_bytes()
}

/// A link.
pub(crate) fn link(name: &[u8], target: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_mut_bytes().copy_from_slice(&plain(b'2', name, 0, 0o777));
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target);
    header.set_cksum();
    header.as_bytes().to_vec()
}

/// A file.
pub(crate) fn file(name: &[u8], content: &[u8], mode: u32) -> Vec<u8> {
    [plain(b'0', name, content.len() as u64, mode).to_vec(), blocks(content)].concat()
}

/// A folder.
pub(crate) fn folder(name: &[u8]) -> Vec<u8> {
    plain(b'5', name, 0, 0o755).to_vec()
}

/// Content, filled up to whole blocks.
pub(crate) fn blocks(content: &[u8]) -> Vec<u8> {
    let mut blocks = content.to_vec();
    blocks.resize(content.len().next_multiple_of(512), 0);
    blocks
}

/// Extended records.
pub(crate) fn records(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut text = Vec::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let length =
            (rest..rest + 20).find(|length| rest + length.to_string().len() == *length).expect("a length");
        text.extend_from_slice(format!("{length} {key}=").as_bytes());
        text.extend_from_slice(value);
        text.push(b'\n');
    }
    text
}

/// Records before a header.
pub(crate) fn with_records(text: &[u8], header: &[u8; 512]) -> Vec<u8> {
    let extension = plain(b'x', b"PaxHeaders/entry", text.len() as u64, 0o644);
    [extension.to_vec(), blocks(text), header.to_vec()].concat()
}
