//! Archives byte by byte, sound ones and others.

mod hostile;

pub(crate) use self::hostile::hostile;
use super::BLOCK_BYTES;

/// An archive in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<u8>);

impl Sample {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn file(self, name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Self {
        self.entry(b'0', name, "", content)
    }

    pub(crate) fn directory(self, name: impl AsRef<[u8]>) -> Self {
        self.entry(b'5', name, "", "")
    }

    pub(crate) fn link(self, name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Self {
        self.entry(b'2', name, target, "")
    }

    pub(crate) fn hard_link(self, name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Self {
        self.entry(b'1', name, target, "")
    }

    /// Extended records for the next entry.
    pub(crate) fn records(self, records: &[(&str, &[u8])]) -> Self {
        let mut text = Vec::new();
        for (key, value) in records {
            super::pax::push(&mut text, key, value);
        }
        self.entry(b'x', "records", "", text)
    }

    /// A GNU long name (`L`) or long target (`K`) for the next entry.
    pub(crate) fn long(self, flag: u8, name: impl AsRef<[u8]>) -> Self {
        self.entry(flag, "././@LongLink", "", [name.as_ref(), b"\0"].concat())
    }

    /// A header of any kind, and its content. Names are cut to what the header holds.
    pub(crate) fn entry(
        self,
        flag: u8,
        name: impl AsRef<[u8]>,
        target: impl AsRef<[u8]>,
        content: impl AsRef<[u8]>,
    ) -> Self {
        let size = content.as_ref().len();
        self.raw(flag, name, target, format!("{size:011o}\0"), content)
    }

    /// As [`Sample::entry`], with a size field of its own.
    pub(crate) fn raw(
        mut self,
        flag: u8,
        name: impl AsRef<[u8]>,
        target: impl AsRef<[u8]>,
        size: impl AsRef<[u8]>,
        content: impl AsRef<[u8]>,
    ) -> Self {
        let mut block = [0; BLOCK_BYTES];
        let mut put = |at: usize, most: usize, text: &[u8]| {
            let n_bytes = text.len().min(most);
            block[at..at + n_bytes].copy_from_slice(&text[..n_bytes]);
        };
        put(0, 100, name.as_ref());
        put(100, 8, b"0007755\0");
        put(124, 12, size.as_ref());
        put(136, 12, b"14371573620\0");
        put(156, 1, &[flag]);
        put(157, 100, target.as_ref());
        put(257, 8, b"ustar\x0000");
        self.0.extend_from_slice(&sealed(block));
        self.0.extend_from_slice(content.as_ref());
        self.0.resize(self.0.len().next_multiple_of(BLOCK_BYTES), 0);
        self
    }

    /// Bytes as they are.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// The archive with its end mark.
    pub(crate) fn end(self) -> Vec<u8> {
        self.bytes(&super::END).0
    }

    /// The archive without an end.
    pub(crate) fn open_end(self) -> Vec<u8> {
        self.0
    }
}

/// The block with the checksum that it should have.
pub(crate) fn sealed(mut block: [u8; BLOCK_BYTES]) -> [u8; BLOCK_BYTES] {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}
