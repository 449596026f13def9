//! What a run came to, as data: the result file and the exit code.

use std::io;

use agui_stream::fold::Conversation;
use agui_stream::{Fault, Warning};
use agui_types::event::RunError;
use agui_types::json::Value;
use agui_types::{Interrupt, Json, Message, MessageId, TokenUsage, ToolCallId};
use serde::Serialize;

use super::exchange::Ended;
use super::warnings::Warnings;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The run finished.
    Completed,
    /// The run stopped to ask.
    Interrupted,
    /// The run was stopped, by the agent or from here.
    Cancelled,
    /// The agent reported an error.
    Failed,
    /// The stream ended before the run did.
    Truncated,
    /// The stream breaks the rules, or the input does and was not sent.
    Rejected,
    /// There was no stream, or the connection failed in the middle of it.
    NoStream,
}

impl Verdict {
    /// The ending in one word, for the result file.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
            Self::Failed | Self::NoStream => "failed",
            Self::Truncated => "truncated",
            Self::Rejected => "rejected",
        }
    }

    /// The exit code; `agui run --help` lists them.
    pub(super) fn exit_code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Interrupted => 3,
            Self::Cancelled => 4,
            Self::Truncated => 5,
            Self::Rejected => 6,
            Self::NoStream => 7,
        }
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Problem {
    /// What kind of thing, in one word.
    pub(super) class: Box<str>,
    /// For a person.
    pub(super) message: String,
    /// The member at fault, as a JSON Pointer into the event or the input; empty where none is.
    pub(super) path: String,
    /// The agent's own code for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

impl Problem {
    /// A rule is broken.
    pub(super) fn fault(fault: &Fault) -> Self {
        Self {
            class: fault.class.as_str().into(),
            message: fault.to_string(),
            path: fault.path.to_string(),
            code: None,
            hint: Some(fault.fix.to_string()).filter(|fix| !fix.is_empty()),
        }
    }

    /// The agent said so itself: `RUN_ERROR`.
    pub(super) fn reported(error: &RunError) -> Self {
        Self {
            class: "run-error".into(),
            message: error.message.clone(),
            path: String::new(),
            code: error.code.clone(),
            hint: None,
        }
    }

    /// Standard output takes nothing any more: nobody reads it, which is the reader's choice, or it
    /// cannot be written.
    pub(super) fn output(error: &io::Error) -> Self {
        let closed = error.kind() == io::ErrorKind::BrokenPipe;
        Self {
            class: if closed { "abort" } else { "output" }.into(),
            message: format!("standard output cannot be written: {error}"),
            path: String::new(),
            code: None,
            hint: None,
        }
    }
}

/// The result file's one JSON object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report<'a> {
    ending: &'static str,
    exit_code: u8,
    error: Option<&'a Problem>,
    /// With the messages, the state and the open interrupts, what the next run goes on with; as it
    /// was asked for.
    thread_id: Option<&'a Value>,
    tools: Option<&'a Value>,
    context: Option<&'a Value>,
    forwarded_props: Option<&'a Value>,
    messages: Vec<&'a Message>,
    new_messages: Vec<&'a MessageId>,
    state: &'a Value,
    result: Option<&'a Json>,
    open_interrupts: &'a [Interrupt],
    pending_tool_calls: Vec<&'a ToolCallId>,
    usage: &'a [TokenUsage],
    /// The first ones.
    warnings: Vec<Warned<'a>>,
    /// How many more there were.
    omitted_warnings: u64,
    request: Option<&'a Json>,
}

#[derive(Debug, Serialize)]
struct Warned<'a> {
    rule: &'static str,
    /// Which event of the stream, counted from 0 as they arrived.
    event: Option<u64>,
    path: &'a str,
    message: &'a str,
}

impl<'a> Report<'a> {
    /// `input` is what was asked, sent or not.
    pub(super) fn new(
        ended: &'a Ended,
        input: &'a Value,
        conversation: &'a Conversation,
        warnings: &'a Warnings,
    ) -> Self {
        let warned = |warning: &'a Warning| Warned {
            rule: warning.rule,
            event: warning.event,
            path: &warning.path,
            message: &warning.message,
        };
        Self {
            ending: ended.verdict.ending(),
            exit_code: ended.verdict.exit_code(),
            error: ended.problem.as_ref(),
            thread_id: input.get("threadId"),
            tools: input.get("tools"),
            context: input.get("context"),
            forwarded_props: input.get("forwardedProps"),
            messages: conversation.messages().iter().collect(),
            new_messages: conversation.new_messages().collect(),
            state: conversation.state(),
            result: conversation.result(),
            open_interrupts: conversation.open_interrupts(),
            pending_tool_calls: conversation.pending_tool_calls().collect(),
            usage: conversation.usage(),
            warnings: warnings.kept().iter().map(warned).collect(),
            omitted_warnings: warnings.omitted(),
            request: ended.request.as_ref(),
        }
    }

    /// The JSON text, with a line end.
    pub(super) fn to_text(&self) -> String {
        // Protocol types and texts: writing them cannot fail.
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }
}
