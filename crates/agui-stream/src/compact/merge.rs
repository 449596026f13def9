//! Making one delta of many, each event staying where it is.

use std::collections::{BTreeMap, HashMap};
use std::mem;

use agui_types::event::Event;

use super::item::{Deltas, Item, Part};
use super::replay::is_chunk;
use super::state::State;

/// Holds back deltas and state events, and writes them out, as one, as late as nothing can tell the
/// difference. Everything else passes in its place.
#[derive(Clone, Debug, Default)]
pub(super) struct Merger {
    /// Deltas of reasoning messages too.
    reasoning: bool,
    open: HashMap<Item, Open>,
    /// What is held back, in the order it was begun.
    waiting: BTreeMap<u64, Deltas>,
    state: State,
    /// How many events were taken.
    taken: u64,
    /// When messages were last restated in this run, and how many of the items open then still are.
    /// Their messages may be gone, and what comes may bring them back.
    restated: u64,
    doubtful: usize,
    /// A chunk may be pending.
    chunks: bool,
}

/// An item between its start and its end.
#[derive(Clone, Copy, Debug)]
struct Open {
    opened: u64,
    waiting: Option<u64>,
}

impl Merger {
    pub(super) fn merge_reasoning(&mut self) {
        self.reasoning = true;
    }

    pub(super) fn push(&mut self, event: Event, out: &mut Vec<Event>) {
        self.taken += 1;
        if let Some((item, part)) = Item::of(&event) {
            return self.push_part(item, part, event, out);
        }
        match &event {
            Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_) => {
                self.finish(out);
            }
            Event::MessagesSnapshot(_) => {
                self.write_all(out);
                self.restated = self.taken;
                self.doubtful = self.open.len();
                self.chunks = false;
            }
            // One that takes a message's id takes the message away.
            Event::ActivitySnapshot(_) => self.write_all(out),
            Event::StateSnapshot(_) | Event::StateDelta(_) if !self.chunks => {
                drop(self.state.take(event));
                return;
            }
            // What comes behind a chunk may end it, so from here on nothing moves.
            chunk if is_chunk(chunk) => {
                self.write_all(out);
                self.state.write(out);
                self.chunks = true;
            }
            _ => self.write_doubtful(out),
        }
        out.push(event);
    }

    /// Writes out everything, where a run or the stream ends.
    pub(super) fn finish(&mut self, out: &mut Vec<Event>) {
        self.write_all(out);
        self.state.write(out);
        self.open = HashMap::new();
        self.doubtful = 0;
        self.chunks = false;
    }

    fn push_part(&mut self, item: Item, part: Part, event: Event, out: &mut Vec<Event>) {
        if let Some(rival) = item.rival() {
            self.write(&rival, out);
        }
        match part {
            Part::Start => {
                self.write_doubtful(out);
                self.close(&item, out);
                let open = Open { opened: self.taken, waiting: None };
                self.open.insert(item, open);
            }
            Part::Delta if self.chunks => {}
            Part::Delta if matches!(item, Item::Reasoning(_)) && !self.reasoning => {}
            Part::Delta => {
                if let Some(open) = self.open.get_mut(&item) {
                    let begun = *open.waiting.get_or_insert(self.taken);
                    let waiting = self.waiting.entry(begun);
                    waiting.or_insert_with(|| Deltas::new(item)).push(event);
                    return;
                }
            }
            Part::End => self.close(&item, out),
        }
        out.push(event);
    }

    fn close(&mut self, item: &Item, out: &mut Vec<Event>) {
        self.write(item, out);
        if let Some(closed) = self.open.remove(item) {
            self.doubtful -= usize::from(self.doubtful > 0 && closed.opened < self.restated);
        }
    }

    /// Writes out what is held back of one item.
    fn write(&mut self, item: &Item, out: &mut Vec<Event>) {
        let begun = self.open.get_mut(item).and_then(|open| open.waiting.take());
        let deltas = begun.and_then(|begun| self.waiting.remove(&begun));
        out.extend(deltas.map(Deltas::into_event));
    }

    fn write_all(&mut self, out: &mut Vec<Event>) {
        for deltas in mem::take(&mut self.waiting).into_values() {
            if let Some(open) = self.open.get_mut(&deltas.item) {
                open.waiting = None;
            }
            out.push(deltas.into_event());
        }
    }

    /// Writes out everything before what may bring back a message that is gone.
    fn write_doubtful(&mut self, out: &mut Vec<Event>) {
        if self.doubtful > 0 {
            self.write_all(out);
        }
    }
}
