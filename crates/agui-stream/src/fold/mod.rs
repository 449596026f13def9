//! Folding events into a conversation: messages, state, and what is open.
//!
//! A [`Conversation`] takes events that were verified and expanded, one at a time, and says what
//! each one changed. It never copies its history: a token costs the same in an empty and in a long
//! conversation, and a small patch the same on a small and on a large state.
//!
//! ```
//! use agui_stream::fold::{Applied, Change, Conversation};
//! use agui_types::event::{Event, TextMessageContent, TextMessageStart};
//! use agui_types::json::Value;
//!
//! let mut conversation = Conversation::new(Vec::new(), Value::parse("{}")?);
//! // Reused from event to event, so that a token allocates nothing.
//! let mut applied = Applied::default();
//!
//! conversation.apply(&TextMessageStart::new("m1").into(), &mut applied);
//! conversation.apply(&TextMessageContent::new("m1", "Hello").into(), &mut applied);
//! assert_eq!(applied.changes, [Change::TextAppended { message: "m1".into(), bytes: 5 }]);
//! assert!(applied.warnings.is_empty());
//!
//! let message = conversation.messages().find("m1").ok_or("no message")?;
//! assert_eq!(message.tag(), "assistant");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod activity;
mod change;
mod conversation;
mod edit;
mod index;
mod interrupts;
mod items;
mod messages;
mod ordered;
mod pending;
mod runs;
mod sequence;
mod shared;
mod usage;

pub use change::{Applied, Change};
pub use conversation::Conversation;
pub use messages::Messages;
