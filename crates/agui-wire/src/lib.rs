//! The bytes of the AG-UI protocol: event streams in and out, without I/O.
//!
//! [`sse`] frames and unframes the JSON binding. Everything is fed with bytes and hands back
//! borrowed frames, so that it fits under any runtime or none, and bounds what a hostile peer
//! can make it hold.
//!
//! ```
//! use agui_wire::sse::{Decoder, Limits};
//!
//! let mut decoder = Decoder::new(Limits::default().with_frame_bytes(1 << 20));
//! let reads: [&[u8]; 2] = [b"data: {\"type\":\"RUN_ST", b"ARTED\"}\r\n\r\n: keep-alive\n\n"];
//! let mut frames = Vec::new();
//! for mut read in reads {
//!     while let Some(frame) = decoder.decode(&mut read)? {
//!         frames.push(frame.data.to_owned());
//!     }
//! }
//! assert_eq!(frames, [r#"{"type":"RUN_STARTED"}"#]);
//! # Ok::<(), agui_wire::sse::LimitExceeded>(())
//! ```
#![forbid(unsafe_code)]

mod form;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod fuzzing;
pub mod sse;

pub use form::{EVENT_PROTO, EVENT_STREAM, WireForm, negotiate};
