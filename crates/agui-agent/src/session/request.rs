//! What a turn is asked with.

use agui_types::message::UserMessage;
use agui_types::{Json, Message, MessageContent, ResumeEntry, RunId};

use super::new_id;

/// What a turn begins with, beside what the session holds. A new one asks the agent to go on with
/// the conversation as it is.
///
/// ```
/// use agui_agent::session::Request;
///
/// let request = Request::new().text("And tomorrow?").run_id("run-7");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Request {
    pub(super) messages: Vec<Message>,
    pub(super) resume: Option<Vec<ResumeEntry>>,
    pub(super) run_id: Option<RunId>,
    pub(super) parent_run_id: Option<RunId>,
    pub(super) forwarded_props: Option<Json>,
}

impl Request {
    /// Nothing new.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message of the user's, with an id of its own.
    pub fn text(self, content: impl Into<MessageContent>) -> Self {
        self.message(UserMessage::new(new_id(), content))
    }

    /// Adds a message, whatever its role.
    pub fn message(mut self, message: impl Into<Message>) -> Self {
        self.messages.push(message.into());
        self
    }

    /// Answers open interrupts: all of them have to be answered at once (C-85).
    pub fn resume(mut self, answers: impl IntoIterator<Item = ResumeEntry>) -> Self {
        self.resume.get_or_insert_default().extend(answers);
        self
    }

    /// The id of the run. Default: a new one. A thread's runs are not to share one (P-8).
    pub fn run_id(mut self, id: impl Into<RunId>) -> Self {
        self.run_id = Some(id.into());
        self
    }

    /// The run that this one belongs to.
    pub fn parent_run_id(mut self, id: impl Into<RunId>) -> Self {
        self.parent_run_id = Some(id.into());
        self
    }

    /// What is passed through to the agent in this turn, in place of the session's.
    pub fn forwarded_props(mut self, props: Json) -> Self {
        self.forwarded_props = Some(props);
        self
    }
}
