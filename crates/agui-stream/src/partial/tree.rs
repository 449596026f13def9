//! The tree so far, with a way to its innermost open level.

use std::mem;

use agui_types::json::Value;

/// A tree that grows at its end.
///
/// Between pieces it is whole and can be looked at. For a piece the open levels are
/// [lifted](Self::lift) out of each other, so that each is at hand, and
/// [settled](Self::settle) back afterwards: moves, no copies.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    root: Option<Value>,
    /// The open levels, outermost first, each with the place of its last member or element.
    places: Vec<usize>,
    /// The open levels themselves, while lifted.
    levels: Vec<Value>,
}

impl Tree {
    pub(super) fn root(&self) -> Option<&Value> {
        self.root.as_ref()
    }

    pub(super) fn into_root(self) -> Option<Value> {
        self.root
    }

    /// How many levels are open.
    pub(super) fn depth(&self) -> usize {
        self.places.len()
    }

    /// The brackets that close what is open, outermost first.
    pub(super) fn closers(&self) -> Vec<char> {
        let mut closers = Vec::with_capacity(self.places.len());
        let mut level = self.root();
        for &place in &self.places {
            level = match level {
                Some(Value::Object(members)) => {
                    closers.push('}');
                    members.get_index(place).map(|(_, value)| value)
                }
                Some(Value::Array(items)) => {
                    closers.push(']');
                    items.get(place)
                }
                _ => None,
            };
        }
        closers
    }

    /// Takes the open levels out of each other.
    pub(super) fn lift(&mut self) {
        for depth in 0..self.places.len() {
            let level = slot(&mut self.root, &mut self.levels, &self.places[..depth]);
            let level = level.map(mem::take).unwrap_or_default();
            self.levels.push(level);
        }
    }

    /// Puts the open levels back into each other.
    pub(super) fn settle(&mut self) {
        while let Some(level) = self.levels.pop() {
            let places = &self.places[..self.levels.len()];
            if let Some(place) = slot(&mut self.root, &mut self.levels, places) {
                *place = level;
            }
        }
    }

    /// The innermost open level, while lifted.
    pub(super) fn level(&self) -> Option<&Value> {
        self.levels.last()
    }

    /// The value put last, while lifted and until a level ends.
    pub(super) fn current(&mut self) -> Option<&mut Value> {
        slot(&mut self.root, &mut self.levels, &self.places)
    }

    /// Puts a value: as the root, the next element, or the member of this name, which is taken.
    pub(super) fn put(&mut self, name: &mut String, value: Value) {
        match (self.levels.last_mut(), self.places.last_mut()) {
            (Some(Value::Array(items)), Some(place)) => {
                *place = items.len();
                items.push(value);
            }
            (Some(Value::Object(members)), Some(place)) => {
                (*place, _) = members.insert_full(mem::take(name), value);
            }
            _ => self.root = Some(value),
        }
    }

    /// Puts an empty object or array and opens it.
    pub(super) fn open(&mut self, name: &mut String, level: Value) {
        self.put(name, Value::Null);
        self.places.push(0);
        self.levels.push(level);
    }

    /// Closes the innermost open level.
    pub(super) fn close(&mut self) {
        self.places.pop();
        if let (Some(level), Some(place)) = (self.levels.pop(), self.current()) {
            *place = level;
        }
    }
}

/// Where the last value of the innermost of these levels is, or the root outside all of them.
fn slot<'t>(
    root: &'t mut Option<Value>,
    levels: &'t mut [Value],
    places: &[usize],
) -> Option<&'t mut Value> {
    match (levels.last_mut(), places.last()) {
        (Some(Value::Array(items)), Some(&place)) => items.get_mut(place),
        (Some(Value::Object(members)), Some(&place)) => {
            members.get_index_mut(place).map(|(_, value)| value)
        }
        _ => root.as_mut(),
    }
}
