//! Where in an agent's stream its reader is.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A place in what an agent sends, right behind the event that came last; shared by an agent that
/// notes it and whoever may want to continue from there.
///
/// Positions are no part of the protocol (T-21). Agents that have none leave it empty; `HttpAgent`
/// takes it from the `id` of server-sent events, and asks for what follows it with `Last-Event-ID`.
///
/// Cheap to clone; clones are the same place.
#[derive(Clone, Default)]
pub struct Position(Arc<Mutex<Option<String>>>);

impl Position {
    /// The beginning, before any event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The place that an agent named so before.
    #[must_use]
    pub fn at(id: impl Into<String>) -> Self {
        Self(Arc::new(Mutex::new(Some(id.into()))))
    }

    /// How the agent names the place; `None` where the last event had no position, or none came.
    #[must_use]
    pub fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the place behind the event that is about to be handed out; `None` where it has none:
    /// an earlier one would bring the event a second time.
    pub fn set(&self, id: Option<&str>) {
        // An empty one says that there is none.
        let id = id.filter(|id| !id.is_empty());
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *held, id) {
            // Its room is used again.
            (Some(held), Some(id)) => {
                held.clear();
                held.push_str(id);
            }
            (held, id) => *held = id.map(Into::into),
        }
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Position").field(&self.get()).finish()
    }
}
