//! Drawing the events of an item together.

use std::collections::{BTreeMap, HashMap};
use std::mem;

use agui_types::event::Event;

use super::item::{Deltas, Item, Part};
use super::state::State;

/// Moves what came between the start and the end of a text message or a tool call behind it, and
/// the state of each run to its end.
///
/// An event belongs behind the text message that was opened first of those open, else behind the
/// tool call that was. Nothing moves past the beginning or the end of a run.
pub(super) fn gather(events: &[Event]) -> Vec<Event> {
    let mut gatherer = Gatherer::default();
    for event in events {
        gatherer.push(event.clone());
    }
    gatherer.write_all();
    gatherer.out
}

#[derive(Default)]
struct Gatherer {
    /// What has come of the items that have not ended.
    groups: HashMap<Item, Group>,
    /// Those that have started, in that order.
    texts: BTreeMap<u64, Item>,
    calls: BTreeMap<u64, Item>,
    /// How many items were met.
    met: u64,
    state: State,
    out: Vec<Event>,
}

#[derive(Default)]
struct Group {
    /// When it started, or was met without a start.
    met: u64,
    /// One, but none where the stream does not begin at its beginning, and several where it opens
    /// what is open.
    starts: Vec<Event>,
    deltas: Option<Deltas>,
    /// What came in between.
    others: Vec<Event>,
}

impl Gatherer {
    fn push(&mut self, event: Event) {
        let Some(event) = self.state.take(event) else {
            return;
        };
        if matches!(event, Event::RunStarted(_)) || event.is_terminal() {
            self.write_all();
            return self.out.push(event);
        }
        self.met += 1;
        match Item::of(&event) {
            None | Some((Item::Reasoning(_), _)) => self.push_other(event),
            Some((item, Part::Start)) => self.push_start(item, event),
            Some((item, Part::Delta)) => {
                let group = self.groups.entry(item.clone());
                let group = group.or_insert_with(|| Group::met(self.met));
                let deltas = group.deltas.get_or_insert_with(|| Deltas::new(item));
                deltas.push(event);
            }
            Some((item, Part::End)) => {
                let group = self.groups.remove(&item).unwrap_or_default();
                self.started(&item).remove(&group.met);
                group.write(Some(event), &mut self.out);
            }
        }
    }

    fn push_start(&mut self, item: Item, event: Event) {
        let met = self.met;
        let group = self.groups.entry(item.clone()).or_default();
        group.starts.push(event);
        if group.starts.len() == 1 {
            group.met = met;
            self.started(&item).insert(met, item);
        }
    }

    /// Puts an event behind the item that it came in between of.
    fn push_other(&mut self, event: Event) {
        let mut first = self.texts.values().chain(self.calls.values());
        let group = first.next().and_then(|item| self.groups.get_mut(item));
        let place = group.map_or(&mut self.out, |group| &mut group.others);
        place.push(event);
    }

    /// Writes out what is open, and the state.
    fn write_all(&mut self) {
        self.texts = BTreeMap::new();
        self.calls = BTreeMap::new();
        let mut groups: Vec<Group> = mem::take(&mut self.groups).into_values().collect();
        groups.sort_unstable_by_key(|group| group.met);
        for group in groups {
            group.write(None, &mut self.out);
        }
        self.state.write(&mut self.out);
    }

    fn started(&mut self, item: &Item) -> &mut BTreeMap<u64, Item> {
        match item {
            Item::Call(_) => &mut self.calls,
            Item::Text(_) | Item::Reasoning(_) => &mut self.texts,
        }
    }
}

impl Group {
    fn met(met: u64) -> Self {
        Self { met, ..Self::default() }
    }

    fn write(self, end: Option<Event>, out: &mut Vec<Event>) {
        out.extend(self.starts);
        out.extend(self.deltas.map(Deltas::into_event));
        out.extend(end);
        out.extend(self.others);
    }
}
