//! Server-sent events, decoded strictly and within bounds.
//!
//! Follows "9.2.6 Interpreting an event stream" of the WHATWG HTML standard: lines end in CR, LF or CRLF, a leading byte
//! order mark and comments are skipped, `data` lines of one event are joined by LF, and an event that no blank line
//! ended is not an event. Stricter than it in one point: bytes that are not UTF-8 are an error, since a replaced
//! character inside tool-call arguments would change what is executed.

/// One event as it was ended by a blank line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The last `event` field, or empty.
    pub(crate) kind: String,
    /// All `data` fields joined by LF.
    pub(crate) data: String,
}

/// Why a stream cannot be decoded further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// One line, or the data of one event, is longer than the bound.
    #[error("an event of the stream is longer than {limit} bytes")]
    TooLong {
        /// The bound in bytes.
        limit: usize,
    },
    /// A line is not UTF-8.
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

/// Turns chunks of bytes, cut anywhere, into events.
#[derive(Debug)]
pub(crate) struct SseDecoder {
    limit: usize,
    line: Vec<u8>,
    kind: String,
    data: String,
    has_data: bool,
    after_cr: bool,
    at_start: bool,
}

impl SseDecoder {
    /// A decoder that holds at most `limit` bytes of one line and `limit` bytes of one event.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            kind: String::new(),
            data: String::new(),
            has_data: false,
            after_cr: false,
            at_start: true,
        }
    }

    /// Decodes the next chunk; the events it completed are appended to `events`, in order.
    pub(crate) fn push(&mut self, chunk: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        for &byte in chunk {
            let follows_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if follows_cr => {}
                b'\n' => self.end_line(events)?,
                b'\r' => {
                    self.after_cr = true;
                    self.end_line(events)?;
                }
                _ => {
                    if self.line.len() >= self.limit {
                        return Err(SseError::TooLong { limit: self.limit });
                    }
                    self.line.push(byte);
                }
            }
        }
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        let mut text = std::str::from_utf8(&line).map_err(|_| SseError::NotUtf8)?;
        if std::mem::take(&mut self.at_start) {
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        if text.is_empty() {
            self.end_event(events);
            return Ok(());
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.data.len() + value.len() >= self.limit {
                    return Err(SseError::TooLong { limit: self.limit });
                }
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            "event" => value.clone_into(&mut self.kind),
            // Comments have an empty field name; `id`, `retry` and unknown fields carry nothing for us.
            _ => {}
        }
        Ok(())
    }

    fn end_event(&mut self, events: &mut Vec<SseEvent>) {
        let kind = std::mem::take(&mut self.kind);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            events.push(SseEvent { kind, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(chunks: &[&[u8]]) -> Result<Vec<String>, SseError> {
        let mut decoder = SseDecoder::new(64);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk, &mut events)?;
        }
        Ok(events.into_iter().map(|event| format!("{}|{}", event.kind, event.data)).collect())
    }

    #[test]
    fn every_line_end_and_comment_is_understood() {
        let stream = b"\xef\xbb\xbf: hello\ndata: a\n\ndata:b\r\n\r\nevent: error\rdata: c\rdata:  d\r\rid: 7\n\n: x\n\n";
        assert_eq!(decode(&[stream]), Ok(vec!["|a".into(), "|b".into(), "error|c\n d".into()]));
    }

    #[test]
    fn an_event_without_its_blank_line_is_not_an_event() {
        assert_eq!(decode(&[b"data: a\n\ndata: b\n"]), Ok(vec!["|a".into()]));
        assert_eq!(decode(&[b"data: a\n\ndata: b"]), Ok(vec!["|a".into()]));
    }

    #[test]
    fn a_character_cut_between_chunks_is_whole_again() {
        assert_eq!(decode(&[b"data: \xe2\x82", b"\xac\n", b"\n"]), Ok(vec!["|\u{20ac}".into()]));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_an_error() {
        assert_eq!(decode(&[b"data: \xff\n\n"]), Err(SseError::NotUtf8));
    }

    #[test]
    fn a_line_without_end_and_an_event_without_end_are_bounded() {
        assert_eq!(decode(&[&[b'x'; 65]]), Err(SseError::TooLong { limit: 64 }));
        let lines = b"data: 0123456789\n".repeat(7);
        assert_eq!(decode(&[&lines]), Err(SseError::TooLong { limit: 64 }));
    }

    proptest! {
        #[test]
        fn cutting_the_stream_anywhere_changes_nothing(cuts in proptest::collection::vec(0usize..60, 0..8)) {
            let stream = "data: \u{1f30a}a\r\n\r\n: c\r\ndata: b\rdata: \u{20ac}\n\nevent: e\ndata: z\n\n".as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&stream[from..cut]);
                from = cut;
            }
            chunks.push(&stream[from..]);
            prop_assert_eq!(decode(&chunks), decode(&[stream]));
        }
    }
}
