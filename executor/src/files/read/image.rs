//! Which image a file is, by its first bytes.

/// The media type of the four image formats that models read; `None` for everything else.
///
/// Signatures: PNG (RFC 2083 §3.1), JPEG (ITU T.81 B.1.1.3 SOI), GIF87a/GIF89a, WebP (RFC 9649 §2.4).
pub(super) fn media_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
