//! Following a pointer into a tree, and changing what is there.

use std::borrow::Cow;
use std::mem;

use agui_types::JsonPointer;
use agui_types::json::Value;
use indexmap::IndexMap;

use super::error::PatchErrorKind;
use super::extent;

/// The value a pointer names, or `None` where it leads nowhere.
#[must_use]
pub fn resolve<'v>(document: &'v Value, pointer: &JsonPointer) -> Option<&'v Value> {
    find(document, pointer).ok()
}

pub(super) fn find<'v>(
    root: &'v Value,
    pointer: &JsonPointer,
) -> Result<&'v Value, PatchErrorKind> {
    pointer.steps().try_fold(root, |here, step| inner(here, &step))
}

pub(super) fn find_mut<'v>(
    root: &'v mut Value,
    pointer: &JsonPointer,
) -> Result<&'v mut Value, PatchErrorKind> {
    pointer.steps().try_fold(root, |here, step| inner_mut(here, &step))
}

/// As much of a pointer as leads somewhere.
pub(super) fn existing(root: &Value, pointer: &JsonPointer) -> JsonPointer {
    let text = pointer.as_str();
    let mut here = root;
    for (step, (at, _)) in pointer.steps().zip(text.match_indices('/')) {
        match inner(here, &step) {
            Ok(next) => here = next,
            // What a pointer begins with is a pointer.
            Err(_) => return text[..at].parse().unwrap_or_default(),
        }
    }
    pointer.clone()
}

/// The seat of a value that is there; `None` for the whole document, which has none.
pub(super) fn seat<'v>(
    root: &'v mut Value,
    pointer: &JsonPointer,
) -> Result<Option<Seat<'v>>, PatchErrorKind> {
    let Spot::Inside(container, step) = spot(root, pointer)? else {
        return Ok(None);
    };
    let place = match &*container {
        Value::Object(members) => members.get_index_of(&*step).ok_or(PatchErrorKind::NoMember),
        Value::Array(items) => element(&step, items.len()),
        other => Err(not_a_container(other)),
    }?;
    Ok(Some(Seat { container, place }))
}

/// Where a value stands in its object or array.
pub(super) struct Seat<'v> {
    container: &'v mut Value,
    place: usize,
}

impl Seat<'_> {
    /// The value; `null` never in practice.
    pub(super) fn value(&self) -> &Value {
        let value = match &*self.container {
            Value::Object(members) => members.get_index(self.place).map(|(_, value)| value),
            Value::Array(items) => items.get(self.place),
            _ => None,
        };
        value.unwrap_or(&Value::Null)
    }

    /// How many stand before it.
    pub(super) fn place(&self) -> usize {
        self.place
    }

    /// How many stand behind it.
    pub(super) fn behind(&self) -> usize {
        let all = match &*self.container {
            Value::Object(members) => members.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        all.saturating_sub(self.place + 1)
    }

    /// What it takes beside the value.
    pub(super) fn overhead(&self) -> usize {
        match &*self.container {
            Value::Object(members) => {
                members.get_index(self.place).map_or(0, |(name, _)| extent::member(name))
            }
            _ => extent::ELEMENT,
        }
    }

    /// Removes the value; those behind it move up.
    pub(super) fn take(self) -> Value {
        match self.container {
            Value::Object(members) => {
                members.shift_remove_index(self.place).map(|(_, value)| value).unwrap_or_default()
            }
            Value::Array(items) if self.place < items.len() => items.remove(self.place),
            _ => Value::Null,
        }
    }
}

/// Where `add` puts a value.
pub(super) fn target<'v, 'p>(
    root: &'v mut Value,
    pointer: &'p JsonPointer,
) -> Result<Target<'v, 'p>, PatchErrorKind> {
    let (container, step) = match spot(root, pointer)? {
        Spot::Root(root) => return Ok(Target::Slot(root)),
        Spot::Inside(container, step) => (container, step),
    };
    match container {
        Value::Object(members) => Ok(match members.get_index_of(&*step) {
            Some(place) => Target::Slot(&mut members[place]),
            None => Target::Member(members, step),
        }),
        Value::Array(items) => {
            let len = items.len();
            let place = if step == "-" { Some(len) } else { index(&step)? };
            match place {
                Some(place) if place <= len => Ok(Target::Element(items, place)),
                _ => Err(PatchErrorKind::OutOfRange { len }),
            }
        }
        other => Err(not_a_container(other)),
    }
}

