//! Standard input of a command.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::sync::Mutex;

/// The writing end of a command's standard input, if it has one.
pub struct Input {
    pipe: Mutex<Option<pipe::Sender>>,
    is_open: AtomicBool,
}

/// The input is not open: the command was started without one, closed it, or has ended.
#[derive(Debug)]
pub struct InputClosed;

impl Input {
    /// `None` is a command that reads `/dev/null`.
    pub fn new(pipe: Option<pipe::Sender>) -> Self {
        Self { is_open: AtomicBool::new(pipe.is_some()), pipe: Mutex::new(pipe) }
    }

    /// Writes all of `content`, after what earlier calls write, and closes the input then if asked to.
    ///
    /// Waits for as long as the command does not read. Dropped halfway, a part may have been written.
    pub async fn write(&self, content: &[u8], close: bool) -> Result<(), InputClosed> {
        let mut pipe = self.pipe.lock().await;
        if !self.is_open.load(Ordering::Acquire) {
            *pipe = None;
        }
        let sender = pipe.as_mut().ok_or(InputClosed)?;
        let written = sender.write_all(content).await;
        if written.is_err() || close {
            self.is_open.store(false, Ordering::Release);
            *pipe = None;
        }
        written.map_err(|_| InputClosed)
    }

    /// Takes nothing more. A write that waits is ended by whoever waits for the command's end.
    pub fn close_now(&self) {
        self.is_open.store(false, Ordering::Release);
        if let Ok(mut pipe) = self.pipe.try_lock() {
            *pipe = None;
        }
    }
}
