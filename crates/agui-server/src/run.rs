//! The events of one run as they go out: checked, and ended whatever happens to the agent.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::error::Error;
use std::task::{Context, Poll};

use agui_agent::panic::caught;
use agui_agent::{Agent, AgentError, BoxFuture, EventStream, RunContext};
use agui_stream::{Boundary, ChunkExpander, Fault, RunState, Verifier, Warning, enforce};
use agui_types::event::{RunError, RunFinished};
use agui_types::{CancelledOutcome, Event, Reading, RunAgentInput};
use agui_wire::{EncodeError, Omission};
use tokio::time::sleep;

use crate::log::WarningLog;
use crate::{AgentService, codes};

/// An agent's stream, behind the rules of the protocol.
///
/// What comes out keeps the rules: each event was translated where it was retired, stripped of what
/// the protocol does not describe (P-16), and verified; and every run that was started has its
/// terminal event. Where the agent's stream fails, panics, stops early or breaks a rule, it is
/// dropped, what it left open is closed, and one `RUN_ERROR` follows (T-20).
pub(crate) struct GuardedRun {
    /// `None` once nothing more can come from it.
    agent: Option<EventStream>,
    /// Over when the run was cancelled and the agent has had its time to end it.
    patience: BoxFuture<'static, ()>,
    boundary: Boundary,
    /// Spells chunks out for the verifier; they go out as they came.
    expander: ChunkExpander,
    verifier: Verifier,
    /// The items that chunks opened and nothing has ended. An explicit end would mix the two forms
    /// (P-24), and the end of the run ends them anyway.
    shorthand: HashSet<Item>,
    /// What the event at hand stands for.
    spelled: Vec<Event>,
    /// What is to go out before the agent is asked again.
    ready: VecDeque<Event>,
    warnings: WarningLog,
}

/// Why a run is ended by this crate.
struct Failure {
    code: &'static str,
    message: Cow<'static, str>,
}

impl GuardedRun {
    /// Starts a run; the agent is polled with [`poll_event`](Self::poll_event) and dropped with
    /// this.
    pub(crate) fn start(agent: &dyn Agent, input: RunAgentInput, context: RunContext) -> Self {
        let cancel = context.cancel.clone();
        let patience = Box::pin(async move {
            cancel.cancelled_owned().await;
            sleep(AgentService::PATIENCE).await;
        });
        let mut run = Self {
            agent: None,
            patience,
            boundary: Boundary::new(),
            expander: ChunkExpander::new(),
            verifier: Verifier::for_run(input.thread_id.clone(), input.run_id.clone()),
            shorthand: HashSet::new(),
            spelled: Vec::new(),
            ready: VecDeque::new(),
            warnings: WarningLog::about("the agent's stream"),
        };
        match caught(|| agent.run(input, context)) {
            Ok(stream) => run.agent = Some(stream),
            Err(panic) => run.fail(panicked(&panic)),
        }
        run
    }

