//! The codes that the runtime puts into the `RUN_ERROR` events and refusals of its own making.
//!
//! | `RUN_ERROR.code` | when |
//! | --- | --- |
//! | [`INCOMPLETE_STREAM`] | the agent's stream broke off or ended before its run had |
//! | [`RULE_BROKEN`] | the agent emitted something that breaks a rule of the protocol |
//! | [`AGENT_PANIC`] | the agent panicked |
//! | [`DEADLINE_EXCEEDED`] | the run took longer than it may |
//! | [`NOT_RECORDED`] | the run log could not be written |
//! | [`LEASE_LAPSED`] | the process that ran it is gone |

pub use agui_journal::codes::LEASE_LAPSED;
pub use agui_server::codes::{AGENT_PANIC, RULE_BROKEN};

/// The agent's stream broke off, or ended without a terminal event.
pub const INCOMPLETE_STREAM: &str = "INCOMPLETE_STREAM";

/// The run took longer than it may.
pub const DEADLINE_EXCEEDED: &str = "DEADLINE_EXCEEDED";

/// The run log could not be written: the disk is full, say.
pub const NOT_RECORDED: &str = "NOT_RECORDED";

/// A refusal (409): the thread has a run already.
pub const THREAD_BUSY: &str = "THREAD_BUSY";

/// A stopped run, in the answer to whoever stopped it.
pub const STOPPED: &str = "STOPPED";
