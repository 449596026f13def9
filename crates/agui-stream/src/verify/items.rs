//! What is known of the items of one kind: whose they are, and which are open.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use agui_types::event::EventType;

use super::{Owner, faults, same_owner};
use crate::Fault;

/// How a kind of item is called in a fault, and what opens it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noun {
    pub(super) name: &'static str,
    pub(super) start: EventType,
}

impl Noun {
    pub(super) const fn new(name: &'static str, start: EventType) -> Self {
        Self { name, start }
    }
}

/// The items of one kind met in the current run.
#[derive(Clone, Debug)]
pub(super) struct Items<K> {
    known: HashMap<K, Item>,
    open: usize,
}

#[derive(Clone, Debug)]
struct Item {
    owner: Owner,
    /// When it was opened, counted in openings; `None` while it is closed.
    opened: Option<u64>,
}

impl<K> Default for Items<K> {
    fn default() -> Self {
        Self { known: HashMap::new(), open: 0 }
    }
}

impl<K: Clone + Eq + Hash + AsRef<str>> Items<K> {
    /// Checks an event that continues an item (C-38, C-77).
    #[inline]
    pub(super) fn check(
        &self,
        noun: Noun,
        id: &K,
        tag: &Owner,
        event: EventType,
    ) -> Result<(), Fault> {
        match self.known.get(id) {
            Some(item) if item.opened.is_some() => {
                same_owner(event, noun.name, id.as_ref(), tag, &item.owner)
            }
            _ => Err(faults::not_open(noun, id.as_ref(), event)),
        }
    }

    /// Opens an item, or opens it again (C-39, C-41). `tag` is what the event says of its owner,
    /// `owner` whose it is when it was not known before; an owner once established stands.
    pub(super) fn start(
        &mut self,
        noun: Noun,
        id: &K,
        tag: &Owner,
        owner: &Owner,
        opened: &mut u64,
    ) -> Result<(), Fault> {
        match self.known.get_mut(id) {
            Some(Item { opened: Some(_), .. }) => {
                return Err(faults::already_open(noun, id.as_ref()));
            }
            Some(item) => {
                same_owner(noun.start, noun.name, id.as_ref(), tag, &item.owner)?;
                *opened += 1;
                item.opened = Some(*opened);
                self.open += 1;
            }
            None => self.insert(id, owner, opened),
        }
        Ok(())
    }

    /// Opens an item that is not known yet.
    pub(super) fn insert(&mut self, id: &K, owner: &Owner, opened: &mut u64) {
        *opened += 1;
        self.known.insert(id.clone(), Item { owner: owner.clone(), opened: Some(*opened) });
        self.open += 1;
    }

    /// Checks an event that closes an item, and closes it.
    pub(super) fn end(
        &mut self,
        noun: Noun,
        id: &K,
        tag: &Owner,
        event: EventType,
    ) -> Result<(), Fault> {
        self.check(noun, id, tag, event)?;
        self.close(id);
        Ok(())
    }

    /// Closes an item; `false` where it was not open.
    pub(super) fn close(&mut self, id: &K) -> bool {
        let closed = self.known.get_mut(id).is_some_and(|item| item.opened.take().is_some());
        self.open -= usize::from(closed);
        closed
    }

    /// Takes over whose an item is from where it is restated.
    pub(super) fn learn(&mut self, id: &K, owner: Owner) {
        match self.known.get_mut(id) {
            Some(item) => item.owner = owner,
            None => drop(self.known.insert(id.clone(), Item { owner, opened: None })),
        }
    }

    /// Notes whose an item is, unless that is known.
    pub(super) fn learn_new(&mut self, id: &K, owner: &Owner) {
        if !self.known.contains_key(id) {
            self.learn(id, owner.clone());
        }
    }

    pub(super) fn is_known(&self, id: &K) -> bool {
        self.known.contains_key(id)
    }

    pub(super) fn is_open(&self, id: &K) -> bool {
        self.known.get(id).is_some_and(|item| item.opened.is_some())
    }

    pub(super) fn has_open(&self) -> bool {
        self.open > 0
    }

    /// The open items with when they were opened, in no order.
    pub(super) fn open<T>(&self, item: impl Fn(K, Owner) -> T) -> impl Iterator<Item = (u64, T)> {
        self.known.iter().filter_map(move |(id, known)| {
            Some((known.opened?, item(id.clone(), known.owner.clone())))
        })
    }
}

impl<K: Eq + Hash + Borrow<str>> Items<K> {
    /// Whose an item is, where that is known.
    pub(super) fn owner(&self, id: &str) -> Option<&Owner> {
        self.known.get(id).map(|item| &item.owner)
    }
}