/// Where `add` puts a value.
pub(super) enum Target<'v, 'p> {
    /// In place of the value there.
    Slot(&'v mut Value),
    /// As a new last member.
    Member(&'v mut IndexMap<String, Value>, Cow<'p, str>),
    /// Before the element at this place, or behind the last one.
    Element(&'v mut Vec<Value>, usize),
}

impl Target<'_, '_> {
    /// How many are going to move down.
    pub(super) fn behind(&self) -> usize {
        match self {
            Self::Element(items, place) => items.len() - place,
            _ => 0,
        }
    }

    /// What the value is going to take beside itself.
    pub(super) fn overhead(&self) -> usize {
        match self {
            Self::Slot(_) => 0,
            Self::Member(_, name) => extent::member(name),
            Self::Element(..) => extent::ELEMENT,
        }
    }

    pub(super) fn put(self, value: Value) -> Put {
        match self {
            Self::Slot(slot) => Put::InPlaceOf(mem::replace(slot, value)),
            Self::Member(members, name) => {
                let place = members.len();
                members.insert(name.into_owned(), value);
                Put::At(place)
            }
            Self::Element(items, place) => {
                items.insert(place, value);
                Put::At(place)
            }
        }
    }
}

/// How a value was put where it is.
pub(super) enum Put {
    /// This one gave way.
    InPlaceOf(Value),
    /// At this place in its container.
    At(usize),
}

/// Undoes a [`Put`] and gives back the value that was put.
pub(super) fn take_back(root: &mut Value, pointer: &JsonPointer, put: Put) -> Value {
    match put {
        Put::InPlaceOf(old) => {
            find_mut(root, pointer).map_or(Value::Null, |slot| mem::replace(slot, old))
        }
        Put::At(place) => match spot(root, pointer) {
            Ok(Spot::Inside(container, _)) => Seat { container, place }.take(),
            _ => Value::Null,
        },
    }
}

/// Undoes [`Seat::take`].
pub(super) fn put_back(root: &mut Value, pointer: &JsonPointer, place: usize, value: Value) {
    match spot(root, pointer) {
        Ok(Spot::Inside(Value::Object(members), name)) => {
            members.shift_insert(place.min(members.len()), name.into_owned(), value);
        }
        Ok(Spot::Inside(Value::Array(items), _)) => items.insert(place.min(items.len()), value),
        _ => {}
    }
}

/// Where a pointer leads: to the whole document, or by a last step into a container.
enum Spot<'v, 'p> {
    Root(&'v mut Value),
    Inside(&'v mut Value, Cow<'p, str>),
}

fn spot<'v, 'p>(
    root: &'v mut Value,
    pointer: &'p JsonPointer,
) -> Result<Spot<'v, 'p>, PatchErrorKind> {
    let mut steps = pointer.steps();
    let Some(mut last) = steps.next() else {
        return Ok(Spot::Root(root));
    };
    let mut container = root;
    for step in steps {
        container = inner_mut(container, &last)?;
        last = step;
    }
    Ok(Spot::Inside(container, last))
}

fn inner<'v>(container: &'v Value, step: &str) -> Result<&'v Value, PatchErrorKind> {
    match container {
        Value::Object(members) => members.get(step).ok_or(PatchErrorKind::NoMember),
        Value::Array(items) => element(step, items.len()).map(|place| &items[place]),
        other => Err(not_a_container(other)),
    }
}

fn inner_mut<'v>(container: &'v mut Value, step: &str) -> Result<&'v mut Value, PatchErrorKind> {
    match container {
        Value::Object(members) => members.get_mut(step).ok_or(PatchErrorKind::NoMember),
        Value::Array(items) => element(step, items.len()).map(|place| &mut items[place]),
        other => Err(not_a_container(other)),
    }
}

/// The place of an element that is there.
fn element(step: &str, len: usize) -> Result<usize, PatchErrorKind> {
    let place = index(step)?.filter(|place| *place < len);
    place.ok_or(PatchErrorKind::OutOfRange { len })
}

/// An array index: `0`, or decimal digits that do not begin with a zero. `None` where it is larger
/// than any array.
fn index(step: &str) -> Result<Option<usize>, PatchErrorKind> {
    let digits = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (step.len() > 1 && step.starts_with('0')) {
        return Err(PatchErrorKind::NotAnIndex);
    }
    Ok(step.parse().ok())
}

fn not_a_container(value: &Value) -> PatchErrorKind {
    PatchErrorKind::NotAContainer {
        found: match value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        },
    }
}
