//! Extended records: `length key=value\n`, where the length counts all of it (POSIX.1-2024, pax Extended Header).

use super::Mtime;
use super::number;

/// What the records before an entry say of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Records {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link_path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) mtime: Option<Mtime>,
    /// The entry is one of GNU's sparse files.
    pub(super) is_sparse: bool,
}

/// Reads all records; `None` when one of them is not sound. Of records with one key the last counts, an empty value takes
/// the ones before it back, and keys that change neither name, size nor time are left alone.
pub(super) fn parse(mut text: &[u8]) -> Option<Records> {
    let mut records = Records::default();
    while !text.is_empty() {
        let blank = text.iter().take(21).position(|byte| *byte == b' ')?;
        let length = usize::try_from(number::decimal(&text[..blank])?).ok()?;
        if length > text.len() || length < blank + 4 || text[length - 1] != b'\n' {
            return None;
        }
        let record = &text[blank + 1..length - 1];
        let equals = record.iter().position(|byte| *byte == b'=')?;
        take(&mut records, &record[..equals], &record[equals + 1..])?;
        text = &text[length..];
    }
    Some(records)
}

fn take(records: &mut Records, key: &[u8], value: &[u8]) -> Option<()> {
    let is_there = !value.is_empty();
    match key {
        b"path" => records.path = is_there.then(|| value.to_vec()),
        b"linkpath" => records.link_path = is_there.then(|| value.to_vec()),
        b"size" if is_there => records.size = Some(number::decimal(value)?),
        b"size" => records.size = None,
        b"mtime" if is_there => records.mtime = Some(number::time(value)?),
        b"mtime" => records.mtime = None,
        b"" => return None,
        _ => records.is_sparse |= key.starts_with(b"GNU.sparse."),
    }
    Some(())
}

/// Appends one record.
pub(super) fn push(records: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = 1 + key.len() + 1 + value.len() + 1;
    // The length counts its own digits.
    let mut length = rest + 1;
    while length != rest + digits(length) {
        length = rest + digits(length);
    }
    records.extend_from_slice(format!("{length} {key}=").as_bytes());
    records.extend_from_slice(value);
    records.push(b'\n');
}

fn digits(number: usize) -> usize {
    number.to_string().len()
}
