//! Judging the history that a client sends.

use std::collections::HashSet;

use agui_types::{Message, RunAgentInput, ToJson, ToolCallId};

use super::{Middleware, Next, refused};
use crate::{EventStream, RunContext};

/// The `code` of the `RUN_ERROR` of a run whose history was refused.
pub const HISTORY_REFUSED: &str = "HISTORY_REFUSED";

/// Holds the messages of the input to what a well-behaved client sends: no run begins with others.
/// The answer is then one `RUN_ERROR` with the code [`HISTORY_REFUSED`] that names the message.
///
/// The history comes from the client, who can write what it likes: a system message of its own, an
/// assistant message in which the agent agreed to something. What is refused by default:
///
/// - messages with an id that an earlier message has (P-28);
/// - results of calls that no assistant message before them makes, which model providers refuse;
/// - more than 10,000 messages, or more than 8 MiB of them as JSON.
///
/// All roles are allowed until [`roles`](Self::roles) says which.
///
/// ```
/// use agui_agent::middleware::HistoryGuard;
/// # use agui_agent::{AgentExt, AgentResult, Run};
/// # async fn chat(run: Run) -> AgentResult { run.say("Hello!").await?; Ok(()) }
///
/// let guard = HistoryGuard::new().roles(["user", "assistant", "tool", "reasoning"]).most_messages(500);
/// let agent = chat.with(guard);
/// # fn serve(agent: impl agui_agent::Agent) {}
/// # serve(agent);
/// ```
#[derive(Clone, Debug)]
pub struct HistoryGuard {
    roles: Option<HashSet<String>>,
    repairs: bool,
    most_messages: usize,
    most_bytes: usize,
}

impl HistoryGuard {
    /// How many messages there may be, unless [`most_messages`](Self::most_messages) says otherwise.
    pub const MOST_MESSAGES: usize = 10_000;

    /// How many bytes of JSON the messages may come to, unless [`most_bytes`](Self::most_bytes) says
    /// otherwise: 8 MiB.
    pub const MOST_BYTES: usize = 8 * 1024 * 1024;

    /// A guard as described above.
    #[must_use]
    pub fn new() -> Self {
        Self {
            roles: None,
            repairs: false,
            most_messages: Self::MOST_MESSAGES,
            most_bytes: Self::MOST_BYTES,
        }
    }

    /// Allows messages of these roles, and of no others: `developer`, `system`, `assistant`, `user`,
    /// `tool`, `activity`, `reasoning`.
    #[must_use]
    pub fn roles<S: Into<String>>(mut self, roles: impl IntoIterator<Item = S>) -> Self {
        self.roles = Some(roles.into_iter().map(Into::into).collect());
        self
    }

    /// Leaves out messages that are not as they should be, with a warning in the log, where else the
    /// run would be refused. The limits on number and size still refuse.
    #[must_use]
    pub fn repairs(mut self) -> Self {
        self.repairs = true;
        self
    }

    /// How many messages there may be. Default: 10,000.
    #[must_use]
    pub fn most_messages(mut self, messages: usize) -> Self {
        self.most_messages = messages;
        self
    }

    /// How many bytes the messages may come to, as JSON. Default: 8 MiB.
    #[must_use]
    pub fn most_bytes(mut self, bytes: usize) -> Self {
        self.most_bytes = bytes;
        self
    }

    /// What is wrong with the input's history, or what is left out of it.
    fn judge(&self, input: &mut RunAgentInput) -> Result<(), String> {
        let messages = &input.messages;
        if messages.len() > self.most_messages {
            let (found, most) = (messages.len(), self.most_messages);
            return Err(format!("the history has {found} messages, and may have {most}"));
        }
        let mut text = Vec::new();
        let mut bytes = 0;
        for message in messages {
            text.clear();
            message.write_json(&mut text);
            bytes += text.len();
            if bytes > self.most_bytes {
                let most = self.most_bytes;
                return Err(format!("the history has more than the {most} bytes it may have"));
            }
        }
        let mut seen = Seen::default();
        let offences = messages.iter().enumerate();
        let offences: Vec<_> = offences
            .filter_map(|(at, message)| Some((at, self.offence(message, &mut seen)?)))
            .collect();
        let Some((first, offence)) = offences.first() else {
            return Ok(());
        };
        if !self.repairs {
            return Err(format!("/messages/{first}: {offence}"));
        }
        let (thread, count) = (input.thread_id.as_str(), offences.len());
        tracing::warn!(thread, count, first, offence, "messages of the history are left out");
        let left_out: HashSet<usize> = offences.into_iter().map(|(at, _)| at).collect();
        let mut at = 0;
        input.messages.retain(|_| {
            at += 1;
            !left_out.contains(&(at - 1))
        });
        Ok(())
    }

    /// What is wrong with a message, behind those that are right.
    fn offence(&self, message: &Message, seen: &mut Seen) -> Option<String> {
        let role = message.tag();
        if self.roles.as_ref().is_some_and(|roles| !roles.contains(role)) {
            return Some(format!("messages of the role {role:?} are not taken"));
        }
        if let Message::Tool(result) = message
            && !seen.calls.contains(&result.tool_call_id)
        {
            let call = result.tool_call_id.as_str();
            return Some(format!("no message before it makes the call {call:?} that it answers"));
        }
        let id = message.id();
        if let Some(id) = id.filter(|id| !seen.ids.insert(id.as_str().to_owned())) {
            return Some(format!("an earlier message has the id {:?}, too", id.as_str()));
        }
        if let Message::Assistant(message) = message {
            seen.calls.extend(message.tool_calls.iter().flatten().map(|call| call.id.clone()));
        }
        None
    }
}

impl Default for HistoryGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl Middleware for HistoryGuard {
    fn run(&self, mut input: RunAgentInput, context: RunContext, next: Next) -> EventStream {
        match self.judge(&mut input) {
            Ok(()) => next.run(input, context),
            Err(offence) => {
                let (thread, run) = (input.thread_id.as_str(), input.run_id.as_str());
                tracing::warn!(thread, run, offence, "a history is refused");
                refused(offence, HISTORY_REFUSED)
            }
        }
    }
}

#[derive(Default)]
struct Seen {
    ids: HashSet<String>,
    calls: HashSet<ToolCallId>,
}
