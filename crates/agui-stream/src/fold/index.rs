//! Finding what has an id.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use super::sequence::{Key, Sequence};

/// Where something is: in which message, and which of its calls.
pub(super) type Place = (Key, usize);

/// Where the things with an id are, in order: a producer may have used an id again.
#[derive(Clone)]
pub(super) struct Index<I>(HashMap<I, Places>);

#[derive(Clone)]
enum Places {
    One(Place),
    Several(Box<Sequence<Place>>),
}

impl<I> Default for Index<I> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<I: Eq + Hash> Index<I> {
    /// The first one with an id.
    pub(super) fn first<Q: Eq + Hash + ?Sized>(&self, id: &Q) -> Option<Place>
    where
        I: Borrow<Q>,
    {
        match self.0.get(id)? {
            Places::One(place) => Some(*place),
            Places::Several(places) => places.at(0).map(|key| places[key]),
        }
    }

    /// All with an id, in order.
    pub(super) fn all(&self, id: &I) -> Vec<Place> {
        match self.0.get(id) {
            None => Vec::new(),
            Some(Places::One(place)) => vec![*place],
            Some(Places::Several(places)) => places.keys().map(|key| places[key]).collect(),
        }
    }

    /// Adds one; `order` says where a place stands among all.
    pub(super) fn enter<O: Ord>(&mut self, id: I, place: Place, order: impl Fn(Place) -> O) {
        match self.0.entry(id) {
            Entry::Vacant(entry) => {
                entry.insert(Places::One(place));
            }
            Entry::Occupied(mut entry) => {
                if let Places::One(other) = *entry.get() {
                    let mut places = Sequence::default();
                    places.insert(0, other, 0);
                    entry.insert(Places::Several(Box::new(places)));
                }
                if let Places::Several(places) = entry.get_mut() {
                    let wanted = order(place);
                    let position = places.partition_point(|other| order(*other) < wanted);
                    places.insert(position, place, 0);
                }
            }
        }
    }

    /// Removes one, while it still stands where it is.
    pub(super) fn leave<O: Ord>(&mut self, id: &I, place: Place, order: impl Fn(Place) -> O) {
        let last = match self.0.get_mut(id) {
            None => return,
            Some(Places::One(_)) => true,
            Some(Places::Several(places)) => {
                let wanted = order(place);
                let position = places.partition_point(|other| order(*other) < wanted);
                if let Some(key) = places.at(position) {
                    places.remove(key);
                }
                places.len() == 0
            }
        };
        if last {
            self.0.remove(id);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
