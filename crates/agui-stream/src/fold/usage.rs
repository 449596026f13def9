//! What was used, added up.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use agui_types::TokenUsage;

/// The usage of all runs, one entry for each provider and model. A report costs by its own length.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    entries: Vec<TokenUsage>,
    places: HashMap<Model, usize>,
    /// What stood in the places that the run at hand has changed, in the order changed; nothing
    /// where it made the entry.
    before: Vec<(usize, Option<TokenUsage>)>,
}

/// A provider and a model.
type Model = (Option<String>, Option<String>);

impl Usage {
    pub(super) fn entries(&self) -> &[TokenUsage] {
        &self.entries
    }

    /// What is reported now is from earlier runs.
    pub(super) fn begin_run(&mut self) {
        self.before.clear();
    }

    /// Adds what the run at hand has used. Should it report a second time, that report counts
    /// alone.
    pub(super) fn report(&mut self, usage: &[TokenUsage]) {
        for (place, before) in self.before.drain(..).rev() {
            match before {
                Some(before) => self.entries[place] = before,
                None => {
                    let made = self.entries.pop();
                    made.and_then(|made| self.places.remove(&(made.provider, made.model)));
                }
            }
        }
        for entry in usage {
            match self.places.entry((entry.provider.clone(), entry.model.clone())) {
                Entry::Occupied(place) => {
                    let held = &mut self.entries[*place.get()];
                    self.before.push((*place.get(), Some(held.clone())));
                    held.add(entry);
                }
                Entry::Vacant(place) => {
                    self.before.push((self.entries.len(), None));
                    place.insert(self.entries.len());
                    self.entries.push(entry.clone());
                }
            }
        }
    }
}

impl From<Vec<TokenUsage>> for Usage {
    /// What earlier runs have used.
    fn from(usage: Vec<TokenUsage>) -> Self {
        let mut all = Self::default();
        all.report(&usage);
        all.begin_run();
        all
    }
}
