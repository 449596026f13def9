//! What an agent writes its events with.
//!
//! A [`Run`] is handed to the agent. Its methods, and those of a [`Subagent`], emit events; the
//! handles they give ([`TextMessage`], [`ToolCall`], …) may be open at the same time, close what
//! they opened when dropped, and are checked: what would break a rule of the protocol is an
//! [`EmitError`] and not part of the stream.
//!
//! # Backpressure
//!
//! At most [`CAPACITY`] events wait for the consumer. Emitting one more waits until the consumer
//! has taken some, so that a slow consumer slows the agent. Closing by drop never waits.

mod activity;
mod channel;
mod reasoning;
mod scope;
mod step;
mod stream;
mod subagent;
mod text;
mod tool_call;

pub use activity::Activity;
pub use channel::{CAPACITY, EmitError};
pub use reasoning::{ReasoningMessage, ReasoningSpan};
pub use scope::{Emitter, Run};
pub use step::Step;
pub use stream::{AGENT_PANIC, stream};
pub use subagent::Subagent;
pub use text::TextMessage;
pub use tool_call::ToolCall;
