//! JSON Patch (RFC 6902) and JSON Pointer (RFC 6901) on a [`Value`] tree.
//!
//! A patch applies in place and as a whole or not at all (C-67): every change is noted before the
//! next one is made, and an operation that fails takes back all before it, so that the document is
//! what it was, down to the order of its members. Nothing is cloned: a small patch on a large
//! [`Document`] costs what the patch costs.
//!
//! ```
//! use agui_stream::patch::{self, Document, PatchErrorKind, PatchLimits};
//! use agui_types::json::Value;
//! use agui_types::{FromJson, JsonPatch};
//!
//! let mut document = Document::new(Value::parse(r#"{"steps":["plan"],"busy":true}"#)?);
//! let limits = PatchLimits::default();
//!
//! let text = r#"[{"op":"add","path":"/steps/-","value":"act"},{"op":"remove","path":"/busy"}]"#;
//! document.apply(&JsonPatch::from_json_exact(text)?, &limits)?;
//! assert_eq!(document.value().to_string(), r#"{"steps":["plan","act"]}"#);
//!
//! let text = r#"[{"op":"remove","path":"/steps"},{"op":"replace","path":"/busy","value":1}]"#;
//! let error = document.apply(&JsonPatch::from_json_exact(text)?, &limits).unwrap_err();
//! assert_eq!(error.operation, 1);
//! assert_eq!(error.kind, PatchErrorKind::NoMember);
//! assert_eq!(document.value().to_string(), r#"{"steps":["plan","act"]}"#);
//!
//! let target = Value::parse(r#"{"steps":["plan","act","rest"]}"#)?;
//! let patch = patch::diff(document.value(), &target);
//! document.apply(&patch, &limits)?;
//! assert_eq!(document.value(), &target);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod diff;
mod error;
mod extent;
mod limits;
mod walk;

pub use apply::{Document, apply};
pub use diff::diff;
pub use error::{PatchError, PatchErrorKind};
pub use limits::PatchLimits;
pub use walk::resolve;

#[cfg(doc)]
use agui_types::json::Value;
