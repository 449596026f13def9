//! What a session tells: what changes while a turn goes on, and what it came to.

use std::fmt;
use std::time::Duration;

use agui_stream::fold::Change;
use agui_stream::observe::ObserverError;
use agui_stream::{Ending, Fault, Warning};
use agui_types::{Event, Json, MessageId, ToolCallId};

use crate::{AgentError, DeliveryError, RunFailure};

/// One thing that happened in a turn. What it names can be read from the session right after.
#[derive(Debug)]
#[non_exhaustive]
pub enum Update {
    /// The conversation changed.
    Change(Change),
    /// An event that changes nothing in the conversation: a step, a subagent, a span of reasoning,
    /// `CUSTOM` and `RAW`.
    Event(Event),
    /// Something was dropped, stripped or translated, could not be applied, or is left undone.
    Warning(Warning),
    /// An observer failed, or panicked. That has no other consequence.
    ObserverFailed(ObserverError),
    /// The connection was lost before the run had said how it ends. It is about to be taken up again
    /// behind the last event that came; until then nothing is missing of what is shown.
    ///
    /// What follows is [`Reconnected`](Self::Reconnected), or this once more, or the end of the turn,
    /// which is truncated when the [policy](crate::Session::with_reconnect) has given up.
    Reconnecting {
        /// Which attempt this is since the last event, from 1.
        attempt: u32,
        /// How long it waits first.
        delay: Duration,
        /// What was wrong with the connection; `None` where it just ended.
        error: Option<AgentError>,
    },
    /// The connection is back: the events go on where they broke off.
    Reconnected {
        /// How many attempts it took.
        attempts: u32,
    },
    /// The handler of a front-end tool is called.
    ToolStarted {
        /// The call.
        tool_call: ToolCallId,
        /// The tool.
        name: String,
    },
    /// A front-end call is answered; the change that this makes follows.
    ToolFinished {
        /// The call.
        tool_call: ToolCallId,
        /// The tool message.
        message: MessageId,
        /// Why it failed, if it did: its handler's error, its arguments, a panic, its time, or that
        /// the turn was cancelled.
        error: Option<String>,
    },
    /// Front-end calls were answered, but the agent is not told: it made so many runs of one turn
    /// that the [cap](crate::Session::with_most_follow_ups) is reached.
    FollowUpRefused,
}

/// What a turn came to. The conversation holds the rest.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "a turn may have ended in other ways than by completing"]
pub struct Finished {
    /// How its last run ended, or that it was cancelled from here.
    pub ending: Ending,
    /// What the run said when it failed (`RUN_ERROR`).
    pub failure: Option<RunFailure>,
    /// The result of its last run, where that completed with one.
    pub result: Option<Json>,
    /// The messages that the turn brought, in order, without what was sent and what is gone since.
    pub new_messages: Vec<MessageId>,
    /// How many runs it took: one, and one more for each time that front-end tools were answered.
    /// None where connecting brought nothing.
    pub runs: u32,
    /// What cut the stream off. With the ending `truncated` it is why; with another one the run had
    /// said how it ended before.
    pub cut_off: Option<DeliveryError>,
}

impl Finished {
    /// Whether the last run completed.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.ending == Ending::Completed
    }
}

/// The ending in one word, with what is said of it.
impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.failure, &self.cut_off) {
            (Some(failure), _) => write!(f, "{}: {failure}", self.ending),
            (None, Some(error)) => write!(f, "{}: {error}", self.ending),
            (None, None) => fmt::Display::fmt(&self.ending, f),
        }
    }
}

/// A turn that has no ending: it never began, or its stream was rejected (C-10). Everything that was
/// delivered before stays (C-12).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A turn is going on. It is never dropped in silence: finish it, or cancel it and finish it.
    #[error("a turn is going on: finish it first, or cancel it")]
    Busy,
    /// The agent's runs cannot be attached to.
    #[error("the agent has nothing to connect to")]
    NothingToConnectTo,
    /// The input was not sent, because it does not answer the open interrupts as it has to (C-85,
    /// C-87).
    #[error("nothing was sent")]
    Refused(#[source] Fault),
    /// The agent could not be reached, or its answer is no stream of events.
    #[error("the agent gave no stream of events")]
    NoStream(#[source] AgentError),
    /// What the agent sent breaks a rule of the protocol, or is no event.
    #[error("the agent's stream was rejected")]
    Rejected(#[source] DeliveryError),
}

impl SessionError {
    /// The class of the failure in one word, as the reference client's failures are classed;
    /// `busy` and `connect` for those it does not have.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::NothingToConnectTo => "connect",
            Self::Refused(fault) => fault.class.as_str(),
            Self::NoStream(error) => error.class(),
            Self::Rejected(error) => error.class(),
        }
    }
}
