//! The published vectors and streams, run through the stages of this crate.
//!
//! They are read from `AGUI_CORPUS`, or from `../shared/conformance` beside the repository. Where a
//! line is knowingly not met, `conformance/deviations/` says so and why; a deviation that no longer
//! is one fails too.

mod cases;
mod client;
mod compact;
mod compare;
mod corpus;
#[cfg(feature = "legacy")]
mod legacy;
mod runs;
mod stages;
mod streams;