    /// The next event, or `None` when the stream is over; then again `None`.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            let Some(agent) = &mut self.agent else {
                return Poll::Ready(None);
            };
            match caught(|| agent.as_mut().poll_next(cx)) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(Some(Ok(reading)))) => self.take(reading),
                Ok(Poll::Ready(Some(Err(error)))) => self.broke_off(error),
                Ok(Poll::Ready(None)) => self.stopped(),
                Err(panic) => self.fail(panicked(&panic)),
            }
        }
    }

    /// Ends a run that was cancelled and whose agent takes no notice.
    pub(crate) fn poll_patience(&mut self, cx: &mut Context<'_>) {
        if self.agent.is_some() && self.patience.as_mut().poll(cx).is_ready() {
            tracing::warn!("the agent did not end its cancelled run, which is ended for it");
            self.cancelled();
        }
    }

    fn take(&mut self, reading: Reading<Event>) {
        let mut warnings = Vec::new();
        let judged = self.judge(reading, &mut warnings);
        self.warnings.take(warnings);
        match judged {
            Ok(event) => self.ready.extend(event),
            Err(fault) => self.fail(rule_broken(&fault)),
        }
    }

    /// The event as it goes out; `None` where it is left out.
    fn judge(
        &mut self,
        reading: Reading<Event>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<Event>, Fault> {
        let frame = self.boundary.push(reading, warnings)?;
        let index = frame.index();
        let Some(event) = enforce(frame, warnings)? else {
            return Ok(None);
        };
        self.verify(event).map_err(|fault| Fault { event: index, ..fault })
    }

    /// Gives the event back as it came, once it was verified as what it stands for.
    fn verify(&mut self, event: Event) -> Result<Option<Event>, Fault> {
        let chunk = is_chunk(&event).then(|| event.clone());
        self.spelled.clear();
        self.expander.push(event, &mut self.spelled)?;
        // Everything but the event itself is made of chunks.
        let made = self.spelled.len() - usize::from(chunk.is_none());
        for (at, event) in self.spelled.iter().enumerate() {
            self.verifier.push(event)?;
            match (at < made).then(|| item(event)).flatten() {
                Some((Edge::Start, item)) => drop(self.shorthand.insert(item)),
                Some((Edge::End, item)) => drop(self.shorthand.remove(&item)),
                None => {}
            }
        }
        Ok(chunk.or_else(|| self.spelled.pop()))
    }

    /// The agent's stream ended.
    fn stopped(&mut self) {
        match self.verifier.finish() {
            Ok(()) => self.drop_agent(),
            Err(fault) => {
                tracing::error!(%fault, "the agent's stream was cut short");
                let message = "the agent stopped before its run had ended".into();
                self.fail(Failure { code: codes::RUN_TRUNCATED, message });
            }
        }
    }

    /// The agent's stream yielded an error.
    fn broke_off(&mut self, error: AgentError) {
        let cancelled = matches!(error, AgentError::Cancelled);
        // What is behind the error may be of anybody's making, and panic.
        let said = caught(|| {
            let (class, detail) = (error.class(), detail(&error));
            tracing::error!(class, detail, "the agent's stream broke off");
            sentence(&error)
        });
        if let Err(panic) = caught(|| drop(error)) {
            tracing::error!(panic, "the agent's error panicked while it was dropped");
        }
        match said {
            _ if cancelled => self.cancelled(),
            Ok(message) => self.fail(Failure { code: codes::AGENT_FAILED, message }),
            Err(panic) => self.fail(panicked(&panic)),
        }
    }

    /// P-11: a run that was stopped on purpose did not fail.
    fn cancelled(&mut self) {
        let RunState::Active { thread_id, run_id } = self.verifier.run() else {
            let message = "the run was cancelled before it had begun".into();
            return self.fail(Failure { code: codes::CANCELLED, message });
        };
        let finished = RunFinished::new(thread_id, run_id).outcome(CancelledOutcome::new());
        self.ready.extend(self.closing_events());
        self.ready.push_back(finished.into());
        self.drop_agent();
    }

    /// Ends the run, unless it has ended already: a run has one terminal event.
    fn fail(&mut self, Failure { code, message }: Failure) {
        self.drop_agent();
        if matches!(self.verifier.run(), RunState::Finished | RunState::Failed) {
            tracing::warn!(code, "the agent failed after its run had ended");
            return;
        }
        self.ready.extend(self.closing_events());
        self.ready.push_back(RunError::new(message).code(code).into());
    }

    /// An event cannot be written in the form that the client asked for: the run ends with that.
    pub(crate) fn cannot_send(&mut self, event: &Event, error: &EncodeError) {
        let kind = event.type_name();
        tracing::error!(kind, %error, "an event cannot be written");
        let message = format!("the {kind} event cannot be written: {error}").into();
        let failure = Failure { code: codes::NOT_ENCODABLE, message };
        if event.is_terminal() {
            // The run has ended for the verifier, but nobody was told.
            self.drop_agent();
            self.ready.clear();
            self.ready.push_back(RunError::new(failure.message).code(failure.code).into());
        } else {
            self.fail(failure);
        }
    }

    /// Something of an event has no place in the form that the client asked for.
    pub(crate) fn left_out(&self, omitted: &[Omission]) {
        for omission in omitted {
            tracing::warn!(%omission, "an event went out without something");
        }
    }

    /// What closes everything that is open, innermost first.
    fn closing_events(&self) -> Vec<Event> {
        let mut events = self.verifier.closing_events();
        events.retain(|event| item(event).is_none_or(|(_, item)| !self.shorthand.contains(&item)));
        events
    }

    fn drop_agent(&mut self) {
        let agent = self.agent.take();
        if let Err(panic) = caught(|| drop(agent)) {
            tracing::error!(panic, "the agent's stream panicked while it was dropped");
        }
    }
}

