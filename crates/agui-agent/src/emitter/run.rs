//! One run, as the agent sees it.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use agui_types::message::ToolMessage;
use agui_types::{Message, ResumeEntry, RunAgentInput, Tool, ToolCallId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::channel::{Channel, EmitError};
use super::request::Request;
use super::scope::json;
use super::{Answer, Emitter};
use crate::RunContext;

/// One run, as the agent sees it: the input, and the means to emit events, which it derefs to.
///
/// Cloning is cheap; a clone may be moved into another task, where it emits into the same stream
/// until the run is over.
///
/// Only a stream makes one, so that nothing is emitted that nobody takes:
///
/// ```compile_fail,E0451
/// # use agui_agent::Run;
/// # fn other(run: Run) -> Run {
/// Run { ..run }
/// # }
/// ```
#[derive(Clone)]
pub struct Run {
    request: Arc<Request>,
    emitter: Emitter,
    context: Arc<RunContext>,
}

impl Run {
    pub(super) fn new(request: Arc<Request>, channel: Arc<Channel>, context: RunContext) -> Self {
        let emitter = Emitter { channel, owner: None };
        Self { request, emitter, context: Arc::new(context) }
    }

    /// What the agent was asked.
    #[must_use]
    pub fn input(&self) -> &RunAgentInput {
        self.request.input()
    }

    /// The text of the last message, where a user wrote it; parts other than text are left out.
    #[must_use]
    pub fn prompt(&self) -> Option<Cow<'_, str>> {
        match self.input().messages.last()? {
            Message::User(message) => Some(message.content.text()),
            _ => None,
        }
    }

    /// The answer that the input brings to an interrupt of an earlier run (P-69); the first one,
    /// where it brings several.
    ///
    /// Answers that nobody asked for are warned of in the log when the run has finished (P-70).
    #[must_use]
    pub fn answer(&self, interrupt: impl AsRef<str>) -> Option<&ResumeEntry> {
        self.request.answer(interrupt.as_ref()).map(|(_, entry)| entry)
    }

    /// The [answer](Self::answer) to an interrupt, read as the type that it should have. `None`
    /// where the input brings none: the question is still open, and what it was about must not be
    /// done (P-71).
    ///
    /// An absent payload reads as `null`, so that `Option<T>` and `()` take it. What comes is the
    /// front end's word, not to be trusted beyond its type (C-93).
    ///
    /// Fails with [`EmitError::Read`] where the payload is of another shape, or the status one that
    /// the protocol does not describe.
    pub fn answer_as<T: DeserializeOwned>(
        &self,
        interrupt: impl AsRef<str>,
    ) -> Result<Option<Answer<T>>, EmitError> {
        self.request.answer(interrupt.as_ref()).map(Answer::read).transpose()
    }

    /// All answers that the input brings, in order. Who goes through them is taken to know them all.
    pub fn answers(&self) -> impl Iterator<Item = &ResumeEntry> {
        self.request.answers()
    }

    /// The tools that the front end offers.
    #[must_use]
    pub fn frontend_tools(&self) -> &[Tool] {
        self.input().tools.as_deref().unwrap_or_default()
    }

    /// A tool that the front end offers.
    #[must_use]
    pub fn frontend_tool(&self, name: &str) -> Option<&Tool> {
        self.frontend_tools().iter().find(|tool| tool.name == name)
    }

    /// Calls a tool of the front end, with these arguments, and gives the call's id. The call stays
    /// unanswered: the run should finish soon, its outcome names the call (P-31, P-32), and the next
    /// run's messages hold the [result](Self::tool_message).
    ///
    /// Fails with [`EmitError::NoSuchTool`] where the front end offers no such tool (P-37).
    pub async fn call_frontend_tool<T: Serialize + ?Sized>(
        &self,
        name: &str,
        args: &T,
    ) -> Result<ToolCallId, EmitError> {
        if self.frontend_tool(name).is_none() {
            let names: Vec<&str> =
                self.frontend_tools().iter().map(|tool| tool.name.as_str()).collect();
            let offered = if names.is_empty() { "none".into() } else { names.join(", ") };
            return Err(EmitError::NoSuchTool { name: name.into(), offered });
        }
        let mut call = self.tool_call(name).await?;
        call.args_json(args).await?;
        call.end().await
    }

    /// The result of a call, among the input's messages.
    #[must_use]
    pub fn tool_message(&self, call: impl AsRef<str>) -> Option<&ToolMessage> {
        self.request.tool_message(call.as_ref())
    }

    /// The results that the input's messages end with: those that came since the last run, where
    /// nothing else was said since. In order.
    pub fn new_tool_messages(&self) -> impl Iterator<Item = &ToolMessage> {
        let messages = &self.input().messages;
        let is_other = |message: &Message| !matches!(message, Message::Tool(_));
        let from = messages.iter().rposition(is_other).map_or(0, |at| at + 1);
        messages[from..].iter().filter_map(|message| match message {
            Message::Tool(message) => Some(message),
            _ => None,
        })
    }

    /// What surrounds the run: what a server or middleware has put there for the agent.
    #[must_use]
    pub fn context(&self) -> &RunContext {
        &self.context
    }

    /// Cancelled when the run is to stop. An agent need not watch it: its future is dropped then.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.context.cancel
    }

    /// When the run has to be over. An agent need not watch it: its future is dropped then, and the
    /// run fails with [`RUN_DEADLINE`](super::RUN_DEADLINE).
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.context.deadline
    }

    /// Sets the run's return value, for `RUN_FINISHED.result`. A `null` is no result and is left
    /// out (P-17).
    ///
    /// Fails where the value cannot be written as JSON.
    pub fn set_result<T: Serialize + ?Sized>(&self, result: &T) -> Result<(), EmitError> {
        let json = json(result)?;
        if !json.is_null() {
            self.emitter.channel.set_result(json);
        }
        Ok(())
    }
}

impl Deref for Run {
    type Target = Emitter;

    fn deref(&self) -> &Emitter {
        &self.emitter
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let input = self.input();
        f.debug_struct("Run")
            .field("thread_id", &input.thread_id)
            .field("run_id", &input.run_id)
            .finish_non_exhaustive()
    }
}
