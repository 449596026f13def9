//! The codes that the runtime puts into the `RUN_ERROR` events and refusals of its own making.
//!
//! | `RUN_ERROR.code` | when |
//! | --- | --- |
//! | [`INCOMPLETE_STREAM`] | the agent's stream broke off or ended before its run had |
//! | [`RULE_BROKEN`] | the agent emitted something that breaks a rule of the protocol |
//! | [`AGENT_PANIC`] | the agent panicked |
//! | [`DEADLINE_EXCEEDED`] | the run took longer than it may |
//! | [`RUN_TOO_LARGE`] | the agent sent more events, or more bytes, than a run may have |
//! | [`NOT_RECORDED`] | the run log could not be written |
//! | [`LEASE_LAPSED`] | the process that ran it is gone, or lost touch with the log |
//!
//! | HTTP | code | when |
//! | --- | --- | --- |
//! | 409 | [`THREAD_BUSY`] | the thread has a run already |
//! | 503, 429 | [`TOO_MANY_RUNS`] | as many runs go on as may, of all tenants or of this one |
//! | 503, 429 | [`TOO_MANY_VIEWERS`] | as many watch as may, all threads or this one |
//! | 404 | [`UNKNOWN_AGENT`] | at a plain endpoint: there is no such agent |

pub use agui_journal::codes::LEASE_LAPSED;
pub use agui_server::codes::{AGENT_PANIC, RULE_BROKEN};

/// The agent's stream broke off, or ended without a terminal event.
pub const INCOMPLETE_STREAM: &str = "INCOMPLETE_STREAM";

/// The run took longer than it may.
pub const DEADLINE_EXCEEDED: &str = "DEADLINE_EXCEEDED";

/// The agent sent more events, or more bytes of them, than one run may have.
pub const RUN_TOO_LARGE: &str = "RUN_TOO_LARGE";

/// The run log could not be written: the disk is full, say.
pub const NOT_RECORDED: &str = "NOT_RECORDED";

/// A refusal (409): the thread has a run already.
pub const THREAD_BUSY: &str = "THREAD_BUSY";

/// A refusal: as many runs go on as may, of all tenants together (503) or of this one (429). At a
/// plain endpoint it may be the `code` of a `RUN_ERROR` as well.
pub const TOO_MANY_RUNS: &str = "TOO_MANY_RUNS";

/// A refusal: as many watch as may, all threads together (503) or this one (429).
pub const TOO_MANY_VIEWERS: &str = "TOO_MANY_VIEWERS";

/// A stopped run, in the answer to whoever stopped it.
pub const STOPPED: &str = "STOPPED";

/// A refusal (404) at a plain endpoint: there is no agent with that id.
pub const UNKNOWN_AGENT: &str = "UNKNOWN_AGENT";
