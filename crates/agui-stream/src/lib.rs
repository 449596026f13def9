//! The rules of the AG-UI protocol as state machines without I/O: each takes one event and hands
//! back events, changes, or a typed fault.
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
