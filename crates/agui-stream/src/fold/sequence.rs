//! An ordered sequence in which every place is reached in about the same time.

use std::hash::{BuildHasher, RandomState};
use std::ops::{Index, IndexMut};

/// Where an item is kept: the same for as long as it is held, whatever comes before it.
pub(super) type Key = usize;

/// How many kinds of items are told apart.
const KINDS: usize = 4;

/// No item.
const NONE: Key = Key::MAX;

/// Items in order, each of a kind. To insert, to remove, to find the item at a place, the place of
/// an item, or the next item of some kind costs the same at either end and in the middle: it grows
/// with the logarithm of the length.
///
/// A treap: a search tree by place, balanced by priorities that nobody can guess.
#[derive(Clone)]
pub(super) struct Sequence<T> {
    nodes: Vec<Node<T>>,
    root: Key,
    /// Nodes without an item.
    free: Vec<Key>,
    made: u64,
    chance: RandomState,
}

#[derive(Clone)]
struct Node<T> {
    item: Option<T>,
    kind: usize,
    parent: Key,
    left: Key,
    right: Key,
    priority: u64,
    /// How many items are in the subtree, and how many of each kind.
    length: usize,
    counts: [usize; KINDS],
}

/// Some of the kinds.
#[derive(Clone, Copy)]
pub(super) struct Kinds(pub(super) [bool; KINDS]);

impl Kinds {
    pub(super) const ALL: Self = Self([true; KINDS]);

    pub(super) fn without(mut self, kind: usize) -> Self {
        self.0[kind] = false;
        self
    }

    fn sum(self, counts: &[usize; KINDS]) -> usize {
        counts.iter().zip(self.0).map(|(count, counted)| if counted { *count } else { 0 }).sum()
    }
}

impl<T> Default for Sequence<T> {
    fn default() -> Self {
        let chance = RandomState::new();
        Self { nodes: Vec::new(), root: NONE, free: Vec::new(), made: 0, chance }
    }
}

impl<T> Sequence<T> {
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// The item at a place.
    pub(super) fn at(&self, position: usize) -> Option<Key> {
        let (mut here, mut position) = (self.root, position);
        while let Some(at) = some(here) {
            let node = &self.nodes[at];
            let left = self.length(node.left);
            if position == left {
                return Some(at);
            }
            if position < left {
                here = node.left;
            } else {
                position -= left + 1;
                here = node.right;
            }
        }
        None
    }

    /// The place of the first item that does not come before something, where those that do are
    /// the first ones.
    pub(super) fn partition_point(&self, comes_before: impl Fn(&T) -> bool) -> usize {
        let (mut here, mut position) = (self.root, 0);
        while let Some(at) = some(here) {
            let node = &self.nodes[at];
            if node.item.as_ref().is_some_and(&comes_before) {
                position += self.length(node.left) + 1;
                here = node.right;
            } else {
                here = node.left;
            }
        }
        position
    }

    /// The place of an item.
    pub(super) fn position(&self, key: Key) -> usize {
        let mut position = self.length(self.nodes[key].left);
        let mut here = key;
        while let Some(parent) = some(self.nodes[here].parent) {
            if self.nodes[parent].right == here {
                position += self.length(self.nodes[parent].left) + 1;
            }
            here = parent;
        }
        position
    }

    /// The first item of these kinds that stands at a place or behind it, and where it stands.
    pub(super) fn next_of(&self, kinds: Kinds, position: usize) -> Option<(Key, usize)> {
        self.nth(kinds, self.before(kinds, position))
    }

    /// Puts an item at a place, which must not lie behind the end.
    pub(super) fn insert(&mut self, position: usize, item: T, kind: usize) -> Key {
        let mut counts = [0; KINDS];
        counts[kind] = 1;
        let priority = self.chance.hash_one(self.made);
        self.made += 1;
        let item = Some(item);
        let (parent, left, right, length) = (NONE, NONE, NONE, 1);
        let node = Node { item, kind, parent, left, right, priority, length, counts };
        let key = match self.free.pop() {
            Some(key) => {
                self.nodes[key] = node;
                key
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        let (before, behind) = self.split(self.root, position);
        let before = self.join(before, key);
        let root = self.join(before, behind);
        self.set_root(root);
        key
    }

    /// Removes an item.
    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let Node { left, right, parent, .. } = self.nodes[key];
        let below = self.join(left, right);
        match some(parent) {
            None => self.set_root(below),
            Some(parent) => {
                let node = &mut self.nodes[parent];
                let link = if node.left == key { &mut node.left } else { &mut node.right };
                *link = below;
                self.update_from(parent);
            }
        }
        self.free.push(key);
        self.nodes[key].item.take()
    }

    /// Says that an item is now of this kind.
    pub(super) fn set_kind(&mut self, key: Key, kind: usize) {
        if self.nodes[key].kind != kind {
            self.nodes[key].kind = kind;
            self.update_from(key);
        }
    }

    /// All keys, in order.
    pub(super) fn keys(&self) -> Keys<'_, T> {
        let (first, last) = (self.outermost(self.root, false), self.outermost(self.root, true));
        Keys { sequence: self, first, last, left: self.len() }
    }

