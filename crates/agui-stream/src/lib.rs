//! The rules of the AG-UI protocol as state machines without I/O: each takes one event and hands
//! back events, changes, or a typed fault.
#![forbid(unsafe_code)]

mod report;

pub use report::{Class, Fault, Warning};
