//! The producers that wait for room, first come first served.

use std::collections::BTreeMap;
use std::task::Waker;

/// Who waits, by the order in which waiting began.
#[derive(Default)]
pub(super) struct Waiters {
    wakers: BTreeMap<u64, Waker>,
    next: u64,
}

impl Waiters {
    /// Waits, or waits on in the place already held. Gives the place.
    pub(super) fn wait(&mut self, place: Option<u64>, waker: &Waker) -> u64 {
        let place = place.unwrap_or_else(|| {
            self.next += 1;
            self.next
        });
        match self.wakers.get_mut(&place) {
            Some(held) => held.clone_from(waker),
            None => drop(self.wakers.insert(place, waker.clone())),
        }
        place
    }

    /// Waits no longer.
    pub(super) fn leave(&mut self, place: u64) {
        self.wakers.remove(&place);
    }

    /// The one that has waited longest, who is to be woken and keeps its place.
    pub(super) fn next(&mut self) -> Option<Waker> {
        self.wakers.pop_first().map(|(_, waker)| waker)
    }

    /// All of them, to be woken.
    pub(super) fn all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.wakers).into_values()
    }
}
