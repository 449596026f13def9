//! The state that the run shares with the front end, as the front end holds it.

use agui_stream::patch::{self, Document, PatchLimits};
use agui_types::event::{StateDelta, StateSnapshot};
use agui_types::json::Value;
use agui_types::{Event, Json, JsonObject, JsonPatch, RunAgentInput, ToJson};

use super::EmitError;
use super::overlay::overlay;

/// The shared state: the input's, or `{}`, and what was emitted since (P-46).
pub(super) struct Shared {
    content: Content,
    /// How often it has changed.
    revision: u64,
}

impl Shared {
    pub(super) fn of_input(input: &RunAgentInput) -> Self {
        let state = input.state.clone().unwrap_or_else(|| JsonObject::empty().into());
        Self { content: state.into(), revision: 0 }
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn value(&mut self) -> &Value {
        self.content.document().value()
    }

    pub(super) fn replace(&mut self, snapshot: &Json) {
        self.content = snapshot.clone().into();
        self.revision += 1;
    }

    pub(super) fn patch(&mut self, delta: &JsonPatch) -> Result<(), EmitError> {
        let document = self.content.document();
        document.apply(delta, &PatchLimits::default()).map_err(EmitError::Patch)?;
        self.revision += u64::from(!delta.is_empty());
        Ok(())
    }

    /// The event that carries a change from `before` to `after` into the state: a patch, or a
    /// snapshot where that is shorter. `None` where nothing changes.
    pub(super) fn change(&mut self, before: &Value, after: &Value) -> Option<Event> {
        let held = self.value();
        let target = overlay(held, before, after);
        let delta = patch::diff(held, &target);
        if delta.is_empty() {
            return None;
        }
        let (delta, snapshot) = (StateDelta::new(delta), StateSnapshot::new(target.to_json()));
        let shorter = snapshot.to_json().len() < delta.to_json().len();
        Some(if shorter { snapshot.into() } else { delta.into() })
    }
}

/// A JSON value that may be patched, taken apart when it is for the first time.
pub(super) struct Content {
    /// The value, until it is taken apart.
    text: Option<Json>,
    document: Option<Document>,
}

impl Content {
    pub(super) fn document(&mut self) -> &mut Document {
        let text = self.text.take();
        self.document.get_or_insert_with(|| {
            // A `Json` always holds a value within the depth that a tree can have.
            let value = text.and_then(|text| Value::try_from(&text).ok());
            Document::new(value.unwrap_or_default())
        })
    }
}

impl From<Json> for Content {
    fn from(text: Json) -> Self {
        Self { text: Some(text), document: None }
    }
}
