//! From pieces that come fast to events that are stored: a piece waits at most a moment for more of its kind.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::session::Event;
use crate::store::{Lease, Store, StoreError};

/// How long a piece may wait for the next.
const MOMENT: Duration = Duration::from_millis(80);
/// Bytes of text at which an event is stored at once.
const FULL: usize = 8 * 1024;

/// Stores what comes until the channel closes. `label` tells what may stand in one event together; `event` makes it.
pub(super) async fn store_events<P, L: PartialEq>(
    store: &Store,
    lease: &Lease,
    mut pieces: mpsc::Receiver<P>,
    split: impl Fn(P) -> (L, String),
    event: impl Fn(L, String) -> Event,
) -> Result<(), StoreError> {
    let mut kept: Option<(L, String)> = None;
    loop {
        let piece = match kept.take() {
            Some(first) => Some(first),
            None => pieces.recv().await.map(&split),
        };
        let Some((label, mut text)) = piece else { return Ok(()) };
        let until = Instant::now() + MOMENT;
        while text.len() < FULL {
            match timeout_at(until, pieces.recv()).await {
                Ok(Some(piece)) => {
                    let (next, more) = split(piece);
                    if next != label {
                        kept = Some((next, more));
                        break;
                    }
                    text.push_str(&more);
                }
                Ok(None) | Err(_) => break,
            }
        }
        let mut write = store.write(lease).await?;
        write.append_event(&event(label, text)).await?;
        write.commit().await?;
    }
}
