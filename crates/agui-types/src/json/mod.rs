//! JSON as the protocol carries it: opaque text, open objects, and a tree for those who look inside.

mod bridge;
mod cursor;
mod finite;
mod object;
mod scan;
mod text;
mod tokens;
mod tree;
pub(crate) mod write;

pub(crate) use bridge::serialize_text;
pub(crate) use cursor::{Cursor, Kind, LexError, LexProblem};
pub use cursor::{MAX_DEPTH, read_string};
pub use object::JsonObject;
pub use scan::plain_end;
pub(crate) use text::into_string;
pub use text::{Json, JsonError};
pub use tokens::{Token, Tokens};
pub use tree::{Number, Value};
pub use write::{put_plain, string as write_string, string_content as write_string_content};
