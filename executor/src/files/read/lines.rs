//! Taking lines out of a file that arrives in chunks.

use super::{LineRange, Truncation, TruncationReason};

/// Collects lines `offset..offset + limit` within a byte bound, and counts all of them.
#[derive(Debug)]
pub(super) struct LineCollector {
    range: LineRange,
    collected: Vec<u8>,
    /// Where the line that is being collected begins in `collected`.
    line_start: usize,
    /// Lines collected whole, or cut.
    sent: u64,
    /// Line ends seen.
    line_ends: u64,
    /// The last byte seen was no line end.
    in_line: bool,
    /// Why collecting ended.
    stopped: Option<TruncationReason>,
    /// A byte after the end of collecting was seen.
    has_more: bool,
    /// The first line was longer than the bound.
    cut: bool,
}

impl LineCollector {
    pub(super) fn new(range: LineRange) -> Self {
        Self {
            range,
            collected: Vec::new(),
            line_start: 0,
            sent: 0,
            line_ends: 0,
            in_line: false,
            stopped: None,
            has_more: false,
            cut: false,
        }
    }

    /// Whether nothing further can change what is sent and that there is more.
    pub(super) fn is_done(&self) -> bool {
        self.stopped.is_some() && self.has_more
    }

    /// Whether bytes that come next would be kept.
    pub(super) fn is_collecting(&self) -> bool {
        self.stopped.is_none() && self.line_ends + 1 >= self.range.offset
    }

    pub(super) fn feed(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while !rest.is_empty() {
            if !self.is_collecting() && self.stopped.is_some() {
                self.has_more = true;
                self.count(rest);
                return;
            }
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let (piece, after) = rest.split_at(end);
            if self.is_collecting() {
                self.collect(piece);
            }
            self.count(piece);
            rest = after;
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.line_ends += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.in_line = bytes.last().is_some_and(|byte| *byte != b'\n');
    }

    /// Takes a piece of one line, with its end if that has come.
    fn collect(&mut self, piece: &[u8]) {
        if self.collected.len() + piece.len() > self.range.max_bytes {
            self.stopped = Some(TruncationReason::Bytes);
            if self.sent > 0 {
                self.collected.truncate(self.line_start);
                self.has_more = true;
                return;
            }
            let room = self.range.max_bytes - self.collected.len();
            self.collected.extend_from_slice(&piece[..room]);
            trim_to_character(&mut self.collected);
            self.sent = 1;
            self.cut = true;
            self.has_more = true;
            return;
        }
        self.collected.extend_from_slice(piece);
        if piece.last() == Some(&b'\n') {
            self.sent += 1;
            self.line_start = self.collected.len();
            if self.sent >= self.range.limit {
                self.stopped = Some(TruncationReason::Count);
            }
        }
    }

    /// What was collected, and what was left out. `complete` says that all of the file was fed.
    pub(super) fn finish(mut self, complete: bool) -> (Vec<u8>, Option<Truncation>) {
        if self.stopped.is_none() && self.collected.len() > self.line_start {
            self.sent += 1;
        }
        let lines = self.line_ends + u64::from(self.in_line);
        let truncation = self.stopped.filter(|_| self.has_more).map(|reason| Truncation {
            reason,
            total: complete.then_some(lines),
            sent: self.sent,
            next_offset: self.range.offset.saturating_add(self.sent),
        });
        (self.collected, truncation)
    }
}

/// Drops the beginning of a character whose rest was cut off.
fn trim_to_character(bytes: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
        && error.valid_up_to() > 0
    {
        bytes.truncate(error.valid_up_to());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(chunks: &[&[u8]], offset: u64, limit: u64, max_bytes: usize) -> (Vec<u8>, Option<Truncation>) {
        let mut collector = LineCollector::new(LineRange { offset, limit, max_bytes });
        for chunk in chunks {
            collector.feed(chunk);
        }
        collector.finish(true)
    }

    fn truncated(reason: TruncationReason, total: u64, sent: u64, next_offset: u64) -> Truncation {
        Truncation { reason, total: Some(total), sent, next_offset }
    }

    #[test]
    fn lines_are_taken_by_number_and_the_last_needs_no_end() {
        let text: &[u8] = b"one\ntwo\r\nthree";
        assert_eq!(collect(&[text], 1, 9, 99), (text.to_vec(), None));
        assert_eq!(
            collect(&[text], 2, 1, 99),
            (b"two\r\n".to_vec(), Some(truncated(TruncationReason::Count, 3, 1, 3)))
        );
        assert_eq!(collect(&[text], 3, 1, 99), (b"three".to_vec(), None));
        assert_eq!(collect(&[text], 4, 1, 99), (Vec::new(), None));
        assert_eq!(collect(&[b"a\nb\n"], 1, 2, 99), (b"a\nb\n".to_vec(), None));
        assert_eq!(collect(&[], 1, 2, 99), (Vec::new(), None));
    }

    #[test]
    fn only_a_line_that_is_too_long_by_itself_is_cut() {
        let bytes = TruncationReason::Bytes;
        assert_eq!(collect(&[b"one\ntwo\n"], 1, 9, 6), (b"one\n".to_vec(), Some(truncated(bytes, 2, 1, 2))));
        assert_eq!(collect(&[b"abcdef\nx"], 1, 9, 3), (b"abc".to_vec(), Some(truncated(bytes, 2, 1, 2))));
        assert_eq!(collect(&["aé".as_bytes()], 1, 9, 2), (b"a".to_vec(), Some(truncated(bytes, 1, 1, 2))));
        assert_eq!(collect(&[b"abc"], 1, 9, 3), (b"abc".to_vec(), None));
    }

    proptest! {
        #[test]
        fn how_a_file_is_chunked_changes_nothing(
            text in "[a\n]{0,40}", at in 0_usize..40, offset in 1_u64..6, limit in 1_u64..6, max_bytes in 1_usize..20,
        ) {
            let (head, tail) = text.as_bytes().split_at(at.min(text.len()));
            prop_assert_eq!(
                collect(&[head, tail], offset, limit, max_bytes),
                collect(&[text.as_bytes()], offset, limit, max_bytes)
            );
        }
    }
}
