//! Observers: what watches a run as its events are folded, and may intervene.
//!
//! An [`Observer`] is told of every event before a conversation takes it in, twice: in
//! [`on_event`](Observer::on_event) and in the callback of its kind. With what it returns it may put
//! other messages or another state in place, or keep the event from the conversation. [`Observers`]
//! is the list of them, used instead of [`Conversation::apply`](crate::Conversation::apply); while it
//! is empty it costs nothing. An [`ObserverHandle`] removes one again, at any time.
//!
//! ```
//! use agui_stream::Conversation;
//! use agui_stream::fold::Applied;
//! use agui_stream::observe::{Mutation, Observer, Observers, Reaction, Scene};
//! use agui_types::event::{Event, StateSnapshot, TextMessageContent, TextMessageStart};
//! use agui_types::json::Value;
//!
//! /// Lets nothing be said that is secret, and no state through.
//! struct Censor;
//!
//! impl Observer for Censor {
//!     fn on_text_message_content(
//!         &mut self,
//!         event: &TextMessageContent,
//!         _: &Scene<'_>,
//!     ) -> Reaction {
//!         let secret = event.delta.contains("secret");
//!         Ok(if secret { Mutation::new().stop() } else { Mutation::new() })
//!     }
//!
//!     fn on_state_snapshot(&mut self, _: &StateSnapshot, _: &Scene<'_>) -> Reaction {
//!         Err("there is to be no state".into())
//!     }
//! }
//!
//! let mut conversation = Conversation::new(Vec::new(), Value::Null);
//! let (mut observers, mut applied) = (Observers::new(), Applied::default());
//! observers.add(Censor);
//! let mut failures = Vec::new();
//! for event in [
//!     Event::from(TextMessageStart::new("m")),
//!     Event::from(TextMessageContent::new("m", "the secret is 42")),
//!     Event::from(TextMessageContent::new("m", "Hello")),
//!     Event::from(StateSnapshot::new(Value::Bool(true).to_json())),
//! ] {
//!     failures.extend(observers.apply(&event, &mut conversation, &mut applied).errors);
//! }
//! let message = conversation.messages().find("m").ok_or("no message")?;
//! assert!(message.to_json().as_str().contains(r#""content":"Hello""#));
//! // An observer that fails changes nothing.
//! assert_eq!(conversation.state(), &Value::Bool(true));
//! assert_eq!(failures[0].to_string(), "an observer failed in on_state_snapshot");
//! # use agui_types::ToJson;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[macro_use]
mod kinds;
mod observer;
mod observers;
mod scene;
#[cfg(test)]
mod tests;

pub use observer::{BoxError, Mutation, Observer, Reaction};
pub use observers::{Observed, ObserverError, ObserverHandle, Observers};
pub use scene::Scene;
