//! The bytes of the AG-UI protocol: event streams in and out, without I/O.
//!
//! There are two forms, server-sent events with JSON and length-prefixed protobuf, and one seam over
//! both: [`Decoder`] takes a body in pieces of any size and gives events, [`Encoder`] writes them.
//! [`negotiate`] and [`WireForm`] say which form a body has. [`sse`] is the framing of the JSON form
//! by itself, for payloads of other kinds.
//!
//! Everything is fed with bytes, so that it fits under any runtime or none, and bounds what a hostile
//! peer can make it hold ([`Limits`]).
//!
//! ```
//! use agui_wire::{Decoder, Encoder, Limits, WireForm, negotiate};
//! use agui_types::event::{RunStarted, RunFinished};
//!
//! // The producer answers in the form that the consumer asked for.
//! let form = negotiate(Some(WireForm::Proto.accept()));
//! let mut encoder = Encoder::new(form);
//! let mut body = Vec::new();
//! encoder.encode(&RunStarted::new("thread-1", "run-1").into(), None, &mut body)?;
//! encoder.encode(&RunFinished::new("thread-1", "run-1").into(), None, &mut body)?;
//!
//! // The consumer goes by the content type of the answer.
//! let mut decoder = Decoder::new(WireForm::from_content_type(form.media_type()), Limits::default());
//! let mut types = Vec::new();
//! for mut read in body.chunks(16) {
//!     while let Some(decoded) = decoder.decode(&mut read)? {
//!         types.extend(decoded.event.map(|event| event.value.type_name().to_owned()));
//!     }
//! }
//! assert_eq!(types, ["RUN_STARTED", "RUN_FINISHED"]);
//! assert!(decoder.finish()?.last.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod decode_error;
mod decoder;
mod encode_error;
mod encoder;
mod form;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod fuzzing;
mod hot;
mod limits;
pub mod proto;
mod quote;
pub mod sse;
mod warning;

pub use decode_error::{DecodeError, DecodeErrorKind};
pub use decoder::{Decoded, Decoder, Ending};
pub use encode_error::{EncodeError, EncodeErrorKind, Omission};
pub use encoder::Encoder;
pub use form::{EVENT_PROTO, EVENT_STREAM, WireForm, negotiate};
pub use limits::{Limit, LimitExceeded, Limits};
pub use warning::Warning;
