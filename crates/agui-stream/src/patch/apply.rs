//! Applying a patch.

use std::mem;

use agui_types::json::{MAX_DEPTH, Value};
use agui_types::{Json, JsonPatch, JsonPointer, PatchOp};

use super::error::{PatchError, PatchErrorKind};
use super::extent::Extent;
use super::limits::PatchLimits;
use super::walk::{self, Put, Target, find, find_mut, put_back, seat, take_back, target};

/// Applies a patch to a value: all of it, or on an error nothing. Operations with an unknown `op`
/// are passed over (C-69).
///
/// Measures the whole value first; one that is patched again and again belongs in a [`Document`].
///
/// Fails where an operation cannot be carried out or passes a limit.
pub fn apply(value: &mut Value, patch: &JsonPatch, limits: &PatchLimits) -> Result<(), PatchError> {
    let mut document = Document::new(mem::take(value));
    let applied = document.apply(patch, limits);
    *value = document.into_value();
    applied
}

/// A JSON document that patches are applied to.
#[derive(Clone, Debug)]
pub struct Document {
    root: Value,
    size: usize,
    /// Bytes received that have not earned their work yet.
    received: usize,
    /// Work that was earned and not done.
    work: usize,
}

impl Document {
    /// Takes a value, and measures it once.
    #[must_use]
    pub fn new(root: Value) -> Self {
        let size = Extent::of(&root).size;
        Self { root, size, received: size.saturating_add(ENVELOPE), work: 0 }
    }

    /// The document as it is now.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.root
    }

    /// The document, given back.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.root
    }

    /// How large the document is: the bytes of its compact text, and one more for each object or
    /// array that is not empty.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Applies a patch: all of it, or on an error nothing. Operations with an unknown `op` are
    /// passed over (C-69).
    ///
    /// Fails where an operation cannot be carried out or passes a limit.
    pub fn apply(&mut self, patch: &JsonPatch, limits: &PatchLimits) -> Result<(), PatchError> {
        self.transact(patch, limits, |_| true)
    }

    /// Applies a patch to a document that has to stay an object, as an activity's content (P-50).
    ///
    /// Fails as [`Document::apply`], and where the patch leaves something else.
    pub fn apply_to_object(
        &mut self,
        patch: &JsonPatch,
        limits: &PatchLimits,
    ) -> Result<(), PatchError> {
        self.transact(patch, limits, |root| matches!(root, Value::Object(_)))
    }

    fn transact(
        &mut self,
        patch: &JsonPatch,
        limits: &PatchLimits,
        accept: impl FnOnce(&Value) -> bool,
    ) -> Result<(), PatchError> {
        let received = mem::take(&mut self.received).saturating_add(length(patch));
        let earned = received.saturating_mul(limits.work_per_byte);
        let work = self.work.saturating_add(earned).min(limits.work);
        let mut transaction = Transaction {
            largest: self.size.max(limits.size),
            size: self.size,
            root: &mut self.root,
            spent: Spent { limits, written: 0, allowed: work, work },
            undo: Vec::new(),
        };
        let result = transaction.run(patch, accept);
        self.work = transaction.spent.work;
        match result {
            Ok(()) => {
                self.size = transaction.size;
                Ok(())
            }
            Err((operation, fault)) => {
                let exists = walk::existing(transaction.root, fault.pointer);
                transaction.roll_back();
                Err(PatchError {
                    operation,
                    op: patch[operation].op.name().to_owned(),
                    pointer: fault.pointer.clone(),
                    exists,
                    kind: fault.kind,
                })
            }
        }
    }
}

/// What the event takes that brings a document or a patch.
const ENVELOPE: usize = r#"{"type":"STATE_DELTA","delta":[]}"#.len();

/// About how long a patch is as text.
fn length(patch: &JsonPatch) -> usize {
    const FRAME: usize = r#"{"op":"remove","path":""},"#.len();
    let length = |op: &PatchOp| {
        let pointers = op.path().into_iter().chain(op.from());
        let pointers: usize = pointers.map(|pointer| pointer.as_str().len()).sum();
        FRAME + pointers + op.value().map_or(0, |value| value.as_str().len())
    };
    ENVELOPE + patch.iter().map(|operation| length(&operation.op)).sum::<usize>()
}

/// What one patch has done so far, and how to take it back.
struct Transaction<'d, 'p> {
    root: &'d mut Value,
    size: usize,
    /// What the document may come to.
    largest: usize,
    spent: Spent<'d>,
    undo: Vec<Undo<'p>>,
}

