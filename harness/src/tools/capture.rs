//! Output of a command, kept within a bound: its beginning and its end.

use std::collections::VecDeque;

use mooring_proto::v1;

use super::text::{head_and_tail, visible};

/// Bytes kept of a stream's beginning and of its end.
const HEAD: usize = 16 * 1024;
const TAIL: usize = 32 * 1024;
/// Bytes of one command's output that watchers are shown as they come; the result says the rest.
const MAX_PRINTED: usize = 512 * 1024;

/// A piece of output for those who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// Whole characters; bytes that are not UTF-8 are U+FFFD.
    pub text: String,
}

/// Both streams of one command.
#[derive(Debug, Default)]
pub(super) struct Capture {
    stdout: Kept,
    stderr: Kept,
    printed: usize,
}

#[derive(Debug, Default)]
struct Kept {
    next: u64,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    missing: u64,
    /// Beginning of a character whose rest has not come.
    carry: Vec<u8>,
}

impl Capture {
    /// Absolute offsets from which to go on.
    pub(super) fn offsets(&self) -> (u64, u64) {
        (self.stdout.next, self.stderr.next)
    }

    /// Takes one frame; what it adds for watchers comes back.
    pub(super) fn take(&mut self, frame: &v1::OutputFrame) -> Option<Printed> {
        let (kept, stream) = match frame.stream() {
            v1::Stream::Stderr => (&mut self.stderr, "stderr"),
            v1::Stream::Stdout | v1::Stream::Unspecified => (&mut self.stdout, "stdout"),
        };
        let fresh = kept.take(frame.offset, &frame.content);
        if self.printed >= MAX_PRINTED {
            return None;
        }
        let text = kept.decode(&fresh);
        self.printed += text.len();
        (!text.is_empty()).then_some(Printed { stream, text })
    }

    /// Takes note of bytes that are no longer to be had.
    pub(super) fn gap(&mut self, gap: &v1::OutputGap) {
        let kept = match gap.stream() {
            v1::Stream::Stderr => &mut self.stderr,
            v1::Stream::Stdout | v1::Stream::Unspecified => &mut self.stdout,
        };
        kept.skip_to(gap.to);
    }

    /// Both streams as text, within `bound` bytes together: `stderr` gets what it needs up to a third, or what is left.
    pub(super) fn shown(&self, bound: usize) -> (String, String) {
        let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
        let for_stderr =
            stderr.len().min(bound / 3).max(bound.saturating_sub(stdout.len()).min(stderr.len()));
        let for_stdout = bound - for_stderr.min(bound);
        (head_and_tail(&stdout, for_stdout), head_and_tail(&stderr, for_stderr))
    }
}

impl Kept {
    /// Keeps what is new in `content`, which begins at `offset`.
    fn take(&mut self, offset: u64, content: &[u8]) -> Vec<u8> {
        if offset > self.next {
            self.skip_to(offset);
        }
        let known = usize::try_from(self.next - offset).unwrap_or(usize::MAX);
        let Some(fresh) = content.get(known..) else { return Vec::new() };
        self.next += fresh.len() as u64;
        let mut rest = fresh;
        if self.missing == 0 && self.tail.is_empty() {
            let (first, later) = rest.split_at(rest.len().min(HEAD - self.head.len()));
            self.head.extend_from_slice(first);
            rest = later;
        }
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(TAIL);
        self.missing += over as u64;
        self.tail.drain(..over);
        fresh.to_vec()
    }

    /// Bytes up to `offset` will never come. What was kept of the end is no longer next to what follows.
    fn skip_to(&mut self, offset: u64) {
        if offset > self.next {
            self.missing += offset - self.next + self.tail.len() as u64;
            self.tail.clear();
            self.carry.clear();
            self.next = offset;
        }
    }

    fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.missing == 0 {
            return visible(&[self.head.as_slice(), &tail].concat());
        }
        format!("{}\n[… {} bytes left out …]\n{}", visible(&self.head), self.missing, visible(&tail))
    }

    fn decode(&mut self, fresh: &[u8]) -> String {
        let bytes = [self.carry.as_slice(), fresh].concat();
        let whole = match std::str::from_utf8(&bytes) {
            Ok(_) => bytes.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            // An invalid byte further in: only an incomplete character at the very end is carried.
            Err(_) => bytes.len() - incomplete_end(&bytes),
        };
        self.carry = bytes[whole..].to_vec();
        String::from_utf8_lossy(&bytes[..whole]).into_owned()
    }
}

/// How many bytes at the end begin a character that is not finished.
fn incomplete_end(bytes: &[u8]) -> usize {
    (1..=3.min(bytes.len()))
        .find(|&n| {
            std::str::from_utf8(&bytes[bytes.len() - n..])
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(offset: u64, content: &[u8]) -> v1::OutputFrame {
        v1::OutputFrame { stream: v1::Stream::Stdout.into(), offset, content: content.to_vec().into() }
    }

    #[test]
    fn a_repeated_frame_adds_only_what_is_new() {
        let mut capture = Capture::default();
        assert_eq!(capture.take(&frame(0, b"abc")).map(|printed| printed.text).as_deref(), Some("abc"));
        assert_eq!(capture.take(&frame(1, b"bcde")).map(|printed| printed.text).as_deref(), Some("de"));
        assert_eq!(capture.take(&frame(0, b"ab")), None);
        assert_eq!(capture.shown(100).0, "abcde");
        assert_eq!(capture.offsets(), (5, 0));
    }

    #[test]
    fn a_character_cut_between_frames_is_printed_whole() {
        let mut capture = Capture::default();
        assert_eq!(capture.take(&frame(0, b"\xff a\xe2\x82")).expect("printed").text, "\u{fffd} a");
        assert_eq!(capture.take(&frame(5, b"\xac!")).expect("printed").text, "\u{20ac}!");
    }

    #[test]
    fn a_flood_keeps_its_beginning_and_its_end_and_counts_the_rest() {
        let mut capture = Capture::default();
        let mut offset = 0;
        for line in 0..100_000u32 {
            let content = format!("{line:07}\n");
            capture.take(&frame(offset, content.as_bytes()));
            offset += content.len() as u64;
        }
        let (stdout, _) = capture.shown(usize::MAX / 4);
        assert!(stdout.starts_with("0000000\n0000001\n") && stdout.ends_with("0099999\n"));
        assert!(stdout.contains(&format!("[… {} bytes left out …]", 800_000 - HEAD - TAIL)));
        assert!(capture.shown(24_000).0.len() < 24_100);
    }

    #[test]
    fn a_gap_is_never_closed_silently() {
        let mut capture = Capture::default();
        capture.take(&frame(0, b"abc"));
        capture.gap(&v1::OutputGap { stream: v1::Stream::Stdout.into(), from: 3, to: 10 });
        capture.take(&frame(10, b"xyz"));
        assert_eq!(capture.shown(100).0, "abc\n[… 7 bytes left out …]\nxyz");
    }

    #[test]
    fn both_streams_share_the_bound() {
        let mut capture = Capture::default();
        capture.take(&frame(0, &[b'o'; 10_000]));
        let mut error = frame(0, &[b'e'; 10_000]);
        error.stream = v1::Stream::Stderr.into();
        capture.take(&error);
        let (stdout, stderr) = capture.shown(9_000);
        assert!((5_900..6_100).contains(&stdout.len()) && (2_900..3_100).contains(&stderr.len()));
        let (stdout, stderr) = capture.shown(15_000);
        assert!(
            stdout.len() + stderr.len() < 15_100 && stdout.len() >= 9_900,
            "{} {}",
            stdout.len(),
            stderr.len()
        );
    }
}
