//! Server-sent events: the frames of the JSON binding.
//!
//! [`Decoder`] takes a response body in pieces of any size and hands out [`Frame`]s;
//! [`Encoder`] writes frames. Neither does I/O, and neither looks into the payload: that a
//! frame's data is one JSON event object (T-13, T-22) is judged by whoever reads the data.
//!
//! ```
//! use agui_wire::sse::{Decoder, Encoder, End, Limits};
//!
//! let mut body = Vec::new();
//! Encoder::comment(&mut body, "keep-alive");
//! Encoder::new().id("7")?.frame(&mut body, r#"{"type":"RUN_STARTED"}"#);
//! Encoder::new().frame(&mut body, r#"{"type":"RUN_FINISHED"}"#);
//!
//! let mut decoder = Decoder::new(Limits::default());
//! let mut seen = Vec::new();
//! for mut read in body.chunks(10) {
//!     while let Some(frame) = decoder.decode(&mut read)? {
//!         seen.push((frame.data.to_owned(), frame.id.map(str::to_owned)));
//!     }
//! }
//! let ending = decoder.finish()?;
//! assert_eq!(ending.end, End::Clean);
//! assert_eq!(ending.frame, None);
//! assert_eq!(seen, [
//!     (r#"{"type":"RUN_STARTED"}"#.to_owned(), Some("7".to_owned())),
//!     (r#"{"type":"RUN_FINISHED"}"#.to_owned(), None),
//! ]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decoder;
mod encoder;
mod frame;
mod line;

pub use crate::limits::{Limit, LimitExceeded, Limits};
pub use decoder::Decoder;
pub use encoder::{Encoder, Field, FieldError};
pub use frame::{End, Ending, Frame};