/// How to take one change back.
enum Undo<'p> {
    /// A value was put here.
    Put(&'p JsonPointer, Put),
    /// This value was removed from here, where it had this place in its container.
    Removed(&'p JsonPointer, usize, Value),
    /// A value was removed from here, where it had this place in its container, and put there.
    Moved(&'p JsonPointer, usize, &'p JsonPointer, Put),
}

/// What is wrong, and with which of an operation's pointers.
struct Fault<'p> {
    pointer: &'p JsonPointer,
    kind: PatchErrorKind,
}

fn at<'p>(pointer: &'p JsonPointer) -> impl Fn(PatchErrorKind) -> Fault<'p> {
    move |kind| Fault { pointer, kind }
}

impl<'p> Transaction<'_, 'p> {
    /// Does it all, or says which operation could not be done.
    fn run(
        &mut self,
        patch: &'p JsonPatch,
        accept: impl FnOnce(&Value) -> bool,
    ) -> Result<(), (usize, Fault<'p>)> {
        let limit = self.spent.limits.operations;
        let known = patch.iter().map(|operation| &operation.op).enumerate();
        let known = known.filter_map(|(index, op)| Some((index, op, op.path()?)));
        let mut last = None;
        for (index, op, path) in known {
            let fault = |fault| (index, fault);
            if index >= limit {
                let kind = PatchErrorKind::TooManyOperations { limit };
                return Err(fault(at(path)(kind)));
            }
            self.operate(op).map_err(fault)?;
            if self.size > self.largest {
                let kind = PatchErrorKind::TooLarge { limit: self.spent.limits.size };
                return Err(fault(at(path)(kind)));
            }
            last = Some((index, path));
        }
        match last {
            Some((index, path)) if !accept(self.root) => {
                Err((index, at(path)(PatchErrorKind::NotAnObject)))
            }
            _ => Ok(()),
        }
    }

    fn operate(&mut self, op: &'p PatchOp) -> Result<(), Fault<'p>> {
        match op {
            PatchOp::Add { path, value } => {
                let value = read(value).map_err(at(path))?;
                let extent = self.spent.admit(path, Extent::of(&value))?;
                self.add(path, value, extent)?;
            }
            PatchOp::Replace { path, value } => {
                let value = read(value).map_err(at(path))?;
                let extent = self.spent.admit(path, Extent::of(&value))?;
                self.replace(path, value, extent)?;
            }
            PatchOp::Remove { path } => self.remove(path)?,
            PatchOp::Move { from, path } => self.relocate(from, path)?,
            PatchOp::Copy { from, path } => {
                let source = find(self.root, from).map_err(at(from))?;
                let extent = self.spent.measure(source).map_err(at(from))?;
                let extent = self.spent.admit(path, extent)?;
                let copy = source.clone();
                self.add(path, copy, extent)?;
            }
            PatchOp::Test { path, value } => {
                let value = read(value).map_err(at(path))?;
                let found = find(self.root, path).map_err(at(path))?;
                if *found != value {
                    let found = describe(found);
                    return Err(at(path)(PatchErrorKind::TestFailed { found }));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add(
        &mut self,
        path: &'p JsonPointer,
        value: Value,
        extent: Extent,
    ) -> Result<(), Fault<'p>> {
        let target = target(self.root, path).map_err(at(path))?;
        let freed = self.spent.make_room(&target).map_err(at(path))?;
        self.size = self.size + target.overhead() + extent.size - freed;
        let put = target.put(value);
        self.undo.push(Undo::Put(path, put));
        Ok(())
    }

    fn replace(
        &mut self,
        path: &'p JsonPointer,
        value: Value,
        extent: Extent,
    ) -> Result<(), Fault<'p>> {
        let slot = find_mut(self.root, path).map_err(at(path))?;
        let freed = self.spent.measure(slot).map_err(at(path))?;
        self.size = self.size + extent.size - freed.size;
        let put = Put::InPlaceOf(mem::replace(slot, value));
        self.undo.push(Undo::Put(path, put));
        Ok(())
    }

    fn remove(&mut self, path: &'p JsonPointer) -> Result<(), Fault<'p>> {
        let Some(seat) = seat(self.root, path).map_err(at(path))? else {
            // What is left of a document without its root.
            return self.replace(path, Value::Null, Extent::of(&Value::Null));
        };
        self.spent.shift(seat.behind()).map_err(at(path))?;
        let freed = self.spent.measure(seat.value()).map_err(at(path))?;
        let (place, overhead) = (seat.place(), seat.overhead());
        self.size -= overhead + freed.size;
        self.undo.push(Undo::Removed(path, place, seat.take()));
        Ok(())
    }

    fn relocate(&mut self, from: &'p JsonPointer, path: &'p JsonPointer) -> Result<(), Fault<'p>> {
        let value = find(self.root, from).map_err(at(from))?;
        match path.as_str().strip_prefix(from.as_str()) {
            Some("") => return Ok(()),
            Some(inside) if inside.starts_with('/') => {
                return Err(at(from)(PatchErrorKind::IntoItself));
            }
            _ => {}
        }
        // A value that comes no deeper than it was needs no look inside.
        if path.steps().count() > from.steps().count() {
            let extent = self.spent.measure(value).map_err(at(from))?;
            self.spent.nest(path, extent.depth).map_err(at(path))?;
        }
        let Some(seat) = seat(self.root, from).map_err(at(from))? else {
            // The whole document moves into itself or not at all: dealt with above.
            return Ok(());
        };
        self.spent.shift(seat.behind()).map_err(at(from))?;
        let (place, overhead) = (seat.place(), seat.overhead());
        let value = seat.take();
        let target = target(self.root, path).and_then(|target| {
            let freed = self.spent.make_room(&target)?;
            Ok((target, freed))
        });
        match target.map_err(at(path)) {
            Ok((target, freed)) => {
                self.size = self.size + target.overhead() - overhead - freed;
                let put = target.put(value);
                self.undo.push(Undo::Moved(from, place, path, put));
                Ok(())
            }
            Err(fault) => {
                put_back(self.root, from, place, value);
                Err(fault)
            }
        }
    }

    /// Takes everything back, the last change first: each then finds what it left.
    fn roll_back(self) {
        let root = self.root;
        for change in self.undo.into_iter().rev() {
            match change {
                Undo::Put(path, put) => drop(take_back(root, path, put)),
                Undo::Removed(path, place, value) => put_back(root, path, place, value),
                Undo::Moved(from, place, path, put) => {
                    let value = take_back(root, path, put);
                    put_back(root, from, place, value);
                }
            }
        }
    }
}

/// What a patch has spent of its limits.
struct Spent<'l> {
    limits: &'l PatchLimits,
    written: usize,
    /// The work it may make, and what is left of that.
    allowed: usize,
    work: usize,
}

impl Spent<'_> {
    /// Lets a value into the document, before it is copied or put anywhere.
    fn admit<'p>(&mut self, path: &'p JsonPointer, extent: Extent) -> Result<Extent, Fault<'p>> {
        self.nest(path, extent.depth).map_err(at(path))?;
        self.written = self.written.saturating_add(extent.size);
        if self.written > self.limits.size {
            return Err(at(path)(PatchErrorKind::TooLarge { limit: self.limits.size }));
        }
        Ok(extent)
    }

    fn nest(&self, path: &JsonPointer, depth: usize) -> Result<(), PatchErrorKind> {
        let limit = self.limits.depth.min(MAX_DEPTH);
        if path.steps().count() + depth > limit {
            return Err(PatchErrorKind::TooDeep { limit });
        }
        Ok(())
    }

    /// Moves values by a place.
    fn shift(&mut self, places: usize) -> Result<(), PatchErrorKind> {
        let left = self.work.checked_sub(places / PatchLimits::MOVES_PER_STEP);
        self.work = left.ok_or(PatchErrorKind::TooMuchWork { limit: self.allowed })?;
        Ok(())
    }

    /// Looks through a value that is there already.
    fn measure(&mut self, value: &Value) -> Result<Extent, PatchErrorKind> {
        match Extent::within(value, self.work) {
            Some(extent) => {
                self.work -= extent.size;
                Ok(extent)
            }
            None => {
                // It was looked at as far as that.
                self.work = 0;
                Err(PatchErrorKind::TooMuchWork { limit: self.allowed })
            }
        }
    }

    /// Looks at what has to make room; gives the size of what gives way.
    fn make_room(&mut self, target: &Target<'_, '_>) -> Result<usize, PatchErrorKind> {
        self.shift(target.behind())?;
        Ok(match target {
            Target::Slot(old) => self.measure(old)?.size,
            _ => 0,
        })
    }
}

fn read(value: &Json) -> Result<Value, PatchErrorKind> {
    Value::try_from(value).map_err(PatchErrorKind::NotJson)
}

/// A value in a few words, for a person.
fn describe(value: &Value) -> String {
    const LONGEST: usize = 60;
    match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(members) => format!("an object of {}", members.len()),
        scalar => {
            let text = match scalar {
                // Before it is escaped: it may be long.
                Value::String(text) => text.chars().take(LONGEST + 1).collect(),
                other => other.to_string(),
            };
            let short: String = text.chars().take(LONGEST).collect();
            let more = if short.len() < text.len() { "…" } else { "" };
            match scalar {
                Value::String(_) => format!("{short:?}{more}"),
                _ => format!("{short}{more}"),
            }
        }
    }
}