    /// Removes all items and gives them back, in no order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(self).nodes.into_iter().filter_map(|node| node.item)
    }

    fn length(&self, tree: Key) -> usize {
        some(tree).map_or(0, |tree| self.nodes[tree].length)
    }

    fn count(&self, tree: Key, kinds: Kinds) -> usize {
        some(tree).map_or(0, |tree| kinds.sum(&self.nodes[tree].counts))
    }

    /// How many of these kinds stand before a place.
    fn before(&self, kinds: Kinds, mut position: usize) -> usize {
        let (mut here, mut found) = (self.root, 0);
        while let Some(at) = some(here) {
            let node = &self.nodes[at];
            let left = self.length(node.left);
            if position <= left {
                here = node.left;
            } else {
                found += self.count(node.left, kinds) + usize::from(kinds.0[node.kind]);
                position -= left + 1;
                here = node.right;
            }
        }
        found
    }

    /// The item of these kinds that so many of them stand before, and where it stands.
    fn nth(&self, kinds: Kinds, mut nth: usize) -> Option<(Key, usize)> {
        let (mut here, mut position) = (self.root, 0);
        while let Some(at) = some(here) {
            let node = &self.nodes[at];
            let (left, itself) = (self.count(node.left, kinds), usize::from(kinds.0[node.kind]));
            if nth < left {
                here = node.left;
                continue;
            }
            position += self.length(node.left);
            if nth < left + itself {
                return Some((at, position));
            }
            nth -= left + itself;
            position += 1;
            here = node.right;
        }
        None
    }

    /// The neighbour of an item.
    fn neighbour(&self, key: Key, behind: bool) -> Key {
        let child = |node: &Node<T>| if behind { node.right } else { node.left };
        if let Some(inner) = some(child(&self.nodes[key])) {
            return self.outermost(inner, !behind);
        }
        let mut here = key;
        while let Some(parent) = some(self.nodes[here].parent) {
            if child(&self.nodes[parent]) != here {
                return parent;
            }
            here = parent;
        }
        NONE
    }

    /// The first or the last item of a subtree.
    fn outermost(&self, tree: Key, last: bool) -> Key {
        let mut here = tree;
        while let Some(at) = some(here) {
            let node = &self.nodes[at];
            match some(if last { node.right } else { node.left }) {
                Some(next) => here = next,
                None => break,
            }
        }
        here
    }

    /// Two trees of what was one: so many items, and the others.
    fn split(&mut self, tree: Key, position: usize) -> (Key, Key) {
        let Some(at) = some(tree) else {
            return (NONE, NONE);
        };
        let left = self.length(self.nodes[at].left);
        if position <= left {
            let (before, behind) = self.split(self.nodes[at].left, position);
            self.nodes[at].left = behind;
            self.update(at);
            (before, at)
        } else {
            let (before, behind) = self.split(self.nodes[at].right, position - left - 1);
            self.nodes[at].right = before;
            self.update(at);
            (at, behind)
        }
    }

    /// One tree of what was two.
    fn join(&mut self, before: Key, behind: Key) -> Key {
        match (some(before), some(behind)) {
            (None, _) => behind,
            (_, None) => before,
            (Some(a), Some(b)) if self.nodes[a].priority > self.nodes[b].priority => {
                self.nodes[a].right = self.join(self.nodes[a].right, b);
                self.update(a);
                a
            }
            (Some(a), Some(b)) => {
                self.nodes[b].left = self.join(a, self.nodes[b].left);
                self.update(b);
                b
            }
        }
    }

    fn set_root(&mut self, root: Key) {
        self.root = root;
        if let Some(root) = some(root) {
            self.nodes[root].parent = NONE;
        }
    }

    /// Counts a subtree anew, and says to what is below it where it belongs.
    fn update(&mut self, at: Key) {
        let Node { left, right, kind, .. } = self.nodes[at];
        let (mut length, mut counts) = (1, [0; KINDS]);
        counts[kind] = 1;
        for child in [left, right].into_iter().filter_map(some) {
            self.nodes[child].parent = at;
            length += self.nodes[child].length;
            for (sum, count) in counts.iter_mut().zip(self.nodes[child].counts) {
                *sum += count;
            }
        }
        self.nodes[at].length = length;
        self.nodes[at].counts = counts;
    }

    /// Counts a subtree anew, and all that it is part of.
    fn update_from(&mut self, at: Key) {
        let mut here = at;
        while let Some(at) = some(here) {
            self.update(at);
            here = self.nodes[at].parent;
        }
    }
}

