//! The rules of the AG-UI protocol as state machines without I/O: each takes one event and hands
//! back events, changes, or a typed fault.
//!
//! | you have | you want | use |
//! | --- | --- | --- |
//! | events as a peer sent them | what may be delivered, with warnings, or the rule that broke | [`Pipeline`]: all stages in their order |
//! | events of your own | to know whether the stream is legal | [`Verifier`]; [`ChunkExpander`] before it where there are chunks |
//! | events that were verified and expanded | the messages, the state, what is open, and what each event changed | [`Conversation`], in [`fold`] |
//! | a pipeline and a conversation | to look at, change or stop events on the way | [`Observer`] and [`Observers`] |
//! | the events of a finished run | fewer events that come to the same | [`compact`], or [`Compactor`] as they come |
//! | a state and a patch | the state after it, or why it does not apply | [`patch::apply`]; [`patch::Document`] for patch after patch |
//! | two states | the patch from one to the other | [`patch::diff`] |
//! | arguments that are still being written | the value so far | [`PartialJson`] |
//! | a conversation and the next message | an input that an agent of any version understands | [`Outgoing`] |
//! | an input that came | the input as the agent is to see it, or why it is refused | [`accept_input`] |
//! | events, for a client from before AG-UI | events of the old runtime protocol | `legacy` (feature `legacy`) |
//!
//! A [`Fault`] ends a stream, a [`Warning`] does not; both name the rule, the place, what was expected
//! and what came. How a run ended is an [`Ending`], the same everywhere.
#![forbid(unsafe_code)]

mod chunks;
mod compact;
mod compat;
mod ending;
mod enforce;
pub mod fold;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod input;
#[cfg(feature = "legacy")]
pub mod legacy;
pub mod observe;
pub mod partial;
pub mod patch;
mod pipeline;
mod report;
mod verify;

pub use chunks::ChunkExpander;
pub use compact::{Compactor, compact};
pub use compat::{Boundary, PeerVersion};
pub use ending::Ending;
pub use enforce::enforce;
pub use fold::Conversation;
pub use frame::Frame;
pub use input::{Outgoing, accept_input, enforce_outgoing};
pub use observe::{Observer, Observers};
pub use partial::PartialJson;
pub use pipeline::{Checks, Pipeline};
pub use report::{Class, Fault, Warning};
pub use verify::{OpenItem, RunState, Verifier};
