//! One reader of a command's output. It pulls, so it has no queue.

use std::sync::Arc;

use mooring_proto::MAX_FRAME_BYTES;
use mooring_proto::v1::{AttachResponse, OutputFrame, OutputGap, attach_response};
use tokio::sync::watch;

use super::command::{Command, Progress, Stream};
use super::output::Piece;

/// Bytes in one frame: large enough that frames cost little, small enough that a reader that stands still holds little.
const FRAME_BYTES: usize = 256 * 1024;
const _: () = assert!(FRAME_BYTES <= MAX_FRAME_BYTES);

/// Where one reader stands.
pub struct Follower {
    command: Arc<Command>,
    progress: watch::Receiver<Progress>,
    offsets: [u64; 2],
    /// Where to stop: set at once for a reader that does not follow, otherwise when the end is seen.
    stop: Option<Stop>,
    /// The stream that had its turn last.
    last: Stream,
    is_done: bool,
}

#[derive(Clone, Copy)]
struct Stop {
    until: [u64; 2],
    with_end: bool,
}

impl Follower {
    /// Reads `command` from these offsets of standard output and standard error.
    pub fn new(command: Arc<Command>, offsets: [u64; 2], no_follow: bool) -> Self {
        let progress = command.progress();
        let mut follower =
            Self { command, progress, offsets, stop: None, last: Stream::Stderr, is_done: false };
        if no_follow {
            follower.stop = Some(follower.stop_here());
        }
        follower
    }

    /// The next event, or `None` after the last. Cancel-safe.
    pub async fn next(&mut self) -> Option<AttachResponse> {
        while !self.is_done {
            // Seen before the output is looked at, so that nothing is slept through.
            let has_ended = self.progress.borrow_and_update().end.is_some();
            if has_ended && self.stop.is_none() {
                self.stop = Some(self.stop_here());
            }
            let order = match self.last {
                Stream::Stdout => [Stream::Stderr, Stream::Stdout],
                Stream::Stderr => [Stream::Stdout, Stream::Stderr],
            };
            for stream in order {
                if let Some(event) = self.piece(stream) {
                    self.last = stream;
                    return Some(AttachResponse { event: Some(event) });
                }
            }
            if let Some(stop) = self.stop {
                self.is_done = true;
                let end = if stop.with_end { self.command.end() } else { None };
                return end.map(|end| AttachResponse { event: Some(attach_response::Event::End(end)) });
            }
            if self.progress.changed().await.is_err() {
                self.is_done = true;
            }
        }
        None
    }

    /// Behind everything that is there now. What survivors of an ended command write later is for later readers.
    fn stop_here(&self) -> Stop {
        let with_end = self.progress.borrow().end.is_some();
        Stop { until: Stream::BOTH.map(|stream| self.command.output(stream).total()), with_end }
    }

    fn piece(&mut self, stream: Stream) -> Option<attach_response::Event> {
        let [stdout, stderr] = &mut self.offsets;
        let until = self.stop.map_or([u64::MAX; 2], |stop| stop.until);
        let (offset, until) = match stream {
            Stream::Stdout => (stdout, until[0]),
            Stream::Stderr => (stderr, until[1]),
        };
        let from = *offset;
        let left = usize::try_from(until.saturating_sub(from)).unwrap_or(usize::MAX);
        if left == 0 {
            return None;
        }
        match self.command.output(stream).read(from, left.min(FRAME_BYTES)) {
            Piece::Nothing => None,
            Piece::Gap { to } => {
                *offset = to;
                let gap = OutputGap { stream: stream.to_wire().into(), from, to };
                Some(attach_response::Event::Gap(gap))
            }
            Piece::Bytes(bytes) => {
                *offset += bytes.len() as u64;
                let frame =
                    OutputFrame { stream: stream.to_wire().into(), offset: from, content: bytes.into() };
                Some(attach_response::Event::Output(frame))
            }
        }
    }
}