impl Drop for GuardedRun {
    fn drop(&mut self) {
        self.drop_agent();
    }
}

fn is_chunk(event: &Event) -> bool {
    matches!(
        event,
        Event::TextMessageChunk(_) | Event::ToolCallChunk(_) | Event::ReasoningMessageChunk(_)
    )
}

/// Something that chunks can stand for: its kind and id.
type Item = (&'static str, String);

enum Edge {
    Start,
    End,
}

/// The item that an event opens or ends.
fn item(event: &Event) -> Option<(Edge, Item)> {
    let (edge, kind, id) = match event {
        Event::TextMessageStart(event) => (Edge::Start, "text", event.message_id.as_str()),
        Event::TextMessageEnd(event) => (Edge::End, "text", event.message_id.as_str()),
        Event::ToolCallStart(event) => (Edge::Start, "call", event.tool_call_id.as_str()),
        Event::ToolCallEnd(event) => (Edge::End, "call", event.tool_call_id.as_str()),
        Event::ReasoningMessageStart(event) => {
            (Edge::Start, "reasoning", event.message_id.as_str())
        }
        Event::ReasoningMessageEnd(event) => (Edge::End, "reasoning", event.message_id.as_str()),
        _ => return None,
    };
    Some((edge, (kind, id.to_owned())))
}

fn panicked(panic: &str) -> Failure {
    tracing::error!(panic, "the agent's stream panicked");
    Failure { code: codes::AGENT_PANIC, message: "the agent panicked".into() }
}

fn rule_broken(fault: &Fault) -> Failure {
    tracing::error!(%fault, fix = %fault.fix, "the agent broke a rule of the protocol");
    let message = format!("the agent broke a rule of the protocol: {fault}").into();
    Failure { code: codes::RULE_BROKEN, message }
}

/// What whoever started the run is told about an error. What a remote agent answers is passed on
/// (a client has to learn that its token expired); where that agent is, and what its stream held,
/// is not.
pub fn sentence(error: &AgentError) -> Cow<'static, str> {
    /// How much of a remote agent's refusal is passed on, in characters.
    const MOST: usize = 500;
    match error {
        AgentError::Connect { .. } => "the agent cannot be reached".into(),
        AgentError::Status { .. } => {
            let answer: String = error.to_string().chars().take(MOST).collect();
            format!("the agent refused the run: {answer}").into()
        }
        AgentError::Idle { after } => format!("the agent has sent nothing for {after:?}").into(),
        AgentError::Headers { .. } => "the request to the agent could not be made".into(),
        AgentError::NoAnswer { .. } | AgentError::Transport { .. } => {
            "the connection to the agent failed".into()
        }
        AgentError::Redirect { .. } => "the agent is somewhere else".into(),
        AgentError::Cancelled => "the run was cancelled".into(),
        _ => "the agent's answer cannot be read".into(),
    }
}

/// What the log is told about an error: where it happened and why, without the contents of a stream
/// or an answer.
pub fn detail(error: &AgentError) -> String {
    match error {
        AgentError::Status { status, .. } => format!("HTTP {status}"),
        AgentError::Decode(error) => {
            let (frame, offset, path) = (error.frame(), error.offset(), error.path());
            let expected =
                error.read_error().map(|error| format!(": expected {}", error.expected()));
            let expected = expected.unwrap_or_default();
            let limit = error.limit().map(|limit| format!(": {limit}")).unwrap_or_default();
            format!("{:?} in frame {frame} at byte {offset}{path}{expected}{limit}", error.kind())
        }
        other => {
            let mut detail = other.to_string();
            let mut cause = other.source();
            while let Some(error) = cause {
                detail.push_str(": ");
                detail.push_str(&error.to_string());
                cause = error.source();
            }
            detail
        }
    }
}