fn some(key: Key) -> Option<Key> {
    (key != NONE).then_some(key)
}

/// An item that is held.
impl<T> Index<Key> for Sequence<T> {
    type Output = T;

    fn index(&self, key: Key) -> &T {
        self.nodes[key].item.as_ref().expect("a key of an item that is held")
    }
}

impl<T> IndexMut<Key> for Sequence<T> {
    fn index_mut(&mut self, key: Key) -> &mut T {
        self.nodes[key].item.as_mut().expect("a key of an item that is held")
    }
}

/// The keys of a sequence, in order.
pub(super) struct Keys<'s, T> {
    sequence: &'s Sequence<T>,
    first: Key,
    last: Key,
    left: usize,
}

impl<T> Clone for Keys<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<T> Iterator for Keys<'_, T> {
    type Item = Key;

    fn next(&mut self) -> Option<Key> {
        self.left = self.left.checked_sub(1)?;
        let next = self.sequence.neighbour(self.first, true);
        some(std::mem::replace(&mut self.first, next))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> DoubleEndedIterator for Keys<'_, T> {
    fn next_back(&mut self) -> Option<Key> {
        self.left = self.left.checked_sub(1)?;
        let next = self.sequence.neighbour(self.last, false);
        some(std::mem::replace(&mut self.last, next))
    }
}

impl<T> ExactSizeIterator for Keys<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest way from the root to an item.
    fn height<T>(sequence: &Sequence<T>) -> usize {
        let depth = |key: Key| {
            let up = |key: &Key| some(sequence.nodes[*key].parent);
            std::iter::successors(Some(key), up).count()
        };
        sequence.keys().map(depth).max().unwrap_or(0)
    }

    #[test]
    fn it_is_a_list() {
        // Compared with a vector, over places and kinds that no pattern decides.
        let (mut sequence, mut list) = (Sequence::default(), Vec::new());
        let mut state = 1_u64;
        let mut any = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for number in 0..3_000 {
            if any(3) == 0 && !list.is_empty() {
                let (key, item, _) = list.remove(any(list.len()));
                assert_eq!(sequence.remove(key), Some(item));
            } else {
                let (position, kind) = (any(list.len() + 1), any(KINDS));
                let key = sequence.insert(position, number, kind);
                list.insert(position, (key, number, kind));
            }
            if let Some(at) = list.len().checked_sub(1).map(|last| any(last + 1)) {
                list[at].2 = any(KINDS);
                sequence.set_kind(list[at].0, list[at].2);
                assert_eq!(sequence.at(at), Some(list[at].0));
                assert_eq!(sequence.position(list[at].0), at);
                let wanted = Kinds([any(2) == 0, any(2) == 0, any(2) == 0, true]);
                let next = (at..list.len()).find(|at| wanted.0[list[*at].2]);
                let next = next.map(|at| (list[at].0, at));
                assert_eq!(sequence.next_of(wanted, at), next);
            }
            assert_eq!(sequence.len(), list.len());
        }
        assert_eq!(sequence.at(list.len()), None);
        assert!(sequence.keys().map(|key| sequence[key]).eq(list.iter().map(|it| it.1)));
        assert!(sequence.keys().rev().eq(list.iter().rev().map(|it| it.0)));
        assert_eq!(sequence.keys().len(), list.len());
    }

    #[test]
    fn no_place_is_far() {
        const MANY: usize = 100_000;
        for front in [true, false] {
            let mut sequence = Sequence::default();
            for number in 0..MANY {
                let position = if front { number / 2 } else { sequence.len() };
                sequence.insert(position, (), 0);
            }
            let height = height(&sequence);
            assert!(height < 80, "{height}");
        }
    }
}
