//! What an agent writes its events with.
//!
//! A [`Run`] is handed to the agent. Its methods, and those of a [`Subagent`], emit events; the
//! handles they give ([`TextMessage`], [`ToolCall`], …) may be open at the same time, close what
//! they opened when dropped, and are checked: what would break a rule of the protocol is an
//! [`EmitError`] and not part of the stream. That goes for everything a consumer would refuse, remove
//! or warn of: what is open and whose it is, ids that are taken, patches that do not apply, roles and
//! parts that the protocol does not describe, results of tools that are the front end's to answer.
//!
//! # Backpressure
//!
//! At most [`CAPACITY`] events wait for the consumer. Emitting one more waits until the consumer
//! has taken some, first come first served, so that a slow consumer slows the agent and a run takes
//! no more memory than that. Closing by drop never waits. Dropping a future of this module that waits
//! leaves the stream as it was, but for `finish`, `result` and the like, which do several things: what
//! they had opened or ended by then stays so.

mod activity;
mod asking;
mod channel;
mod completion;
mod holdings;
mod ordered;
mod overlay;
mod reasoning;
mod request;
mod run;
mod scope;
mod shared;
mod state;
mod step;
mod stream;
mod subagent;
mod text;
mod tool_call;
mod waiters;

pub use activity::Activity;
pub use asking::expires_in;
#[cfg(feature = "schemars")]
pub use asking::schema_of;
pub use channel::{CAPACITY, EmitError};
pub use completion::{CallChunk, CompletedAnswer, CompletedCall, Completion, CompletionChunk};
pub use reasoning::{ReasoningMessage, ReasoningSpan};
pub use request::Answer;
pub use run::Run;
pub use scope::Emitter;
pub use state::State;
pub use step::Step;
pub use stream::{AGENT_PANIC, RUN_DEADLINE, stream};
pub use subagent::Subagent;
pub use text::TextMessage;
pub use tool_call::ToolCall;
