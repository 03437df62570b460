//! What a command wrote to one stream, kept as its first and its last bytes.
//!
//! Readers pull by absolute offset, so no reader has a queue, and one that is slow or gone costs nothing.

use std::collections::VecDeque;

/// The kept bytes of one stream.
///
/// Memory is at most the limit it was made with, whatever is written.
#[derive(Debug)]
pub struct Output {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    tail_limit: usize,
    total: u64,
}

/// What there is at an offset.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes from the offset on, at least one.
    Bytes(Vec<u8>),
    /// The bytes from the offset up to here are no longer kept.
    Gap {
        /// The first kept offset behind the gap.
        to: u64,
    },
    /// Nothing was written at the offset yet.
    Nothing,
}

impl Output {
    /// Keeps at most `limit` bytes, one half from the start and one from the end.
    pub fn new(limit: usize) -> Self {
        let head_limit = limit / 2;
        Self { head: Vec::new(), head_limit, tail: VecDeque::new(), tail_limit: limit - head_limit, total: 0 }
    }

    /// Adds what was written.
    pub fn append(&mut self, written: &[u8]) {
        self.total += written.len() as u64;
        let free = self.head_limit - self.head.len();
        let (first, rest) = written.split_at(free.min(written.len()));
        if !first.is_empty() {
            let wanted = grown(self.head.len() + first.len(), self.head_limit);
            self.head.reserve_exact(wanted.saturating_sub(self.head.len()));
            self.head.extend_from_slice(first);
        }
        if rest.is_empty() {
            return;
        }
        let last = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let surplus = (self.tail.len() + last.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..surplus);
        let wanted = grown(self.tail.len() + last.len(), self.tail_limit);
        self.tail.reserve_exact(wanted.saturating_sub(self.tail.len()));
        self.tail.extend(last);
    }

    /// At most `max` bytes from `offset` on, 1 or more.
    pub fn read(&self, offset: u64, max: usize) -> Piece {
        if offset >= self.total {
            return Piece::Nothing;
        }
        if let Some(from) = usize::try_from(offset).ok().filter(|from| *from < self.head.len()) {
            let kept = &self.head[from..];
            return Piece::Bytes(kept[..kept.len().min(max)].to_vec());
        }
        let tail_start = self.total - self.tail.len() as u64;
        if offset < tail_start {
            return Piece::Gap { to: tail_start };
        }
        // Within the tail, whose length is a usize.
        let from = usize::try_from(offset - tail_start).unwrap_or(usize::MAX);
        let count = (self.tail.len() - from).min(max);
        let (front, back) = self.tail.as_slices();
        let mut bytes = Vec::with_capacity(count);
        bytes.extend_from_slice(part(front, from, count));
        bytes.extend_from_slice(part(back, from.saturating_sub(front.len()), count - bytes.len()));
        Piece::Bytes(bytes)
    }

    /// Bytes written, kept or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes written and no longer kept.
    pub fn dropped(&self) -> u64 {
        self.total - self.kept() as u64
    }

    /// Bytes kept.
    pub fn kept(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Gives back memory that nothing will fill any more.
    pub fn settle(&mut self) {
        self.head.shrink_to_fit();
        self.tail.shrink_to_fit();
    }
}

/// Room for `needed` bytes: doubling, so that growth costs little, but never over the limit.
fn grown(needed: usize, limit: usize) -> usize {
    needed.max(4096).next_power_of_two().min(limit).max(needed)
}

/// `slice[from..from + count]` as far as it reaches.
fn part(slice: &[u8], from: usize, count: usize) -> &[u8] {
    let rest = slice.get(from..).unwrap_or_default();
    &rest[..rest.len().min(count)]
}

#[cfg(test)]
mod tests;
