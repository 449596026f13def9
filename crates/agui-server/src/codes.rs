//! The codes that this crate puts into refusals and into the `RUN_ERROR` events of its own making.
//!
//! | HTTP | code | when |
//! | --- | --- | --- |
//! | 401 | [`UNAUTHORIZED`] | who asks is not known; `WWW-Authenticate` says how to change that |
//! | 403 | [`FORBIDDEN`] | who asks is known and may not |
//! | 405 | [`METHOD_NOT_ALLOWED`] | another method; `Allow` names the right one |
//! | 415 | [`UNSUPPORTED_MEDIA_TYPE`] | `Content-Type` is missing or no JSON |
//! | 413 | [`BODY_TOO_LARGE`] | the body passes the limit |
//! | 400 | [`BODY_INCOMPLETE`] | the body broke off |
//! | 408 | [`BODY_TOO_SLOW`] | the body came too slowly |
//! | 503 | [`SHUTTING_DOWN`] | the server stopped before the body had come |
//! | 503 | [`TOO_MANY_CONNECTIONS`] | the server has as many connections as it takes |
//! | 400 | [`INVALID_UTF8`] | the body is not UTF-8 |
//! | 400 | [`INVALID_JSON`] | the body is not JSON, or begins with a byte order mark |
//! | 400 | [`NESTED_TOO_DEEP`] | the body nests deeper than [`MAX_DEPTH`](agui_types::json::MAX_DEPTH) |
//! | 422 | [`INVALID_INPUT`] | a described member of the input is missing or malformed |
//! | 404 | [`NO_CAPABILITIES`] | the agent declares no capabilities |
//! | 403 | [`FORBIDDEN_ORIGIN`] | a page of that origin may not open a WebSocket |
//! | 400, 426 | [`NO_WEBSOCKET`] | what asks for a WebSocket is none, or the server has none |
//! | 500 | [`AGENT_PANIC`] | the agent panicked while it declared them |
//! | 500 | [`INTERNAL_ERROR`] | the authorisation or the choice of an agent panicked |
//!
//! | `RUN_ERROR.code` | when |
//! | --- | --- |
//! | [`AGENT_FAILED`] | the agent's stream yielded an error |
//! | [`AGENT_PANIC`] | the agent panicked |
//! | [`RUN_TRUNCATED`] | the agent's stream ended without a terminal event |
//! | [`RULE_BROKEN`] | the agent emitted something that breaks a rule of the protocol |
//! | [`CANCELLED`] | the run was cancelled before it had begun |
//! | [`NOT_ENCODABLE`] | the agent emitted something that the binary form cannot say |

pub use agui_agent::emitter::AGENT_PANIC;

/// Who asks is not known.
pub const UNAUTHORIZED: &str = "UNAUTHORIZED";

/// Who asks is known and may not.
pub const FORBIDDEN: &str = "FORBIDDEN";

/// A page of that origin may not open a WebSocket.
pub const FORBIDDEN_ORIGIN: &str = "FORBIDDEN_ORIGIN";

/// What asks for a WebSocket does not ask as it should, or the server cannot give one.
pub const NO_WEBSOCKET: &str = "NO_WEBSOCKET";

/// The authorisation of a request, or the choice of an agent for it, panicked.
pub const INTERNAL_ERROR: &str = "INTERNAL_ERROR";

/// The request's method is another one than `Allow` names.
pub const METHOD_NOT_ALLOWED: &str = "METHOD_NOT_ALLOWED";

/// The request's `Content-Type` is missing or no JSON.
pub const UNSUPPORTED_MEDIA_TYPE: &str = "UNSUPPORTED_MEDIA_TYPE";

/// The request's body passes the limit.
pub const BODY_TOO_LARGE: &str = "BODY_TOO_LARGE";

/// The request's body broke off before its end.
pub const BODY_INCOMPLETE: &str = "BODY_INCOMPLETE";

/// The request's body came more slowly than the server waits for.
pub const BODY_TOO_SLOW: &str = "BODY_TOO_SLOW";

/// The server stopped before the request's body had come; no run has begun.
pub const SHUTTING_DOWN: &str = "SHUTTING_DOWN";

/// The server has as many connections as it takes, and all of them are being answered.
pub const TOO_MANY_CONNECTIONS: &str = "TOO_MANY_CONNECTIONS";

/// The request's body is not UTF-8 (T-10).
pub const INVALID_UTF8: &str = "INVALID_UTF8";

/// The request's body is not JSON.
pub const INVALID_JSON: &str = "INVALID_JSON";

/// The request's body nests deeper than [`MAX_DEPTH`](agui_types::json::MAX_DEPTH) levels.
pub const NESTED_TOO_DEEP: &str = "NESTED_TOO_DEEP";

/// A described member of the input is missing or malformed (P-73).
pub const INVALID_INPUT: &str = "INVALID_INPUT";

/// The agent declares no capabilities, which says nothing about what it can do (C-91).
pub const NO_CAPABILITIES: &str = "NO_CAPABILITIES";

/// The agent's stream yielded an error: a remote agent refused, could not be reached, or sent what
/// cannot be read.
pub const AGENT_FAILED: &str = "AGENT_FAILED";

/// The agent's stream ended without a terminal event (T-9).
pub const RUN_TRUNCATED: &str = "RUN_TRUNCATED";

/// The agent emitted something that breaks a rule of the protocol.
pub const RULE_BROKEN: &str = "RULE_BROKEN";

/// The run was cancelled before it had begun. One that had ends with the outcome `cancelled` instead
/// (P-11).
pub const CANCELLED: &str = "CANCELLED";

/// The agent emitted something that the binary form cannot say, such as a number that no double can
/// be, and the client asked for that form.
pub const NOT_ENCODABLE: &str = "NOT_ENCODABLE";
