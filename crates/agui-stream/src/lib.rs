//! The rules of the AG-UI protocol as state machines without I/O: each takes one event and hands
//! back events, changes, or a typed fault.
#![forbid(unsafe_code)]

mod chunks;
mod ending;
pub mod fold;
pub mod partial;
pub mod patch;
mod report;
mod verify;

pub use chunks::ChunkExpander;
pub use ending::Ending;
pub use fold::Conversation;
pub use partial::PartialJson;
pub use report::{Class, Fault, Warning};
pub use verify::{OpenItem, RunState, Verifier};
