//! How many connections are open, in all and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections of one listener that are open at once, handshakes included.
const MOST: usize = 4096;
/// Of those from one address. Behind a translation of addresses many people are one.
const MOST_OF_ONE: usize = 1024;
/// How often it is told that there is no room.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// The places of one listener. Clones are the same ones.
#[derive(Clone, Default)]
pub(super) struct Places {
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    in_all: usize,
    of: HashMap<IpAddr, usize>,
    told: Option<Instant>,
}

/// The place of one connection, free again once it is dropped.
pub(super) struct Place {
    places: Places,
    peer: IpAddr,
}

impl Places {
    /// A place for a connection from `peer`; `None` when there is none left for it.
    pub(super) fn take(&self, peer: IpAddr) -> Option<Place> {
        let mut taken = self.lock();
        let of_peer = taken.of.get(&peer).copied().unwrap_or(0);
        if taken.in_all >= MOST || of_peer >= MOST_OF_ONE {
            if taken.told.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
                tracing::warn!(in_all = taken.in_all, %peer, of_peer, "no room for a connection");
                taken.told = Some(Instant::now());
            }
            return None;
        }
        taken.in_all += 1;
        taken.of.insert(peer, of_peer + 1);
        Some(Place { places: self.clone(), peer })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.in_all -= 1;
        if let Some(of_peer) = taken.of.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                taken.of.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_take_every_place() {
        let places = Places::default();
        let (one, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let mut taken: Vec<Place> = std::iter::from_fn(|| places.take(one)).collect();
        assert_eq!(taken.len(), MOST_OF_ONE);
        let another = places.take(other);
        assert!(another.is_some());
        taken.pop();
        assert!(places.take(one).is_some(), "a place that is free is given again");
        drop((taken, another));
        assert!(places.lock().of.is_empty() && places.lock().in_all == 0);
    }
}
